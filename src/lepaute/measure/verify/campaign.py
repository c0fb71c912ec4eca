"""The campaign of a verification: predict every case, then run the real program in shuffled order."""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from math import fsum
from typing import Any

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.node_sets import fold_node_set
from lepaute.measure.nodes.channel import NodeLost
from lepaute.measure.verify import naming
from lepaute.measure.verify.real_run import RealRun, disturbances
from lepaute.simulate import Application, Hpl, Prediction
from lepaute.simulate.prediction.comparing import sd_on_one_day
from lepaute.stats.disturbance import MAX_SENTINEL_CHANGE, SENTINELS, sentinel_causes
from lepaute.stats.intervals import Interval, interval_of_mean

MAXIMUM_EXTRA_ATTEMPTS = 3  # of a run that was disturbed
#: Further attempts take as long as the planned runs at most, and may take so long anyway.
REPEATS_S = 60.0
MAX_FAILED_SENTINELS = 3  # in a row; then the campaign ends

# A run is given up after this much more than predicted: far beyond any disturbance, so that only a hang is cut. Before
# the program begins, ranks on many nodes, or on a busy one, may take a minute to start.
TIMEOUT_BASE_S = 300.0
TIMEOUT_FACTOR = 10.0


@dataclass(frozen=True, slots=True)
class Case:
    """One set of parameters and what was predicted for it before anything ran."""

    application: Application
    prediction: Prediction
    #: Standard deviation of the logarithm of the time of runs on one machine and day.
    sd_on_one_day: float = 0.0

    def interval_of_mean(self, count: int) -> "Interval":
        """The 95 % prediction interval for the mean of `count` real runs, in seconds."""
        times_s = [run.time_s for run in self.prediction.run_list]
        return interval_of_mean(
            times_s, self.sd_on_one_day, count, self.prediction.sampling_sd, self.prediction.controls
        )

    @property
    def hpl(self) -> Hpl:
        """The application, of a campaign of HPL."""
        assert isinstance(self.application, Hpl)
        return self.application

    @property
    def full_label(self) -> str:
        """With what tells it from others of its N and grid: N = 2000, NB = 128, WR12R2C4, 2 x 1."""
        return self.application.label.replace("  ", ", ")

    @property
    def label(self) -> str:
        return naming.label_of(self.application)


@dataclass(frozen=True, slots=True)
class Plan:
    """How the real runs are made; sealed together with the predictions."""

    repeats: int
    order_seed: int

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise InputError(f"--repeats is {self.repeats}; give at least 1")


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """One real run in its place of the campaign."""

    order: int  # 0 is the first run that was made
    case: int  # index into the cases
    repeat: int  # 0 to repeats - 1
    attempt: int  # 0, or more where an earlier attempt was disturbed
    started: str  # UTC, ISO 8601
    run: RealRun
    causes: tuple[str, ...]  # of disturbance; empty for a run that counts
    sentinel_before_s: float | None = None  # seconds of a call of the sentinel around the run; None if none was run
    sentinel_after_s: float | None = None

    @property
    def disturbed(self) -> bool:
        return bool(self.causes)


def predict_cases(
    applications: Iterable[Application],
    check: Callable[[Application], None],
    predict: Callable[[Any], Prediction],
    progress: Callable[[str, float], None],
    again: Callable[[Any], Prediction] | None = None,
) -> list[Case]:
    """Predictions of all cases, after `check` of each, which raises InputError if it cannot be run for real.

    again: the first runs of `predict` once more, on the same machines and days (see `sd_on_one_day`)
    progress(what, fraction done) is called before each prediction.
    """
    requested = list(applications)
    for application in requested:
        check(application)
    cases = []
    for index, application in enumerate(requested):
        progress(naming.label_of(application), index / len(requested))
        prediction = predict(application)
        sd = 0.0 if again is None else sd_on_one_day(prediction, again(application))
        cases.append(Case(application, prediction, sd))
    return cases


def run_cases(
    cases: list[Case],
    plan: Plan,
    run_once: Callable[[Any, float], RealRun],
    progress: Callable[[str, float], None],
    finished: Sequence[RecordedRun] = (),
    keep: Callable[[RecordedRun], None] = lambda _recorded: None,
    watch: Callable[[], float | None] = lambda: None,
    wanted: Sequence[tuple[int, int]] | None = None,
) -> list[RecordedRun]:
    """All real runs, in shuffled order, each disturbed one made again later, at most three times and, all together, for
    no longer than the planned runs took (or a minute); those of cases without an undisturbed run first.

    run_once(application, timeout_s) makes one real run.
    progress(what, fraction done) is called before each run; disturbed runs add to what is left.
    finished: runs of this campaign that were made before it was interrupted; the others are made, in the same order
    keep(recorded) is called as each run ends, before the next one starts.
    watch() runs a sentinel, before the first run and after each, which is that before the next one; see `confirmed`.
        One that fails marks the run before it as disturbed, and is run again before the next run.
    wanted: (case, repeat) of the runs to make, in the place of all repeats of all cases.
    Returns every run that was made, disturbed ones too, in the order in which they were made.
    """
    every = [(case, repeat) for repeat in range(plan.repeats) for case in range(len(cases))]
    order = [(*one, 0) for one in (every if wanted is None else wanted)]
    random.Random(plan.order_seed).shuffle(order)
    # At the end of the queue rather than at once: what disturbs now mostly lasts for seconds.
    order += [attempt for recorded in finished for attempt in _made_again(recorded)]
    made = {(recorded.case, recorded.repeat, recorded.attempt) for recorded in finished}
    queue = [attempt for attempt in order if attempt not in made]
    runs = list(finished)
    sentinels = [value for recorded in runs for value in _sentinels_of(recorded)]
    look = _Sentinels(watch)
    before_s: float | None = None
    while queue:
        # The first planned run, else the first of a case without an undisturbed run, else the first.
        undisturbed = {recorded.case for recorded in runs if not recorded.disturbed}
        urgent = (at for at, (case, _, attempt) in enumerate(queue) if not attempt or case not in undisturbed)
        case, repeat, attempt = queue.pop(next(urgent, 0))
        first_s, more_s = (fsum(run.run.time_s for run in runs if bool(run.attempt) is more) for more in (False, True))
        if attempt and more_s >= max(first_s, REPEATS_S):
            break
        again = f" (again: {attempt})" if attempt else ""
        progress(cases[case].label + again, len(runs) / (len(runs) + 1 + len(queue)))
        before_s = look.until_one_works() if before_s is None else before_s
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        run = run_once(cases[case].application, TIMEOUT_BASE_S + TIMEOUT_FACTOR * cases[case].prediction.time_s.mean)
        causes = disturbances(run.ranks, run.machine, run.nodes)
        order_of_run = runs[-1].order + 1 if runs else 0
        recorded = RecordedRun(order_of_run, case, repeat, attempt, started, run, causes, before_s)
        try:
            after_s = look.after(before_s)
        except BaseException as problem:  # an interrupt too: what was run is kept
            keep(replace(recorded, causes=(*causes, _failed_sentinel(problem))))
            raise
        if isinstance(after_s, EnvironmentProblem):
            causes, after_s = (*causes, _failed_sentinel(after_s)), None
        elif before_s is not None and after_s is not None:
            causes += sentinel_causes(before_s, after_s, sentinels)
        recorded = replace(recorded, causes=causes, sentinel_after_s=after_s)
        keep(recorded)
        runs.append(recorded)
        sentinels += _sentinels_of(recorded)
        before_s = after_s
        queue += [attempt for attempt in _made_again(recorded) if attempt not in made]
    return runs


class _Sentinels:
    """The sentinels of a campaign, with the number of those that have failed in a row."""

    def __init__(self, watch: Callable[[], float | None]) -> None:
        self._watch, self._failed = watch, 0

    def after(self, before_s: float | None) -> float | EnvironmentProblem | None:
        """The sentinel after a run, or why it failed.

        Raises EnvironmentProblem if too many have failed in a row, NodeLost where a node is lost.
        """
        try:
            value = confirmed(self._watch, before_s)
        except NodeLost:
            raise
        except EnvironmentProblem as problem:
            self._failed += 1
            if self._failed >= MAX_FAILED_SENTINELS:
                raise EnvironmentProblem(
                    f"{self._failed} sentinels failed in a row, the last one so: {problem}; "
                    "the runs that were made are kept"
                ) from problem
            return problem
        self._failed = 0
        return value

    def until_one_works(self) -> float | None:
        """The sentinel before a run; raises EnvironmentProblem if too many have failed."""
        while isinstance(value := self.after(None), EnvironmentProblem):
            pass
        return value


def _failed_sentinel(problem: BaseException) -> str:
    return f"{SENTINELS}: the one after the run failed: {str(problem) or type(problem).__name__}"


def confirmed(watch: Callable[[], float | None], before_s: float | None) -> float | None:
    """A sentinel; where it is the first, or much slower than the one before, the faster one of two: a hiccup of the
    machine while a sentinel ran says nothing of the run."""
    value = watch()
    if value is None or (before_s is not None and value <= (1.0 + MAX_SENTINEL_CHANGE) * before_s):
        return value
    again = watch()
    return value if again is None else min(value, again)


def _sentinels_of(recorded: RecordedRun) -> list[float]:
    return [value for value in (recorded.sentinel_before_s, recorded.sentinel_after_s) if value is not None]


def _made_again(recorded: RecordedRun) -> list[tuple[int, int, int]]:
    """(case, repeat, attempt) that follows a disturbed run; none after the last attempt."""
    if not recorded.disturbed or recorded.attempt >= MAXIMUM_EXTRA_ATTEMPTS:
        return []
    return [(recorded.case, recorded.repeat, recorded.attempt + 1)]


def run_record(case: Case, recorded: RecordedRun) -> dict[str, Any]:
    """One run as a flat row: a line of runs.csv."""
    shares = [rank.cpu_s / rank.wall_s for rank in recorded.run.ranks if rank.wall_s > 0]
    application, rate = case.application, case.application.rate
    return {
        "order": recorded.order,
        **naming.columns_of_run(application),
        **{name: getattr(recorded, name) for name in ("case", "repeat", "attempt", "started")},
        "time_s": recorded.run.time_s,
        **({} if rate is None else {rate.key: rate.of(application, recorded.run.time_s)}),
        "disturbed": recorded.disturbed,
        "causes": "; ".join(recorded.causes),
        "least_cpu_share": min(shares) if shares else None,
        "sentinel_before_s": recorded.sentinel_before_s,
        "sentinel_after_s": recorded.sentinel_after_s,
        "nodes": fold_node_set(tuple(node.name for node in recorded.run.nodes)) if recorded.run.nodes else None,
        **asdict(recorded.run.machine),
    }


def measured_record(case: Case, recorded: RecordedRun) -> dict[str, Any]:
    """One run as JSON shows it: the row with its ranks, without what the case says already."""
    row = run_record(case, recorded)
    for key in (*naming.columns_of_run(case.application), "case"):
        del row[key]
    return {**row, "causes": list(recorded.causes), "ranks": [asdict(rank) for rank in recorded.run.ranks]}
