"""`lepaute study ...`: questions that take many simulations."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lepaute.cli.simulation_options import AsJson, note

if TYPE_CHECKING:
    from lepaute.study.running import StudyRun

BAR_AFTER_S = 2.0
QUESTIONS = {
    "whatif": "What if: scenarios, or levels of a factor, each against the base.",
    "tune": "Which configuration is best.",
    "sensitivity": "Which factors matter, and how much.",
    "capacity": "Which machine to buy for a budget.",
}
StudyFile = Annotated[Path, typer.Argument(metavar="STUDY.yaml", help="the study; its schema: lepaute study schema")]
Scheduler = Annotated[
    str | None,
    typer.Option("--scheduler", help="threads, local (processes), slurm or oar; unless given, by how long it takes"),
]
Workers = Annotated[int | None, typer.Option("--workers", help="processes that simulate; a core each unless given")]
Resume = Annotated[bool, typer.Option("--resume", help="continue in the folder: only what is missing is simulated")]
Runs = Annotated[int | None, typer.Option("--runs", help="simulated runs of a configuration; the study's unless given")]
Seed = Annotated[int | None, typer.Option("--seed", help="run i uses seed + i; the study's unless given")]
Output = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="DIR", help="folder of all results; STUDY.results unless given")
]

app = typer.Typer(help="Questions that take many simulations: tune, what if, sensitivity, capacity.")
app.callback()(lambda: None)


def command_of(question: str) -> Callable[..., None]:
    """The command that answers a question."""

    def command(
        file: StudyFile,
        output: Output = None,
        resume: Resume = False,
        scheduler: Scheduler = None,
        workers: Workers = None,
        runs: Runs = None,
        seed: Seed = None,
        as_json: AsJson = False,
    ) -> None:
        from lepaute.errors import InputError
        from lepaute.study.schema import load_study

        asked = load_study(file).question
        if asked != question:
            raise InputError(f"{file}: asks the question {asked}; use `lepaute study {asked}`")
        folder = Path(f"{file.stem}.results") if output is None else output
        answered(file, folder, resume, scheduler, workers, runs, seed, as_json=as_json)

    command.__doc__ = QUESTIONS[question]
    return command


def answered(
    file: Path,
    folder: Path,
    resume: bool,
    scheduler: str | None,
    workers: int | None,
    runs: int | None,
    seed: int | None,
    *,
    as_json: bool,
) -> None:
    """Runs a study and prints its answer."""
    from lepaute.cli.progress import progress_bar
    from lepaute.study.running import run_study

    with progress_bar(BAR_AFTER_S) as tell:
        run = run_study(
            file,
            folder=folder,
            resume=resume,
            scheduler=scheduler,
            workers=workers,
            runs=runs,
            seed=seed,
            progress=tell,
            announce=lambda text: note(f"lepaute: {text}"),
        )
    printed(run, as_json=as_json)


def printed(run: "StudyRun", *, as_json: bool) -> None:
    """The answer on standard output."""
    if as_json:
        json.dump(run.to_dict(), sys.stdout, indent=2)
        sys.stdout.write("\n")
        return
    print(run.text)
    note(f"{run.folder}: {run.simulated} simulations, {run.reused} known before; results.csv, answer.json")


def check(file: StudyFile) -> None:
    """Check a study file: what it varies, how many simulations it takes, and for how long."""
    from lepaute.study.running import checked_text

    print(checked_text(file))


def schema() -> None:
    """Print the JSON Schema of study files."""
    from lepaute.study.schema import json_schema

    print(json.dumps(json_schema(), indent=2))


for _question in QUESTIONS:
    app.command(_question)(command_of(_question))
app.command()(check)
app.command()(schema)
