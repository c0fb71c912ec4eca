"""A study opened and checked before anything is simulated: what cannot be is refused with its line in the file."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

from lepaute.errors import InputError, LepauteError
from lepaute.kit.documents import guess, read_text
from lepaute.kit.text import counted
from lepaute.simulate import Hpl
from lepaute.simulate.application import GFLOPS
from lepaute.simulate.platform import Platform
from lepaute.simulate.prediction.trust import DRAWN, SEEDS, cost_in_runs
from lepaute.simulate.prediction.wording import NOT_SAMPLED
from lepaute.stats.control_variates import MIN_CONTROLLED
from lepaute.study.capacity import machines_of
from lepaute.study.configuration import Configurations
from lepaute.study.evaluation import SCENARIO, Evaluate, Outcome, Point, Trial
from lepaute.study.results import Simulated
from lepaute.study.schema import RESPONSES, Study, located, parse_study, study_of
from lepaute.study.session import Estimate, Session, estimate

MAX_REAL_RUNS = 1000
#: The module of each question, loaded when it is asked.
_MODULES = {"whatif": "whatif", "tune": "tune", "sensitivity": "sensitivity", "capacity": "capacity"}
#: Simulations that exploring a large space is rehearsed with, and those that it takes unless the study says.
REHEARSED, USUAL_BUDGET = 50, 200


def opened_study(
    study: "Study | dict[str, Any] | str | Path", *, runs: int | None = None, seed: int | None = None
) -> tuple[Study, Configurations]:
    """The study, checked, with its configurations; raises InputError for what cannot be."""
    text, origin, folder = None, "study", None
    if isinstance(study, Study):
        opened = study
    elif isinstance(study, dict):
        opened = study_of(study)
    else:
        text, origin, folder = read_text(study, "a study file"), str(study), Path(study).parent
        opened = parse_study(text, origin)
    changed = {name: value for name, value in (("runs", runs), ("seed", seed)) if value is not None}
    if changed:
        opened = study_of(opened.model_dump(exclude_unset=True) | changed)
    simulated = opened
    if opened.question == "capacity":
        if opened.scenarios:
            raise InputError("a study of capacity has no scenarios: the machines of the catalogue are its scenarios")
        scenarios = {machine.name: dict(machine.fields) for machine in machines_of(opened, folder)}
        simulated = opened.model_copy(update={"scenarios": scenarios})
    configurations = Configurations(simulated, folder)
    check_study(configurations, text, origin)
    return opened, configurations


@dataclass(frozen=True)
class Checked:
    """A study that can be run; takes: what is known of it beforehand."""

    file: Path
    study: Study
    takes: Estimate

    @property
    def text(self) -> str:
        """What the study varies, and what it takes, for a person."""
        study = self.study
        lines = [f"  {counted(study.runs, 'run')} of each configuration, seed {study.seed}"]
        for name, levels in study.levels.items():
            lines.append(f"  {name}: {', '.join(map(str, levels))[:100]}")
        for name, factor in study.factors.items():
            if factor.levels is None:
                lines.append(f"  {name}: {factor.bounds or factor.distribution} at {factor.path}")
        return "\n".join(
            [
                f"{self.file}: a {study.question} study that can be run: {self.takes.within(study.budget.seconds)}",
                *lines,
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """The same as a JSON object: what it takes, with all digits, and its factors as the file has them."""
        study, takes = self.study, self.takes
        cost = {
            "simulations": takes.missing, "simulations_at_most": takes.most, "further_simulations": takes.further,
            "further_at_most": takes.most_further, "known": takes.known, "workers": takes.workers,
            "cpu_s": takes.cpu_s, "wall_s": takes.wall_s, "wall_s_at_most": takes.most_wall_s,
        }  # fmt: skip
        plain = study.model_dump(mode="json", exclude_unset=True)
        varied: dict[str, Any] = {name: plain[name] for name in ("factors", "scenarios") if name in plain}
        return {
            "file": str(self.file), "valid": True, "question": study.question, "takes": cost, "runs": study.runs,
            "seed": study.seed, **varied,
        }  # fmt: skip


def checked(file: "str | Path") -> Checked:
    """The study of a file, and what it takes; raises InputError for what cannot be."""
    study, configurations = opened_study(file)
    with Session(configurations) as session:
        return Checked(Path(file), study, rehearsed(session))


def question_of(study: Study) -> Callable[[Study, Configurations, Evaluate], Any]:
    """The function that answers the study's question; imports its module only then."""
    module = import_module(f"lepaute.study.{_MODULES[study.question]}")
    function: Callable[[Study, Configurations, Evaluate], Any] = getattr(module, study.question)
    return function


class _Rehearsal:
    """An `Evaluate` that simulates nothing: the question is asked with results that are drawn, and each point that can
    be judged is, so that it tells which trials there will be. scale : of which the study takes this many times as many.
    """

    def __init__(self, study: Study, configurations: Configurations) -> None:
        self._configurations = configurations
        self.judged: dict[str, bool] = {}  # by digest of a configuration: whether it can be
        self.is_crossed = all(factor.levels is not None for factor in study.factors.values())
        self.trials: dict[Trial, None] = {}
        self.scale, budget = 1.0, study.budget
        if study.question == "tune" and not self.is_crossed:
            most = budget.simulations or USUAL_BUDGET
            self.scale = max(1.0, most / REHEARSED)
            budget = budget.model_copy(update={"simulations": min(most, REHEARSED)})
        if study.question == "whatif":
            budget = budget.model_copy(update={"precision": None})
        # Results that were drawn may be what no run gives.
        with suppress(LepauteError, ArithmeticError, ValueError):
            question_of(study)(study.model_copy(update={"budget": budget}), configurations, self)

    def __call__(self, trials: Sequence[Trial]) -> list[Outcome]:
        self.trials |= dict.fromkeys(trials)
        return [self._outcome(trial) for trial in trials]

    def _outcome(self, trial: Trial) -> Outcome:
        try:
            configuration = self._configurations.at(trial.point)
        except LepauteError as error:
            return Outcome(trial, refusal=str(error))
        application, platform = configuration.application, configuration.conditions.platform
        if configuration.digest not in self.judged:
            self.judged[configuration.digest] = cost_in_runs(application, platform) > 0.0
        of_point, of_run = (Random(str(about)).random() for about in (trial.point.to_json(), trial))
        time_s = 1.0 + 0.1 * of_point + 0.01 * of_run
        rate = 1.0 / time_s if application.rate == GFLOPS else None
        energy_j = None if platform.power is None else time_s
        extrapolated = float(self.judged[configuration.digest])
        return Simulated("", time_s, rate, energy_j, extrapolated).outcome(trial, self._configurations)


def rehearsed(session: Session) -> Estimate:
    """What the study of a session takes. Raises InputError if no point can be."""
    configurations = session.configurations
    study = configurations.study
    rehearsal = _Rehearsal(study, configurations)
    expected = estimate(session, list(rehearsal.trials), rehearsal.scale)
    points = len({trial.point for trial in rehearsal.trials})
    if study.question == "tune":
        most = most_tuned(study, points) if rehearsal.is_crossed else study.budget.simulations or USUAL_BUDGET
        judged = min(points, most) if rehearsal.is_crossed else max(2, most // 4)
        priced = most // MIN_CONTROLLED + max(most - points, 0) + 1  # and the best once more, with other noise
    elif study.question == "whatif" and study.budget.precision is not None:
        most = study.budget.simulations or 64 * expected.missing
        judged, priced = points, points * most.bit_length() + most // 2
    else:
        return expected
    further = len(DRAWN) * len(SEEDS) * judged * any(rehearsal.judged.values()) + priced
    return replace(expected, most=max(most, expected.missing), most_further=max(further, expected.further))


def most_tuned(study: Study, points: int) -> int:
    """Simulations that tuning among this many points makes at most: its budget, or the study's runs of each, or two."""
    return study.budget.simulations or points * (study.runs if "runs" in study.model_fields_set else 2)


def unused_keys(configurations: Configurations, outcomes: Sequence[Outcome]) -> list[str]:
    """A sentence on each key that has no effect on the answer."""
    study, notes = configurations.study, list[str]()
    first, *others = study.responses
    has_ranges = any(factor.levels is None for factor in study.factors.values())
    if "runs" in study.model_fields_set and (has_ranges or (study.question == "tune" and study.budget.simulations)):
        notes.append(f"runs has no effect: {study.question} makes as many runs as it needs within budget.simulations")
    if study.question == "capacity" and "responses" in study.model_fields_set:
        first, others = "time, cost and energy", [*study.responses]
    if study.question != "whatif" and others:
        notes.append(f"responses: the answer is about {first} alone; of {', '.join(others)} results.csv has the values")
    if study.base.fidelity == "sampled" and not any(outcome.sampling_sd for outcome in outcomes):
        notes.append(f"fidelity {NOT_SAMPLED}")
    start = _first_levels(study)
    points = [start, *(start.with_(**{name: level}) for name, levels in study.levels.items() for level in levels[1:])]
    reasons = [configurations.check(point).unused for point in points]
    names = [name for name in study.base.application if all(name in of_point for of_point in reasons)]
    return [*notes, *(f"application.{name} has no effect: {reasons[0][name]}" for name in names)]


def check_study(configurations: Configurations, text: str | None = None, origin: str = "study") -> None:
    """Raises InputError, with the line in `text`, where the base or a single level of a factor cannot be.

    What cannot be only together with other levels is a refused trial, and not an error.
    """
    study = configurations.study

    def tried(point: Point, *at: str | int) -> None:
        try:
            configurations.check(point)
        except LepauteError as error:
            raise located(at, f"cannot be: {error}", text, origin) from None

    for name in study.scenarios:
        tried(Point({SCENARIO: name}), "scenarios", name)
    if not study.scenarios:
        tried(_first_levels(study), "base")
    for name, factor in study.factors.items():
        start = _first_levels(study)
        for place, level in enumerate(factor.levels or ()):
            tried(start.with_(**{name: level}), "factors", name, "levels", place)
        for bound in factor.bounds or ():
            tried(start.with_(**{name: round(bound) if factor.integer else bound}), "factors", name)
    names = configurations.names(_first_levels(study))
    if name := _ambiguous(study, configurations):
        why = "is a field of the application too, and an expression names it; rename it"
        raise located(("factors", name), why, text, origin)
    for place, expression in enumerate(study.expressions):
        _check_names(expression.names, names, ("constraints", place), text, origin)
    known = set(names) | {"nodes", "ranks", *RESPONSES}
    for name, formula in study.formulas.items():
        _check_names(formula.names, known, ("derived", name), text, origin)
        known.add(name)
    if all(factor.levels is not None for factor in study.factors.values()) and not configurations.points():
        raise located(("constraints",), "hold at no point; loosen one", text, origin)


def _ambiguous(study: Study, configurations: Configurations) -> str:
    """A factor of an expression that has the name of another field of the application; empty if there is none."""
    used = frozenset[str]().union(*(text.names for text in (*study.expressions, *study.formulas.values())))
    others = {name for name, factor in study.factors.items() if factor.path.rpartition(".")[2] != name}
    return min(used & others & configurations.fields(_first_levels(study)).keys(), default="")


def _check_names(used: Any, known: Any, at: tuple[str | int, ...], text: str | None, origin: str) -> None:
    for name in sorted(used):
        if name not in known:
            message = f"has the unknown name {name}{guess(name, sorted(known))}; known are {', '.join(sorted(known))}"
            raise located(at, message, text, origin)


def _first_levels(study: Study) -> Point:
    """A point in the midst of things: the first level of each factor, the beginning of each range."""
    values: dict[str, Any] = {name: levels[0] for name, levels in study.levels.items()}
    for name, factor in study.factors.items():
        if factor.levels is None:
            spread = factor.distribution
            value = factor.bounds[0] if factor.bounds else (spread.mean if spread else None)
            values[name] = round(value) if factor.integer and value is not None else value
    return Point(values)


def check_for_real(file: "str | Path", runs: int) -> "tuple[Configurations, Platform, list[Hpl]]":
    """The configurations of a study whose points can be run for real on one machine, its platform, all its cases.

    Raises InputError if the application is not HPL, or where points differ in more than its parameters.
    """
    if not 1 <= runs <= MAX_REAL_RUNS:
        raise InputError(f"--real-runs is {runs}; it is a number from 1 to {MAX_REAL_RUNS}")
    study, configurations = opened_study(file)
    paths = [factor.path for factor in study.factors.values()]
    paths += [path for scenario in study.scenarios.values() for path in scenario]
    hypothetical = [path for path in paths if not path.startswith("application.")]
    hypothetical += sorted({"set", "nodes", "mapping"} & study.base.model_fields_set)
    if hypothetical:
        raise InputError(f"{file}: --real-runs run on the machine as it is, and the study changes {hypothetical[0]}")
    if any(factor.levels is None for factor in study.factors.values()):
        raise InputError(f"{file}: --real-runs choose among levels; give each factor levels instead of a range")
    if study.responses[0] not in ("time_s", "rate_gflops"):
        raise InputError(f"{file}: --real-runs measure time_s, and the study tunes {study.responses[0]}")
    cases: list[Hpl] = []
    points = configurations.points()
    for point in points:
        application = configurations.at(point).application
        if not isinstance(application, Hpl):
            raise InputError(f"{file}: --real-runs are of HPL, and the application is {application.name}")
        if cases and application.n != cases[0].n:
            raise InputError(f"{file}: --real-runs compare times of one N, and the study has several")
        cases.append(application)
    return configurations, configurations.at(points[0]).conditions.platform, cases
