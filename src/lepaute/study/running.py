"""A study from its file to its answer, in a folder that holds all its results.

store/          every simulation, written as it finishes
study.yaml      what was asked, as it was run
results.csv     a row for each trial: factors, seed, repeat, responses
answer.json     the answer
"""

import csv
import io
import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError, LepauteError
from lepaute.kit.documents import guess
from lepaute.study.answer_files import write_answer_files
from lepaute.study.configuration import Configurations
from lepaute.study.evaluation import SCENARIO, Evaluate, Outcome, Point, Trial
from lepaute.study.faults import located
from lepaute.study.questions import Answer, question_of
from lepaute.study.results import Results
from lepaute.study.schema import Study, load_study, parse_study, study_of, study_text
from lepaute.study.session import Session
from lepaute.study.trust import caveats

if TYPE_CHECKING:
    from lepaute.store import Store
    from lepaute.study.pools import Pool

#: Simulations that take longer are spread over processes, which take some seconds to start.
WORTH_PROCESSES_S = 30.0
MOST_WORKERS = 4096


@dataclass(frozen=True)
class StudyRun:
    """A study that was run: its answer, all outcomes that were asked for, and how many simulations it took.

    caveats : what a reader of the answer must know
    """

    study: Study
    answer: Answer
    outcomes: tuple[Outcome, ...]
    simulated: int
    reused: int
    folder: Path | None = None
    caveats: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The answer with its caveats, for a person."""
        return "\n".join([self.answer.text, *(f"warning: {each}" for each in self.caveats)])

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return {
            **self.answer.to_dict(),
            "title": self.study.title,
            "seed": self.study.seed,
            "simulated": self.simulated,
            "reused": self.reused,
            "caveats": list(self.caveats),
        }

    def to_frame(self) -> Any:
        """A row a trial, as a data frame of pandas."""
        import pandas

        return pandas.DataFrame(_rows(self.outcomes))


def run_study(
    study: "Study | dict[str, Any] | str | Path",
    *,
    folder: str | Path | None = None,
    resume: bool = False,
    scheduler: str | None = "threads",
    workers: int | None = None,
    runs: int | None = None,
    seed: int | None = None,
    store: "Store | None" = None,
    progress: Callable[[str, float], None] | None = None,
    announce: Callable[[str], None] | None = None,
    command: str | None = None,
) -> StudyRun:
    """Answers the question of a study: a file, its content, or a `Study`.

    folder    : keeps all results, and answers from them what is known; resume : there may be results in it already
    scheduler : threads of this process, local (processes), slurm or oar; None: by how long it will take. Processes
        import the calling script, which needs the guard `if __name__ == "__main__":`
    workers   : that simulate side by side; as many as there are cores, unless given
    runs, seed: in the place of the study's
    store     : in the place of that in the folder
    announce  : called with a sentence on how long it will take
    command   : that repeats it, for the page, where the study was asked for by one
    Raises InputError where something in the study cannot be, or the folder holds results and is not to be resumed.
    """
    from lepaute.store import open_store

    asked, configurations = opened_study(study, runs=runs, seed=seed)
    place = None if folder is None else Path(folder)
    is_new = place is not None and not place.exists()
    if place is not None:
        _check_folder(place, resume=resume)
    opened = store if store is not None or place is None else open_store(place / "store")
    results = Results(opened)
    try:
        seen = _Seen()
        with results, _session(configurations, results, scheduler, workers, place, progress, announce) as session:
            if place is not None:
                _write(place / "study.yaml", study_text(_seen_from(place, asked, configurations.folder)))
            answer = question_of(asked)(configurations.study, configurations, seen.seeing(session))
        outcomes = tuple(seen.outcomes.values())
        said = caveats(outcomes, configurations, answer.trusts)
        run = StudyRun(asked, answer, outcomes, session.simulated, session.reused, place, said)
    except LepauteError:
        if place is not None and is_new and not results.any:
            shutil.rmtree(place, ignore_errors=True)
        raise
    finally:
        if opened is not None and opened is not store:
            opened.close()
    if place is not None:
        _write(place / "results.csv", csv_text(run.outcomes))
        _write(place / "answer.json", json.dumps(run.to_dict(), indent=2) + "\n")
        write_answer_files(place, asked, configurations, answer, run.outcomes, run.caveats, command)
    return run


def opened_study(
    study: "Study | dict[str, Any] | str | Path", *, runs: int | None = None, seed: int | None = None
) -> tuple[Study, Configurations]:
    """The study, checked, with its configurations; raises InputError for what cannot be."""
    from lepaute.kit.documents import read_text

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


def checked_text(file: "str | Path") -> str:
    """What a study varies, and what it takes, for a person; raises InputError for what cannot be."""
    from lepaute.study.estimate import estimate

    study, configurations = opened_study(file)
    lines = [f"{file}: question {study.question}, {study.runs} run(s) of each configuration, seed {study.seed}"]
    for name, levels in study.levels.items():
        lines.append(f"  {name}: {', '.join(map(str, levels))[:100]}")
    for name, factor in study.factors.items():
        if factor.levels is None:
            lines.append(f"  {name}: {factor.bounds or factor.distribution} at {factor.path}")
    with Session(configurations) as session:
        if planned := _planned(study, configurations):
            lines.append(f"{estimate(session, planned).text}")
    return "\n".join(lines)


def csv_text(outcomes: Sequence[Outcome]) -> str:
    """A line a trial."""
    rows = _rows(outcomes)
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {name: repr(value) if isinstance(value, float) else value for name, value in row.items()} for row in rows
    )
    return text.getvalue()


class _Seen:
    """Outcomes of all trials that a question has asked for."""

    def __init__(self) -> None:
        self.outcomes: dict[Trial, Outcome] = {}

    def seeing(self, evaluate: Evaluate) -> Evaluate:
        def seen(trials: Sequence[Trial]) -> list[Outcome]:
            outcomes = evaluate(trials)
            self.outcomes |= {trial: one for trial, one in zip(trials, outcomes, strict=True) if not trial.drawn}
            return outcomes

        return seen


def _session(
    configurations: Configurations,
    results: Results,
    scheduler: str | None,
    workers: int | None,
    folder: Path | None,
    progress: Callable[[str, float], None] | None,
    announce: Callable[[str], None] | None,
) -> Session:
    """A session with the workers that are asked for, or that the study is worth; says how long it will take."""
    from lepaute.study.dask_pool import DaskPool, worker_schedulers
    from lepaute.study.estimate import estimate
    from lepaute.study.pools import Threads

    study = configurations.study
    known = ("threads", *worker_schedulers())
    if scheduler is not None and scheduler not in known:
        raise InputError(f"the scheduler is {scheduler[:60]!r}; it is one of {', '.join(known)}")
    if workers is not None and not 1 <= workers <= MOST_WORKERS:
        raise InputError(f"workers is {workers}; 1 to {MOST_WORKERS} simulate side by side")
    threads = Threads(configurations, workers)
    session = Session(configurations, results, threads, progress=progress, most=study.budget.simulations)
    expected = estimate(session, _planned(study, configurations))
    if expected.missing and announce is not None and expected.wall_s > 1.0:
        announce(expected.text)
    seconds = study.budget.seconds
    if seconds is not None and expected.cpu_s is not None and expected.cpu_s > seconds:
        raise InputError(
            f"the simulations take about {expected.cpu_s:.0f} s and the budget is {seconds:g} s; "
            "raise it, or ask for fewer runs or levels"
        )
    if scheduler is None:
        scheduler = "local" if workers is not None or expected.wall_s > WORTH_PROCESSES_S else "threads"
    if scheduler != "threads":
        threads.close()
        pool: Pool = DaskPool(configurations, scheduler=scheduler, workers=workers, folder=folder)
        session.pool = pool
    return session


def _planned(study: Study, configurations: Configurations) -> list[Trial]:
    """The trials that are known beforehand: of questions that choose as they go, as many as their budget allows."""
    from lepaute.study.evaluation import trials_of
    from lepaute.study.whatif import whatif_trials

    if study.question == "whatif":
        return whatif_trials(study, configurations, study.runs)
    if any(factor.levels is None for factor in study.factors.values()):
        return []
    trials = trials_of(configurations.points(), study.runs, study.seed)
    most = study.budget.simulations
    return trials if most is None or len(trials) <= most else trials[:: -(-len(trials) // most)]


def _seen_from(place: Path, study: Study, folder: Path | None) -> Study:
    """The study as a file in `place`: its files are named from there."""

    def there(name: str) -> str:
        if "/" not in name and not name.endswith((".yaml", ".yml")):
            return name
        return os.path.relpath((folder or Path()) / name, place)

    base: dict[str, Any] = {"platform": there(study.base.platform)}
    if study.base.transfer is not None:
        base["transfer"] = os.path.relpath((folder or Path()) / study.base.transfer, place)
    update: dict[str, Any] = {"base": study.base.model_copy(update=base)}
    if study.capacity is not None:
        catalogue = os.path.relpath((folder or Path()) / study.capacity.catalogue, place)
        update["capacity"] = study.capacity.model_copy(update={"catalogue": catalogue})
    return study.model_copy(update=update)


def _check_folder(folder: Path, *, resume: bool) -> None:
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise InputError(f"{str(folder)[:200]!r}: is not text in UTF-8; name another folder with --output") from None
    if (folder / "store").exists():
        if not resume:
            raise InputError(f"{folder}: holds results of a study already; continue it with --resume, or name another")
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: is no empty folder; name another one with --output")
    folder.mkdir(parents=True, exist_ok=True)


def _rows(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    return [
        {
            **each.trial.point,
            "seed": each.trial.seed,
            "repeat": each.trial.repeat,
            **each.responses,
            "extrapolated_share": each.extrapolated,
            "refusal": each.refusal or "",
        }
        for each in outcomes
    ]


def _write(path: Path, text: str) -> None:
    from lepaute.kit.files import write_whole

    write_whole(path, text)


__all__ = ["StudyRun", "checked_text", "load_study", "opened_study", "run_study"]


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
    for place, expression in enumerate(study.expressions):
        _check_names(expression.names, names, ("constraints", place), text, origin)
    known = set(names) | {"nodes", "ranks", "time_s", "rate_gflops", "energy_j", "gflops_per_watt"}
    for name, formula in study.formulas.items():
        _check_names(formula.names, known, ("derived", name), text, origin)
        known.add(name)
    if all(factor.levels is not None for factor in study.factors.values()) and not configurations.points():
        raise located(("constraints",), "hold at no point; loosen one", text, origin)


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
