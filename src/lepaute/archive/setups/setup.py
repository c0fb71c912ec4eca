"""Everything that is known about the setup of an experiment: facts by group and name, and node."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from lepaute.archive.manifest import COMMANDS
from lepaute.archive.reader import Archive
from lepaute.archive.setups.facts import Fact, Value
from lepaute.archive.setups.files import file_facts
from lepaute.archive.setups.records import (
    Placed,
    command_facts,
    control_facts,
    design_facts,
    metadata_facts,
    repository_facts,
    script_facts,
)
from lepaute.errors import ArchiveError

_ENVIRONMENT = "environment/"
#: Larger files are no description of a node; what is read whole is bounded by this.
MOST_FILE_BYTES = 16 << 20


@dataclass(slots=True)
class Setup:
    """The facts of an archive.

    facts : by (group, name): by node the value; the node is "" where a fact is about the whole experiment
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
        ("repositories.json", repository_facts),
        ("controls.json", control_facts),
        (COMMANDS, lambda document: command_facts(document, archive.about.run_id)),
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
        if member.size_bytes > MOST_FILE_BYTES:
            setup.unread.append(f"{name} has {member.size_bytes} bytes")
            continue
        if name.startswith("experiment/"):
            setup.add(script_facts(name, archive.read_bytes(name)))
        elif name.startswith("design"):
            setup.add(design_facts(name, archive.read_bytes(name)))
        else:
            node, inner = _place(name, setup.nodes)
            key = (inner, member.sha256)
            # A hundred nodes mostly have the same files: each content is read once.
            if key not in known:
                known[key] = file_facts(inner, archive.read_bytes(name))
            setup.add((node, fact) for fact in known[key])
    return setup


def _place(name: str, nodes: tuple[str, ...]) -> tuple[str, str]:
    """Node and path of a file of an environment; calibrations of one host have no folder for it."""
    inner = name.removeprefix(_ENVIRONMENT)
    first, slash, rest = inner.partition("/")
    return (first, rest) if slash and (first in nodes or nodes) else ("", inner)
