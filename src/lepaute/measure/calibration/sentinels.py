"""The sentinels of a calibration: when the next one is due on a node, and its run."""

import time

from lepaute.measure.calibration.attempt import Attempts, Site
from lepaute.measure.calibration.entries import RawFile
from lepaute.measure.experiment.workspace import Workspace
from lepaute.measure.loads import ALL
from lepaute.measure.plan import PlannedRun
from lepaute.measure.sentinel import OPERAND_BYTES, SENTINEL, call_seconds, calls_of, gap_s, sentinel_design


class Sentinels:
    """Runs them on all cores of a node, as often as a small share of the time allows."""

    def __init__(self, maker: Attempts, workspace: Workspace, seed: int) -> None:
        self._maker = maker
        self._seed = seed
        #: By node: the number of the next one, when it is due, when the last one ended.
        self._next: dict[str, int] = {}
        self._due_s: dict[str, float] = {}
        for entry in workspace.noted(RawFile):
            if entry.probe == SENTINEL:
                self._next[entry.node] = max(self._next.get(entry.node, 0), order_of(entry.name) + 1)

    def watch(self, site: Site, block: int) -> None:
        """Runs one where it is due. Raises what an attempt raises."""
        if time.monotonic() < self._due_s.get(site.name, float("-inf")):
            return
        begun_s = time.monotonic()
        about = site.measured[0]
        order = self._next.get(site.name, 0)
        self._next[site.name] = order + 1
        calls = calls_of(call_seconds(about.kernel_set.gflops))
        run = PlannedRun(
            block=block,
            name=f"{SENTINEL}{order}",
            probe=SENTINEL,
            cores=about.cores,
            seed=(self._seed + order) % 2**31,
            design=sentinel_design(calls),
            load=ALL,
            most_bytes=OPERAND_BYTES,
        )
        self._maker.make(run, 0, site)
        ended_s = time.monotonic()
        self._due_s[site.name] = ended_s + gap_s(ended_s - begun_s)


def order_of(name: str) -> int:
    """The number of a sentinel, from 0 on each node, by the name of its run."""
    return int(name.removeprefix(SENTINEL))
