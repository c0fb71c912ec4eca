"""A session evaluates trials: each simulation once, results kept as they come, in the order of the trials; how long
that will take is estimated before it starts.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from lepaute.errors import InputError, LepauteError
from lepaute.kit.text import counted, duration
from lepaute.simulate.application import Application
from lepaute.simulate.prediction import controls, predicting
from lepaute.simulate.tasks import slowdown
from lepaute.study.configuration import Configuration, Configurations
from lepaute.study.evaluation import Outcome, Point, Trial
from lepaute.study.pools import Group, Pool, Threads
from lepaute.study.results import Results, Simulated

#: A group has no more trials: what a killed worker had done of it is simulated again.
MAX_OF_GROUP = 500
#: Of an event, before any simulation of the session has told.
ROUGH_EVENT_S = 2e-7
#: Overhead of a simulation, one after the other: making its configuration, sending it, writing its result; and of a
#: study: loading what computes and draws its answer.
OVERHEAD_S, START_S = 0.002, 1.0
#: Where more seconds are expected, it is measured what else this machine computes.
WORTH_MEASURING_S = 0.5


class Session:
    """An `Evaluate`; a context that ends its workers and writes what is not written yet.

    results : where results are kept;  pool : what simulates, threads of this process unless given
    progress: called with a sentence and the share of the work of a call that is behind
    most    : simulations that all calls together may run; those that judge or price a point do not count
    simulated, reused : trials that were simulated here, and those whose result was known before, without those that
        judge or price a point;  further : those, simulated here;  cpu_s : that simulating took
    """

    def __init__(
        self,
        configurations: Configurations,
        results: Results | None = None,
        pool: Pool | None = None,
        *,
        progress: Callable[[str, float], None] | None = None,
        most: int | None = None,
    ) -> None:
        self.configurations = configurations
        self.results = results or Results()
        self.pool = pool or Threads(configurations)
        self.simulated = self.reused = self.further = 0
        self.cpu_s = 0.0
        self.expected: Estimate | None = None  # of the whole study, for the progress
        self._progress, self._most = progress, most
        self._began_s = time.monotonic()
        self._events = 0.0  # of what was simulated
        self._keys: set[str] = set()  # the same

    def is_over(self, share: float = 1.0) -> bool:
        """Whether this share of the seconds that the study may take is behind."""
        seconds = self.configurations.study.budget.seconds
        return seconds is not None and time.monotonic() - self._began_s > share * seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        try:
            self.pool.close()
        finally:
            self.results.write()

    def __call__(self, trials: Sequence[Trial]) -> list[Outcome]:
        """The outcomes, in the order of the trials.

        Raises InputError if more simulations would be needed than are allowed; nothing is simulated then.
        """
        found: dict[Trial, Simulated] = {}
        configured: dict[Trial, tuple[str, Configuration]] = {}
        for trial in dict.fromkeys(trials):
            try:
                configuration = self.configurations.at(trial.point)
            except LepauteError as error:
                found[trial] = Simulated("", refusal=" ".join(str(error).split()))
            else:
                configured[trial] = configuration.key(trial), configuration
        known = self.results.known([key for key, _ in configured.values()])
        first: dict[str, Trial] = {}  # several points may be one simulation
        for trial, (key, _) in configured.items():
            if key in known:
                found[trial] = known[key]
                self.reused += trial.is_of_study and key not in self._keys
            else:
                first.setdefault(key, trial)
        needed = self.simulated + sum(trial.is_of_study for trial in first.values())
        if self._most is not None and needed > self._most:
            raise InputError(
                f"{needed} simulations are needed and the budget is {self._most}; "
                "raise it, or ask for fewer runs or levels"
            )
        by_key = self._simulate({trial: configured[trial][1] for trial in first.values()})
        for trial, (key, _) in configured.items():
            if trial not in found:
                found[trial] = by_key[first[key]]
        return [found[trial].outcome(trial, self.configurations) for trial in trials]

    def missing(self, trials: Sequence[Trial]) -> "tuple[list[tuple[Trial, Configuration]], int, dict[Point, str]]":
        """The trials that would be simulated, how many others of the study are known, and why points cannot be."""
        keyed: dict[str, tuple[Trial, Configuration]] = {}
        refused: dict[Point, str] = {}
        for trial in dict.fromkeys(trials):
            try:
                configuration = self.configurations.at(trial.point)
            except LepauteError as error:
                refused[trial.point] = str(error)
                continue
            keyed.setdefault(configuration.key(trial), (trial, configuration))
        known = self.results.known(list(keyed))
        of_study = sum(keyed[key][0].is_of_study for key in known)
        return [made for key, made in keyed.items() if key not in known], of_study, refused

    def _simulate(self, missing: "dict[Trial, Configuration]") -> dict[Trial, Simulated]:
        """The results of trials that are not known; written as they come."""
        if not missing:
            return {}
        events = {trial: events_of(configuration, trial) for trial, configuration in missing.items()}
        done: dict[Trial, Simulated] = {}
        total, count = self._events + sum(events.values()), self.simulated + self.further + len(missing)
        if self.expected is not None:
            total, count = max(total, self.expected.events), max(count, self.expected.most + self.expected.most_further)
        try:
            for group, results in self.pool.run(self._groups(list(missing), events)):
                for trial, simulated in zip(group, results, strict=True):
                    done[trial] = simulated
                    self.simulated += trial.is_of_study
                    self.further += not trial.is_of_study
                    self.cpu_s += simulated.cpu_s
                    self._events += events[trial]
                    if simulated.key:
                        self._keys.add(simulated.key)
                        self.results.add(missing[trial], trial, simulated)
                if self._progress is not None:
                    made = self.simulated + self.further
                    self._progress(f"simulating {made} of {count}", min(1.0, self._events / total))
        finally:
            self.results.write()
        return done

    def _groups(self, trials: list[Trial], events: dict[Trial, float]) -> Iterator[Group]:
        """The longest first, those of one point together; as many in a group as take about the target of the pool.

        How long an event takes is learnt from what has been simulated when a group is asked for.
        """
        left = sum(events.values())
        waiting = sorted(trials, key=lambda trial: -events[trial])[::-1]  # stable; taken from the end
        while waiting:
            event_s = self.cpu_s / self._events if self._events and self.cpu_s else ROUGH_EVENT_S
            # Towards the end groups become small, so that no worker waits for another's long one.
            share_s = min(self.pool.target_s, left * event_s / (3 * self.pool.workers))
            group: list[Trial] = []
            took_s = 0.0
            while waiting and len(group) < MAX_OF_GROUP and (not group or took_s < share_s):
                group.append(waiting.pop())
                took_s += events[group[-1]] * event_s
                left -= events[group[-1]]
            yield group


def events_of(configuration: Configuration, trial: Trial | None = None) -> float:
    """What a trial costs, in events; a run of the study's where none is given."""
    application: Application = configuration.application
    fidelity = configuration.conditions.fidelity
    if trial is not None and not trial.is_of_study and not trial.priced and "sampled" in application.about.fidelities:
        fidelity = "sampled"
    behaviour = application.on()
    return max(1.0, behaviour.events * behaviour.simulated_share(fidelity))


@dataclass(frozen=True)
class Estimate:
    """Of the trials that are not known yet.

    missing, most : of the study's own, about and at most;  further, most_further : that judge and price points
    cpu_s  : of all simulations;  wall_s : on the workers, beside what else this machine computes now; both None if
             nobody knows: programs are emulated;  events, study_share : of all, and what the study's own have of cpu_s
    longest: the point that takes most of the time, and its share;  refused : points that cannot be, and why
    trials : of the study's own, those that are known too
    """

    missing: int
    most: int
    further: int
    most_further: int
    known: int
    workers: int
    cpu_s: float | None = None
    wall_s: float | None = None
    events: float = 0.0
    study_share: float = 1.0
    longest: tuple[Point, float] | None = None
    refused: Mapping[Point, str] = field(default_factory=dict)
    trials: Sequence[Trial] = field(default=(), repr=False)

    @property
    def most_wall_s(self) -> float | None:
        """Where as many are made as may be, each of either kind as long as those that are expected."""
        if self.wall_s is None:
            return None
        own, others = self.most / max(self.missing, 1), self.most_further / max(self.further, 1)
        return self.wall_s * max(1.0, self.study_share * own + (1.0 - self.study_share) * others)

    def within(self, seconds: float | None) -> str:
        """The text, and when budget.seconds ends it: after one run of each at least, and what judges it."""
        if seconds is None or self.wall_s is None or self.wall_s <= seconds:
            return self.text
        runs = len({trial.seed for trial in self.trials}) or 1
        least_s = 0.0 if self.most > self.missing else self.wall_s * (1.0 - self.study_share * (1.0 - 1.0 / runs))
        return f"{self.text}; budget.seconds ends it after about {duration(max(seconds, least_s))}"

    @property
    def text(self) -> str:
        """One sentence."""
        fewest = f"{self.missing} to " if self.most > self.missing else ""
        text = f"{fewest}{counted(max(self.most, self.missing), 'simulation')}"
        text += f" ({self.known} known already)" if self.known else ""
        if self.most_further:
            text += f" (at most {self.most_further} more to judge them)"
        if self.wall_s is None:
            text += " by emulation, one after the other; how long one takes is not known in advance"
        else:
            (least, unit), (most, of_most) = (duration(each).split() for each in (self.wall_s, self.most_wall_s or 0.0))
            first = f"{least}{f' {unit}' * (unit != of_most)} to " if (least, unit) != (most, of_most) else ""
            text += f", about {first}{most} {of_most} on {counted(self.workers, 'worker')}"
        if self.longest is not None and self.longest[1] > 0.0:
            text += f"; {100.0 * self.longest[1]:.0f} % of it at {self.longest[0]}"
        if self.refused:
            point, why = next(iter(self.refused.items()))
            text += f"; {counted(len(self.refused), 'configuration')} cannot be: at {point} {why}"
        return text


def estimate(session: Session, trials: Sequence[Trial], scale: float = 1.0) -> Estimate:
    """What evaluating so many times these trials will take; a few steps of the largest are simulated for it where that
    is long, and what else this machine computes is measured. Raises InputError if no point can be.
    """
    missing, known, refused = session.missing(trials)
    if refused and not missing and not known:
        raise InputError(f"no configuration can be: at {next(iter(refused))} {next(iter(refused.values()))}")
    of_study = dict.fromkeys(trial for trial in trials if trial.is_of_study)
    counting = [configuration for trial, configuration in missing if trial in of_study]
    count, further = (round(scale * number) for number in (len(counting), len(missing) - len(counting)))
    counts = (count, count, further, further, known, workers := session.pool.workers)
    if not all(configuration.application.about.core for _, configuration in missing):
        return Estimate(*counts, refused=refused, trials=[*of_study])
    # Runs of a configuration cost the same; so do points whose applications are the same.
    costs = dict.fromkeys([(configuration.digest, trial.point) for trial, configuration in missing], 0.0)
    events, priced_s, longest = 0.0, 0.0, 0.0
    event_s, heaviest = ROUGH_EVENT_S, max((each for _, each in missing), key=events_of, default=None)
    for trial, configuration in missing:
        of_trial = events_of(configuration, trial)
        costs[configuration.digest, trial.point] += of_trial
        events, longest = events + of_trial, max(longest, of_trial)
        if trial.priced:
            priced_s += controls.pricing_s(configuration.application, configuration.conditions)
    if heaviest is not None:
        conditions, of_run = heaviest.conditions, events_of(heaviest)
        run_s = predicting.expected_run_s(
            [heaviest.application],
            conditions.platform,
            runs=min(max(1, round(scale * events / of_run)), predicting.MAX_RUNS),
            mapping=conditions.mapping,
            fidelity=conditions.fidelity,
        )
        event_s = run_s[0] / of_run if run_s else event_s
    cpu_s = scale * (events * event_s + priced_s)
    wall_s = max(cpu_s / workers, longest * event_s) + scale * OVERHEAD_S * len(missing)
    if wall_s > WORTH_MEASURING_S:
        wall_s = slowdown(workers) * (wall_s + START_S)
    point = max(costs, key=lambda place: costs[place], default=None)
    share = None if point is None or len(costs) < 2 else (point[1], costs[point] / events)
    of_runs = scale * event_s * sum(map(events_of, counting)) / cpu_s if cpu_s else 1.0
    return Estimate(*counts, cpu_s, wall_s, scale * events, of_runs, share, refused, [*of_study])
