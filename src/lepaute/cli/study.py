"""`lepaute study ...`: questions that take many simulations."""

import json
import os
import shlex
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lepaute.cli.entry import INTERRUPTED, complain
from lepaute.cli.option_fields import with_options_of
from lepaute.cli.simulation_options import AsJson, PlatformName, note
from lepaute.kit.options import option

if TYPE_CHECKING:
    from lepaute.simulate import Hpl
    from lepaute.study.configuration import Configurations
    from lepaute.study.evaluation import Outcome, Point
    from lepaute.study.running import StudyRun
    from lepaute.study.schema import Study
    from lepaute.verify.campaign import Case


@dataclass(frozen=True)
class StudyOptions:
    """How a study is run, as the command line says it; None where the study itself decides."""

    output: Path | None = field(
        default=None,
        metadata=option("folder of all results; STUDY.results unless given", also=("-o",), metavar="DIR"),
    )
    resume: bool = field(default=False, metadata=option("continue in the folder: only what is missing is simulated"))
    scheduler: str | None = field(
        default=None,
        metadata=option("threads, local (processes), slurm or oar; unless given, by how long it takes"),
    )
    workers: int | None = field(default=None, metadata=option("processes that simulate; a core each unless given"))
    runs: int | None = field(
        default=None, metadata=option("simulated runs of a configuration; the study's unless given")
    )
    seed: int | None = field(default=None, metadata=option("run i uses seed + i; the study's unless given"))

    def folder(self, study: str) -> Path:
        """Where the results of a study of this name go."""
        return Path(f"{study}.results") if self.output is None else self.output

    @property
    def that_repeat(self) -> dict[str, object]:
        """Those without which the command gives other results, by option."""
        return {"--runs": self.runs, "--seed": self.seed}


BAR_AFTER_S = 2.0
QUESTIONS = {
    "whatif": "What if: scenarios, or levels of a factor, each against the base.",
    "tune": "Which configuration is best.",
    "sensitivity": "Which factors matter, and how much.",
    "capacity": "Which machine to buy for a budget.",
}
StudyFile = Annotated[Path, typer.Argument(metavar="STUDY.yaml", help="the study; its schema: lepaute study schema")]
app = typer.Typer(help="Questions that take many simulations: tune, what if, sensitivity, capacity.")
app.callback()(lambda: None)


def command_of(question: str) -> Callable[..., None]:
    """The command that answers a question."""

    @with_options_of(StudyOptions, "options")
    def command(file: StudyFile, options: StudyOptions, as_json: AsJson = False) -> None:
        check_question(file, question)
        words = ["lepaute", "study", question, str(file)]
        printed(studied(file, options.folder(file.stem), options, words), as_json=as_json)

    command.__doc__ = QUESTIONS[question]
    return command


@with_options_of(StudyOptions, "options")
def tune(
    file: StudyFile,
    options: StudyOptions,
    real_runs: Annotated[
        int | None,
        typer.Option("--real-runs", help="at most so many runs of the real HPL on this machine correct the simulation"),
    ] = None,
    other_machine: Annotated[
        bool, typer.Option("--other-machine", help="with --real-runs: also where the platform is of another machine")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Which configuration is best."""
    from lepaute.errors import InputError

    check_question(file, "tune")
    folder = options.folder(file.stem)
    words = ["lepaute", "study", "tune", str(file), *_given({"--real-runs": real_runs})]

    def simulate() -> "StudyRun":
        return studied(file, folder, options, words)

    if real_runs is None:
        if other_machine:
            raise InputError("--other-machine goes with --real-runs; leave it out")
        printed(simulate(), as_json=as_json)
        return

    command = shlex.join([*words, *_given(options.that_repeat)])
    done = tuned_for_real(
        file, folder, real_runs, command, resume=options.resume, other_machine=other_machine, simulate=simulate
    )
    printed(done, as_json=as_json)


def check_question(file: Path, question: str) -> None:
    """Raises InputError for a study that asks another one."""
    from lepaute.errors import InputError
    from lepaute.study.schema import load_study

    asked = load_study(file).question
    if asked != question:
        raise InputError(f"{file}: asks the question {asked}; use `lepaute study {asked}`")


def studied(
    file: "Path | Study",
    folder: Path,
    options: StudyOptions,
    words: list[str],
) -> "StudyRun":
    """Runs a study, of a file or ready; words: the command without runs and seed."""
    from lepaute.cli.progress import progress_bar
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
                command=shlex.join([*words, *_given(options.that_repeat)]),
            )
    except KeyboardInterrupt:
        complain("interrupted; --resume continues")
        os._exit(INTERRUPTED)  # a normal exit would wait for the simulations that are under way


def _given(given: Mapping[str, object]) -> list[str]:
    """The options that have a value, as on a command line."""
    return [word for name, value in given.items() if value is not None for word in (name, str(value))]


def printed(run: "StudyRun", *, as_json: bool) -> None:
    """The answer on standard output."""
    if as_json:
        json.dump(run.to_dict(), sys.stdout, indent=2)
        sys.stdout.write("\n")
        return
    print(run.text)
    note(f"{run.folder}: {run.simulated} simulations, {run.reused} known before; results.csv, answer.json, report.html")


def check(file: StudyFile) -> None:
    """Check a study file: what it varies, how many simulations it takes, and for how long."""
    from lepaute.study.checking import checked_text

    print(checked_text(file))


@with_options_of(StudyOptions, "options")
def ready(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="of the study; all are listed without one")] = None,
    platform: PlatformName = "dahu",
    n: Annotated[
        str | None, typer.Option("--n", help="order of the matrix; several with commas in between; 50k unless given")
    ] = None,
    nb: Annotated[int | None, typer.Option("--nb", help="block size; 128 unless given")] = None,
    grid: Annotated[str | None, typer.Option("--grid", help="as 8x8; all cores unless given")] = None,
    threads: Annotated[
        int | None, typer.Option("--threads-per-rank", help="cores that each rank computes on", min=1)
    ] = None,
    *,
    options: StudyOptions,
    show: Annotated[bool, typer.Option("--print", help="print the study file instead, to be edited")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a ready study of HPL on a platform: a question of the literature, in one command."""
    from lepaute.kit.quantities import whole_of
    from lepaute.platform import load_platform
    from lepaute.study.ready import READY, Subject, ready_study
    from lepaute.study.schema import study_text

    if name is None:
        for each, function in READY.items():
            print(f"{each:22}{(function.__doc__ or '').splitlines()[0]}")
        return
    sizes = tuple(whole_of(each, "--n") for each in n.split(",")) if n is not None else ()
    given = {"n": sizes[0] if len(sizes) == 1 else None, "nb": nb, "grid": grid, "threads_per_rank": threads}
    subject = Subject(
        platform,
        load_platform(platform),
        {field: value for field, value in given.items() if value is not None},
        5 if options.runs is None else options.runs,
        1 if options.seed is None else options.seed,
        sizes if len(sizes) > 1 else (),
    )
    study = ready_study(name, subject)
    if show:
        print(study_text(study), end="")
        return
    subject_options = {"-p": platform, "--n": n, "--nb": nb, "--grid": grid, "--threads-per-rank": threads}
    words = ["lepaute", "study", "ready", name, *_given(subject_options)]
    printed(studied(study, options.folder(name), options, words), as_json=as_json)


def schema() -> None:
    """Print the JSON Schema of study files."""
    from lepaute.study.schema import json_schema

    print(json.dumps(json_schema(), indent=2))


for _question in QUESTIONS:
    app.command(_question)(tune if _question == "tune" else command_of(_question))
app.command()(ready)
app.command()(check)
app.command()(schema)


#: Of the study's folder: predictions, their seal, and the journal of the real runs.
CAMPAIGN = "real"
#: Simulated runs of each candidate, with equal seeds: what they have in common tells what a real run of one says of
#: the others.
SIMULATED_RUNS = 20


def tuned_for_real(
    file: Path,
    folder: Path,
    real_runs: int,
    command: str,
    *,
    resume: bool,
    other_machine: bool,
    simulate: "Callable[[], StudyRun]",
) -> "StudyRun":
    """The study with the answer of real runs, written into its folder.

    command  : that was given, for the page
    simulate : runs the study, once it is known that its cases can be run here
    Raises InputError for a study that cannot be run here, or a platform of another machine.
    """
    from lepaute.cli.notes import notes_printed
    from lepaute.cli.progress import progress_bar
    from lepaute.cli.verify import watching
    from lepaute.cli.verify_site import opened_site, where_of
    from lepaute.kit.text import counted
    from lepaute.measure.schedulers import Request
    from lepaute.simulate import predict
    from lepaute.study.checking import check_for_real
    from lepaute.study.running import corrected, write_corrected
    from lepaute.study.tune import Tuned
    from lepaute.study.tune_real import MOST_REPEATED
    from lepaute.verify.campaign import Plan
    from lepaute.verify.chosen_runs import chosen_runs
    from lepaute.verify.real_run import built_program, check_machine
    from lepaute.verify.run_journal import held

    configurations, platform, cases = check_for_real(file, real_runs)
    for case in cases:
        check_machine(case)
    where = where_of(None, Request(), None, None, other_machine=other_machine)
    program = built_program(lambda what: print(what, file=sys.stderr))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the ranks of a real run must end too
    resumed = resume and (folder / CAMPAIGN).exists()
    with (
        notes_printed(),
        opened_site(
            where,
            platform,
            program,
            cases[0].threads_per_rank,
            None,
            calibrated=False,
            resumed=folder / CAMPAIGN if resumed else None,
        ) as (site, seen_program, _),
    ):
        run = simulate()
        assert isinstance(run.answer, Tuned)
        points = run.answer.candidates()
        study, conditions = run.study, configurations.at(points[0]).conditions
        guard = watching(platform, seen_program.coretype, other_machine=other_machine)
        with held(folder / CAMPAIGN), progress_bar() as tell, chosen_runs(
            [application_at(configurations, point) for point in points],
            seen_program,
            Plan(MOST_REPEATED, study.seed),
            lambda hpl: predict(
                hpl,
                platform,
                runs=SIMULATED_RUNS,
                seed=study.seed,
                layers=conditions.layers,
                fidelity=conditions.fidelity,
            ),
            folder / CAMPAIGN,
            site,
            tell,
            guard=guard,
            resume=resumed,
        ) as campaign:  # fmt: skip
            print(f"predictions written before the first real run: {campaign.seal.path}", file=sys.stderr)
            places = {point: place for place, point in enumerate(points)}
            simulated = [one for point in points for one in outcomes_of(point, campaign.cases[places[point]])]
            done = corrected(run, simulated, lambda point: campaign.run(places[point]), real_runs, study.seed)
            write_corrected(done, configurations, campaign.csv(), command)
        disturbed = sum(one.disturbed for one in campaign.runs)
        if disturbed:
            print(
                f"warning: {disturbed} of {counted(len(campaign.runs), 'real run')} were disturbed by other load; "
                f"{campaign.disturbed} of those that count had no undisturbed repetition",
                file=sys.stderr,
            )
    return done


def application_at(configurations: "Configurations", point: "Point") -> "Hpl":
    """The run of HPL at a point of a study that was checked."""
    from lepaute.simulate import Hpl

    application = configurations.at(point).application
    assert isinstance(application, Hpl)
    return application


def outcomes_of(point: "Point", case: "Case") -> "list[Outcome]":
    """The simulated runs of a sealed prediction, as a study has them."""
    from lepaute.study.evaluation import Outcome, Trial

    share = case.prediction.extrapolated_share or 0.0
    return [
        Outcome(Trial(point, run.seed), {"time_s": run.time_s}, share, sampling_sd=case.prediction.sampling_sd)
        for run in case.prediction.run_list
    ]
