"""Applications whose course depends on what messages bring: they go on step by step with the simulation."""

from typing import Any

import pytest
from support_own import calls_of, time_of

import lepaute as lp
from lepaute.errors import InputError, SimulationError


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
