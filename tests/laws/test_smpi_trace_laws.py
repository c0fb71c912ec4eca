"""A trace of SMPI that is cut is refused; one of random messages is read as they were sent."""

import random
from pathlib import Path

import pytest
from oracles.paje_by_hand import PajeByHand, posted

from lepaute.errors import InputError
from lepaute.simulate.trace.smpi import convert


def test_a_file_that_is_cut_anywhere_is_refused(tmp_path: Path) -> None:
    plain, file = posted().text().encode(), tmp_path / "smpi.trace"
    for length in range(0, len(plain), 7):
        file.write_bytes(plain[:length])
        with pytest.raises(InputError, match=r"^[^\n]*$"):
            convert(file)


def test_messages_of_random_programs_find_their_calls(tmp_path: Path) -> None:
    """Blocking sends and receives in random order: each receive must get the peer, tag and size of its own send."""
    draw = random.Random(4)
    for _ in range(30):
        ranks = draw.randrange(2, 6)
        made = PajeByHand(ranks, "PMPI_Send", "PMPI_Recv")
        expected: list[list[tuple[int, int, float]]] = [[] for _ in range(ranks)]
        sent: list[tuple[int, int, int, int]] = []
        at_s = 0.0
        for _ in range(60):
            at_s += 0.01
            if sent and draw.random() < 0.5:
                # Messages of the same pair and tag do not overtake each other.
                one = draw.choice(sent)
                one = next(other for other in sent if other[:3] == one[:3])
                sent.remove(one)
                source, target, tag, size = one
                made.push(at_s, target, "PMPI_Recv", "9999")
                made.end(at_s, target, f"{source + 1}_{target + 1}_{tag}")
                made.pop(at_s, target)
                expected[target].append((source, tag, float(size)))
            else:
                source, target, tag = draw.randrange(ranks), draw.randrange(ranks), draw.randrange(3)
                size = draw.randrange(1000)
                made.push(at_s, source, "PMPI_Send", "1")
                made.start(at_s, source, f"{source + 1}_{target + 1}_{tag}", size)
                made.pop(at_s, source)
                sent.append((source, target, tag, size))
        (tmp_path / "t").write_text(made.text())
        trace = convert(tmp_path / "t")
        for rank in range(ranks):
            own = trace.named(("MPI_Recv",)) & (trace.rank == rank)
            found = zip(trace.peer[own].tolist(), trace.tag[own].tolist(), trace.size_bytes[own].tolist(), strict=True)
            assert list(found) == expected[rank]
