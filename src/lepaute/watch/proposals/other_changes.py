"""What else changed when a machine did: the setups of the archives on both sides of a proposed event, compared."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from lepaute.errors import InputError, LepauteError
from lepaute.kit.printable import printable
from lepaute.measure.archive import Archive
from lepaute.measure.archive.comparison import Comparison, compare, comparison_lines
from lepaute.measure.archive.setups import Setup, setup_of
from lepaute.measure.archive.setups.facts import CONTROL, EXPERIMENT, HARDWARE, SCRIPT, SOFTWARE, SYSTEM, VARIABLES
from lepaute.watch.proposals.proposed_event import ProposedEvent
from lepaute.watch.store import Store
from lepaute.watch.values import Node

#: What may move a measurement; results, commands and unknown files are left to `lepaute archive diff`.
GROUPS = (HARDWARE, SYSTEM, SOFTWARE, VARIABLES, CONTROL, EXPERIMENT, SCRIPT)
MAX_LINES = 12


def with_other_changes(
    events: Sequence[ProposedEvent], archive_of: "Callable[[str], Archive] | Store"
) -> tuple[ProposedEvent, ...]:
    """The events, each with what else changed between the last archive before and the first one after it.

    archive_of : gives the archive of an id, or the store in which they are: it knows the files that were ingested
    Of several machines, the archives are those of the one that changed most. An archive that is not there any more is
    named in a line; events without archives, as of data from elsewhere, stay as they are.
    """
    find = archive_of if callable(archive_of) else _from_store(archive_of)
    setups: dict[str, tuple[str, Setup] | str] = {}
    explained = []
    for event in events:
        sides = [archives[0] for archives in (event.archives_before, event.archives_after) if archives]
        if len(sides) < 2:
            explained.append(event)
            continue
        for archive in sides:
            if archive not in setups:
                try:
                    opened = find(archive)
                    setups[archive] = opened.id, setup_of(opened)
                except (LepauteError, OSError) as problem:
                    setups[archive] = f"archive {archive[:12]} is not compared: {printable(str(problem))}"
        before, after = (setups[archive] for archive in sides)
        if isinstance(before, str) or isinstance(after, str):
            lines = tuple(dict.fromkeys(side for side in (before, after) if isinstance(side, str)))
        else:
            lines = _lines(before, after, event.nodes)
        explained.append(replace(event, other_changes=lines))
    return tuple(explained)


def _from_store(store: "Store") -> Callable[[str], Archive]:
    """Opens the files that were ingested; raises InputError if one is not there, or is another archive by now."""
    known = store.archives()
    source = dict(zip(known["id"], known["source"], strict=True))

    def opened(archive: str) -> Archive:
        if archive not in source:
            raise InputError("it is not in the store")
        found = Archive.open(Path(source[archive]))
        if found.id != archive:
            raise InputError(f"{source[archive]} holds another archive now, {found.id[:12]}")
        return found

    return opened


def _of_nodes(setup: Setup, nodes: tuple[Node, ...]) -> Setup:
    """Only what is about these nodes, or about the whole experiment."""
    every = {node for values in setup.facts.values() for node in values if node}
    kept = {node for node in every for cluster, name in nodes if node in (name, f"{cluster}-{name}")}
    if not kept:
        return setup  # another name: rather too much than nothing
    facts = {
        key: {node: value for node, value in values.items() if node in kept or not node}
        for key, values in setup.facts.items()
    }
    return replace(setup, facts={key: values for key, values in facts.items() if values})


def _lines(before: tuple[str, Setup], after: tuple[str, Setup], nodes: tuple[Node, ...]) -> tuple[str, ...]:
    (before_id, a), (after_id, b) = ((archive, _of_nodes(setup, nodes)) for archive, setup in (before, after))
    relevant = [change for change in compare(a, b).changes if change.group in GROUPS]
    changes = tuple(sorted(relevant, key=lambda change: GROUPS.index(change.group)))
    head = f"archives {before_id[:12]} -> {after_id[:12]}:"
    if not changes:
        return (f"{head} no other difference of hardware, system, software or script",)
    unread = [f"{problem}" for setup in (a, b) for problem in setup.unread]
    lines = list(comparison_lines(Comparison(changes, (), ()), unread, everything=False))
    more = len(lines) - MAX_LINES
    if more > 0:
        lines = [*lines[:MAX_LINES], f"  ... {more} lines more (lepaute archive diff)"]
    return (f"{head} {len(changes)} differences", *lines)
