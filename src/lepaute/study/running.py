"""A study from its file to its answer, in a folder that holds all its results.

store/          every simulation, written as it finishes
study.yaml      what was asked, as it was run
results.csv     a row for each trial: factors, seed, repeat, responses
answer.json     the answer
report.html     the answer as a page
HPL.dat         of tuned HPL, the best run; HPL_not_comparable.dat: one that is certainly faster but not comparable
real_runs.csv   real runs that have corrected the answer
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError, LepauteError
from lepaute.kit.files import write_atomic
from lepaute.kit.frames import csv_text
from lepaute.kit.later import later, pandas
from lepaute.kit.notebook import Public, facts_html
from lepaute.kit.text import counted, duration
from lepaute.simulate import Hpl
from lepaute.simulate.application import Application
from lepaute.simulate.apps.hpl.hpl_dat import HplDat
from lepaute.stats.decision import Weakness
from lepaute.study.checking import opened_study, question_of, rehearsed, unused_keys
from lepaute.study.configuration import Configurations
from lepaute.study.evaluation import Answer, Outcome, Point, Trial, answered
from lepaute.study.pools import DaskPool, Threads, worker_schedulers
from lepaute.study.results import Results
from lepaute.study.schema import Placed, Study, study_text
from lepaute.study.session import Session
from lepaute.study.trust import caveats
from lepaute.study.tune import Tuned
from lepaute.study.tune_real import correct

if TYPE_CHECKING:
    from lepaute.watch import store as stores
else:
    stores = later("lepaute.watch.store")

#: Simulations that take longer are spread over processes, which take some seconds to start.
WORTH_PROCESSES_S = 30.0
MAX_WORKERS = 4096


@dataclass(frozen=True)
class StudyRun(Public):
    """A study that was run: its answer, all outcomes that were asked for, and how many simulations it took.

    simulated, reused : of the study's own, made and known before;  further : made, that judge or price points
    caveats : what a reader of the answer must know;  weaknesses : those of them that are of platforms and applications
    simulation_s : seconds that one took, all workers together; None if all were known
    """

    study: Study
    answer: Answer
    outcomes: tuple[Outcome, ...]
    simulated: int
    reused: int
    further: int = 0
    folder: Path | None = None
    caveats: tuple[str, ...] = ()
    weaknesses: tuple[Weakness, ...] = ()
    simulation_s: float | None = None

    @property
    def first_line(self) -> str:
        """The answer in one sentence, and how long what would decide the rest takes."""
        return answered(self.answer, self.simulation_s)

    @property
    def text(self) -> str:
        """The answer with its caveats, for a person."""
        return "\n".join([self.answer.text, *(f"warning: {text}" for text in self.caveats)])

    @property
    def counts(self) -> str:
        """How many simulations there were, in words."""
        further = f" ({self.further} more to judge them)" if self.further else ""
        return f"{counted(self.simulated, 'simulation')}{further}, {self.reused} known before"

    def to_dict(self) -> dict[str, Any]:
        return {
            "answer": answered(self.answer),
            "question": self.study.question,
            **self.answer.to_dict(),
            **self.answer.decision.beside(self.weaknesses).to_dict(),
            "title": self.study.title,
            "seed": self.study.seed,
            "simulated": self.simulated,
            "reused": self.reused,
            "further_simulations": self.further,
            "caveats": list(self.caveats),
        }

    def to_frame(self) -> "pandas.DataFrame":
        """A row a trial: factors, seed, repeat, responses, extrapolated_share, and why there are no responses, if so.

        Columns of responses are those of the study, and of any other that is known; missing where a trial was refused.
        """
        rows = _rows(self.outcomes)
        names = list(dict.fromkeys(name for row in rows for name in row)) or ["seed", "repeat"]
        responses = dict.fromkeys((*self.study.responses, *(name for run in self.outcomes for name in run.responses)))
        table = pandas.DataFrame(rows, columns=[*names, *(name for name in responses if name not in names)])
        kinds = {"seed": "int64", "repeat": "int64", **dict.fromkeys(responses, "float64")}
        kinds |= {"extrapolated_share": "float64", "refusal": "string"}
        return table.astype({name: kind for name, kind in kinds.items() if name in table})

    def __repr__(self) -> str:
        return f"<StudyRun: {self.study.title or self.study.question}, {counted(len(self.outcomes), 'trial')}>"

    def _repr_html_(self) -> str:
        facts = [("answer", self.first_line), ("simulations", self.counts), ("folder", self.folder)]
        return facts_html(self.study.title or self.study.question, facts, [f"warning: {text}" for text in self.caveats])


def run_study(
    study: "Study | dict[str, Any] | str | Path",
    *,
    folder: str | Path | None = None,
    resume: bool = False,
    scheduler: str | None = "threads",
    workers: int | None = None,
    runs: int | None = None,
    seed: int | None = None,
    store: "stores.Store | None" = None,
    progress: Callable[[str, float], None] | None = None,
    announce: Callable[[str], None] | None = None,
    command: str | None = None,
) -> StudyRun:
    """Answers the question of a study by simulating what is not known yet.

    Parameters
    ----------
    study : a file, its content, or a `Study`
    folder : keeps all results, and answers from them what is known
    resume : whether there may be results in it already
    scheduler : "threads" of this process, "local" (processes) or "slurm"; None: by how long it will take.
        Processes import the calling script, which needs the guard `if __name__ == "__main__":`
    workers : that simulate side by side; as many as there are cores, unless given
    runs, seed : in the place of the study's
    store : in the place of that in the folder
    progress : called with what is done, and the share of it from 0 to 1
    announce : called with a sentence on how long it will take
    command : that repeats it, for the page, where the study was asked for by one

    Returns
    -------
    A `StudyRun`: `text` is the answer for a person, `to_frame()` has a row a simulation

    Raises
    ------
    InputError : where something in the study cannot be, or the folder holds results and is not to be resumed

    Examples
    --------
    >>> import lepaute as lp
    >>> print(lp.study.run("STUDY.yaml", folder="results").text)  # doctest: +SKIP
    """
    from lepaute.watch.store import open_store

    original, configurations = opened_study(study, runs=runs, seed=seed)
    place = None if folder is None else Path(folder)
    is_new = place is not None and not place.exists()
    if place is not None:
        _check_folder(place, resume=resume)
    opened = store if store is not None or place is None else open_store(place / "store")
    results = Results(opened)
    seen: dict[Trial, Outcome] = {}
    try:
        with _session(configurations, results, scheduler, workers, place, progress, announce) as session:

            def evaluate(trials: Sequence[Trial]) -> list[Outcome]:
                outcomes = session(trials)
                seen.update((trial, one) for trial, one in zip(trials, outcomes, strict=True) if trial.is_of_study)
                return outcomes

            if place is not None:
                write_atomic(place / "study.yaml", study_text(_seen_from(place, original, configurations.folder)))
            began_s = time.monotonic()
            affordable, spent = _within_seconds(session)
            more = {"is_over": session.is_over} if original.question in ("tune", "whatif") else {}
            answer: Answer = question_of(original)(affordable, configurations, evaluate, **more)
        outcomes = tuple(seen.values())
        notes = (*spent, *unused_keys(configurations, outcomes), *caveats(outcomes, configurations, answer.trusts))
        counts = session.simulated, session.reused, session.further
        weak = configurations.weaknesses({run.trial.point: 0 for run in outcomes if run.refusal is None})
        made = session.simulated + session.further
        simulation_s = (time.monotonic() - began_s) / made if made else None
        run = StudyRun(original, answer, outcomes, *counts, place, notes, weak, simulation_s)
    except LepauteError:
        if place is not None and is_new and not results.any:
            shutil.rmtree(place, ignore_errors=True)
        raise
    finally:
        if opened is not None and opened is not store:
            opened.close()
    if place is not None:
        rows = _rows(run.outcomes)
        names = list(dict.fromkeys(name for row in rows for name in row))
        write_atomic(place / "results.csv", csv_text([names, *([row.get(name, "") for name in names] for row in rows)]))
        _write_answer(run, configurations, command)
    return run


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
    study = configurations.study
    known = ("threads", *worker_schedulers())
    if scheduler is not None and scheduler not in known:
        raise InputError(f"the scheduler is {scheduler[:60]!r}; it is one of {', '.join(known)}")
    if workers is not None and not 1 <= workers <= MAX_WORKERS:
        raise InputError(f"workers is {workers}; 1 to {MAX_WORKERS} simulate side by side")
    threads = Threads(configurations, workers)
    session = Session(configurations, results, threads, progress=progress, most=study.budget.simulations)
    session.expected = expected = rehearsed(session)
    wall_s = expected.wall_s
    if expected.missing and announce is not None and (wall_s is None or wall_s > 1.0):
        announce(expected.within(study.budget.seconds))
    if study.budget.seconds is not None and wall_s is None:
        raise InputError("how long emulations take is not known in advance; give budget.simulations and no seconds")
    if scheduler is None:
        is_long = wall_s is not None and wall_s > WORTH_PROCESSES_S
        scheduler = "local" if workers is not None or is_long else "threads"
    if scheduler != "threads":
        threads.close()
        session.pool = DaskPool(configurations, scheduler=scheduler, workers=workers, folder=folder)
    return session


def _within_seconds(session: Session) -> tuple[Study, tuple[str, ...]]:
    """The study with as many runs, or simulations, as its seconds suffice for, and a caveat where they are fewer.

    Of a study of all combinations the first runs of each are simulated, as long as there is time for another one and
    for what judges and prices them. Raises InputError if one of each takes longer.
    """
    study, expected = session.configurations.study, session.expected
    seconds = study.budget.seconds
    if seconds is None or expected is None or not expected.wall_s:
        return study, ()
    is_crossed = all(factor.levels is not None for factor in study.factors.values())
    if study.question == "tune" or not is_crossed:
        most = max(1, int(expected.missing * seconds / expected.wall_s))
        if most >= expected.most:
            return study, ()
        return study.model_copy(update={"budget": study.budget.model_copy(update={"simulations": most})}), (
            f"budget.seconds is {seconds:g}, which suffice for about {counted(most, 'simulation')} of {expected.most}",
        )
    seeds = sorted({trial.seed for trial in expected.trials})
    first_s = expected.wall_s * expected.study_share / len(seeds)
    if first_s > seconds:
        raise InputError(
            f"one run of each configuration takes about {duration(first_s)}, and budget.seconds is {seconds:g}; raise "
            "it, or ask for fewer levels"
        )
    besides = (1.0 / expected.study_share - 1.0) * len(seeds)  # judging and pricing, in runs of each
    for made, seed in enumerate(seeds, start=1):
        session([trial for trial in expected.trials if trial.seed == seed])
        if made < len(seeds) and session.is_over(made / (made + 1.0 + besides)):
            runs = f"budget.seconds is {seconds:g}, which sufficed for {made} of {counted(len(seeds), 'run')} of each"
            return study.model_copy(update={"runs": made}), (f"{runs} configuration",)
    return study, ()


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


def _seen_from(place: Path, study: Study, folder: Path | None) -> Study:
    """The study as a file in `place`: its files are named from there."""

    def there(name: str) -> str:
        return os.path.relpath((folder or Path()) / name, place)

    base: dict[str, Any] = {}
    if "/" in study.base.platform or study.base.platform.endswith((".yaml", ".yml")):
        base["platform"] = there(study.base.platform)
    if study.base.transfer is not None:
        base["transfer"] = there(study.base.transfer)
    if isinstance(file := study.base.application.get("class"), str):
        base["application"] = {**study.base.application, "class": there(file)}
    placed = study.base.mapping
    if isinstance(placed, Placed) and placed.file is not None:
        base["mapping"] = placed.model_copy(update={"file": there(placed.file)})
    update: dict[str, Any] = {"base": study.base.model_copy(update=base)}
    if study.capacity is not None:
        update["capacity"] = study.capacity.model_copy(update={"catalogue": there(study.capacity.catalogue)})
    return study.model_copy(update=update)


def _write_answer(run: StudyRun, configurations: Configurations, command: str | None) -> None:
    """Writes answer.json, report.html, and where HPL was tuned HPL.dat and perhaps HPL_not_comparable.dat."""
    from lepaute.study.report_page import page_of

    folder, answer = run.folder, run.answer
    assert folder is not None
    write_atomic(folder / "answer.json", json.dumps(run.to_dict(), indent=2) + "\n")
    made = page_of(run.study, answer, run.outcomes, run.caveats, command, configurations.platform_digests)
    write_atomic(folder / "report.html", made)
    if isinstance(answer, Tuned):
        application = configurations.at(answer.best).application
        if application.name == "hpl":
            write_hpl_dat(folder / "HPL.dat", application)
            ahead, ahead_dat = answer.ranking.ahead, folder / "HPL_not_comparable.dat"
            ahead_dat.unlink(missing_ok=True)  # of the simulation, where real runs have decided meanwhile
            if answer.real is None and ahead:
                write_hpl_dat(ahead_dat, configurations.at(ahead[0].point).application)


def write_hpl_dat(path: Path, application: "Application") -> None:
    """An HPL.dat of the chosen run; raises InputError for an application that is not HPL."""
    if not isinstance(application, Hpl):
        raise InputError(f"{path}: an HPL.dat is of HPL, and the application is {application.name}")
    write_atomic(path, HplDat.of(application).text())


def corrected(
    run: StudyRun, simulated: Sequence[Outcome], real: Callable[[Point], float], runs: int, seed: int
) -> StudyRun:
    """The study with the answer that at most this many real runs give; simulated, real: as for `tune_real.correct`."""
    assert isinstance(run.answer, Tuned)
    choice = correct(simulated, real, runs, seed=seed, trusts=run.answer.trusts)
    return replace(run, answer=replace(run.answer, real=choice))


def write_corrected(run: StudyRun, configurations: Configurations, real_runs: str, command: str) -> None:
    """Writes the answer and real_runs.csv, whose text is given, into the folder of the study."""
    assert run.folder is not None
    write_atomic(run.folder / "real_runs.csv", real_runs)
    _write_answer(run, configurations, command)


def _rows(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    return [
        {
            **outcome.trial.point,
            "seed": outcome.trial.seed,
            "repeat": outcome.trial.repeat,
            **outcome.responses,
            "extrapolated_share": outcome.extrapolated,
            "refusal": outcome.refusal or "",
        }
        for outcome in outcomes
    ]
