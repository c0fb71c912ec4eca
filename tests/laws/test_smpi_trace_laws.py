"""Whatever is done to a trace of SMPI, it is read, or refused in one line."""

import random
from pathlib import Path

import pytest
from oracles.paje_by_hand import PajeByHand, exchange

from lepaute.errors import InputError
from lepaute.trace import Trace
from lepaute.trace.smpi import convert

MUTATIONS = 2000
PIECES = (
    b"",
    b"0",
    b"-1",
    b"1e999",
    b"nan",
    b"1_2_3_4",
    b'"',
    b"%",
    b"#",
    b"\n",
    b"\0",
    b"\xff",
    b"9" * 400,
    b" ",
    b"12",
)


def base() -> bytes:
    made = exchange()
    made.values += ["PMPI_Sendrecv", "PMPI_Irecv", "PMPI_Waitall"]
    made.lines += [f'5 {100 + place} 2 {made.values[place]} "0 0 1"' for place in range(5, len(made.values))]
    for rank, other in ((0, 1), (1, 0)):
        made.state(4.0, 4.0, rank, "PMPI_Irecv", "50")
        made.push(4.0, rank, "PMPI_Sendrecv", "50")
        made.start(4.0, rank, f"{rank + 1}_{other}_3", 400)
    for rank, other in ((0, 1), (1, 0)):
        made.end(5.0, rank, f"{other}_{rank + 1}_3")
        made.pop(5.0, rank)
        made.state(5.0, 6.0, rank, "PMPI_Waitall", "1.000000")
    return made.text().encode()


def mutated(text: bytes, draw: random.Random) -> bytes:
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        at = draw.randrange(len(text) or 1)
        what = draw.randrange(6)
        if what == 0:
            text = text[:at]
        elif what == 1:
            text = text[:at] + bytes([draw.randrange(256)]) + text[at + 1 :]
        elif what == 2:
            text = text[:at] + draw.choice(PIECES) + text[at + draw.randrange(4) :]
        else:
            lines = text.splitlines(keepends=True)
            i, j = draw.randrange(len(lines) or 1), draw.randrange(len(lines) or 1)
            if not lines:
                continue
            if what == 3:
                lines[i], lines[j] = lines[j], lines[i]
            elif what == 4:
                lines.insert(i, lines[j])
            else:
                words = lines[i].split()
                if words:
                    words[draw.randrange(len(words))] = draw.choice(PIECES)
                lines[i] = b" ".join(words) + b"\n"
            text = b"".join(lines)
    return text


def outcome(file: Path) -> Trace | str:
    """The trace, or why there is none; anything else that is raised fails the test."""
    try:
        return convert(file)
    except InputError as problem:
        return str(problem)


@pytest.mark.slow
def test_damaged_files_are_read_or_refused_in_one_line(tmp_path: Path) -> None:
    draw = random.Random(20)
    plain, file = base(), tmp_path / "smpi.trace"
    file.write_bytes(plain)
    assert len(convert(file)) == 5 + 2 * 4
    refused = 0
    for _ in range(MUTATIONS):
        damaged = mutated(plain, draw)
        file.write_bytes(damaged)
        found = outcome(file)
        if isinstance(found, Trace):
            assert (found.duration_s >= 0).all()
        else:
            refused += 1
            assert found.startswith(str(file)), found
            assert len(found.splitlines()) == 1, (found, damaged)
            assert len(found) < 600
    assert 0.3 * MUTATIONS < refused < MUTATIONS


def test_a_file_that_is_cut_anywhere_is_refused(tmp_path: Path) -> None:
    plain, file = base(), tmp_path / "smpi.trace"
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
