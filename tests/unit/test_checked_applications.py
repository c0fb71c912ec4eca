"""Applications of one's own against recordings, and step by step with the simulation."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from oracles.replays import call, write
from support_own import calls_of, fixed, time_of

import lepaute as lp
from lepaute.cli.main import main
from lepaute.errors import InputError, SimulationError

FILE = Path(__file__).name
Rows = list[dict[str, Any]]


def course(me: Any, app: Any) -> Any:
    """One of each kind of call, the other rank being its neighbour."""
    other = 1 - me.rank
    for _ in me.steps(2):
        yield me.exchange([(other, 80)])
        yield me.compute(app.unit, 1.0)
        yield me.allreduce(8)
    requests = [(yield me.irecv(tag=3)), (yield me.isend(other, 800, 3))]
    yield me.waitall(requests)
    half = yield me.split(me.rank)
    yield half.barrier()
    yield me.bcast(100, root=1)
    yield me.alltoall(16)
    if me.rank == 0:
        yield me.send(1, 24, 5)
    else:
        yield me.probe()
        yield me.receive(0)


def rows_of(rank: int) -> Rows:
    """What a program in C would have recorded; the last of it by MPI_Sendrecv."""
    other, rows = 1 - rank, []
    for step in range(2):
        rows += [
            call(rank, "Irecv", other, completion=step),
            call(rank, "Isend", other, 80, completion=step),
            call(rank, "Waitall", completion=step),
            call(rank, "Test", n=4),
            call(rank, "Allreduce", size_bytes=8, comm=0),
        ]
    rows += [
        call(rank, "Sendrecv", other, 800, 3),
        call(rank, "Sendrecv_arrival", other, 800, 3),
        call(rank, "Comm_split", comm=0),
        call(rank, "Barrier", comm=1 + rank),
        call(rank, "Bcast", 1, 100, comm=0),
        call(rank, "Alltoall", size_bytes=32, comm=0),
    ]
    if rank == 0:
        return [*rows, call(rank, "Send", 1, 24, 5)]
    looked = [call(rank, "Iprobe", 0, tag=5, n=7), call(rank, "Iprobe", 0, tag=5)]
    return [*rows, *looked, call(rank, "Recv", 0, 24, 5)]


def checked(folder: Path, change: Callable[[Rows], Rows] = lambda rows: rows, **metadata: Any) -> Any:
    rows = [change(rows_of(0)), rows_of(1)]
    return lp.check(fixed(course), write(folder / "run.parquet", [*rows[0], *rows[1]], **metadata))


def test_an_application_makes_the_calls_of_its_program(tmp_path: Path) -> None:
    found = checked(tmp_path)
    assert found.same, found.text
    assert found.calls == 2 * (2 * 4 + 3 + 4 + 1) + 1
    assert str(found) == (
        "Fixed makes the 33 calls of run.parquet on 2 ranks, in the same order with the same peers and sizes"
    )


def test_what_makes_communicators_counts_where_the_application_makes_them_too(tmp_path: Path) -> None:
    def preceded(rank: int) -> Rows:
        made = [call(rank, "Cart_create", comm=0), call(rank, "Comm_dup", comm=0)]
        return [*made, *rows_of(rank)]

    found = lp.check(fixed(course), write(tmp_path / "run.parquet", [*preceded(0), *preceded(1)]))
    assert found.same, found.text
    assert found.text.startswith("Fixed makes the 33 calls of run.parquet")
    assert found.text.endswith("; left out: 4 calls that make communicators")
    found = lp.check(fixed(course), write(tmp_path / "run.parquet", [*preceded(0), *preceded(1)[:4]]))
    assert (found.rank, found.call) == (1, 3)


def without(place: int) -> Callable[[Rows], Rows]:
    return lambda rows: rows[:place] + rows[place + 1 :]


def changed(place: int, **values: Any) -> Callable[[Rows], Rows]:
    return lambda rows: [row | (values if at == place else {}) for at, row in enumerate(rows)]


DIFFERENT: dict[str, tuple[Callable[[Rows], Rows], int, str]] = {
    "size": (changed(6, size_bytes=88.0), 6, "isend to rank 1, tag 0, 80 bytes (LINE) in Fixed, MPI_Isend to rank 1, "),
    "peer": (
        changed(0, peer=0),
        1,
        "irecv from rank 1, tag 0 (LINE) in Fixed, MPI_Irecv from rank 0, tag 0, at 1.00 s",
    ),
    "tag": (changed(16, tag=4), 16, "send to rank 1, tag 5, 24 bytes (LINE) in Fixed, MPI_Send to rank 1, tag 4, 24 b"),
    "order": (
        lambda rows: [rows[1], rows[0], *rows[2:]],
        1,
        "irecv from rank 1, tag 0 (LINE) in Fixed, MPI_Isend to rank 1, tag 0, 80 bytes, at 1.00 s in run.parquet",
    ),
    "a collective": (
        changed(9, name="MPI_Barrier"),
        8,
        "allreduce of 8 bytes, on 2 ranks (LINE) in Fixed, MPI_Barrier, on 2 ranks, at 10.0 s in run.parquet",
    ),
    "root": (
        changed(14, peer=0),
        14,
        "bcast of 100 bytes, root 1, on 2 ranks (LINE) in Fixed, MPI_Bcast of 100 bytes,",
    ),
    "communicator": (changed(13, comm=0), 13, "barrier, on 1 rank (LINE) in Fixed, MPI_Barrier, on 2 ranks, at 14.0 s"),
    "requests": (changed(1, completion=-1), 3, "wait for 2 requests (LINE) in Fixed, MPI_Waitall for 1 request, at "),
    "less": (without(16), 16, "send to rank 1, tag 5, 24 bytes (LINE) in Fixed, nothing more in run.parquet"),
    "more": (
        lambda rows: [*rows, call(0, "Send", 1, 24, 5)],
        17,
        "nothing more in Fixed, MPI_Send to rank 1, tag 5, 24 bytes, at 18.0 s in run.parquet",
    ),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_the_first_call_that_differs_is_told_with_its_line(what: str, tmp_path: Path) -> None:
    change, number, words = DIFFERENT[what]
    found = checked(tmp_path, change)
    assert not found.same
    assert (found.rank, found.call) == (0, number)
    if what != "more":
        assert found.line.startswith(f"{FILE}:")
    assert found.text.startswith(f"rank 0, call {number}: {words.replace('LINE', found.line)}")


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it is the trace of a prediction"):
        checked(tmp_path, source="simulation")
    path = write(tmp_path / "run.parquet", [*rows_of(0), *rows_of(1)])
    with pytest.raises(InputError, match=r"Fixed has 3 ranks, .*run.parquet 2"):
        lp.check(fixed(course, 3), path)

    def asking(me: Any, app: Any) -> Any:
        yield me.send(1 - me.rank, 8)
        yield me.send((yield me.receive()).source, 8)

    with pytest.raises(InputError, match=r"its course depends on what comes: it cannot be compared with a recording"):
        lp.check(fixed(asking), path)
    with pytest.raises(InputError, match=r"give one that derives from lepaute.Application"):
        lp.check(lp.Hpl(n=100, p=1, q=1), path)  # type: ignore[arg-type]


PAIR = """
import lepaute as lp
class Pair(lp.Application):
    ranks: int = 2
    size: int = 80
    def run(self, me):
        yield me.exchange([(1 - me.rank, self.size)])
"""


def test_predict_holds_an_application_against_a_recording_first(tmp_path, capsys):
    (tmp_path / "pair.py").write_text(PAIR)
    rows = [row for rank in (0, 1) for row in rows_of(rank)[:3]]
    write(tmp_path / "run.parquet", rows)
    command = ["predict", f"{tmp_path}/pair.py", "-p", "dahu", "--runs", "1", "--check", f"{tmp_path}/run.parquet"]
    assert main(command) == 0
    said = capsys.readouterr()
    assert "Pair takes" in said.out
    assert said.err.startswith("lepaute: Pair makes the 6 calls of run.parquet on 2 ranks")
    assert main([*command, "--size", "81"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(
        "lepaute: rank 0, call 2: isend to rank 1, tag 0, 81 bytes (pair.py:7) in Pair, MPI_Isend"
    )


def test_a_program_that_asks_what_came_goes_on_with_that() -> None:
    seen: list[Any] = []

    def course(me: Any, app: Any) -> Any:
        if me.rank == 0:
            for _ in range(2):
                came = yield me.receive()
                yield me.send(came.source, came.bytes + 1, value=came.value * 2)
            first, second = (yield me.irecv(1)), (yield me.irecv(2))
            any_ = yield me.waitany([first, second])
            rest = yield me.waitall([first, second])
            seen.extend([any_.source, any_.request is second, [None if each is None else each.source for each in rest]])
        else:
            yield me.compute(app.unit, 3.0 - me.rank)
            request = yield me.isend(0, 8 * me.rank, tag=me.rank, value=me.rank)
            yield me.wait(request)
            back = yield me.receive(0)
            seen.append((me.rank, back.bytes, back.value))
            yield me.compute(app.unit, 3.0 - me.rank)
            yield me.send(0, 8)

    assert time_of(course, 3) == pytest.approx(4.0, rel=1e-4)
    assert seen == [(2, 17.0, 4), (1, 9.0, 2), 2, True, [1, None]]
    seen.clear()
    assert time_of(course, 3) == time_of(course, 3)


class Both(lp.Application):
    """A program with all kinds of calls, that asks what came or does not."""

    ranks: int = 48
    asks: bool = False
    unit = lp.Cost(1e-4, error=0.1, noise=0.1)

    def run(self, me: Any) -> Any:
        left, right = (me.rank - 1) % me.size, (me.rank + 1) % me.size
        for step in me.steps(3):
            yield me.compute(self.unit, 1.0 + (7 * me.rank + step) % 5)
            yield me.exchange([((me.rank + by) % me.size, size) for by in (1, -1, 7, -7) for size in (800, 2e5)])
            yield me.send(right, 100) if me.rank % 2 else me.receive(left)
            yield me.receive(left) if me.rank % 2 else me.send(right, 100)
            requests = [(yield me.irecv(left, 5)), (yield me.isend(right, 1e5, 5))]
            got = yield me.waitall(requests)
            if self.asks:
                assert got[0].source == left
                assert got[1] is None
            some = yield me.split((me.rank + step) % 3, key=-me.rank)
            yield some.allreduce(2000)
            yield me.isend(right, 300 if step else 2e5, 6)
            found = yield me.probe(left, 6)
            if self.asks:
                assert (found.source, found.bytes) == (left, 300.0 if step else 2e5)
            yield me.receive(left, 6)
            yield me.allreduce(1000)
            yield me.alltoall(3000)
            yield me.barrier()


def test_a_program_takes_as_long_step_by_step_and_with_messages_in_the_order_of_dates() -> None:
    known = lp.simulate_one(Both(), "dahu", 3)
    asked = lp.simulate_one(Both(asks=True), "dahu", 3)
    assert (asked.time_s, asked.messages) == (known.time_s, known.messages)
    by_date = Both()
    by_date.on().laid().parameters.by_date = True
    assert lp.simulate_one(by_date, "dahu", 3).time_s == known.time_s


def test_values_reach_the_receive_that_gets_their_message_whatever_the_order_of_waits() -> None:
    seen: list[int] = []

    def course(me: Any, app: Any) -> Any:
        if me.rank == 0:
            for value in range(3):
                yield me.send(1, 8, value=value)
            yield me.exchange([(1, 8)])
            yield me.send(1, 8, value=3)
        else:
            requests = [(yield me.irecv(0)), (yield me.irecv(0)), (yield me.irecv(0))]
            for request in reversed(requests):
                came = yield me.wait(request)
                seen.append(came.value)
            yield me.exchange([(0, 8)])
            seen.append((yield me.receive()).value)

    time_of(course)
    assert seen == [2, 1, 0, 3]


def test_a_probe_tells_of_the_first_message_that_a_receive_would_take_and_leaves_it() -> None:
    seen: list[Any] = []

    def course(me: Any, app: Any) -> Any:
        if me.rank == 0:
            request = yield me.irecv(1)  # takes the first of all, which no probe sees
            for _ in range(3):
                found = yield me.probe()
                assert (yield me.probe()) == found
                got = yield me.receive(found.source, found.tag)
                seen.append((found.source, found.tag, found.bytes, found.value, got.value))
            found = yield me.probe(2, 8)
            seen.append((found.source, found.bytes))
            yield me.receive(2, 7)
            yield me.receive(2, 8)
            yield me.wait(request)
        else:
            yield me.compute(app.unit, 4.0 - me.rank)
            if me.rank == 1:
                yield me.send(0, 8, value="matched")
            yield me.send(0, 100.0 * me.rank, tag=me.rank, value=me.rank)
            if me.rank == 2:
                yield me.compute(app.unit, 4.0)
                yield me.isend(0, 9, 7)
                yield me.isend(0, 2e6, 8)

    rows = calls_of(course, 4)
    assert seen == [(3, 3, 300.0, None, 3), (2, 2, 200.0, None, 2), (1, 1, 100.0, None, 1), (2, 2e6)]
    probes = rows[(rows["rank"] == 0) & (rows["name"] == "MPI_Probe")]
    assert probes["peer"].tolist() == [3, 3, 2, 2, 1, 1, 2]
    assert probes["tag"].tolist() == [3, 3, 2, 2, 1, 1, 8]
    assert probes["start_s"].iloc[-1] + probes["duration_s"].iloc[-1] == pytest.approx(6.0, rel=1e-3)


@pytest.mark.parametrize("asks", [False, True])
def test_a_split_gives_each_colour_its_ranks_in_the_order_of_keys(asks: bool) -> None:
    seen = {}

    def course(me: Any, app: Any) -> Any:
        if asks:
            yield me.send((me.rank + 1) % me.size, 8)
            assert (yield me.receive()).source == (me.rank - 1) % me.size
        row = yield me.split(me.rank % 2, key=-me.rank)
        seen[me.rank] = (row.ranks, row.rank)
        none = yield me.split(None if me.rank else 0)
        assert (none is None) == (me.rank != 0)
        yield row.alltoall(100)
        yield row.bcast(100, root=1)
        half = yield row.split(row.rank // 2)
        yield half.barrier()
        seen[me.rank] += (half.ranks,)

    time_of(course, 5)
    assert seen == {
        0: ((4, 2, 0), 2, (0,)), 1: ((3, 1), 1, (3, 1)), 2: ((4, 2, 0), 1, (4, 2)), 3: ((3, 1), 0, (3, 1)),
        4: ((4, 2, 0), 0, (4, 2)),
    }  # fmt: skip


ASKED = {
    "deadlock": (
        lambda me: me.receive(1 - me.rank),
        r"deadlock: rank 0 and 1 other in receive|deadlock: rank 0 in receive \(",
    ),
    "collectives": (
        lambda me: me.barrier() if me.rank else me.allreduce(8),
        r"rank 1 calls barrier \(.*py:\d+\) where rank 0 ",
    ),
    "error": (lambda me: me.send(1 // 0, 8), r"py:\d+: ZeroDivisionError: .* on rank 0"),
    "split": (
        lambda me: me.split(0) if me.rank else me.barrier(),
        r"rank 1 calls allgather of 8 bytes \(.*py:\d+\) where rank 0 calls barrier \(",
    ),
    "probe": (lambda me: me.probe(tag=9), r"deadlock: rank 0 and 1 other in probe \(.*\) from any rank, tag 9"),
}


@pytest.mark.parametrize("what", ASKED)
def test_what_goes_wrong_step_by_step_is_told_with_ranks_calls_and_lines(what: str) -> None:
    last, message = ASKED[what]

    def course(me: Any, app: Any) -> Any:
        yield me.exchange([(1 - me.rank, 8)])
        yield me.send(1 - me.rank, 8)
        assert (yield me.receive()).source == 1 - me.rank
        yield last(me)

    with pytest.raises((InputError, SimulationError), match=message):
        time_of(course)
