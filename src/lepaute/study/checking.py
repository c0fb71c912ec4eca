"""A study opened and checked before anything is simulated: what cannot be is refused with its line in the file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lepaute.errors import InputError, LepauteError
from lepaute.kit.documents import guess, read_text
from lepaute.kit.text import counted
from lepaute.platform import Platform
from lepaute.simulate import Hpl
from lepaute.simulate.prediction.wording import NOT_SAMPLED
from lepaute.study.configuration import Configurations
from lepaute.study.evaluation import SCENARIO, Outcome, Point, Trial, trials_of
from lepaute.study.schema import RESPONSES, Study, located, parse_study, study_of
from lepaute.study.session import Estimate, Session, estimate
from lepaute.study.whatif import whatif_trials

MOST_REAL_RUNS = 1000


def opened_study(
    study: "Study | dict[str, Any] | str | Path", *, runs: int | None = None, seed: int | None = None
) -> tuple[Study, Configurations]:
    """The study, checked, with its configurations; raises InputError for what cannot be."""
    text, origin, folder = None, "study", None
    if isinstance(study, Study):
        asked = study
    elif isinstance(study, dict):
        asked = study_of(study)
    else:
        text, origin, folder = read_text(study, "a study file"), str(study), Path(study).parent
        asked = parse_study(text, origin)
    changed = {name: value for name, value in (("runs", runs), ("seed", seed)) if value is not None}
    if changed:
        asked = study_of(asked.model_dump(exclude_unset=True) | changed)
    simulated = asked
    if asked.question == "capacity":
        from lepaute.study.capacity import study_of_machines

        simulated = study_of_machines(asked, folder)
    configurations = Configurations(simulated, folder)
    check_study(configurations, text, origin)
    return asked, configurations


@dataclass(frozen=True)
class Checked:
    """A study that can be run; takes: what is known of it beforehand, None where it chooses as it goes."""

    file: Path
    study: Study
    takes: Estimate | None

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
        takes = "" if self.takes is None else f": {self.takes.text}"
        return "\n".join([f"{self.file}: a {study.question} study that can be run{takes}", *lines])

    def to_dict(self) -> dict[str, Any]:
        """The same as a JSON object: what it takes, with all digits, and its factors as the file has them."""
        study, takes = self.study, self.takes
        cost = None if takes is None else {
            "simulations": takes.missing, "known": takes.known, "workers": takes.workers, "cpu_s": takes.cpu_s,
            "wall_s": takes.wall_s,
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
        planned = planned_trials(study, configurations)
        return Checked(Path(file), study, estimate(session, planned) if planned else None)


def planned_trials(study: Study, configurations: Configurations) -> list[Trial]:
    """The trials that are known beforehand: of questions that choose as they go, as many as their budget allows."""
    if study.question == "whatif":
        return whatif_trials(study, configurations, study.runs)
    if any(factor.levels is None for factor in study.factors.values()):
        return []
    points = configurations.points()
    most = most_tuned(study, len(points)) if study.question == "tune" else study.budget.simulations
    runs = -(-most // len(points)) if study.question == "tune" and most is not None else study.runs
    trials = trials_of(points, runs, study.seed)
    return trials if most is None or len(trials) <= most else trials[:: -(-len(trials) // most)]


def most_tuned(study: Study, points: int) -> int:
    """Simulations that tuning among so many points makes at most: its budget, or the study's runs of each, or two."""
    return study.budget.simulations or points * (study.runs if "runs" in study.model_fields_set else 2)


def unused_keys(study: Study, configurations: Configurations, outcomes: Sequence[Outcome]) -> list[str]:
    """A sentence on each key that has no effect on the answer."""
    notes, (first, *others) = [], study.responses
    has_ranges = any(factor.levels is None for factor in study.factors.values())
    if "runs" in study.model_fields_set and (has_ranges or (study.question == "tune" and study.budget.simulations)):
        notes.append(f"runs has no effect: {study.question} makes as many runs as it needs within budget.simulations")
    if study.question in ("tune", "sensitivity") and others:
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

    _check_mapping_seed(study, text, origin)
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
    for place, expression in enumerate(study.expressions):
        _check_names(expression.names, names, ("constraints", place), text, origin)
    known = set(names) | {"nodes", "ranks", *RESPONSES}
    for name, formula in study.formulas.items():
        _check_names(formula.names, known, ("derived", name), text, origin)
        known.add(name)
    if all(factor.levels is not None for factor in study.factors.values()) and not configurations.points():
        raise located(("constraints",), "hold at no point; loosen one", text, origin)


def _check_mapping_seed(study: Study, text: str | None, origin: str) -> None:
    """Raises InputError where the seed of a random mapping varies, and none is random."""
    orders: list[Any] = [study.base.mapping, getattr(study.base.mapping, "kind", None)]
    orders += [values.get("mapping.kind") for values in study.scenarios.values()]
    paths = {factor.path: (name, factor.levels or ()) for name, factor in study.factors.items()}
    name, _ = paths.get("mapping.seed", (None, ()))
    if name is not None and "random" not in (*orders, *paths.get("mapping.kind", (None, ()))[1]):
        problem = "is the seed of a random mapping, and none is random; give base.mapping: random"
        raise located(("factors", name, "path"), problem, text, origin)


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

    Raises InputError where the application is not HPL, or where points differ in more than its parameters.
    """
    from lepaute.simulate import Hpl

    if not 1 <= runs <= MOST_REAL_RUNS:
        raise InputError(f"--real-runs is {runs}; it is a number from 1 to {MOST_REAL_RUNS}")
    study, configurations = opened_study(file)
    paths = [factor.path for factor in study.factors.values()]
    hypothetical = [path for path in paths if not path.startswith("application.")]
    hypothetical += [path for each in study.scenarios.values() for path in each if not path.startswith("application.")]
    hypothetical += sorted({"set", "nodes", "mapping"} & study.base.model_fields_set)
    if hypothetical:
        raise InputError(f"{file}: --real-runs run on the machine as it is, and the study changes {hypothetical[0]}")
    if any(factor.levels is None for factor in study.factors.values()):
        raise InputError(f"{file}: --real-runs choose among levels; give each factor levels instead of a range")
    if study.responses[0] not in ("time_s", "rate_gflops"):
        raise InputError(f"{file}: --real-runs measure time_s, and the study tunes {study.responses[0]}")
    cases: list[Hpl] = []
    platform = None
    for point in configurations.points():
        configuration = configurations.at(point)
        if not isinstance(configuration.application, Hpl):
            raise InputError(f"{file}: --real-runs are of HPL, and the application is {configuration.application.name}")
        if cases and configuration.application.n != cases[0].n:
            raise InputError(f"{file}: --real-runs compare times of one N, and the study has several")
        cases.append(configuration.application)
        platform = configuration.conditions.platform
    if platform is None:
        raise InputError(f"{file}: no combination of levels is allowed by the constraints")
    return configurations, platform, cases
