"""`lepaute watch events ...`: the changelog of a store, and what the data say is missing in it."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lepaute.cli.output_options import Force
from lepaute.cli.watch_store import AsJson, Cluster, Nodes, Place, check_text, date_of, opened, start_of

if TYPE_CHECKING:
    from lepaute.watch import Watch
    from lepaute.watch.changelog import NodeSet
    from lepaute.watch.changelog_edits import LoggedEntry
    from lepaute.watch.proposals.proposed_event import ProposedEvent

app = typer.Typer(help="The changelog: known changes, and those that the data show.")
app.callback()(lambda: None)

Author = Annotated[
    str | None, typer.Option("--author", metavar="NAME", help="who records it; the login name unless given")
]
Inventory = Annotated[
    Path | None, typer.Option("--inventory", help="CSV of what nodes share: node,chassis,rack,switch or the like")
]
LeastChange = Annotated[float | None, typer.Option("--least-change", help="smallest relative change worth reporting")]
Since = Annotated[str | None, typer.Option("--since", metavar="DATE", help="only changes from this date on")]
EventFile = Annotated[Path | None, typer.Option("--events", help="CSV: date,cluster,node,type,description,author")]
OutlierFile = Annotated[Path | None, typer.Option("--outliers", help="CSV: date,cluster,node,jobid,description,author")]
#: Characters of an id that are shown; any beginning that is unique is enough.
ID_CHARACTERS = 8
#: Proposals without --all.
MOST = 10


@app.command("list")
def list_entries(
    store: Place = None,
    history: Annotated[bool, typer.Option("--history", help="withdrawn entries, too, and who withdrew them")] = False,
    as_json: AsJson = False,
) -> None:
    """Events and outliers in force, by date."""
    from lepaute.watch.changelog_edits import logged_entries

    with opened(store) as watch:
        entries = logged_entries(watch.store, history=history)
    if as_json:
        print(json.dumps({"entries": [_entry_dict(each) for each in entries]}, indent=2))
        return
    for each in entries:
        print(_entry_text(each))
    if not entries:
        print("no event and no outlier is recorded")


@app.command()
def add(
    node: Annotated[str, typer.Option("--node", metavar="SET", help="such as 13/14, node[13-16] or all")],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="what happened")],
    date: Annotated[str, typer.Option("--date", metavar="DATE", help="takes effect at 00:00 UTC on this date")],
    store: Place = None,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", metavar="NAME", help="cluster of the nodes, or all; needed where several fit"),
    ] = None,
    kind: Annotated[str, typer.Option("--type", help="platform (what is measured) or protocol (how)")] = "platform",
    outlier: Annotated[
        str | None,
        typer.Option(
            "--outlier", metavar="JOB", help="an outlier instead of an event: keep this job out of the reference"
        ),
    ] = None,
    author: Author = None,
    as_json: AsJson = False,
) -> None:
    """Records an event, which begins a new reference for its nodes, or an outlier."""
    from lepaute.errors import InputError
    from lepaute.watch.changelog import ALL, Event, NodeSet, Outlier
    from lepaute.watch.changelog_edits import record

    for text, option in ((node, "--node"), (reason, "--reason"), (cluster, "--cluster"), (outlier, "--outlier")):
        check_text(text, option)
    day, nodes, who = date_of(date, "--date"), NodeSet(ALL if cluster is None else cluster, node), author_of(author)
    assert day is not None
    entry = Event(day, nodes, kind, reason, who) if outlier is None else Outlier(day, nodes, outlier, reason, who)
    with opened(store) as watch:
        clusters = sorted({of for of, _ in nodes.among(watch.nodes())})
        if cluster is None and len(clusters) > 1:
            named = ", ".join(each or "none" for each in clusters)[:200]
            raise InputError(f"there are such nodes in several clusters: {named}; give --cluster NAME, or all")
        _print_ids(record(watch.store, [entry]), as_json=as_json)
        _warn_if_unknown(watch, nodes)


@app.command()
def withdraw(
    ids: Annotated[
        list[str], typer.Argument(metavar="ID...", help="ids, or their first characters", show_default=False)
    ],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="why")],
    store: Place = None,
    author: Author = None,
    as_json: AsJson = False,
) -> None:
    """Withdraws events and outliers; they stay in the history."""
    from lepaute.watch.changelog_edits import withdraw as withdraw_entries

    for each in ids:
        check_text(each, "ID")
    check_text(reason, "--reason")
    with opened(store) as watch:
        count = withdraw_entries(watch.store, ids, author_of(author), reason)
    print(json.dumps({"withdrawn": count}, indent=2) if as_json else f"{count} withdrawn")


@app.command("import")
def import_files(
    store: Place = None, events: EventFile = None, outliers: OutlierFile = None, as_json: AsJson = False
) -> None:
    """Records the entries of CSV files; those that are in force already stay as they are."""
    from lepaute.watch.changelog_edits import import_changelog, logged_entries

    _check_files(events, outliers, "to read")
    with opened(store) as watch:
        before = {each.id for each in logged_entries(watch.store)}
        ids = import_changelog(watch.store, events, outliers)
    if as_json:
        print(json.dumps({"ids": list(ids)}, indent=2))
        return
    known = before.intersection(ids)
    more = f"; {_count(len(known))} in force already" if known else ""
    print(f"{_count(len(set(ids) - known))} imported{more}")


@app.command("export")
def export_files(
    store: Place = None, events: EventFile = None, outliers: OutlierFile = None, force: Force = False
) -> None:
    """Writes the entries in force into CSV files, which `import` reads."""
    from lepaute.kit.outputs import check_outputs
    from lepaute.watch.changelog_edits import export_changelog

    _check_files(events, outliers, "to write")
    check_outputs({"--events": events, "--outliers": outliers}, force=force)
    with opened(store) as watch:
        export_changelog(watch.store, events, outliers)


@app.command()
def propose(
    store: Place = None,
    inventory: Inventory = None,
    least_change: LeastChange = None,
    since: Since = None,
    everything: Annotated[bool, typer.Option("--all", help="every proposal, with what else changed")] = False,
    as_json: AsJson = False,
) -> None:
    """Changes in the data that are missing from the changelog, largest first; one report per cause.

    The open regressions of `lepaute watch test` are among them; single days come after what lasts. Nothing is recorded.

    Each has an id, by which `lepaute watch events accept` records it.
    """
    since_s = start_of(since, "--since")
    with opened(store) as watch:
        found = proposals(watch, inventory, least_change, since_s)
        shown = found if everything or as_json else dict(list(found.items())[:MOST])
        shown = dict(zip(shown, _explained(watch, list(shown.values())), strict=True))
    if as_json:
        print(json.dumps({"proposals": [{"id": key, **each.as_json()} for key, each in shown.items()]}, indent=2))
        return
    for key, each in shown.items():
        print(f"{key}  {each}")
        for line in each.other_changes:
            print(f"          {line}")
    if len(found) > len(shown):
        print(f"and {len(found) - len(shown)} more; --all")
    print("accept one: lepaute watch events accept ID" if found else "no change is found beyond the changelog")


@app.command()
def accept(
    proposal: Annotated[str, typer.Argument(metavar="ID", help="of `lepaute watch events propose`")],
    store: Place = None,
    inventory: Inventory = None,
    least_change: LeastChange = None,
    since: Since = None,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="the cause, if known")] = "",
    author: Author = None,
    as_json: AsJson = False,
) -> None:
    """Records a proposal as an event, or single days as outliers. Repeat the options used with `propose`."""
    from re import fullmatch
    from shlex import quote

    from lepaute.errors import InputError
    from lepaute.watch.changelog_edits import accept as accept_event

    check_text(reason, "--reason")
    if not fullmatch(rf"[0-9a-f]{{1,{ID_CHARACTERS}}}", proposal):
        raise InputError(f"{proposal[:80]!r} is not the id of a proposal; `lepaute watch events propose` lists them")
    since_s, who = start_of(since, "--since"), author_of(author)
    with opened(store) as watch:
        found = proposals(watch, inventory, least_change, since_s)
        meant = [key for key in found if key.startswith(proposal)]
        if len(meant) != 1:
            what = "no proposal" if not meant else "the beginning of several"
            raise InputError(f"{proposal[:80]!r} is {what}; `lepaute watch events propose` lists them")
        ids = accept_event(watch.store, found[meant[0]], who, reason)
    _print_ids(ids, as_json=as_json)
    if not as_json:
        # a URL may have a password
        at = "" if store is None else f" --store {quote(store) if '://' not in store else 'PLACE'}"
        short = " ".join(each[:ID_CHARACTERS] for each in ids)
        print(f"to take it back: lepaute watch events withdraw {short} --reason TEXT{at}")


@app.command()
def effect(
    date: Annotated[str, typer.Argument(metavar="DATE", help="of a planned change, such as 2026-01-31")],
    store: Place = None,
    node: Nodes = None,
    cluster: Cluster = None,
    factor: Annotated[list[str] | None, typer.Option("--factor", help="every factor unless given")] = None,
    everything: Annotated[bool, typer.Option("--all", help="every machine")] = False,
    as_json: AsJson = False,
) -> None:
    """Effect of a planned change on each machine and on all: before and after DATE, between the events around it.

    Intervals of 95 %, of series whose days resemble their neighbours; p-values corrected for the number of machines.
    """
    from lepaute.cli.watch_effect_text import effect_text
    from lepaute.cli.watch_tests import chosen_values
    from lepaute.watch.proposals.planned_change import before_after

    day = date_of(date, "DATE")
    assert day is not None
    for each in factor or []:
        check_text(each, "--factor")
    with opened(store) as watch:
        values = chosen_values(watch, node, cluster, None)
        changelog = watch.changelog()
    found = before_after(values, day, changelog, factors=factor)
    if as_json:
        print(json.dumps({"date": day.isoformat(), "changes": json.loads(found.to_json(orient="records"))}, indent=2))
    else:
        print(effect_text(found, everything=everything))


def proposals(
    watch: "Watch", inventory: Path | None, least_change: float | None, since_s: float | None
) -> "dict[str, ProposedEvent]":
    """The proposed events by their ids, the weightiest first.

    An id is a digest of what a person calls the event by: its shape, date, nodes and factors.
    """
    from hashlib import sha256

    from lepaute.watch.open_regressions import open_regressions
    from lepaute.watch.proposals.platform_events import propose as propose_events
    from lepaute.watch.proposals.proposed_event import read_inventory

    shared = None if inventory is None else read_inventory(inventory)
    known = open_regressions(watch.store)
    found = propose_events(
        known.values,
        known.changelog,
        inventory=shared,
        least_change=least_change,
        since_s=since_s,
        verdicts=watch.test(windows=(1,), record=False, standing=known.rows),
        standing=known.rows,
    )
    by_id = {}
    for each in found:
        factors = [[change.factor, change.direction] for change in each.factors]
        text = json.dumps([each.shape, each.date.isoformat(), each.nodes, factors])
        by_id[sha256(text.encode()).hexdigest()[:ID_CHARACTERS]] = each
    return by_id


def author_of(given: str | None) -> str:
    """Who is to be recorded: as given, or the login name; raises InputError where neither says."""
    import getpass

    from lepaute.errors import InputError

    if given is not None:
        return str(check_text(given, "--author"))
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        raise InputError("this user has no login name; give --author NAME") from None


def _explained(watch: "Watch", found: "Sequence[ProposedEvent]") -> "Sequence[ProposedEvent]":
    from lepaute.watch.proposals.other_changes import with_other_changes

    return with_other_changes(found, watch.store)


def _check_files(events: Path | None, outliers: Path | None, what: str) -> None:
    from lepaute.errors import InputError

    if events is None and outliers is None:
        raise InputError(f"there is nothing {what}; give --events FILE, --outliers FILE or both")


def _warn_if_unknown(watch: "Watch", nodes: "NodeSet") -> None:
    """Says on standard error that an entry means no node of the store: a slip, or a node that is yet to come."""
    from lepaute.watch.named_nodes import known_text

    known = watch.nodes()
    if nodes.among(known):
        return
    of = "" if nodes.cluster == "all" else f" of cluster {nodes.cluster}"
    print(f"warning: no node of the store is {nodes.text[:80]}{of}; {known_text(known)}", file=sys.stderr)


def _count(entries: int) -> str:
    return f"{entries} {'entry' if entries == 1 else 'entries'}"


def _print_ids(ids: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"ids": list(ids)}, indent=2))
    else:
        print(f"recorded: {', '.join(each[:ID_CHARACTERS] for each in ids)}")


def _entry_dict(each: "LoggedEntry") -> dict[str, Any]:
    from lepaute.watch.changelog import Event

    entry = each.entry
    own = {"type": entry.kind} if isinstance(entry, Event) else {"job": entry.job}
    return {
        "id": each.id,
        "revision": each.revision,
        "withdrawn": each.withdrawn,
        "recorded_s": each.recorded_s,
        "date": entry.date.isoformat(),
        "cluster": entry.nodes.cluster,
        "nodes": entry.nodes.text,
        **own,
        "reason": entry.reason,
        "author": entry.author,
    }


def _entry_text(each: "LoggedEntry") -> str:
    from lepaute.watch.changelog import Event

    entry = each.entry
    what = entry.kind if isinstance(entry, Event) else f"outlier, job {entry.job}"
    where = entry.nodes.text if entry.nodes.cluster == "all" else f"{entry.nodes.cluster} {entry.nodes.text}"
    by = f" ({entry.author})" if entry.author else ""
    withdrawn = "withdrawn: " if each.withdrawn else ""
    return f"{each.id[:ID_CHARACTERS]}  {entry.date}  {where}  {what}: {withdrawn}{entry.reason}{by}"
