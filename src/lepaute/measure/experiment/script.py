"""The script of an experiment: the job that it defines, and what a run of it would do."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from lepaute.errors import InputError, LepauteError
from lepaute.kit.python_files import Program, line_in
from lepaute.kit.temporary import temporary_folder
from lepaute.measure.experiment.job import Job
from lepaute.measure.experiment.options import Options
from lepaute.measure.nodes.group import Nodes, NoRecord
from lepaute.measure.nodes.results import Result, Results, command_text
from lepaute.measure.schedulers import scheduler


def load_job_class(script: Path, name: str | None = None) -> type[Job]:
    """The class in a script that is an experiment; `name` where it has several.

    The script is run as a module, from its own folder: it may import what lies beside it.
    Raises InputError when it cannot be run, or defines none, or several.
    """
    if not script.is_file():
        raise InputError(f"{script}: there is no such file; give the script of an experiment")
    if script.suffix != ".py":
        raise InputError(f"{script}: is not a Python script; its name ends in .py")
    program = Program(script)
    sys.path.insert(0, str(program.folder))  # for what its methods import
    return program.chosen(Job, name, "--class")


def made_job(job_class: type[Job], options: Options, say: Callable[[str], None] | None = None) -> Job:
    """Instantiates the experiment with its options; raises InputError if its class cannot be."""
    where = f"{options.script}: {job_class.__name__}"
    try:
        job = job_class(options, say=say)
    except LepauteError:
        raise
    except Exception as problem:
        problem_text = f"{type(problem).__name__}: {problem}"
        raise InputError(f"{where}() failed: {problem_text}; leave __init__ alone, and prepare in setup()") from problem
    if not hasattr(job, "options"):
        raise InputError(f"{where}.__init__ does not call that of lepaute.Job; leave it out, and prepare in setup()")
    return job


#: Rows of the design that are gone through, to list what each does.
LISTED_ROWS = 2


def planned_steps(job_class: type[Job], options: Options) -> list[str]:
    """The lines of a dry run. Nothing is started on a node; commands of the script are listed and give empty output."""
    lines: list[str] = []
    plan = scheduler(options.scheduler).plan(options.request)
    lines.extend(f"nodes: {step}" for step in plan.steps)
    lines += [f"nodes: with {options.python}"] if options.python else []
    with temporary_folder("lepaute-dry-run-") as folder:
        job = made_job(job_class, replace(options, archive=folder / "dry.zip"), say=lambda _line: None)
        try:
            job.begin()
            lines.extend(_preparation(job, options))
            names = _names(options)
            for phase in ("setup", "run", "teardown"):
                job.use(DryNodes(names, lambda text, phase=phase: lines.append(f"{phase}: {text}")))
                try:
                    getattr(job, phase)()
                except (Exception, SystemExit) as problem:  # noqa: BLE001 - a script that reads output gets none here
                    where = line_in(problem, options.script).removeprefix(":")
                    place = f" at line {where}" if where else ""
                    lines.append(f"{phase}: needs real output from here on ({type(problem).__name__}{place})")
            if not any(": needs real output from here on" in line for line in lines):
                lines += filter(None, [job.parameters.unread_text()])
        finally:
            job.close()
    lines += ["teardown: folders on the nodes are kept"] if options.keep_folders else []
    lines.append(f"archive: {options.archive}")
    return lines


def _preparation(job: Job, options: Options) -> Iterator[str]:
    control = {**type(job).control, **options.control}
    yield "prepare: record every node's environment and clock"
    for name, value in control.items():
        yield f"prepare: set {name} to {value}, undone at the end"
    for name, what in (
        ("warm_up_s", "prepare: warm up all cores for {:g} s"),
        ("monitor_period_s", "prepare: sample every node each {:g} s"),
        ("reference_period_s", "prepare: run the reference kernel between rows, each {:g} s"),
    ):
        if (period_s := job.period(name)) > 0:
            yield what.format(period_s)
    design = job.workspace.design
    if design is not None:
        listed = min(LISTED_ROWS, len(design))
        yield f"design: {len(design)} rows of {', '.join(design.columns)}; the first {listed} follow"
        job.workspace.keep_design(replace(design, rows=design.rows[:LISTED_ROWS]))


def _names(options: Options) -> tuple[str, ...]:
    known = scheduler(options.scheduler).known_nodes(options.request)
    return known or tuple(f"node{number + 1}" for number in range(options.request.count or 1))


class DryNodes(Nodes):
    """Nodes that list what they are asked for, and do nothing."""

    def __init__(self, names: tuple[str, ...], tell: Any) -> None:
        super().__init__((), NoRecord())
        self._names, self._tell = names, tell

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    @property
    def place(self) -> str:
        return "/tmp/lepaute-RUN"

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[Nodes]:
        return (DryNodes((name,), self._tell) for name in self._names)

    def __getitem__(self, which: str | int | slice) -> Nodes:
        if isinstance(which, str):
            if which not in self._names:
                raise InputError(f"there is no node {which!r}; the nodes are {', '.join(self._names)}")
            return DryNodes((which,), self._tell)
        chosen = self._names[which]
        return DryNodes((chosen,) if isinstance(chosen, str) else chosen, self._tell)

    def run(self, *words: object, folder: str | Path | None = None, **_options: Any) -> Results:
        argv = tuple(str(word) for word in words)
        where = f" in {folder}" if folder else ""
        self._tell(f"{_folded(self._names)}{where}: {command_text(argv)}"[:400])
        return Results({name: Result(name, argv, None, 0, "", "", "", 0.0) for name in self._names})

    def write(self, path: str | Path, content: str | bytes, mode: int = 0o644) -> None:  # noqa: ARG002 - as Nodes has it
        self._tell(f"{_folded(self._names)}: write {path} ({len(content)} bytes)")

    def read(self, path: str | Path, most_bytes: int = 0) -> dict[str, bytes]:  # noqa: ARG002
        self._tell(f"{_folded(self._names)}: read {path}")
        return dict.fromkeys(self._names, b"")

    def call(self, *_what: Any, **_arguments: Any) -> dict[str, Any]:
        return {}


def _folded(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
