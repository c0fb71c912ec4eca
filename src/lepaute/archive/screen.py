"""What an archive tells a person first: one screen of 24 lines and 100 columns; of a failed one, why."""

from collections import Counter
from typing import Any

from lepaute.archive.documents import mapping, number, sequence, text
from lepaute.archive.manifest import COMMANDS
from lepaute.archive.nodes import folded
from lepaute.archive.printable import fitted, printable, wrapped
from lepaute.archive.reader import Archive
from lepaute.errors import ArchiveError
from lepaute.kit.text import size_text

WIDTH, LINES = 100, 24
_INDENT = 11
#: Lines of standard error shown, at least and at most, where the screen has room.
_FEWEST_STDERR, _MOST_STDERR = 3, 8
_MOST_WARNINGS = 3

COMPLETE, PARTIAL, FAILED = "complete", "partial", "failed"


def status_of(metadata: dict[str, Any]) -> str:
    """complete, partial or failed; calibrations say only whether they are partial."""
    status = text(metadata.get("status"))
    if status in (COMPLETE, PARTIAL, FAILED):
        return status
    return PARTIAL if metadata.get("partial") else COMPLETE


def first_screen(archive: Archive) -> list[str]:
    """At most LINES lines of at most WIDTH columns; the first one is the status.

    Nothing in them is a terminal's command, whatever the archive holds.
    """
    metadata = archive.metadata
    status = status_of(metadata)
    head = [_status_line(metadata, status), *_identity(archive), *_measured(metadata)]
    why = [] if status == COMPLETE else _why(metadata)
    failed, stderr = _failed_command(archive) if status != COMPLETE else ([], [])
    tail = [
        *_lost(metadata),
        *_warnings(metadata),
        *_go_on(archive, status),
        *_content(archive, most_lines=1 if status == FAILED else 2),
    ]
    room = LINES - len(head) - len(why) - len(failed) - len(tail)
    kept = stderr[-max(0, min(room - 1, _MOST_STDERR)) :] if room > 1 else []
    title = [_line("its stderr", f"last {len(kept)} of {len(stderr)} lines")] if kept else []
    lines = [*head, *why, *failed, *title, *(fitted(f"  | {line}", WIDTH) for line in kept), *tail]
    return lines[:LINES]


def members_by_folder(archive: Archive) -> list[tuple[str, int, int]]:
    """(first part of the name, members, bytes) of each folder; the whole name of what is alone in its folder."""
    members = archive.members()
    count = Counter(name.partition("/")[0] for name in members)
    size: Counter[str] = Counter()
    shown: dict[str, str] = {}
    for name, member in members.items():
        top, slash, _ = name.partition("/")
        size[top] += member.size_bytes
        shown[top] = name if count[top] == 1 else top + slash
    return [(shown[top], count[top], size[top]) for top in sorted(count)]


def _line(key: str, value: str) -> str:
    return fitted(f"{key:<{_INDENT - 1}} {value}", WIDTH)


def _paragraph(key: str, value: str, most_lines: int) -> list[str]:
    lines = wrapped(value, WIDTH - _INDENT, most_lines)
    return [f"{key if not number else '':<{_INDENT - 1}} {line}" for number, line in enumerate(lines)]


def _duration(value: object) -> str:
    seconds = number(value)
    if seconds is None or seconds < 0 or seconds >= 1e9:
        return ""
    if seconds < 120:
        return f"{seconds if seconds >= 0.001 else 0:.3g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _phase(phase: dict[str, Any]) -> str:
    """Name and duration, and how it ended where that was not well."""
    status = text(phase.get("status"))
    words = (text(phase.get("name")), "" if status == "done" else status, _duration(phase.get("duration_s")))
    return " ".join(word for word in words if word)


def _status_line(metadata: dict[str, Any], status: str) -> str:
    name = text(metadata.get("name")) or text(metadata.get("host"))
    what = f"{text(metadata.get('kind'))} {name}".strip()
    line = f"{status.upper()}: {what}"
    failure = mapping(metadata.get("failure"))
    if phase := text(failure.get("phase")):
        line += f", in phase {phase}"
    if node := text(failure.get("node")):
        line += f" on {node}"
    return fitted(line, WIDTH)


def _identity(archive: Archive) -> list[str]:
    metadata = archive.metadata
    lines = [_line("id", archive.id)]
    when = text(metadata.get("created"))
    if version := text(metadata.get("lepaute_version")):
        when += f", by Lepaute {version}"
    if run := text(metadata.get("run_id")):
        when += f", run {run}"
    lines.append(_line("created", when))
    nodes = [name for name in sequence(metadata.get("nodes")) if isinstance(name, str)] or [text(metadata.get("host"))]
    scheduler = mapping(metadata.get("scheduler"))
    by = ", ".join(
        f"{key} {value}" for key, value in scheduler.items() if isinstance(value, str | int) and key != "name"
    )
    name = text(scheduler.get("name"))
    count = f" ({len(nodes)})" if len(nodes) > 1 else ""
    lines.append(_line("nodes", f"{folded(nodes)}{count}" + (f"; {name}" if name else "") + (f": {by}" if by else "")))
    phases = [mapping(phase) for phase in sequence(metadata.get("phases"))]
    if phases:
        lines.append(_line("phases", ", ".join(map(_phase, phases))))
    return lines


def _measured(metadata: dict[str, Any]) -> list[str]:
    design = mapping(metadata.get("design"))
    rows, done = number(design.get("rows")), number(design.get("done"))
    lines = []
    if rows is not None and done is not None:
        left = f", {rows - done:.0f} are missing" if done < rows else ""
        lines.append(_line("measured", f"{done:.0f} of {rows:.0f} rows of the design{left}"))
    parameters = mapping(metadata.get("parameters"))
    told = [f"{key}={value}" for key, value in sorted(parameters.items()) if isinstance(value, str | int | float)]
    seed = metadata.get("seed")
    told = [f"seed={seed}" for _ in range(isinstance(seed, int))] + told
    if told:
        lines.append(_line("with", " ".join(told)))
    for key in ("cpu_model", "blas"):  # of calibrations
        value = metadata.get(key)
        if isinstance(value, dict):
            value = ", ".join(str(value[part]) for part in ("library", "core") if isinstance(value.get(part), str))
        if isinstance(value, str) and value:
            lines.append(_line(key.partition("_")[0], value))
    return lines


def _why(metadata: dict[str, Any]) -> list[str]:
    failure = mapping(metadata.get("failure"))
    message = text(failure.get("message")) or text(metadata.get("partial_cause"))
    if not message:
        return _paragraph("why", "not recorded: it was interrupted, or its engine ended before it could tell", 2)
    kind = text(failure.get("type"))
    lines = _paragraph("why", f"{kind}: {message}" if kind else message, 3)
    if where := text(failure.get("where")):
        lines.append(_line("where", where))
    return lines


def _failed_command(archive: Archive) -> tuple[list[str], list[str]]:
    """The command that failed, as lines of the screen, and the lines of its standard error."""
    failure = mapping(archive.metadata.get("failure"))
    stderr = text(failure.get("stderr_tail"))
    index = failure.get("command")
    lines: list[str] = []
    if isinstance(index, int) and not isinstance(index, bool) and COMMANDS in archive.members():
        try:
            commands = sequence(archive.json(COMMANDS))
        except ArchiveError:
            commands = []
        if 0 <= index < len(commands):
            command = mapping(commands[index])
            lines, more = _command(command, index)
            stderr = more or stderr
    return lines, [line for line in stderr[-20_000:].splitlines() if line.strip()]


def _command(command: dict[str, Any], index: int) -> tuple[list[str], str]:
    import shlex

    words = shlex.join(word for word in sequence(command.get("argv")) if isinstance(word, str))
    node = text(command.get("node"))
    lines = _paragraph("command", f"{node}$ {words}" if node else words, 2)
    status = number(command.get("returncode"))
    ended = (
        "status unknown" if status is None else f"signal {-status:.0f}" if status < 0 else f"exit status {status:.0f}"
    )
    took = _duration(command.get("duration_s"))
    place = f" in {text(command.get('folder'))}" if text(command.get("folder")) else ""
    lines.append(_line("", f"{ended}" + (f" after {took}" if took else "") + f", number {index} of {COMMANDS}{place}"))
    return lines, text(command.get("stderr")) or text(command.get("stdout"))


def _lost(metadata: dict[str, Any]) -> list[str]:
    lost = [mapping(loss) for loss in sequence(metadata.get("lost_nodes"))]
    if not lost:
        return []
    names = folded(text(loss.get("node")) for loss in lost)
    first = lost[0]
    told = f"{names}: {text(first.get('why'))} ({text(first.get('when'))})"
    return [_line("lost nodes", told + (f", and {len(lost) - 1} more" if len(lost) > 1 else ""))]


def _warnings(metadata: dict[str, Any]) -> list[str]:
    warnings = [warning for warning in sequence(metadata.get("warnings")) if isinstance(warning, str)]
    lines = [
        _line("warnings" if not place else "", f"{place + 1}. {w}") for place, w in enumerate(warnings[:_MOST_WARNINGS])
    ]
    if len(warnings) > _MOST_WARNINGS:
        lines.append(_line("", f"and {len(warnings) - _MOST_WARNINGS} more (--json)"))
    return lines


def _go_on(archive: Archive, status: str) -> list[str]:
    if status == COMPLETE:
        return []
    script = text(archive.metadata.get("script"))
    file = archive.path.name
    if archive.metadata["kind"] != "experiment":
        return [_line("go on", "what is there can be fitted; calibrate again for the rest")]
    import shlex

    name = shlex.quote(printable(f"{file.removesuffix('.partial.zip').removesuffix('.zip')}.zip"))
    return [
        _line(
            "go on", f"lepaute run {shlex.quote(printable(script)) if script else 'EXPERIMENT.py'} --resume -o {name}"
        ),
        _line("", f"lepaute archive extract {shlex.quote(printable(file))} log.txt commands.json -o FOLDER"),
    ]


def _content(archive: Archive, most_lines: int) -> list[str]:
    folders = members_by_folder(archive)
    total = sum(size for _, _, size in folders)
    folders.sort(key=lambda folder: "/" not in folder[0])  # folders first, then files
    told = ", ".join(f"{top} {count}" if count > 1 else top for top, count, _ in folders)
    members = sum(count for _, count, _ in folders)
    return _paragraph("members", f"{members}, {size_text(total)} (--members lists them): {told}", most_lines)
