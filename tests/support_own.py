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


ALL: list[Any] = []


def fixed(course: Any, ranks: int = 2) -> Fixed:
    ALL.append(course)
    return Fixed(ranks=ranks, which=len(ALL) - 1)


def time_of(course: Any, ranks: int = 2, **more: Any) -> float:
    return lp.predict(fixed(course, ranks), "dahu", runs=1, layers=NOTHING, **more).time_s.mean


def calls_of(course: Any, ranks: int = 2) -> Any:
    traced = lp.predict(fixed(course, ranks), "dahu", runs=1, layers=NOTHING, trace=lp.TraceRequest()).trace
    assert traced is not None
    return traced.to_frame()
