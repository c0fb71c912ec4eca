"""`lepaute watch events ...`: the changelog of a store, and what the data say is missing in it."""

import getpass
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from re import fullmatch
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lepaute.cli.options import App, AsJson, Details, Force, argument, option, refuse_options
from lepaute.cli.terminal import BAR_AFTER_S, json_text, progress_bar, say, warn
from lepaute.cli.watch_store import DATE, Cluster, Nodes, Place, check_text, date_of, opened, stage
from lepaute.cli.watch_tests import chosen_values
from lepaute.errors import InputError
from lepaute.kit.later import later, pd
from lepaute.kit.options import SHARE, option_field
from lepaute.kit.outputs import check_outputs
from lepaute.kit.text import counted, p_text, signed_percent

if TYPE_CHECKING:
    import datetime as dt

    from lepaute.watch import Watch, changelog_edits
    from lepaute.watch import changelog as watch_changelog
    from lepaute.watch import open_regressions as regressions
    from lepaute.watch.changelog import NodeSet
    from lepaute.watch.changelog_edits import LoggedEntry
    from lepaute.watch.proposals import proposed_event
    from lepaute.watch.proposals.proposed_event import ProposedEvent
else:
    watch_changelog = later("lepaute.watch.changelog")
    changelog_edits = later("lepaute.watch.changelog_edits")
    regressions = later("lepaute.watch.open_regressions")
    proposed_event = later("lepaute.watch.proposals.proposed_event")

app = App(help="The changelog: known changes, and those that the data show.")

Author = Annotated[str | None, option("who records it; default: the login name", metavar="NAME")]
EventFile = Annotated[Path | None, option("CSV: date,cluster,node,type,description,author", "--events")]
OutlierFile = Annotated[Path | None, option("CSV: date,cluster,node,jobid,description,author", "--outliers")]
InventoryFile = Annotated[
    Path | None, option("CSV of what nodes share: node,chassis,rack,switch or the like", "--inventory")
]
#: Characters of an id that are shown; any beginning that is unique is enough.
ID_CHARACTERS = 8
#: Without --details: proposals, machines of a factor.
MAX_PROPOSALS, MAX_MACHINES = 10, 8
#: A machine changed if its corrected p-value is below it.
LEVEL = 0.05


@app.command("list")
def list_entries(
    store: Place = None,
    history: Annotated[bool, option("withdrawn entries, too, and who withdrew them", "--history")] = False,
    as_json: AsJson = False,
) -> None:
    """Events and outliers in force, by date."""
    with opened(store) as watch:
        entries = changelog_edits.logged_entries(watch.store, history=history)
    if as_json:
        print(json_text({"entries": [_entry_dict(entry) for entry in entries]}))
        return
    if not entries:
        say("no event and no outlier is recorded")
        return
    withdrawals = sum(entry.withdrawn for entry in entries)
    taken_back = f", {counted(withdrawals, 'withdrawal')}" if withdrawals else ""
    dates = sorted(logged.entry.date for logged in entries)
    say(f"{_count(len(entries) - withdrawals)}{taken_back}, {dates[0]} to {dates[-1]}")
    for entry in entries:
        say(_entry_text(entry), ID_CHARACTERS + 2)


@app.command()
def add(
    context: typer.Context,
    node: Annotated[str, option("such as 13/14, node[13-16] or all", "--node", metavar="SET")],
    reason: Annotated[str, option("what happened", "--reason", metavar="TEXT")],
    date: Annotated[str, option("takes effect at 00:00 UTC on this date", "--date", metavar="DATE")],
    store: Place = None,
    cluster: Annotated[str | None, option("their cluster, or all; needed where several fit", metavar="NAME")] = None,
    kind: Annotated[str, option("platform (what is measured) or protocol (how)", "--type")] = "platform",
    outlier: Annotated[
        str | None, option("an outlier, no event: keep this job out of the reference", metavar="JOB")
    ] = None,
    author: Author = None,
    as_json: AsJson = False,
) -> None:
    """Records an event, which begins a new reference for its nodes, or an outlier."""
    for text, name in ((node, "--node"), (reason, "--reason"), (cluster, "--cluster"), (outlier, "--outlier")):
        check_text(text, name)
    if outlier is not None:
        refuse_options(context, ("kind",), "an outlier is not an event")
    day = date_of(date, "--date")
    nodes = watch_changelog.NodeSet(watch_changelog.ALL if cluster is None else cluster, node)
    who = _author_of(author)
    entry = (
        watch_changelog.Event(day, nodes, kind, reason, who)
        if outlier is None
        else watch_changelog.Outlier(day, nodes, outlier, reason, who)
    )
    with opened(store) as watch:
        clusters = sorted({of for of, _ in nodes.among(watch.nodes())})
        if cluster is None and len(clusters) > 1:
            named = ", ".join(each or "none" for each in clusters)[:200]
            raise InputError(f"there are such nodes in several clusters: {named}; give --cluster NAME, or all")
        _print_ids(changelog_edits.record(watch.store, [entry]), as_json=as_json)
        _warn_if_unknown(watch, nodes)


@app.command()
def withdraw(
    ids: Annotated[list[str], argument("ID...", "ids, or their first characters")],
    reason: Annotated[str, option("why", "--reason", metavar="TEXT")],
    store: Place = None,
    author: Author = None,
    as_json: AsJson = False,
) -> None:
    """Withdraws events and outliers; they stay in the history."""
    for each in ids:
        check_text(each, "ID")
    check_text(reason, "--reason")
    with opened(store) as watch:
        count = changelog_edits.withdraw(watch.store, ids, _author_of(author), reason)
    print(json_text({"withdrawn": count}) if as_json else f"{_count(count)} withdrawn: {', '.join(ids)}")


@app.command("import")
def import_files(
    store: Place = None,
    events: EventFile = None,
    outliers: OutlierFile = None,
    inventory: InventoryFile = None,
    as_json: AsJson = False,
) -> None:
    """Records the entries of CSV files; those that are in force already stay as they are.

    An inventory takes the place of the one before: what its groups share is taken off before machines are judged.
    """
    if inventory is None:
        _check_files(events, outliers, "to read", ", --inventory FILE")
    shared = None if inventory is None else proposed_event.read_inventory(inventory)
    with opened(store) as watch:
        before = {entry.id for entry in changelog_edits.logged_entries(watch.store)}
        ids = changelog_edits.add_changelog(watch.store, watch_changelog.read_changelog(events, outliers))
        new = shared is not None and changelog_edits.record_inventory(watch.store, shared, _author_of(None))
    if as_json:
        print(json_text({"ids": list(ids), "inventory": new}))
        return
    known = before.intersection(ids)
    answers = []
    if events is not None or outliers is not None:
        more = f"; {_count(len(known))} in force already" if known else ""
        answers.append(f"{_count(len(set(ids) - known))} imported{more}")
    if shared is not None:
        answers.append("the inventory is imported" if new else "the inventory is in force already")
    say("; ".join(answers))


@app.command("export")
def export_files(
    store: Place = None,
    events: EventFile = None,
    outliers: OutlierFile = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Writes the entries in force into CSV files, which `import` reads."""
    _check_files(events, outliers, "to write")
    check_outputs({"--events": events, "--outliers": outliers}, force=force)
    with opened(store) as watch:
        log = changelog_edits.logged_changelog(watch.store)
    asked = (("event", events, "type", log.events), ("outlier", outliers, "jobid", log.outliers))
    written = []
    for what, path, column, entries in asked:
        if path is not None:
            watch_changelog.write_entries(path, column, entries)
            written.append((what, path, len(entries)))
    if as_json:
        print(json_text({f"{what}s": {"output": str(path), "entries": count} for what, path, count in written}))
        return
    say("; ".join(f"{path}: {counted(count, what)}" for what, path, count in written))


@dataclass(frozen=True)
class ProposalOptions:
    """Which changes are proposed."""

    inventory: Path | None = option_field(None, "CSV of what nodes share; default: the imported one")
    least_change: float | None = option_field(None, "smallest relative change worth reporting", **SHARE)
    since_s: float | None = option_field(None, "only changes from this date on", **DATE)

    def proposals(self, watch: "Watch", tell: Callable[[str, float], None]) -> "dict[str, ProposedEvent]":
        """The proposed events by their ids, the weightiest first.

        An id is a digest of what a person calls the event by: its shape, date, nodes and factors.
        """
        from lepaute.watch.judging.judge import CONFIDENCE, joined
        from lepaute.watch.judging.recorded_tests import Selection
        from lepaute.watch.proposals.day_events import OF_DAYS
        from lepaute.watch.proposals.platform_events import propose as propose_events

        values = regressions.packed_values(watch.store)
        known = regressions.open_regressions(watch.store, progress=stage(tell, "judging days", 0.0, 0.3), values=values)
        shared = known.changelog.inventory if self.inventory is None else proposed_event.read_inventory(self.inventory)
        tests = stage(tell, "testing jobs", 0.3, 0.5)
        selection = Selection(
            None, (1,), CONFIDENCE, False, None, None, False, standing=known.rows, columns=OF_DAYS, values=values
        )
        small = dict.fromkeys(("r", "p", "direction"), "int8")
        verdicts = joined([part.astype(small) for part in watch.tests(None, selection, tests)])
        tell("looking for changes", 0.5)
        events = propose_events(
            known.values,
            known.changelog,
            inventory=shared,
            least_change=self.least_change,
            since_s=self.since_s,
            verdicts=verdicts,
            standing=known.confirmed(),
            points=known.change_points(),
            unconfirmed=known.unconfirmed(),
        )
        by_id = {}
        for event in events:
            factors = [[change.factor, change.direction] for change in event.factors]
            text = json.dumps([event.shape, event.date.isoformat(), event.nodes, factors])
            by_id[sha256(text.encode()).hexdigest()[:ID_CHARACTERS]] = event
        return by_id


@app.command()
def propose(options: ProposalOptions, store: Place = None, details: Details = False, as_json: AsJson = False) -> None:
    """Changes in the data that are missing from the changelog, largest first; one report per cause.

    The regressions of `lepaute watch test`, confirmed or not, are among them; single days come after what lasts.
    Nothing is recorded.

    Each has an id, by which `lepaute watch events accept` records it.
    """
    from lepaute.watch.proposals.other_changes import with_other_changes

    with opened(store) as watch, progress_bar(BAR_AFTER_S) as tell:
        proposals = options.proposals(watch, tell)
        tell("comparing archives", 0.95)
        ids = list(proposals) if details or as_json else list(proposals)[:MAX_PROPOSALS]
        explained = with_other_changes([proposals[key] for key in ids], watch.store)
    shown = dict(zip(ids, explained, strict=True))
    if as_json:
        print(json_text({"proposals": [{"id": key, **event.as_json()} for key, event in shown.items()]}))
        return
    if not shown:
        say("No change in the data is missing from the changelog")
        return
    first, count = next(iter(shown.values())), len(proposals)
    missing = f"{counted(count, 'change')} in the data {'is' if count == 1 else 'are'} not in the changelog"
    which = f"{'; largest' if count > 1 else ''}: {first.nodes_text}, {first.date}, {first.factors[0]}"
    say(f"{missing}{which}")
    for key, event in shown.items():
        say(f"{key}  {event}", ID_CHARACTERS + 2)
        for line in event.other_changes if details else ():
            say(f"{' ' * (ID_CHARACTERS + 2)}{line}", ID_CHARACTERS + 4)
    if count > len(shown):
        say(f"and {count - len(shown)} more; --details")
    say("To record one: lepaute watch events accept ID")


@app.command()
def accept(
    proposal: Annotated[str, argument("ID", "of `lepaute watch events propose`")],
    options: ProposalOptions,
    store: Place = None,
    reason: Annotated[str, option("the cause, if known", metavar="TEXT")] = "",
    author: Author = None,
    as_json: AsJson = False,
) -> None:
    """Records a proposal as an event, or single days as outliers. Repeat the options used with `propose`."""
    check_text(reason, "--reason")
    if not fullmatch(rf"[0-9a-f]{{1,{ID_CHARACTERS}}}", proposal):
        raise InputError(f"{proposal[:80]!r} is not the id of a proposal; `lepaute watch events propose` lists them")
    who = _author_of(author)
    with opened(store) as watch, progress_bar(BAR_AFTER_S) as tell:
        proposals = options.proposals(watch, tell)
        keys = [key for key in proposals if key.startswith(proposal)]
        if len(keys) != 1:
            what = "the beginning of several" if keys else "no proposal"
            raise InputError(f"{proposal[:80]!r} is {what}; `lepaute watch events propose` lists them")
        ids = changelog_edits.accept(watch.store, proposals[keys[0]], who, reason)
    _print_ids(ids, as_json=as_json)
    if not as_json:
        # a URL may have a password
        at = "" if store is None else f" --store {quote(store) if '://' not in store else 'PLACE'}"
        short = " ".join(each[:ID_CHARACTERS] for each in ids)
        say(f"to take it back: lepaute watch events withdraw {short} --reason TEXT{at}")


@app.command()
def effect(
    date: Annotated[str, argument("DATE", "of a planned change, such as 2026-01-31")],
    store: Place = None,
    node: Nodes = None,
    cluster: Cluster = None,
    factor: Annotated[list[str] | None, option("only this factor; default: every one")] = None,
    details: Details = False,
    as_json: AsJson = False,
) -> None:
    """Effect of a planned change on each machine and on all: before and after DATE, between the events around it.

    Intervals of 95 %, of series whose days resemble their neighbours; p-values corrected for the number of machines.
    """
    from lepaute.watch.proposals.planned_change import before_after

    day = date_of(date, "DATE")
    for name in factor or []:
        check_text(name, "--factor")
    with opened(store) as watch:
        values = chosen_values(regressions.packed_values(watch.store), node, cluster, None)
        changelog = watch.changelog()
    changes = before_after(values, day, changelog, factors=factor)
    if as_json:
        print(json_text({"date": day.isoformat(), "changes": json.loads(changes.to_json(orient="records"))}))
    else:
        say("\n".join(_effect_lines(changes, day, details=details)), 4)


def _effect_lines(changes: "pd.DataFrame", day: "dt.date", *, details: bool) -> list[str]:
    """How many CPUs changed in any factor, then each factor: the mean over CPUs, and those that changed most."""
    from lepaute.watch.report.summary import machines_text
    from lepaute.watch.values import MACHINE

    machines = changes[changes["node"] != ""]
    tested = machines[machines["missing"] == 0]
    every, judged, moved = (
        len(rows[MACHINE].drop_duplicates()) for rows in (machines, tested, tested[tested["p_adjusted"] < LEVEL])
    )
    unknown = f"; {every - judged} have too few jobs" if every > judged else ""
    together = changes[(changes["node"] == "") & (changes["missing"] == 0)].sort_values("p_adjusted", kind="stable")
    largest = [f": {row['factor']} on average {_change(row)}" for row in together.head(1).to_dict("records")]
    subject = f"All {counted(judged, 'CPU')}" if moved == judged > 1 else f"{moved} of {counted(judged, 'CPU')}"
    first = f"{subject} changed on {day}{unknown}"
    if not judged and len(together):  # a sweep before and one after
        pairs, differ = int(together["pairs"].iloc[0]), int((machines["p_differs"] < LEVEL).sum())
        first = f"{day}, by {counted(pairs, 'pair')} of before and after; {_differing(differ)}"
    lines = [f"{first}{''.join(largest)}"]
    for (cluster, factor), rows in changes.groupby(["cluster", "factor"], sort=True):
        records: list[dict[Any, Any]] = rows[rows["node"] != ""].to_dict("records")
        changed = [row for row in records if row["p_adjusted"] < LEVEL]
        few = sum(row["missing"] > 0 for row in records)
        title = f"{cluster} {factor}: {len(changed)} of {counted(len(records) - few, 'CPU')} changed"
        title += f"; {few} with too few jobs" if few else ""
        if rows["pairs"].any():
            changed = [row for row in records if row["p_differs"] < LEVEL]
            title = f"{cluster} {factor}: {_differing(len(changed))}"
        lines.append(title)
        lines += [f"  on average {_change(row)}" for row in rows[rows["node"] == ""].to_dict("records")]
        shown = sorted(records if details else changed, key=lambda row: -abs(row["change"]))
        most = len(shown) if details else MAX_MACHINES
        lines += [
            f"  {machines_text([(row['cluster'], row['node'], row['cpu'])])} {_change(row)}" for row in shown[:most]
        ]
        if len(shown) > most:
            lines.append(f"  and {len(shown) - most} more; --details")
    return lines


def _differing(count: int) -> str:
    """How many CPUs do not change as the others do."""
    return f"{count or 'none'} {'differ' if count > 1 else 'differs'} from the rest"


def _change(row: dict[Any, Any]) -> str:
    if row["p_differs"] < LEVEL:
        return f"{signed_percent(row['change'])}, unlike the others, {p_text(row['p_differs'])}"
    if row["missing"] > 0:
        return f"needs {counted(row['missing'], 'more job')}"
    return f"{signed_percent(row['change'], row['low'], row['high'])}, {p_text(row['p_adjusted'])}"


def _author_of(given: str | None) -> str:
    """Who is to be recorded: as given, or the login name; raises InputError where neither says."""
    if given is not None:
        return str(check_text(given, "--author"))
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        raise InputError("this user has no login name; give --author NAME") from None


def _check_files(events: Path | None, outliers: Path | None, what: str, more: str = "") -> None:
    if events is None and outliers is None:
        every = f"--events FILE, --outliers FILE{more} or {'several' if more else 'both'}"
        raise InputError(f"there is nothing {what}; give {every}")


def _warn_if_unknown(watch: "Watch", nodes: "NodeSet") -> None:
    """Says on standard error that an entry means no node of the store: a slip, or a node that is yet to come."""
    from lepaute.watch.named_nodes import known_text

    known = watch.nodes()
    if nodes.among(known):
        return
    of = "" if nodes.cluster == "all" else f" of cluster {nodes.cluster}"
    warn([f"no node of the store is {nodes.text[:80]}{of}; it has {known_text(known)}"])


def _count(entries: int) -> str:
    return f"{entries} {'entry' if entries == 1 else 'entries'}"


def _print_ids(ids: Sequence[str], *, as_json: bool) -> None:
    print(json_text({"ids": list(ids)}) if as_json else f"recorded: {', '.join(each[:ID_CHARACTERS] for each in ids)}")


def _entry_dict(each: "LoggedEntry") -> dict[str, Any]:
    entry = each.entry
    what = {"type": entry.kind} if isinstance(entry, watch_changelog.Event) else {"job": entry.job}
    return {
        **{name: getattr(each, name) for name in ("id", "revision", "withdrawn", "recorded_s")},
        "date": entry.date.isoformat(),
        "cluster": entry.nodes.cluster,
        "nodes": entry.nodes.text,
        **what,
        "reason": entry.reason,
        "author": entry.author,
    }


def _entry_text(each: "LoggedEntry") -> str:
    entry = each.entry
    what = entry.kind if isinstance(entry, watch_changelog.Event) else f"outlier, job {entry.job}"
    where = entry.nodes.text if entry.nodes.cluster == "all" else f"{entry.nodes.cluster} {entry.nodes.text}"
    by = f" ({entry.author})" if entry.author else ""
    withdrawn = "withdrawn: " if each.withdrawn else ""
    return f"{each.id[:ID_CHARACTERS]}  {entry.date}  {where}  {what}: {withdrawn}{entry.reason}{by}"
