"""What tests of studies share; processes that tests start and kill run functions of this module."""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from lepaute.study import tune
from lepaute.study.configuration import Configuration, Configurations
from lepaute.study.evaluation import Evaluate, Outcome, Point, Trial, by_point, trials_of
from lepaute.study.results import Results
from lepaute.study.schema import parse_study
from lepaute.study.session import Session
from lepaute.study.trust import Judge
from lepaute.watch.store import open_store

TEXT = """\
question: whatif
base:
  application: {name: hpl, n: 1k, grid: 2x4}
  platform: dahu
factors:
  nb: {path: application.nb, levels: [64, 128]}
scenarios:
  base: {}
  half: {scale.bandwidth: 0.5}
derived: {cost: nodes * time_s}
"""


def configurations(text: str = TEXT) -> Configurations:
    return Configurations(parse_study(text))


def trials(runs: int, text: str = TEXT) -> list[Trial]:
    return trials_of(configurations(text).points(), runs)


def crossed(points: Sequence[Point], evaluate: Evaluate, runs: int, *, price: tune.Price = lambda _: {}) -> tune.Tuned:
    """All points with all seeds: what the other ways are checked against."""
    outcomes, judge = evaluate(trials_of(points, runs, 1)), Judge(evaluate)
    ranking = tune._ranked(outcomes, evaluate, "time_s", 1, judge(by_point(outcomes)), price)
    count, ended = len(outcomes), "all points simulated"
    return tune.Tuned(ranking, count, count, ended, len(points), "crossed", tuple(outcomes), trusts=judge.known)


class Murderous(Configurations):
    """Its point with nb 128 kills the process that simulates it, but not the one that made this."""

    def __init__(self, text: str = TEXT) -> None:
        super().__init__(parse_study(text))
        self.maker = os.getpid()

    def __getstate__(self) -> dict[str, object]:
        return super().__getstate__() | {"maker": self.maker}

    def at(self, point: Point) -> Configuration:
        if point["nb"] == 128 and os.getpid() != self.maker:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().at(point)


def evaluated(store: Path, runs: int, text: str = TEXT) -> tuple[list[Outcome], int, int]:
    """The outcomes of all trials, and how many were simulated and reused."""
    with open_store(store) as opened, Session(configurations(text), Results(opened)) as session:
        outcomes = session(trials(runs, text))
        return outcomes, session.simulated, session.reused


if __name__ == "__main__":
    evaluated(Path(sys.argv[1]), int(sys.argv[2]), TEXT.replace("n: 1k", f"n: {sys.argv[3]}"))
