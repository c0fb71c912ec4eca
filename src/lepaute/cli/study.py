"""`lepaute study ...`: questions that take many simulations."""

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lepaute.cli.entry import INTERRUPTED, complain
from lepaute.cli.options import App, AsJson, Details, argument, option, reject_other_options
from lepaute.cli.simulation import PlatformName
from lepaute.cli.terminal import BAR_AFTER_S, json_text, note, notes_printed, progress_bar, say, warn
from lepaute.cli.verify_site import opened_site, refuse_other_machine, sentinel_guard, where_of
from lepaute.errors import InputError
from lepaute.kit.options import option_field
from lepaute.kit.printable import terminal_columns
from lepaute.kit.quantities import grid_of, whole_of
from lepaute.kit.text import counted, folded
from lepaute.measure.schedulers import Request
from lepaute.simulate.platform import load_platform
from lepaute.study.evaluation import Outcome, Trial

if TYPE_CHECKING:
    from lepaute.measure.verify.campaign import Case
    from lepaute.study.evaluation import Point
    from lepaute.study.running import StudyRun
    from lepaute.study.schema import Study

#: Of the study's folder: predictions, their seal, and the journal of the real runs.
CAMPAIGN = "real"
#: Simulated runs of each candidate, with equal seeds: what they share tells what a run of one says of the others.
SIMULATED_RUNS = 20


@dataclass(frozen=True)
class StudyOptions:
    """How a study is run; None where the study itself decides."""

    output: Path | None = option_field(None, "folder of results; default: STUDY.results", also=("-o",), metavar="DIR")
    resume: bool = option_field(False, "continue in the folder: only what is missing is simulated")
    scheduler: str | None = option_field(
        None, "where it runs: threads, local (processes) or slurm; default: by how long it takes"
    )
    workers: int | None = option_field(None, "processes that simulate; default: one per core")
    runs: int | None = option_field(None, "simulated runs of a configuration; default: the study's")
    seed: int | None = option_field(None, "run i uses seed + i; default: the study's")

    def folder(self, study: str) -> Path:
        """Where the results of a study of this name go."""
        return Path(f"{study}.results") if self.output is None else self.output

    def repeating(self, words: Sequence[str]) -> str:
        """The command, with the options without which it gives other results."""
        return shlex.join([*words, *_words({"--runs": self.runs, "--seed": self.seed})])


QUESTIONS = {
    "whatif": "What if: scenarios, or levels of a factor, each against the base.",
    "tune": "Which configuration is best.",
    "sensitivity": "Which factors matter, and how much.",
    "capacity": "Which machine to buy for a budget.",
}
StudyFile = Annotated[Path, argument("STUDY.yaml", "the study; its schema: lepaute study schema")]
app = App(help="Questions that take many simulations: tune, what if, sensitivity, capacity.")


def command_of(question: str) -> Callable[..., None]:
    def command(file: StudyFile, options: StudyOptions, details: Details = False, as_json: AsJson = False) -> None:
        _check_question(file, question)
        words = ["lepaute", "study", question, str(file)]
        printed(_studied(file, options.folder(file.stem), options, words), as_json=as_json, details=details)

    command.__doc__ = QUESTIONS[question]
    return command


def tune(
    file: StudyFile,
    options: StudyOptions,
    real_runs: Annotated[int | None, option("correct the simulation by at most N runs of the real HPL here")] = None,
    other_machine: Annotated[
        bool, option("with --real-runs: even if the platform describes another machine", "--other-machine")
    ] = False,
    details: Details = False,
    as_json: AsJson = False,
) -> None:
    """Which configuration is best."""
    _check_question(file, "tune")
    words = ["lepaute", "study", "tune", str(file), *_words({"--real-runs": real_runs})]
    if real_runs is not None:
        run = _tuned_for_real(file, real_runs, options, words, other_machine=other_machine)
    elif other_machine:
        raise InputError("--other-machine goes with --real-runs; leave it out")
    else:
        run = _studied(file, options.folder(file.stem), options, words)
    printed(run, as_json=as_json, details=details)


def _check_question(file: Path, question: str) -> None:
    """Raises InputError for a study that asks another one."""
    from lepaute.study.schema import load_study

    if (other := load_study(file).question) != question:
        raise InputError(f"{file}: asks the question {other}; use `lepaute study {other}`")


def _studied(file: "Path | Study", folder: Path, options: StudyOptions, words: list[str]) -> "StudyRun":
    """Runs a study, of a file or ready; words: the command without runs and seed."""
    from lepaute.study.running import run_study

    try:
        with progress_bar(BAR_AFTER_S) as tell:
            return run_study(
                file,
                folder=folder,
                resume=options.resume,
                scheduler=options.scheduler,
                workers=options.workers,
                runs=options.runs,
                seed=options.seed,
                progress=tell,
                announce=lambda text: note(f"lepaute: {text}"),
                command=options.repeating(words),
            )
    except KeyboardInterrupt:
        complain("interrupted; --resume continues")
        os._exit(INTERRUPTED)  # a normal exit would wait for the simulations that are under way


def _words(options: Mapping[str, object]) -> list[str]:
    return [word for name, value in options.items() if value is not None for word in (name, str(value))]


def printed(run: "StudyRun", *, as_json: bool, details: bool) -> None:
    """The answer on standard output."""
    if as_json:
        print(json_text(run.to_dict()))
        return
    from lepaute.cli.study_text import answered_study

    width, is_clear = terminal_columns(), run.answer.decision.state("for") == "fine"
    text = answered_study(run, width, details=details)
    say(text, 2, "good" if is_clear else "doubtful", folded(run.first_line, width, 2))
    hpl = ", HPL.dat" if run.folder and (run.folder / "HPL.dat").exists() else ""
    note(f"{run.folder}: {run.counts}; results.csv, answer.json, report.html{hpl}")


def check(file: StudyFile, as_json: AsJson = False) -> None:
    """Check a study file: what it varies, how many simulations it takes, and for how long."""
    from lepaute.study.checking import checked

    plan = checked(file)
    if as_json:
        print(json_text(plan.to_dict()))
    else:
        say(plan.text, 4)


def ready(
    context: typer.Context,
    name: Annotated[str | None, argument("NAME", "of the study; all are listed without one")] = None,
    platform: PlatformName = "dahu",
    n: Annotated[str | None, option("order of the matrix; default: 50k", "--n", metavar="N,...")] = None,
    nb: Annotated[str | None, option("block size; default: 128", "--nb", metavar="N,...")] = None,
    grid: Annotated[str | None, option("as 8x8; default: all cores", "--grid", metavar="PxQ,...")] = None,
    threads: Annotated[int | None, option("cores of each rank", "--threads-per-rank", min=1)] = None,
    *,
    options: StudyOptions,
    show: Annotated[bool, option("print the study file instead, to be edited", "--print")] = False,
    details: Details = False,
    as_json: AsJson = False,
) -> None:
    """Run a ready study of HPL on a platform: a question of the literature, in one command."""
    from lepaute.study.ready import READY, Subject, ready_study
    from lepaute.study.schema import study_text

    if as_json and show:
        raise InputError("give either --json or --print")
    if name is None:
        reject_other_options(context, {"as_json"}, "without a NAME all studies are listed")
        listed = {each: (function.__doc__ or "").splitlines()[0] for each, function in READY.items()}
        if as_json:
            print(json_text({"studies": [{"name": each, "question": question} for each, question in listed.items()]}))
        else:
            say(f"{counted(len(listed), 'question')} about HPL, asked by 'lepaute study ready NAME -p PLATFORM'")
            say("\n".join(f"{each:26}{question}" for each, question in listed.items()), 26)
        return
    lists: dict[str, list[Any]] = {
        "n": [whole_of(word, "--n") for word in n.split(",")] if n is not None else [],
        "nb": [whole_of(word, "--nb", 1) for word in nb.split(",")] if nb is not None else [],
        "grid": ["x".join(map(str, grid_of(word, "--grid"))) for word in grid.split(",")] if grid is not None else [],
        "threads_per_rank": [] if threads is None else [threads],
    }
    subject = Subject(
        platform,
        load_platform(platform),
        {field: values[0] for field, values in lists.items() if len(values) == 1},
        5 if options.runs is None else options.runs,
        1 if options.seed is None else options.seed,
        {field: values for field, values in lists.items() if len(values) > 1},
    )
    study = ready_study(name, subject)
    if show:
        print(study_text(study), end="")
        return
    subject_options = {"-p": platform, "--n": n, "--nb": nb, "--grid": grid, "--threads-per-rank": threads}
    words = ["lepaute", "study", "ready", name, *_words(subject_options)]
    printed(_studied(study, options.folder(name), options, words), as_json=as_json, details=details)


def schema() -> None:
    """Print the JSON Schema of study files."""
    from lepaute.study.schema import json_schema

    print(json_text(json_schema()))


for _question in QUESTIONS:
    app.command(_question)(tune if _question == "tune" else command_of(_question))
app.command()(ready)
app.command()(check)
app.command()(schema)


def _tuned_for_real(
    file: Path, real_runs: int, options: StudyOptions, words: list[str], *, other_machine: bool
) -> "StudyRun":
    """Runs the study once it is known that its cases can be run here, and corrects its answer by real runs.

    Raises InputError for a study that cannot be run here, or a platform of another machine.
    """
    from lepaute.measure.verify.campaign import Plan
    from lepaute.measure.verify.real_run import build_program, check_machine
    from lepaute.measure.verify.seal import held
    from lepaute.measure.verify.verification import chosen_runs
    from lepaute.simulate import predict
    from lepaute.study.checking import check_for_real
    from lepaute.study.running import corrected, write_corrected
    from lepaute.study.tune import Tuned
    from lepaute.study.tune_real import MAX_REPEATED

    configurations, platform, cases = check_for_real(file, real_runs)
    for case in cases:
        check_machine(case)
    where = where_of(None, Request(), None, None, other_machine=other_machine)
    refuse_other_machine(platform, where)
    program, threads = build_program(note), cases[0].threads_per_rank
    campaign_folder = options.folder(file.stem) / CAMPAIGN
    resumed = campaign_folder if options.resume and campaign_folder.exists() else None
    opened = opened_site(where, platform, program, threads, None, calibrated=False, resumed=resumed)
    with notes_printed(), opened as (site, seen_program, _):
        run = _studied(file, options.folder(file.stem), options, words)
        assert isinstance(run.answer, Tuned)
        points, seed = run.answer.candidates(), run.study.seed
        conditions = configurations.at(points[0]).conditions  # the same at all points
        how: dict[str, Any] = {"layers": conditions.layers, "fidelity": conditions.fidelity}
        guard = sentinel_guard(platform, seen_program.coretype, other_machine=other_machine)
        with held(campaign_folder), progress_bar() as tell, chosen_runs(
            [configurations.at(point).application for point in points],
            seen_program,
            Plan(MAX_REPEATED, seed),
            partial(predict, platform=platform, runs=SIMULATED_RUNS, seed=seed, **how),
            campaign_folder,
            site,
            tell,
            guard=guard,
            resume=resumed is not None,
        ) as campaign:  # fmt: skip
            note(f"predictions written before the first real run: {campaign.seal.path}")
            known = zip(points, campaign.cases, strict=True)
            simulated = [outcome for point, case in known for outcome in outcomes_of(point, case)]
            done = corrected(run, simulated, lambda point: campaign.run(points.index(point)), real_runs, seed)
            write_corrected(done, configurations, campaign.csv(), options.repeating(words))
        warn(campaign.warnings)
    return done


def outcomes_of(point: "Point", case: "Case") -> "list[Outcome]":
    """The simulated runs of a sealed prediction, as a study has them."""
    share = case.prediction.extrapolated_share or 0.0
    return [
        Outcome(Trial(point, run.seed), {"time_s": run.time_s}, share, sampling_sd=case.prediction.sampling_sd)
        for run in case.prediction.run_list
    ]
