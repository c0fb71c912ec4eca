"""What an archive tells a person first: what it is and how it ended in the first line, then what that rests on, on one
screen of 24 lines and 100 columns; of a failed one, why."""

import contextlib
import re
import shlex
from collections import Counter
from typing import Any

from lepaute.errors import ArchiveError
from lepaute.kit.node_sets import folded
from lepaute.kit.printable import UNLIMITED, columns, fitted, printable, wrapped
from lepaute.kit.text import caveat_line, counted, moment, size_text
from lepaute.measure.archive.documents import COMMANDS, mapping, number, sequence, text
from lepaute.measure.archive.metadata import COMPLETE, FAILED, Metadata
from lepaute.measure.archive.mpi_campaign import KIND as COMPARISON
from lepaute.measure.archive.reader import Archive

WIDTH, LINES = 100, 24
_INDENT = 11
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
#: Lines of standard error that are shown, at most, where the screen has room.
_MAX_STDERR = 8
#: Further lines into which a line is folded, where the screen has room.
_MAX_MORE = 2


def first_screen(archive: Archive, width: int = WIDTH, *, details: bool = False) -> list[str]:
    """At most LINES lines of at most `width` columns; the first one is the answer: how it ended, what, and how much.

    details: all steps and warnings too, in as many lines as these take
    Nothing in them is a terminal's command, whatever the archive holds.
    """
    about = archive.about
    status = about.outcome
    why = [] if status == COMPLETE else _why(about, width)
    failed, stderr = _failed_command(archive, width) if status != COMPLETE else ([], [])
    tail = [
        *_identity(about),
        *(_phases(about) if details or status != COMPLETE else []),
        *_lost(about),
        *_next_steps(archive, status),
        *_content(archive, width, max_lines=1 if status == FAILED else 2),
        _line("id", archive.id),
    ]
    room = LINES - 2 - len(why) - len(failed) - len(tail)
    kept = stderr[-max(0, min(room - 1, _MAX_STDERR)) :] if room > 1 else []
    title = [_line("its stderr", f"last {len(kept)} of {counted(len(stderr), 'line')}")] if kept else []
    body = [*why, *failed, *title, *(f"  | {line}" for line in kept), *tail]
    warnings = [f"warning: {text}" for text in about.warnings]
    if warnings and not details:
        warnings = [caveat_line(about.warnings, UNLIMITED)]
    room = 1000 if details else max(0, LINES - 1 - len(body) - len(warnings))
    lines: list[str] = []
    for line, indent in [(_answer(about), 0), *((line, _INDENT) for line in body), *((line, 0) for line in warnings)]:
        pieces = _pieces(line, indent, width, 1 + min(room, _MAX_MORE))
        room -= len(pieces) - 1
        lines += pieces
    return [fitted(line, width) for line in (lines if details else lines[:LINES])]


def _pieces(line: str, indent: int, width: int, most: int) -> list[str]:
    """A line that is too wide in at most `most`, the others indented as its text is."""
    if columns(line) <= width or most == 1 or line.startswith("  |"):
        return [line]
    within = indent or 2
    first, *others = wrapped(line[indent:], width - within, most)
    return [line[:indent] + first, *(" " * within + each for each in others)]


def _members_by_folder(archive: Archive) -> list[tuple[str, int, int]]:
    """(first part of the name, members, bytes) of each folder; the whole name of what is alone in its folder."""
    members = archive.members()
    count = Counter(name.partition("/")[0] for name in members)
    size: Counter[str] = Counter()
    label: dict[str, str] = {}
    for name, member in members.items():
        top, slash, _ = name.partition("/")
        size[top] += member.size_bytes
        label[top] = name if count[top] == 1 else top + slash
    return [(label[top], count[top], size[top]) for top in sorted(count)]


def _line(key: str, value: str) -> str:
    return f"{key:<{_INDENT - 1}} {value}"


def _paragraph(key: str, value: str, width: int, max_lines: int) -> list[str]:
    lines = wrapped(value, width - _INDENT, max_lines)
    return [f"{key if not number else '':<{_INDENT - 1}} {line}" for number, line in enumerate(lines)]


def _duration(value: object) -> str:
    seconds = number(value)
    return "" if seconds is None or not 0 <= seconds < 1e9 else moment(seconds if seconds >= 0.001 else 0)


def _answer(about: Metadata) -> str:
    """COMPLETE: experiment MemoryCopy, 16 of 16 rows measured on 1 node, 2026-11-27"""
    outcome = "incomplete" if about.lost_nodes and about.outcome == COMPLETE else about.outcome
    line = f"{outcome.upper()}: {about.kind} {about.name or about.host}".rstrip()
    phase, node = about.failure.phase, about.failure.node
    line += (f", in phase {phase}" if phase else "") + (f" on {node}" if node else "")
    if about.design.text:
        line += f", {about.design.text}"
        line += "" if node or not about.nodes else f" on {counted(len(about.nodes), 'node')}"
    return line + (f", {day[0]}" if (day := _DAY.match(about.created)) else "")


def _identity(about: Metadata) -> list[str]:
    """Where it was measured, with what, and who made the archive."""
    nodes = about.nodes or (about.host,)
    by = ", ".join(
        f"{key} {value}" for key, value in about.scheduler.items() if isinstance(value, str | int) and key != "name"
    )
    name = text(about.scheduler.get("name"))
    where = [
        folded(nodes) + (f" ({len(nodes)})" if len(nodes) > 1 else ""),
        name + (f": {by}" if name and by else by),
        about.cpu_model or "",
        ", ".join(filter(None, (about.blas.library, about.blas.core))),
    ]
    settings = [] if about.seed is None else [f"seed={about.seed}"]
    settings += [
        f"{key}={value}" for key, value in sorted(about.parameters.items()) if isinstance(value, str | int | float)
    ]
    by = f", by Lepaute {about.lepaute_version}" if about.lepaute_version else ""
    made = about.created + by + (f", run {about.run_id}" if about.run_id else "")
    lines = [("nodes", "; ".join(filter(None, where))), ("with", " ".join(settings)), ("created", made)]
    return [_line(key, value) for key, value in lines if value]


def _phases(about: Metadata) -> list[str]:
    facts = ((p.name, "" if p.status == "done" else p.status, _duration(p.duration_s)) for p in about.phases)
    told = ", ".join(" ".join(filter(None, words)) for words in facts)
    return [_line("phases", told)] if told else []


def _why(about: Metadata, width: int) -> list[str]:
    failure = about.failure
    if not about.cause:
        return _paragraph("why", "not recorded: it was interrupted, or its controller died unexpectedly", width, 2)
    lines = _paragraph("why", f"{failure.type}: {about.cause}" if failure.type else about.cause, width, 3)
    if failure.where:
        lines.append(_line("where", failure.where))
    return lines


def _failed_command(archive: Archive, width: int) -> tuple[list[str], list[str]]:
    """The command that failed, as lines of the screen, and the lines of its standard error."""
    stderr, index = archive.about.failure.stderr_tail, archive.about.failure.command
    lines: list[str] = []
    commands: list[Any] = []
    if index is not None and COMMANDS in archive.members():
        with contextlib.suppress(ArchiveError):
            commands = sequence(archive.json(COMMANDS))
    if index is not None and 0 <= index < len(commands):
        command = mapping(commands[index])
        words = shlex.join(word for word in sequence(command.get("argv")) if isinstance(word, str))
        node, place = text(command.get("node")), text(command.get("folder"))
        status, took = number(command.get("returncode")), _duration(command.get("duration_s"))
        ended = "status unknown"
        if status is not None:
            ended = f"signal {-status:.0f}" if status < 0 else f"exit status {status:.0f}"
        ended += (f" after {took}" if took else "") + f", number {index} of {COMMANDS}"
        lines = _paragraph("command", f"{node}$ {words}" if node else words, width, 2)
        lines.append(_line("", ended + (f" in {place}" if place else "")))
        stderr = text(command.get("stderr")) or text(command.get("stdout")) or stderr
    return lines, [line for line in stderr[-20_000:].splitlines() if line.strip()]


def _lost(about: Metadata) -> list[str]:
    lost = about.lost_nodes
    if not lost:
        return []
    more = f", and {len(lost) - 1} more" if len(lost) > 1 else ""
    return [_line("lost nodes", f"{folded(loss.node for loss in lost)}: {lost[0].why} ({lost[0].when}){more}")]


def _next_steps(archive: Archive, status: str) -> list[str]:
    if status == COMPLETE:
        return []
    script = archive.about.script
    file = archive.path.name
    if archive.about.kind != "experiment":
        used = "compared" if archive.about.kind in (COMPARISON, "clocks") else "fitted"
        return [_line("go on", f"what was measured can be {used}; --resume of the same command measures the rest")]
    name = shlex.quote(printable(f"{file.removesuffix('.partial.zip').removesuffix('.zip')}.zip"))
    program = shlex.quote(printable(script)) if script else "EXPERIMENT.py"
    return [
        _line("go on", f"lepaute run {program} --resume -o {name}"),
        _line("", f"lepaute archive extract {shlex.quote(printable(file))} log.txt commands.json -o FOLDER"),
    ]


def _content(archive: Archive, width: int, max_lines: int) -> list[str]:
    folders = _members_by_folder(archive)
    total = sum(size for _, _, size in folders)
    folders.sort(key=lambda folder: "/" not in folder[0])  # folders first, then files
    contents = ", ".join(f"{top} {count}" if count > 1 else top for top, count, _ in folders)
    members = sum(count for _, count, _ in folders)
    return _paragraph("members", f"{members}, {size_text(total)} (--members lists them): {contents}", width, max_lines)
