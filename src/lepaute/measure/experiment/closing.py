"""How a run ends: its outcome, and the way from its workspace to an archive."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.errors import EnvironmentProblem, InputError, LepauteError
from lepaute.kit.journal import damaged, drop_broken_end, entries
from lepaute.kit.json_values import from_json, to_json
from lepaute.kit.later import pandas
from lepaute.kit.node_sets import folded
from lepaute.kit.outputs import check_archive_output
from lepaute.kit.python_files import line_in
from lepaute.kit.text import counted
from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.measure.archive.documents import COMMANDS
from lepaute.measure.archive.metadata import COMPLETE, FAILED, PARTIAL, DesignProgress, Failure
from lepaute.measure.experiment.distrust import FALSE_ALARMS, WITNESS, Verdict, mark, verdicts
from lepaute.measure.experiment.entries import EXPERIMENT, CommandSeen, Content, RunState
from lepaute.measure.experiment.record import now
from lepaute.measure.experiment.workspace import DESIGN, Workspace
from lepaute.measure.node_agent.redact import Redactor
from lepaute.measure.nodes.results import CommandFailed
from lepaute.measure.raw_files import table_blocks
from lepaute.version import __version__

if TYPE_CHECKING:
    from lepaute.measure.experiment.job import Job

#: Folders of the workspace whose files become members of the same name.
_KEPT = ("designs", "experiment", "environment", "files", "raw")
#: Journals that become members as lists: what was cloned, set, copied; clocks; the cost of the monitor; rows of the
#: design that were measured; further rounds of rows, and what each level reached.
_LISTS = ("repositories", "controls", "transfers", "clock", "monitor", "done", "rounds", "reached")
#: Members of the metadata that a run's state does not have.
_OF_ARCHIVES = ("host", "partial", "design", "failure", "status")
#: Last lines kept of the errors that a failed command printed.
_TAIL_LINES = 12


def partial_name(archive: Path) -> Path:
    return archive.with_name(f"{archive.stem}.partial.zip")


@dataclass(frozen=True, slots=True)
class Outcome:
    """status: complete, incomplete (nodes were lost), failed, or partial (interrupted); failure: in one line, or None.

    problem: what was raised
    """

    archive: Path
    status: str
    failure: str | None
    rows_done: int
    rows: int
    problem: BaseException | None = None
    lost: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Content of the JSON: how it ended, and where."""
        return {
            "archive": str(self.archive),
            "status": self.status,
            "failure": self.failure,
            "lost": list(self.lost),
            "rows_done": self.rows_done,
            "rows": self.rows,
        }

    @property
    def headline(self) -> str:
        """The archive, the status, and the rows that were measured."""
        measured = DesignProgress(self.rows, self.rows_done).text
        lost = f", {folded(self.lost)} lost" if self.lost else ""
        return f"{self.archive}: {self.status}{measured and f', {measured}'}{lost}"


def failure_of(run: "Job", phase: str, problem: BaseException) -> Failure:
    """A failure as an archive records it: enough to know why without reading anything else."""
    script = run.options.script
    failure = Failure(
        phase=phase,
        type=type(problem).__name__,
        message=str(problem) if isinstance(problem, LepauteError) else f"{type(problem).__name__}: {problem}",
        where=f"{script.name}{line_in(problem, script)}" if script is not None else None,
    )
    if isinstance(problem, CommandFailed):
        result = problem.result
        failed = CommandSeen(result.node, result.start, result.returncode)
        numbers = [number for number, each in enumerate(run.workspace.noted(CommandSeen)) if each == failed]
        output = result.stderr.strip() or result.stdout.strip()
        failure = replace(
            failure,
            node=result.node,
            command=numbers[-1] if numbers else None,
            argv=tuple(run.record_of_run.clean_argv(result.argv)),
            returncode=result.returncode,
            stderr_tail="\n".join(output.splitlines()[-_TAIL_LINES:]),
        )
    return from_json(Failure, run.record_of_run.clean(to_json(failure)))


def finish(run: "Job", problem: BaseException | None) -> Outcome:
    """Stops monitoring, gives the nodes back, and archives what was measured.

    A complete run leaves NAME.zip and nothing else; any other leaves NAME.partial.zip, and its workspace, from which it
    can be resumed. Raises EnvironmentProblem if the archive cannot be written: everything is in the workspace then.
    """
    workspace = run.workspace
    try:
        return _finished(run, problem)
    except OSError as trouble:
        raise EnvironmentProblem(
            f"{trouble.filename or run.options.archive}: cannot be written ({trouble.strerror}); what was measured is "
            f"in {workspace.folder}: make room, then lepaute archive close {workspace.folder}"
        ) from problem
    except KeyboardInterrupt:
        folder = workspace.folder
        run.record_of_run.log(f"interrupted while archiving; what was measured is in {folder}: archive close {folder}")
        raise
    finally:
        run.close()


def _finished(run: "Job", problem: BaseException | None) -> Outcome:
    workspace, record = run.workspace, run.record_of_run
    phase, record.phase = record.phase, "end"
    run.release_machine()
    state = workspace.state
    if problem is None:
        state.status = COMPLETE
    elif isinstance(problem, KeyboardInterrupt):
        state.status = PARTIAL
        record.warn(f"interrupted in phase {phase}: this archive holds what was measured until then")
    else:
        state.status = FAILED
        state.failure = state.failure or failure_of(run, phase, problem)
    state.sessions[-1] = replace(state.sessions[-1], end=now(), status=state.status)
    workspace.save()
    record.log(f"archiving ({state.status})")
    target = run.options.archive if state.status == COMPLETE else partial_name(run.options.archive)
    done, rows = workspace.measured()
    _archive_workspace(workspace, target, run.archive_content)
    if state.status == COMPLETE:
        run.close()
        workspace.remove()
        partial_name(run.options.archive).unlink(missing_ok=True)
    lost = tuple(dict.fromkeys(entry.node for entry in state.lost_nodes))
    status = "incomplete" if lost and state.status == COMPLETE else state.status
    return Outcome(target, status, failure_text(state.failure) if state.failure else None, done, rows, problem, lost)


def failure_text(failure: Failure) -> str:
    """The message, and before it the line of the script where it names one."""
    where = failure.where or ""
    return f"{where}: {failure.message}" if ":" in where else failure.message


def close_interrupted(folder: Path, contents: Iterable[Content] = (), *, force: bool = False) -> Path:
    """The archive of a run whose controller was killed, made of its workspace, which stays and can be resumed.

    contents: of the kinds of run besides experiments
    force   : an archive of that name is replaced
    Raises InputError if there is no workspace, its run is still going on, or of another kind.
    """
    workspace = Workspace.reopen(folder)
    try:
        state = workspace.state
        content = {each.kind: each for each in (EXPERIMENT, *contents)}.get(state.kind or EXPERIMENT.kind)
        if content is None:
            raise InputError(f"{folder}: is of a {state.kind}, which this version cannot archive")
        if state.status in (None, "running"):
            state.status = PARTIAL
            state.warnings.append("the controller died unexpectedly: this archive holds what it had written")
        target = partial_name(folder.with_suffix(".zip"))
        check_archive_output(target, force=force)
        _archive_workspace(workspace, target, content)
        return target
    finally:
        workspace.close()


def reopen_archive(path: Path, content: Content) -> None:
    """Makes the workspace of a complete run anew, out of its archive, which stays: more can be measured then."""
    archive = Archive.open(path)
    if archive.about.kind != content.kind:
        raise InputError(
            f"{path}: is of a {archive.about.kind}, not of a {content.kind}; give the archive to go on with"
        )
    document = {key: value for key, value in archive.metadata.items() if key not in _OF_ARCHIVES}
    workspace = Workspace.create(path, from_json(RunState, document, str(path)))
    try:
        for name in archive.members():
            top, _, _ = name.partition("/")
            if top in _KEPT or name in (DESIGN, "log.txt"):
                workspace.keep_file(name, archive.read_bytes(name))
            elif top == "monitoring":
                _write_journal(workspace, name.removesuffix(".parquet"), archive.table(name).to_dict("records"))
            elif (journal := name.removesuffix(".json")) in (*_LISTS, *content.journals):
                _write_journal(workspace, journal, archive.json(name))
        _write_journal(workspace, "commands", archive.json(COMMANDS))
        made = {*content.warnings(workspace), *(entry["message"] for entry in archive.json("verdicts.json"))}
        workspace.state.warnings = [text for text in workspace.state.warnings if text not in made]
        workspace.save()
    except BaseException:
        workspace.remove()
        raise
    workspace.close()


def _write_journal(workspace: Workspace, name: str, noted: Iterable[Mapping[Any, Any]]) -> None:
    for entry in noted:
        workspace.journal(name).add({key: None if value != value else value for key, value in entry.items()})  # noqa: PLR0124


def _archive_workspace(workspace: Workspace, target: Path, content: Content = EXPERIMENT) -> None:
    """Writes the archive of everything in a workspace, which stays as it is.

    Raises ArchiveError or OSError if it cannot be written; no incomplete archive is left then.
    """
    folder = workspace.folder
    for path in _files(folder / "raw"):
        drop_broken_end(path)  # of a row that a full disk or a killed controller has cut short
    monitoring = {
        path.stem: frame_of(workspace.entries(f"monitoring/{path.stem}")) for path in _files(folder / "monitoring")
    }
    reference = workspace.entries("reference")
    doubts = distrusted(reference, monitoring)
    metadata = metadata_of(workspace, content)
    metadata["warnings"] = [
        *metadata["warnings"],
        *(
            f"{path.relative_to(folder)}: {counted(count, 'damaged line')} left out"
            for path in (*sorted(folder.glob("*.jsonl")), *_files(folder / "monitoring"))
            if (count := damaged(path))
        ),
        *(doubt.message for doubt in doubts),
    ]
    with ArchiveWriter(target, metadata) as archive:
        for top in _KEPT:
            for path in _files(folder / top):
                archive.add_file(str(path.relative_to(folder)), path)
        for name in (DESIGN, "log.txt"):
            if (folder / name).is_file():
                archive.add_file(name, folder / name)
        for name in (*_LISTS, *content.journals):
            archive.add_list(f"{name}.json", entries(folder / f"{name}.jsonl"))
        _add_observations(archive, workspace, content, doubts)
        for node, frame in monitoring.items():
            archive.add_table(f"monitoring/{node}.parquet", frame)
        if reference:
            archive.add_table("reference.parquet", frame_of(reference))
        archive.add_list("verdicts.json", (asdict(v) | {"witness": WITNESS.get(v.kind, "")} for v in doubts))
        for entry in entries(folder / "commands.jsonl"):
            archive.add_command(**entry)


def _add_observations(
    archive: ArchiveWriter, workspace: Workspace, content: Content, doubts: Iterable[Verdict]
) -> None:
    if content.tables is not None:
        for name, frame in content.tables(workspace):
            archive.add_table(f"observations/{name}.parquet", frame)
        return
    tell = archive.metadata["warnings"].append  # written at the end
    for path in _files(workspace.folder / "raw"):
        blocks = observations(path, doubts, next(iter(workspace.state.nodes), ""), tell)
        archive.add_blocks(f"observations/{path.stem}.parquet", blocks)


def distrusted(reference: Iterable[Mapping[str, Any]], monitoring: Mapping[str, "pandas.DataFrame"]) -> list[Verdict]:
    """Reasons to distrust observations: from both parts of the reference kernel, and from monitoring."""
    doubts: list[Verdict] = []
    samples = {node: {str(name): frame[name].tolist() for name in frame} for node, frame in monitoring.items()}
    for part, what in (("compute_s", "the reference kernel"), ("memory_s", "the memory part of the reference kernel")):
        series: dict[str, tuple[list[float], list[float]]] = {}
        for entry in reference:
            dates, durations = series.setdefault(str(entry["node"]), ([], []))
            dates.append(float(entry["time_s"]))
            durations.append(float(entry[part]))
        # The monitoring is judged once, and each part gets half of the false alarms.
        seen = verdicts(series, samples if part == "compute_s" else {}, false_alarms=FALSE_ALARMS / 2)
        doubts += [replace(doubt, message=doubt.message.replace("the reference kernel", what)) for doubt in seen]
    return sorted(doubts, key=lambda doubt: (doubt.start_s, doubt.node))


def metadata_of(workspace: Workspace, content: Content = EXPERIMENT) -> dict[str, Any]:
    state, (done, rows) = workspace.state, workspace.measured()
    return {
        **to_json(state),
        "kind": content.kind,
        "warnings": [*state.warnings, *content.warnings(workspace)],
        "parameters": Redactor(os.environ).environment(state.parameters),
        "lepaute_version": state.lepaute_version or __version__,
        "status": state.status or PARTIAL,
        "partial": state.status != COMPLETE,
        "failure": to_json(state.failure),
        "host": ",".join(state.nodes[:4]),
        "design": to_json(DesignProgress(rows, done, len(workspace.done()) - done)) if rows else None,
    }


def observations(
    path: Path, doubts: Iterable[Verdict], alone: str, tell: Callable[[str], None]
) -> "Iterator[pandas.DataFrame]":
    """A raw table, in blocks, with the column machine_changed: why a row is not to be trusted, empty if it is.

    alone: the node of rows that name none
    tell : called with what is wrong with the file
    """
    doubts = list(doubts)
    for frame in table_blocks(path, tell):
        if "recorded_s" in frame:
            nodes = frame["node"].astype(str).tolist() if "node" in frame else [alone] * len(frame)
            frame["machine_changed"] = mark(frame["recorded_s"].tolist(), nodes, doubts)
        yield frame


def frame_of(noted: list[dict[str, Any]]) -> "pandas.DataFrame":
    """Entries of a journal as a table; lists and objects become JSON texts, and columns of several types texts."""
    import pandas

    frame = pandas.DataFrame([{key: _cell(value) for key, value in entry.items()} for entry in noted])
    for name in [name for name in frame if not pandas.api.types.is_numeric_dtype(frame[name])]:
        cells = frame[name].where(frame[name].notna(), None)
        if len({type(cell) for cell in cells if cell is not None}) > 1:
            frame[name] = [None if cell is None else str(cell) for cell in cells]
    return frame


def _cell(value: Any) -> Any:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value) if abs(value) < 2**1000 else str(value)
    return json.dumps(value) if isinstance(value, dict | list) else value


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []
