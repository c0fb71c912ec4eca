"""What else changed when a machine did: the setups of the archives on both sides of a proposed event, compared."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lepaute.archive import Archive
from lepaute.archive.comparison import Comparison, compare, comparison_lines
from lepaute.archive.setups import Setup, setup_of
from lepaute.archive.setups.facts import CONTROL, EXPERIMENT, HARDWARE, SCRIPT, SOFTWARE, SYSTEM, VARIABLES
from lepaute.errors import LepauteError
from lepaute.kit.printable import printable
from lepaute.watch.proposals.proposed_event import ProposedEvent

if TYPE_CHECKING:
    from lepaute.store import Store

#: What may move a measurement; results, commands and unknown files are left to `lepaute archive diff`.
GROUPS = (HARDWARE, SYSTEM, SOFTWARE, VARIABLES, CONTROL, EXPERIMENT, SCRIPT)
MOST_LINES = 12
WIDTH = 100


def setup_differences(
    before: Archive, after: Archive, nodes: Iterable[tuple[str, str]] = (), most_lines: int = MOST_LINES
) -> tuple[str, ...]:
    """What `lepaute archive diff` finds between the setups of two archives, as at most `most_lines` lines.

    nodes : (cluster, node), as 13 of dahu or dahu-13; only what is about them or the whole experiment. All by default
    """
    chosen = tuple(nodes)
    return _lines(
        before.id, after.id, _of_nodes(setup_of(before), chosen), _of_nodes(setup_of(after), chosen), most_lines
    )


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

    def setup(archive: str) -> tuple[str, Setup] | str:
        if archive not in setups:
            try:
                opened = find(archive)
                setups[archive] = opened.id, setup_of(opened)
            except (LepauteError, OSError) as problem:
                setups[archive] = f"archive {archive[:12]} is not compared: {printable(str(problem))}"
        return setups[archive]

    explained = []
    for event in events:
        if not event.archives_before or not event.archives_after:
            explained.append(event)
            continue
        sides = setup(event.archives_before[0]), setup(event.archives_after[0])
        problems = [side for side in sides if isinstance(side, str)]
        if problems:
            explained.append(event.with_other_changes(tuple(dict.fromkeys(problems))))
            continue
        (before, a), (after, b) = (side for side in sides if not isinstance(side, str))
        lines = _lines(before, after, _of_nodes(a, event.nodes), _of_nodes(b, event.nodes), MOST_LINES)
        explained.append(event.with_other_changes(lines))
    return tuple(explained)


def _from_store(store: "Store") -> Callable[[str], Archive]:
    """Opens the files that were ingested; raises InputError where one is not there, or is another archive by now."""
    from lepaute.errors import InputError

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


def _of_nodes(setup: Setup, nodes: tuple[tuple[str, str], ...]) -> Setup:
    """Only what is about these nodes, or about the whole experiment."""
    if not nodes:
        return setup
    every = {node for values in setup.facts.values() for node in values if node}
    kept = {node for node in every if any(_is(node, cluster, name) for cluster, name in nodes)}
    if not kept:
        return setup  # another name: rather too much than nothing
    facts = {
        key: {node: value for node, value in values.items() if node in kept or not node}
        for key, values in setup.facts.items()
    }
    return replace(setup, facts={key: values for key, values in facts.items() if values})


def _is(node: str, cluster: str, name: str) -> bool:
    return node in (name, f"{cluster}-{name}") or node.removeprefix(f"{cluster}-") == name


def _lines(before: str, after: str, a: Setup, b: Setup, most_lines: int) -> tuple[str, ...]:
    found = compare(a, b)
    changes = tuple(
        sorted(
            (change for change in found.changes if change.group in GROUPS), key=lambda each: GROUPS.index(each.group)
        )
    )
    head = f"archives {before[:12]} -> {after[:12]}:"
    if not changes:
        return (f"{head} no other difference of hardware, system, software or script",)
    unread = [f"{problem}" for setup in (a, b) for problem in setup.unread]
    lines = list(comparison_lines(Comparison(changes, (), ()), unread, everything=False, width=WIDTH))
    more = len(lines) - most_lines
    if more > 0:
        lines = [*lines[:most_lines], f"  ... {more} lines more (lepaute archive diff)"]
    return (f"{head} {len(changes)} differences", *lines)
