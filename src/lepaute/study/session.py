"""A session evaluates trials: each simulation once, results kept as they come, in the order of the trials; how long
that will take is estimated before it starts.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from lepaute.errors import InputError, LepauteError
from lepaute.kit.text import counted, duration
from lepaute.study.evaluation import Outcome, Point, Trial
from lepaute.study.pools import Group, Pool, Threads
from lepaute.study.results import Results, Simulated

if TYPE_CHECKING:
    from lepaute.simulate.application import Application
    from lepaute.study.configuration import Configuration, Configurations

#: A group has no more trials: what a killed worker had done of it is simulated again.
MOST_OF_GROUP = 500
#: Of an event, before any simulation of the session has told.
ROUGH_EVENT_S = 1e-7
#: Overhead of a simulation, about: making its configuration, sending it, writing its result.
OVERHEAD_S = 0.005


class Session:
    """An `Evaluate`; a context that ends its workers and writes what is not written yet.

    results : where results are kept;  pool : what simulates, threads of this process unless given
    progress: called with a sentence and the share of the work of a call that is behind
    most    : simulations that all calls together may run; those that judge or price a point do not count
    simulated, reused : trials that were simulated here, and those whose result was known, without those that judge or
        price a point;  cpu_s : that simulating took
    """

    def __init__(
        self,
        configurations: "Configurations",
        results: Results | None = None,
        pool: Pool | None = None,
        *,
        progress: Callable[[str, float], None] | None = None,
        most: int | None = None,
    ) -> None:
        self.configurations = configurations
        self.results = results or Results()
        self.pool = pool or Threads(configurations)
        self.simulated = self.reused = 0
        self.cpu_s = 0.0
        self._progress, self._most = progress, most
        self._events = 0.0  # of what was simulated

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        try:
            self.pool.close()
        finally:
            self.results.write()

    def __call__(self, trials: Sequence[Trial]) -> list[Outcome]:
        """The outcomes, in the order of the trials.

        Raises InputError where more simulations would be needed than are allowed; nothing is simulated then.
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
                self.reused += trial.is_own
            else:
                first.setdefault(key, trial)
        needed = self.simulated + sum(trial.is_own for trial in first.values())
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

    def missing(self, trials: Sequence[Trial]) -> "tuple[list[tuple[Trial, Configuration]], int]":
        """Those of the trials that would be simulated, and how many others are known."""
        keyed: dict[str, tuple[Trial, Configuration]] = {}
        for trial in dict.fromkeys(trials):
            try:
                configuration = self.configurations.at(trial.point)
            except LepauteError:
                continue
            keyed.setdefault(configuration.key(trial), (trial, configuration))
        known = self.results.known(list(keyed))
        return [each for key, each in keyed.items() if key not in known], len(known)

    def _simulate(self, missing: "dict[Trial, Configuration]") -> dict[Trial, Simulated]:
        """The results of trials that are not known; written as they come."""
        if not missing:
            return {}
        events = {trial: events_of(configuration) for trial, configuration in missing.items()}
        done: dict[Trial, Simulated] = {}
        total, behind = sum(events.values()), 0.0
        try:
            for group, results in self.pool.run(self._groups(list(missing), events)):
                for trial, simulated in zip(group, results, strict=True):
                    done[trial] = simulated
                    self.simulated += trial.is_own
                    self.cpu_s += simulated.cpu_s
                    self._events += events[trial]
                    behind += events[trial]
                    if simulated.key:
                        self.results.add(missing[trial], trial, simulated)
                if self._progress is not None:
                    self._progress(f"simulating {len(done)} of {len(missing)}", min(1.0, behind / total))
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
            while waiting and len(group) < MOST_OF_GROUP and (not group or took_s < share_s):
                group.append(waiting.pop())
                took_s += events[group[-1]] * event_s
                left -= events[group[-1]]
            yield group


def events_of(configuration: "Configuration") -> float:
    """What a run costs, in events."""
    application: Application = configuration.application
    return max(1.0, application.events * application.simulated_share(configuration.conditions.fidelity))


@dataclass(frozen=True)
class Estimate:
    """Of the trials that are not known yet.

    cpu_s  : of all simulations, None where all together are quick;  wall_s : on the workers;  both None where nobody
             knows: programs are emulated
    longest: the point that takes most of the time, and its share
    """

    missing: int
    known: int
    workers: int
    cpu_s: float | None
    wall_s: float | None
    longest: tuple[Point, float] | None

    @property
    def text(self) -> str:
        """One sentence."""
        count = counted(self.missing, "simulation")
        known = f" ({self.known} known already)" if self.known else ""
        where = ""
        if self.longest is not None and self.longest[1] > 0.0:
            where = f"; {100.0 * self.longest[1]:.0f} % of it at {self.longest[0]}"
        if self.wall_s is None:
            return f"{count}{known} by emulation, one after the other; how long one takes is not known in advance"
        return f"{count}{known}, about {duration(self.wall_s)} on {counted(self.workers, 'worker')}{where}"


def estimate(session: Session, trials: Sequence[Trial]) -> Estimate:
    """What evaluating the trials will take; a few steps of the largest are simulated for it where that is long."""
    from lepaute.simulate.prediction.predicting import MOST_RUNS, expected_run_s

    missing, known = session.missing(trials)
    workers = session.pool.workers
    overhead_s = OVERHEAD_S * len(missing)
    if not missing:
        return Estimate(0, known, workers, None, 0.0, None)
    # Runs of a configuration cost the same; so do points whose applications are the same.
    counts: dict[tuple[str, Point], int] = {}
    configurations = {}
    for trial, configuration in missing:
        place = (configuration.digest, trial.point)
        counts[place] = counts.get(place, 0) + 1
        configurations[place] = configuration
    applications = [each.application for each in configurations.values()]
    if not all(each.native for each in applications):
        return Estimate(len(missing), known, workers, None, None, None)
    heaviest = max(configurations.values(), key=lambda each: each.application.events)
    run_s = None
    if len(missing) <= MOST_RUNS:
        conditions = heaviest.conditions
        runs = max(1, round(len(missing) / len(applications)))
        run_s = expected_run_s(
            applications, conditions.platform, runs=runs, mapping=conditions.mapping, fidelity=conditions.fidelity
        )
    if run_s is None:
        return Estimate(len(missing), known, workers, None, overhead_s, None)
    costs = {place: counts[place] * each_s for place, each_s in zip(counts, run_s, strict=True)}
    cpu_s = sum(costs.values())
    longest = max(costs, key=lambda place: costs[place])
    wall_s = max((cpu_s + overhead_s) / workers, *run_s, 0.0)
    share = (longest[1], costs[longest] / cpu_s) if len(costs) > 1 else None
    return Estimate(len(missing), known, workers, cpu_s, wall_s, share)
