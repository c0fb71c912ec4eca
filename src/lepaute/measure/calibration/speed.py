"""Which runs of probes met a slow machine, by its own speed: no counter shows a neighbour behind the hypervisor.

Two witnesses: the sentinels right before and after a run, and the run's own products of matrices, which are compared
with those of the same probe in other blocks. Whether a step was slow is the rule of `stats.disturbance`, as in a fit.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas

from lepaute.kit.text import duration, percent
from lepaute.measure.calibration.entries import AttemptEntry, Key, RawFile, SlowRun
from lepaute.measure.experiment.workspace import Workspace
from lepaute.measure.plan import SEMANTICS
from lepaute.measure.raw_files import read_raw, whole_lines
from lepaute.measure.sentinel import SENTINEL, duration_of
from lepaute.stats import disturbance
from lepaute.stats.algebra import nonnegative_solution, products, squares, times
from lepaute.stats.expanding import Floats, Integers

#: Blocks before a run is compared with those of other blocks.
_MIN_BLOCKS = 2
#: Between a sentinel and a run that it is beside.
_BESIDE_S = 30.0
#: A product whose size counts as this many more multiplications at least: what a call costs by itself.
_CALL_WORK = 1e5
#: Least squares, each without the calls that were slow by the one before; a call takes at least a clock's tick.
_FITS, _MIN_S = 3, 1e-9
_STEPS = "hpl_steps"


@dataclass(frozen=True, slots=True)
class _Products:
    """Calls of dgemm of one attempt, of all its cores, in the order of time on each.

    terms: 1, mn, mk, nk and mnk, shape (calls, 5);  step: of HPL, by number; -1 of a probe without;  cold: its first
    """

    attempt: AttemptEntry
    start_s: Floats
    duration_s: Floats
    terms: Floats
    core: Integers
    step: Integers
    cold: npt.NDArray[np.bool_]


class SpeedWitness:
    """Witness of the speed of one node; each attempt is read once."""

    def __init__(self, workspace: Workspace, node: str) -> None:
        self._workspace, self._node = workspace, node
        self._products: dict[Key, _Products | None] = {}
        self._sentinels: dict[Key, float] = {}

    def new_slow_runs(self) -> list[SlowRun]:
        """Runs that met a slow machine and are not noted yet, which are noted; none before _MIN_BLOCKS blocks."""
        attempts = [each for each in self._workspace.noted(AttemptEntry) if each.node == self._node and not each.peer]
        attempts = [attempt for attempt in attempts if attempt.probe != SEMANTICS]
        if len({attempt.block for attempt in attempts if attempt.probe != SENTINEL}) < _MIN_BLOCKS:
            return []
        self._read({attempt.key: attempt for attempt in attempts})
        causes = self._by_sentinels(attempts)
        for key, cause in self._by_steps().items():
            causes[key] = (*causes.get(key, ()), cause)
        known = {each.key for each in self._workspace.noted(SlowRun)}
        new = [SlowRun(*key, texts) for key, texts in causes.items() if key not in known]
        for each in new:
            self._workspace.note(each)
        return new

    def _read(self, attempts: dict[Key, AttemptEntry]) -> None:
        files: dict[Key, list[RawFile]] = {}
        for entry in self._workspace.noted(RawFile):
            if entry.key in attempts and entry.key not in self._products and entry.key not in self._sentinels:
                files.setdefault(entry.key, []).append(entry)
        for key, mine in files.items():
            paths = [self._workspace.folder / entry.member for entry in mine]
            if attempts[key].probe == SENTINEL:
                self._sentinels[key] = duration_of(map(whole_lines, paths))
                continue
            frames = [read_raw(path)[0].assign(core=entry.core) for path, entry in zip(paths, mine, strict=True)]
            self._products[key] = _products_of(attempts[key], frames)

    def _by_sentinels(self, attempts: Sequence[AttemptEntry]) -> dict[Key, tuple[str, ...]]:
        """Runs next to a sentinel that was slow."""
        by_date = sorted(attempts, key=lambda each: each.start_s)
        slow = disturbance.slow_sentinels(self._sentinels.values())
        slower: dict[Key, list[float]] = {}
        for before, after in itertools.pairwise(by_date):
            if after.start_s - before.start_s - before.wall_s > _BESIDE_S:
                continue
            for sentinel, run in ((before.key, after.key), (after.key, before.key)):
                if self._sentinels.get(sentinel) in slow and run not in self._sentinels:
                    slower.setdefault(run, []).append(slow[self._sentinels[sentinel]])
        return {run: disturbance.beside_slow_causes(shares) for run, shares in slower.items()}

    def _by_steps(self) -> dict[Key, str]:
        """Runs that were slow on all cores at once for a while."""
        by_name: dict[str, list[_Products]] = {}
        for product in self._products.values():
            if product is not None:
                by_name.setdefault(product.attempt.name, []).append(product)
        runs = [each for mine in by_name.values() for each in mine]
        expected = [seconds for mine in by_name.values() for seconds in _expected(mine)]
        parts = [
            disturbance.parts_of(each.core, each.start_s, each.duration_s, seconds, each.step)
            for each, seconds in zip(runs, expected, strict=True)
        ]
        if not any((part.expected_s >= disturbance.SHORTEST_PART_S).any() for part in parts):
            return {}
        usable = np.concatenate([part.expected_s for part in parts]) >= disturbance.SHORTEST_PART_S
        start_s, end_s, measured_s, expected_s = (
            np.concatenate([getattr(part, name) for part in parts])[usable]
            for name in ("start_s", "end_s", "measured_s", "expected_s")
        )
        run = np.repeat(np.arange(len(parts)), [len(part.first) for part in parts])[usable]
        core, cold = (
            np.concatenate([getattr(each, name)[part.first] for each, part in zip(runs, parts, strict=True)])[usable]
            for name in ("core", "cold")
        )
        group = 2 * np.array([list(by_name).index(each.attempt.name) for each in runs])[run] + cold
        in_steps = np.array([each.attempt.probe.startswith(_STEPS) for each in runs], dtype=np.int64)[run]
        level = disturbance.centred(np.log(measured_s / expected_s), group)
        result: dict[Key, str] = {}
        for stretch in disturbance.slow_stretches(start_s, end_s - start_s, level, run, core, in_steps):
            if stretch.lasts:
                more, length = percent(float(np.expm1(stretch.log_factor))), duration(stretch.end_s - stretch.start_s)
                result[runs[stretch.launch].attempt.key] = (
                    f"{disturbance.STEPS}: {more} longer on all cores for {length}"
                )
        return result


def _products_of(attempt: AttemptEntry, frames: Sequence[pandas.DataFrame]) -> _Products | None:
    """None of a probe without products of matrices."""
    calls = [frame[frame["kernel"].astype(str).str.startswith("dgemm")] for frame in frames if "kernel" in frame]
    table = pandas.concat(calls, ignore_index=True).sort_values(["core", "start_s"]) if calls else pandas.DataFrame()
    if table.empty:
        return None
    m, n, k, start_s, duration_s = (
        table[name].to_numpy(dtype=np.float64) for name in ("m", "n", "k", "start_s", "duration_s")
    )
    row, position, core = (table[name].to_numpy(dtype=np.int64) for name in ("design_row", "position", "core"))
    step = row * (int(position.max()) + 1) + position if attempt.probe.startswith(_STEPS) else np.full(len(row), -1)
    terms = np.column_stack([np.ones(len(m)), m * n, m * k, n * k, m * n * k])
    return _Products(attempt, start_s, np.maximum(duration_s, _MIN_S), terms, core, step, (position == 0) & (step >= 0))


def _expected(runs: Sequence[_Products]) -> list[Floats]:
    """Seconds of each call of runs of one probe under one load, as most of their calls have it."""
    terms, duration_s = (np.concatenate([run.terms for run in runs]), np.concatenate([run.duration_s for run in runs]))
    weight = 1.0 / (terms[:, -1] + _CALL_WORK)
    kept = np.ones(len(duration_s), dtype=np.bool_)
    expected_s = duration_s
    for _ in range(_FITS):
        columns = terms[kept] * weight[kept, None]
        scale = np.maximum(columns.max(axis=0), 1e-300)
        columns /= scale
        moment = products(columns, duration_s[kept] * weight[kept])
        expected_s = np.maximum(times(terms, nonnegative_solution(squares(columns), moment) / scale), _MIN_S)
        logs = np.log(duration_s / expected_s)
        kept = logs - np.median(logs) <= disturbance.slow_limit(logs)
    return np.split(expected_s, np.cumsum([len(run.duration_s) for run in runs])[:-1])
