"""Applications of one's own for tests: ranks that do what they are told."""

from typing import Any

import lepaute as lp

NOTHING = lp.Layers.only()


class Fixed(lp.Application):
    """Ranks that do what they are told: a function of `me` by its place in ALL."""

    ranks: int = 2
    which: int = 0
    unit = lp.Cost(1.0)

    def run(self, me: Any) -> Any:
        yield from ALL[self.which](me, self)


class Mixed(lp.Application):
    """Messages of both kinds, and operations of all ranks; in parts, within and beside a part of the ranks."""

    ranks: int = 5
    in_parts: bool = False
    unit = lp.Cost(1.0)

    def run(self, me: Any) -> Any:
        if self.in_parts:
            part = yield me.split(me.rank % 2)
        for step in me.steps(6):
            yield me.compute(self.unit, 1e-4 * (1 + (me.rank + step) % 3))
            sent = yield me.isend((me.rank + 1) % me.size, 3000, 4)
            got = yield me.irecv((me.rank - 2) % me.size, 3)
            yield me.send((me.rank + 2) % me.size, 200_000 if step % 2 else 100, 3)
            yield me.wait(got)
            yield me.receive((me.rank - 1) % me.size, 4)
            yield me.wait(sent)
            if self.in_parts:
                yield part.allreduce(80)
                yield me.bcast(1000, step % me.size)
                yield me.alltoall(500)


ALL: list[Any] = []


def fixed(course: Any, ranks: int = 2) -> Fixed:
    ALL.append(course)
    return Fixed(ranks=ranks, which=len(ALL) - 1)


def time_of(course: Any, ranks: int = 2, **more: Any) -> float:
    return lp.predict(fixed(course, ranks), "dahu", runs=1, layers=NOTHING, **more).time_s.mean


def calls_of(course: Any, ranks: int = 2) -> Any:
    traced = lp.predict(fixed(course, ranks), "dahu", runs=1, layers=NOTHING, trace=lp.TraceRequest()).trace
    return traced.to_frame()
