"""Schedules in GOAL: in which order a rank begins what the file does not order, and what each waits for."""

from pathlib import Path
from typing import Any

import pytest
from oracles.replays import NOTHING, replayed

import lepaute as lp
from lepaute.errors import InputError
from lepaute.simulate.trace.goal import convert

BINOMIAL = Path(__file__).parents[1] / "data" / "goal" / "binomial_8.goal"


class Binomial(lp.Application):
    """The messages of BINOMIAL."""

    ranks: int = 8

    def run(self, me: Any) -> Any:
        if me.rank:
            yield me.receive(me.rank - (1 << me.rank.bit_length() - 1))
        below = [me.rank + stride for stride in (1, 2, 4) if me.rank < stride]
        for rank in below:
            yield me.isend(rank, 8)


def schedule(path: Path, *ranks: str) -> Path:
    """A file with these lines of each rank, separated by semicolons."""
    blocks = [f"rank {number} {{\n" + body.replace("; ", "\n") + "\n}\n" for number, body in enumerate(ranks)]
    path.write_text(f"num_ranks {len(ranks)}\n\n" + "\n".join(blocks))
    return path


def calls(path: Path, rank: int) -> list[tuple[str, int, float]]:
    made = convert(path)
    mine = made.where(made.rank == rank)
    names = [made.names[code].removeprefix("MPI_") for code in mine.name.tolist()]
    return list(zip(names, mine.tag.tolist(), mine.start_s.tolist(), strict=True))


def test_a_tree_takes_what_a_program_with_its_messages_takes() -> None:
    assert len(lp.read_trace(BINOMIAL)) == 7 * 2 + 11  # both sides, and on each rank a wait for what it gets and sends
    program_s = lp.predict(Binomial(), "dahu", runs=1, layers=NOTHING).time_s.mean
    assert replayed(BINOMIAL).time_s.mean == pytest.approx(program_s, rel=0.02)


def test_what_is_not_ordered_begins_before_a_wait_and_what_requires_others_after_them(tmp_path: Path) -> None:
    path = schedule(
        tmp_path / "two.goal",
        "a: recv 8b from 1 tag 1; b: calc 500; c: send 8b to 1 tag 2; d: calc 1000 cpu 0; b requires a; d requires c",
        "a: recv 8b from 0 tag 2; b: send 8b to 0 tag 1; b requires a",  # in the order of the file all would wait
    )
    first = [("Irecv", 1, 0.0), ("Isend", 2, 0.0), ("Waitall", -1, 0.0), ("computing", -1, 0.0)]
    found = [(name, tag, round(start_s * 1e9)) for name, tag, start_s in calls(path, 0)]
    assert found == [*first, ("Waitall", -1, 1000), ("computing", -1, 1000)]
    assert [name for name, _, _ in calls(path, 1)] == ["Irecv", "Waitall", "Isend", "Waitall"]
    assert replayed(path, own_code=1.0).time_s.mean < 1e-4


def test_computing_is_nanoseconds_one_after_the_other_and_irequires_waits_for_a_beginning(tmp_path: Path) -> None:
    path = schedule(
        tmp_path / "one.goal",
        "x: calc 2000000000; y: calc 1000000000; y irequires x; r: recv 1000000b from 1; z: calc 7; z irequires r",
        "calc 1; s: send 1000000b to 0 nic 1",
    )
    assert replayed(path).time_s.mean == pytest.approx(3.0, rel=1e-3)
    names = [name for name, _, _ in calls(path, 0)]
    assert names.index("Irecv") < names.index("Waitall") == len(names) - 1  # nothing waits for its end


def test_any_source_and_tag_are_those_that_come(tmp_path: Path) -> None:
    path = schedule(
        tmp_path / "any.goal", "recv 8b from -1 tag -1; recv 8b from 4294967295 tag 3", "send 8b to 0 tag 3",
        "send 8b to 0 tag 3",
    )  # fmt: skip
    assert replayed(path).time_s.mean > 0.0


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("send 8b to 7", "line 4: 'send 8b to 7': there is no such rank or tag"),
        ("send 8b to -1", "line 4: 'send 8b to -1': there is no such rank or tag"),
        ("send 8 to 0", "line 4: 'send 8 to 0': neither an operation nor an order of two"),
        ("calc fast", "line 4: 'calc fast': neither"),
        ("a requires b", "line 4: 'a requires b': a label that is not defined above in this rank"),
        ("a: calc 1; a: calc 2", "line 5: 'a: calc 2': the label is defined twice"),
        ("recv 8b from 0", "line 4: rank 0 receives what nobody sends"),
        ("a: calc 1; b: calc 1; a requires b; b requires a", "line 4: requires what does not begin before it"),
        ("rank 1 {", "line 4: 'rank 1 {': neither an operation"),
    ],
)
def test_a_line_that_cannot_be_is_named(body: str, complaint: str, tmp_path: Path) -> None:
    path = schedule(tmp_path / "bad.goal", body)
    with pytest.raises(InputError) as raised:
        convert(path)
    assert str(raised.value).startswith(f"{path}, {complaint}")


def test_a_message_has_one_size(tmp_path: Path) -> None:
    path = schedule(tmp_path / "sizes.goal", "send 80b to 1", "recv 8b from 0")
    with pytest.raises(
        InputError, match=r"line \d+: recv of 8 bytes, which is one message with line 4: send of 80 bytes"
    ):
        convert(path)


def test_a_schedule_that_is_cut_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.goal"
    path.write_text("num_ranks 2\nrank 0 {\ncalc 1\n")
    with pytest.raises(InputError, match="rank 0 does not end"):
        lp.read_trace(path)
    path.write_text("num_ranks 2\nrank 2 {\n}\n")
    with pytest.raises(InputError, match=r"line 2: 'rank 2 {': not a rank, one of 2"):
        lp.read_trace(path)
