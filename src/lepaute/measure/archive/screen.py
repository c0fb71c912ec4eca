"""What an archive tells a person first: what it is and how it ended in the first line, then what that rests on; of a
failed one, why."""

import contextlib
import re
import shlex
from collections import Counter
from typing import Any

from lepaute.errors import ArchiveError
from lepaute.kit.node_sets import folded
from lepaute.kit.printable import printable
from lepaute.kit.text import counted, moment, size_text
from lepaute.measure.archive.documents import COMMANDS, mapping, number, sequence, text
from lepaute.measure.archive.metadata import COMPLETE, Metadata
from lepaute.measure.archive.mpi_campaign import KIND as COMPARISON
from lepaute.measure.archive.reader import Archive

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
#: Lines of standard error that are shown without details.
_MAX_STDERR = 8


def first_facts(archive: Archive, *, details: bool = False) -> tuple[str, list[tuple[str, str]]]:
    """The answer, how it ended, what, and how much, and the names and texts of what that rests on.

    details: in full. Nothing in them is a terminal's command, whatever the archive holds.
    """
    about = archive.about
    failed = about.outcome != COMPLETE
    facts = [
        *(_why(about) if failed else []),
        *(_failed_command(archive, details=details) if failed else []),
        *_identity(about),
        *([("phases", _phases(about))] if details or failed else []),
        ("lost nodes", _lost(about)),
        *(_next_steps(archive) if failed else []),
        ("members", _content(archive)),
        ("id", archive.id),
    ]
    return printable(_answer(about)), [(name, printable(value)) for name, value in facts if value]


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


def _identity(about: Metadata) -> list[tuple[str, str]]:
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
    return [("nodes", "; ".join(filter(None, where))), ("with", " ".join(settings)), ("created", made)]


def _phases(about: Metadata) -> str:
    facts = ((p.name, "" if p.status == "done" else p.status, _duration(p.duration_s)) for p in about.phases)
    return ", ".join(" ".join(filter(None, words)) for words in facts)


def _why(about: Metadata) -> list[tuple[str, str]]:
    failure = about.failure
    cause = f"{failure.type}: {about.cause}" if failure.type else about.cause
    unknown = "not recorded: it was interrupted, or its controller died unexpectedly"
    return [("why", cause if about.cause else unknown), ("where", (failure.where or "") if about.cause else "")]


def _failed_command(archive: Archive, *, details: bool) -> list[tuple[str, str]]:
    """The command that failed, and the end of its standard error, a fact a line."""
    stderr, index = archive.about.failure.stderr_tail, archive.about.failure.command
    facts: list[tuple[str, str]] = []
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
        facts = [("command", f"{node}$ {words}" if node else words), ("", ended + (f" in {place}" if place else ""))]
        stderr = text(command.get("stderr")) or text(command.get("stdout")) or stderr
    lines = [line for line in stderr[-20_000:].splitlines() if line.strip()]
    shown = lines if details else lines[-_MAX_STDERR:]
    title = f"last {len(shown)} of {counted(len(lines), 'line')}" if shown else ""
    return [*facts, ("its stderr", title), *(("", f"| {line}") for line in shown)]


def _lost(about: Metadata) -> str:
    lost = about.lost_nodes
    if not lost:
        return ""
    more = f", and {len(lost) - 1} more" if len(lost) > 1 else ""
    return f"{folded(loss.node for loss in lost)}: {lost[0].why} ({lost[0].when}){more}"


def _next_steps(archive: Archive) -> list[tuple[str, str]]:
    script = archive.about.script
    file = archive.path.name
    if archive.about.kind != "experiment":
        used = "compared" if archive.about.kind in (COMPARISON, "clocks") else "fitted"
        return [("go on", f"what was measured can be {used}; --resume of the same command measures the rest")]
    name = shlex.quote(printable(f"{file.removesuffix('.partial.zip').removesuffix('.zip')}.zip"))
    program = shlex.quote(printable(script)) if script else "EXPERIMENT.py"
    return [
        ("go on", f"lepaute run {program} --resume -o {name}"),
        ("", f"lepaute archive extract {shlex.quote(printable(file))} log.txt commands.json -o FOLDER"),
    ]


def _content(archive: Archive) -> str:
    members = archive.members()
    tops = Counter("".join(name.partition("/")[:2]) for name in members)  # folders, and files that are in none
    size = size_text(sum(member.size_bytes for member in members.values()))
    names = sorted(tops, key=lambda top: ("/" not in top, top))
    contents = ", ".join(f"{top} {tops[top]}" if tops[top] > 1 else top for top in names)
    return f"{len(members)}, {size} (--members lists them): {contents}"
