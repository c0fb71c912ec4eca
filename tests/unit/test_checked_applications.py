"""Applications of one's own against recordings of the program: the first call that differs, with its line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from oracles.replays import call, write
from support_own import fixed

import lepaute as lp
from lepaute.cli.main import main
from lepaute.errors import InputError

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


def test_predict_holds_an_application_against_a_recording_first(tmp_path, capsys, output_of):
    (tmp_path / "pair.py").write_text(PAIR)
    rows = [row for rank in (0, 1) for row in rows_of(rank)[:3]]
    write(tmp_path / "run.parquet", rows)
    command = ["predict", f"{tmp_path}/pair.py", "-p", "dahu", "--runs", "1", "--check", f"{tmp_path}/run.parquet"]
    assert "Pair takes" in output_of(*command)
    assert main([*command, "--size", "81"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(
        "lepaute: rank 0, call 2: isend to rank 1, tag 0, 81 bytes (pair.py:7) in Pair, MPI_Isend"
    )
