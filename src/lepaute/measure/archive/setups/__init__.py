"""All that is known about the setup of an experiment, as facts that can be compared: by group and name, and node.

They are read from the documents of an archive (metadata, repositories, machine control, commands, designs, script), and
from the files of the environment of each node (`facts`).
"""

import hashlib
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from lepaute.errors import ArchiveError
from lepaute.kit.node_sets import folded
from lepaute.measure.archive.documents import COMMANDS as COMMANDS_FILE
from lepaute.measure.archive.documents import mapping, sequence, text
from lepaute.measure.archive.metadata import Metadata
from lepaute.measure.archive.mpi_campaign import KIND as CAMPAIGN
from lepaute.measure.archive.reader import Archive
from lepaute.measure.archive.setups.facts import (
    COMMANDS,
    CONTROL,
    EXPERIMENT,
    HARDWARE,
    NODES,
    OUTCOME,
    SCRIPT,
    SOFTWARE,
    Fact,
    Value,
    file_facts,
)

_ENVIRONMENT = "environment/"
#: Larger files are no description of a node; what is read whole is bounded by this.
MAX_FILE_BYTES = 16 << 20
#: A fact and the node that it is about; "" if it is about the whole experiment.
Placed = tuple[str, Fact]

#: Keys of one run, not of a setup; or covered by a fact of its own.
_COVERED_KEYS = frozenset(
    "created run_id sessions phases failure lost_nodes partial partial_cause status design warnings nodes parameters "
    "scheduler license author script kind name".split()
)
#: Results among the facts of a campaign of MPI libraries.
_OUTCOMES = {CAMPAIGN: frozenset("blocks capped cases derivation".split())}
_JOB_KEYS = re.compile(r"(job|job_?id|jobs?|nodes|nodelist|start|end|expires|id|uid|walltime_left_s)", re.IGNORECASE)
_GROUP_OF = {
    "blas": SOFTWARE,
    "mpi": SOFTWARE,
    "lepaute_version": SOFTWARE,
    "cpu_model": HARDWARE,
    "memory_bytes": HARDWARE,
    "node_cores": HARDWARE,
    "host": NODES,
}
_TIME_KEY = re.compile(r"(start|end|when|time|date|duration|pid|node|before|restored|undone|.*_s|.*_at)", re.IGNORECASE)
#: Names that a run makes up: temporary folders, process numbers in them.
_MADE_UP = re.compile(r"(?<=[-_./])(tmp[A-Za-z0-9_]{6,}|[A-Za-z0-9_]{8})(?=$|[/.])|(?<=/proc/)[0-9]+")
_TEMPORARY = re.compile(r"/tmp/[^\s'\"]*")
_MAX_DEPTH, _MAX_FLAT, _MAX_COMMANDS = 6, 2000, 20_000


@dataclass(slots=True)
class Setup:
    """The facts of an archive.

    facts : by (group, name): by node the value; the node is "" if a fact is about the whole experiment
    nodes : all of them, in the order of the archive
    unread: members that describe the setup and were not read, with the reason
    """

    facts: dict[tuple[str, str], dict[str, Value]] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()
    unread: list[str] = field(default_factory=list)

    def add(self, facts: Iterable[Placed]) -> None:
        """Takes facts in; the first about a thing counts."""
        for node, fact in facts:
            self.facts.setdefault((fact.group, fact.what), {}).setdefault(node, fact.value)


def setup_of(archive: Archive) -> Setup:
    """The setup that an archive describes; whatever cannot be read of it is named in `unread`."""
    setup = Setup(nodes=archive.about.nodes)
    setup.add(metadata_facts(archive.about, archive.metadata))
    members = archive.members()
    for name, facts_of in (
        ("repositories.json", _repository_facts),
        ("controls.json", control_facts),
        (COMMANDS_FILE, lambda document: _command_facts(document, archive.about.run_id)),
    ):
        if name in members:
            try:
                setup.add(facts_of(archive.json(name)))
            except ArchiveError as problem:
                setup.unread.append(str(problem))
    known: dict[tuple[str, str], list[Fact]] = {}
    for name, member in members.items():
        if not name.startswith((_ENVIRONMENT, "experiment/", "designs/", "design.csv")):
            continue
        if member.size_bytes > MAX_FILE_BYTES:
            setup.unread.append(f"{name} has {member.size_bytes} bytes")
            continue
        if name.startswith("experiment/"):
            setup.add([("", Fact(SCRIPT, name, tuple(archive.read_bytes(name).decode(errors="replace").splitlines())))])
        elif name.startswith("design"):
            setup.add(_design_facts(name, archive.read_bytes(name)))
        else:
            inner = name.removeprefix(_ENVIRONMENT)
            node, slash, below = inner.partition("/")
            # Calibrations of one host have no folder for it.
            node, inner = (node, below) if slash and setup.nodes else ("", inner)
            key = (inner, member.sha256)
            # A hundred nodes mostly have the same files: each content is read once.
            if key not in known:
                known[key] = file_facts(inner, archive.read_bytes(name))
            setup.add((node, fact) for fact in known[key])
    return setup


def metadata_facts(about: Metadata, document: Mapping[str, object]) -> Iterator[Placed]:
    """Facts from the metadata on the setup and how it ended; document: metadata.json as it stands there."""
    facts: list[tuple[str, str, Value]] = [
        (OUTCOME, "kind", about.kind),
        (OUTCOME, "status", about.outcome),
        (OUTCOME, "failed in phase", about.failure.phase),
        (OUTCOME, "failure", about.cause),
        (OUTCOME, "lost nodes", folded(loss.node for loss in about.lost_nodes)),
        (OUTCOME, "rows measured", _plain(about.design.done)),
        (OUTCOME, "warnings", frozenset(about.warnings)),
        (EXPERIMENT, "name", about.name),
        (EXPERIMENT, "rows of the design", _plain(about.design.rows)),
        (NODES, "nodes", folded(about.nodes)),
        (NODES, "number of nodes", str(len(about.nodes)) if about.nodes else ""),
    ]
    for what, value in flat(about.parameters):
        facts.append((EXPERIMENT, f"parameter {what}", value))
    for what, value in flat(about.scheduler):
        if not _JOB_KEYS.fullmatch(what.rpartition(".")[2]):
            facts.append((NODES, f"scheduler {what}", value))
    for key, item in document.items():
        if key not in _COVERED_KEYS:
            group = _GROUP_OF.get(key, EXPERIMENT)
            if isinstance(item, dict):
                item = {name: each for name, each in item.items() if name not in _OUTCOMES.get(key, ())}  # noqa: PLW2901
            facts.extend((group, f"{key}.{what}".rstrip("."), value) for what, value in flat(item))
    yield from (("", Fact(group, what, value)) for group, what, value in facts if value)


def flat(value: object, name: str = "", depth: int = 0) -> list[tuple[str, str]]:
    """The leaves of a JSON value with their paths, a.b[2]; lists of plain values are one leaf."""
    if depth > _MAX_DEPTH:
        return [(name, "(nested too deep)")]
    leaves: list[tuple[str, str]] = []
    if isinstance(value, dict):
        for key, item in sorted(value.items()):
            leaves.extend(flat(item, f"{name}.{key}" if name else key, depth + 1))
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for place, item in enumerate(value[:_MAX_FLAT]):
            leaves.extend(flat(item, f"{name}[{place}]", depth + 1))
    else:
        leaves.append((name, _plain(value)))
    return leaves[:_MAX_FLAT]


def _plain(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return " ".join(map(_plain, value))
    # Python refuses to spell out integers of thousands of digits; as floats they may be too large.
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    return value if isinstance(value, str) else str(value)


def _repository_facts(document: object) -> Iterator[Placed]:
    """One fact a repository that was cloned: its commit."""
    for item in map(mapping, sequence(document)):
        url, commit, revision = (text(item.get(key)) for key in ("url", "commit", "revision"))
        if url or commit:
            asked = f" ({revision})" if revision and revision != commit else ""
            yield text(item.get("node")), Fact(SOFTWARE, f"git {url or text(item.get('folder'))}", f"{commit}{asked}")


def control_facts(document: object) -> Iterator[Placed]:
    """What was asked of the machine and what it then was; times and process numbers left out.

    document: a list of records with their node, or an object of such lists by node
    """
    lines_of: dict[tuple[str, str], list[str]] = {}
    by_node = [{"node": node, **mapping(item)} for node, items in mapping(document).items() for item in sequence(items)]
    for item in map(mapping, by_node or sequence(document)):
        name = next((text(item.get(at)) for at in ("control", "name", "what", "kind") if text(item.get(at))), "control")
        rest = {key: value for key, value in item.items() if not _TIME_KEY.fullmatch(key) and value != name}
        line = ", ".join(f"{what} {value}" for what, value in flat(rest) if value)
        lines = lines_of.setdefault((text(item.get("node")), name), [])
        if line not in lines:
            lines.append(line)
    for (node, name), lines in lines_of.items():
        yield node, Fact(CONTROL, name, lines[0] if len(lines) == 1 else frozenset(lines))


def _command_facts(document: object, run_id: str) -> Iterator[Placed]:
    """The commands that were run, one line each, equal ones on several nodes as one; a single fact."""
    nodes: dict[str, list[str]] = {}
    for item in map(mapping, sequence(document)[:_MAX_COMMANDS]):
        words = [word for word in sequence(item.get("argv")) if isinstance(word, str)]
        added = mapping(item.get("environment"))
        line = shlex.join([*(f"{key}={_plain(value)}" for key, value in sorted(added.items())), *words])
        node, phase = text(item.get("node")), text(item.get("phase"))
        for specific, general in ((run_id, "RUN"), (node, "NODE")):
            if specific:
                line = line.replace(specific, general)
        line = _TEMPORARY.sub(lambda match: _MADE_UP.sub("TEMPORARY", match.group()), line)
        status = item.get("returncode")
        ended = "" if status == 0 else f"   -> exit status {_plain(status)}"
        nodes.setdefault(f"{phase}: {line}{ended}" if phase else f"{line}{ended}", []).append(node)
    lines = tuple(f"{_several(each)}{line}" for line, each in nodes.items())
    if lines:
        yield "", Fact(COMMANDS, "commands", lines)


def _several(nodes: list[str]) -> str:
    """How often a command ran where it did not run on all nodes once; nothing else about the nodes, which differ."""
    times = max(nodes.count(node) for node in set(nodes)) if len(nodes) < _MAX_FLAT else 1
    return f"{times} times a node: " if times > 1 else ""


def _design_facts(name: str, data: bytes) -> Iterator[Placed]:
    """Generator, factors, rows and order of a design table; the order only as a fingerprint."""
    lines = data.decode(errors="replace").splitlines()
    header = [line for line in lines if line.startswith("#@")]
    rows = [line for line in lines if line.strip() and not line.startswith("#")]
    for line in header[:200]:
        key, _, value = line[2:].partition("=")
        yield "", Fact(EXPERIMENT, f"{name}: {key}", value)
    if rows:
        yield "", Fact(EXPERIMENT, f"{name}: factors", rows[0])
        yield "", Fact(EXPERIMENT, f"{name}: rows", str(len(rows) - 1))
        yield "", Fact(EXPERIMENT, f"{name}: rows in any order", _fingerprint(sorted(rows)))
        yield "", Fact(EXPERIMENT, f"{name}: rows in their order", _fingerprint(rows))


def _fingerprint(rows: list[str]) -> str:
    return f"sha256 {hashlib.sha256(chr(10).join(rows).encode()).hexdigest()[:16]}"
