"""`lepaute watch test` and `replay`: which machines have changed, and what would have been said on each day."""

import datetime as dt
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lepaute.cli.options import FORCE_HELP
from lepaute.cli.terminal import json_text
from lepaute.cli.watch_store import NODES_HELP, Place, check_text, date_of, end_of, opened, start_of
from lepaute.errors import InputError
from lepaute.kit.files import write_whole
from lepaute.kit.options import option_field
from lepaute.kit.outputs import check_outputs
from lepaute.kit.quantities import numbers_of
from lepaute.kit.text import counted

if TYPE_CHECKING:
    import pandas as pd

    from lepaute.watch import Watch
    from lepaute.watch.open_regressions import OpenRegressions
    from lepaute.watch.report.history import Day
    from lepaute.watch.report.summary import Regression, Summary

#: A test below this is evidence by itself: one of a million by chance.
STRONG = 1e-6
#: Without --all: reports of a kind, factors of a report, days; with it: suspicious tests a day.
MOST_REPORTS, MOST_FACTORS, MOST_DAYS, MOST_SUSPICIONS = 8, 4, 40, 2


@dataclass(frozen=True)
class TestOptions:
    """What is tested, and where the tests go."""

    node: str | None = option_field(None, NODES_HELP, metavar="SET")
    cluster: str | None = option_field(None, "only this cluster", metavar="NAME")
    factor: list[str] | None = option_field(
        None, "a factor, or several tested as one vector, as 'a & b'; every factor unless given"
    )
    windows: tuple[int, ...] = option_field(
        "1,5", "test the mean of the latest R jobs", name="window", metavar="R,...", quantity=numbers_of
    )
    confidence: float = option_field(0.9999, "of a single test; p-values below 1 minus it are suspicious")
    pooled: bool = option_field(False, "with a covariance common to all machines of a cluster")
    csv: Path | None = option_field(None, "write every test to this file, one row each")
    force: bool = option_field(False, FORCE_HELP)
    as_json: bool = option_field(False, "one JSON object on standard output", name="json")

    def __post_init__(self) -> None:
        check_outputs({"--csv": self.csv}, force=self.force)

    def arguments(self) -> dict[str, Any]:
        """Those of `Watch.test` and of a replay; raises InputError for an empty name of a factor."""
        vectors = None if self.factor is None else [_vector_of(text) for text in self.factor]
        return {"factors": vectors, "windows": self.windows, "confidence": self.confidence, "pooled": self.pooled}

    def write(self, verdicts: "pd.DataFrame") -> None:
        """Every test, where that was asked for."""
        if self.csv is not None:
            write_whole(self.csv, verdicts.to_csv(index=False).encode())


def _vector_of(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in str(check_text(text, "--factor")).split("&"))
    if not all(names):
        raise InputError(f"--factor is {text[:80]!r}; give a factor, or several as 'a & b'")
    return names


@dataclass(frozen=True)
class ReportOptions:
    """What is reported, and what is a false alarm."""

    since_s: float | None = option_field(
        None,
        "show suspicious tests from this date on; default: the last 7 days of data",
        name="since",
        metavar="DATE",
        quantity=start_of,
    )
    until_s: float | None = option_field(
        None, "ignore jobs after this date", name="until", metavar="DATE", quantity=end_of
    )
    level: float | None = option_field(None, "accepted share of false alarms; 0.05, fixed by the first test")
    least_change: float | None = option_field(
        None, "smallest relative change worth an alarm; 0.002, fixed by the first test"
    )
    everything: bool = option_field(False, "all reports, in full", name="all")
    strict: bool = option_field(False, "exit status 1 for a recent test of p < 1e-6 as well, confirmed or not")


def run_tests(tested: TestOptions, options: ReportOptions, store: Place = None) -> int:
    """Tests new jobs and reports the machines that changed; exit status 1 while a regression is open.

    A regression is an alarm of a procedure that bounds the share of false alarms over all machines, factors and days.
    It is open until the machine is back or an event explains it. A suspicious test is a single one: among thousands,
    some always are.
    """
    from lepaute.watch.notices.notice import few_machines, notices, unconfirmed_changes, worth_a_look
    from lepaute.watch.report.summary import OF_VERDICTS, summarise
    from lepaute.watch.values import plain

    with opened(store) as watch:
        values = chosen_values(watch, tested.node, tested.cluster, options.until_s)
        judged, new = _judged(watch, options)
        verdicts = watch.test(
            nodes=sorted(values["node"].unique()),
            **tested.arguments(),
            until_s=options.until_s,
            columns=OF_VERDICTS if tested.csv is None else None,
            standing=judged.rows,
        )
        verdicts = _of_machines(verdicts, values)
    nodes = _nodes_of(values)
    open_here = judged.of_nodes(nodes)
    sentences = [
        *notices(values, judged.changelog),
        *unconfirmed_changes(judged, nodes),
        *few_machines(open_here.values, judged.changelog),
    ]
    level = 1.0 - tested.confidence
    looks = worth_a_look(open_here)
    summary = summarise(verdicts, values, open_here.rows, sentences, looks, level=level, since_s=options.since_s)
    tested.write(verdicts)
    if tested.as_json:
        print(json_text({**plain(summary), "new_alarms": new}))
    else:
        print("\n".join(_summary_lines(summary, everything=options.everything)))
    strong = any(suspicion.p_value < STRONG for suspicion in summary.suspicions)
    return 1 if summary.regressions or (options.strict and strong) else 0


def _judged(watch: "Watch", options: ReportOptions) -> "tuple[OpenRegressions, list[dict[str, Any]]]":
    """What is open by all nodes, and the alarms of days that are recorded now: of all days, whatever was asked for."""
    from lepaute.watch.alarms.procedure import check_settings, record_alarms, settings_of
    from lepaute.watch.open_regressions import open_regressions

    given = {"level": options.level, "least_change": options.least_change}
    settings = replace(settings_of(watch.store), **{name: value for name, value in given.items() if value is not None})
    check_settings(watch.store, settings)
    whole = open_regressions(watch.store, settings=settings)
    new: list[dict[str, Any]] = json.loads(record_alarms(watch.store, whole.judged).to_json(orient="records"))
    if options.until_s is None:
        return whole, new
    return open_regressions(watch.store, settings=settings, until_s=options.until_s), new


def chosen_values(watch: "Watch", nodes: str | None, cluster: str | None, until_s: float | None) -> "pd.DataFrame":
    """The factor values of the nodes and the cluster that are meant.

    Raises InputError where there are none, or none of a node that is named.
    """
    from lepaute.watch.named_nodes import known_text, nodes_named

    values = watch.store.values(cluster=check_text(cluster, "--cluster"), until_s=until_s)
    if values.empty:
        where = f" of cluster {cluster[:80]}" if cluster else ""
        raise InputError(f"the store has no factor values{where}; `lepaute watch ingest` adds some")
    if nodes is None:
        return values
    known = _nodes_of(values)
    named = nodes_named(known, nodes, cluster)
    if unknown := [name for name, of in named.items() if not of]:
        raise InputError(f"the store has no node {', '.join(unknown)[:80]}; {known_text(known)}")
    chosen = {f"{of}\n{name}" for pairs in named.values() for of, name in pairs}
    return values[(values["cluster"] + "\n" + values["node"]).isin(chosen)].reset_index(drop=True)


def _nodes_of(values: "pd.DataFrame") -> "list[tuple[str, str]]":
    """(cluster, node) each."""
    return list(values[["cluster", "node"]].drop_duplicates().itertuples(index=False, name=None))


def _of_machines(rows: "pd.DataFrame", values: "pd.DataFrame") -> "pd.DataFrame":
    """The rows of nodes that the values have, or of all of a cluster: names may be those of another cluster, too."""
    from lepaute.watch.changelog import ALL

    kept = {f"{cluster}\n{name}" for cluster, node in _nodes_of(values) for name in (node, ALL)}
    return rows[(rows["cluster"] + "\n" + rows["node"]).isin(kept)].reset_index(drop=True)


def _summary_lines(summary: "Summary", *, everything: bool) -> list[str]:
    """What stands first, then what may be, then what is not known, and a last line that sums up."""
    from lepaute.watch.report.summary import absence_text, machines_text, suspicion_text

    older = f" ({summary.older_suspicions} older: --since DATE)" if summary.older_suspicions else ""
    most = None if everything else MOST_FACTORS
    waiting = [
        f"  {machines_text(each.machines)}: {counted(each.missing, 'more job')} ({_limited(each.factors, most)})"
        for each in summary.waiting
    ]
    suspicions = [
        f"  {suspicion_text(each, each.changes[:most], len(each.changes[most:]) if most else 0)}"
        for each in summary.suspicions
    ]
    lines: list[str] = []
    for title, reports in (
        (
            counted(len(summary.regressions), "open regression"),
            [_regression(each, everything) for each in summary.regressions],
        ),
        (f"Suspicious tests, not confirmed{older}", suspicions),
        ("Machines that fail or do not report", [f"  {absence_text(each)}" for each in summary.absences]),
        (summary.worth_a_look.label, [f"  {line}" for line in summary.worth_a_look.lines]),
        ("Also worth a look", [f"  {notice}" for notice in summary.notices]),
        ("Not yet enough jobs to test", waiting),
    ):
        if reports:
            shown = reports if everything else reports[:MOST_REPORTS]
            lines += [f"{title}:", *shown]
            lines += [f"  and {len(reports) - len(shown)} more; --all"] if len(reports) > len(shown) else []
    if summary.regressions:
        lines.append("To record a cause: lepaute watch events propose, then accept")
    stands = counted(len(summary.regressions), "open regression") if summary.regressions else "no open regression"
    days = "" if summary.first is None else f", {_span(summary.first, summary.last)}"
    clusters = ", ".join(cluster for cluster in summary.clusters if cluster)
    sizes = f"{counted(summary.nodes, 'node')}, {counted(summary.machines, 'CPU')}"
    lines.append(
        f"{f'{clusters}: ' if clusters else ''}{sizes}, {counted(len(summary.factors), 'factor')}{days}: "
        f"{counted(summary.tests, 'test')}, {stands}"
    )
    return lines


def _limited(texts: Sequence[str], most: int | None) -> str:
    more = 0 if most is None else len(texts[most:])
    return "; ".join(texts[:most]) + (f"; and {more} more" if more else "")


def _regression(regression: "Regression", everything: bool) -> str:
    from lepaute.watch.report.summary import change_text, regression_nodes, since_text

    changes = _limited(list(map(change_text, regression.changes)), None if everything else MOST_FACTORS)
    origin = f"alarm of {regression.alarm}"
    if archives := regression.archives if everything else regression.archives[:1]:
        origin += f"; archive {', '.join(archive[:12] for archive in archives)}"
    return f"  {regression_nodes(regression)}, {since_text(regression)}: {changes}\n    {origin}"


def _span(first: dt.date, last: dt.date | None) -> str:
    """2026-01-02 to 2026-03-01."""
    return f"{first}" if last in (None, first) else f"{first} to {last}"


def replay(
    tested: TestOptions,
    store: Place = None,
    since: Annotated[str | None, typer.Option(metavar="DATE", help="first day to show")] = None,
    until: Annotated[str | None, typer.Option(metavar="DATE", help="last day to show")] = None,
    everything: Annotated[bool, typer.Option("--all", help="show days with suspicious tests as well")] = False,
) -> None:
    """Replays the store day by day: each day is judged by what was measured and logged up to it.

    Nothing is recorded. The regressions of an evening are those that `lepaute watch test` would have named then.
    """
    from lepaute.watch.judging.replay import replay as replay_days
    from lepaute.watch.open_regressions import open_regressions
    from lepaute.watch.report.history import days_of, evenings_of
    from lepaute.watch.values import plain

    first = None if since is None else date_of(since, "--since")
    last = None if until is None else date_of(until, "--until")
    with opened(store) as watch:
        values = chosen_values(watch, tested.node, tested.cluster, None)
        known = open_regressions(watch.store, until_s=None if until is None else end_of(until, "--until"))
    verdicts = replay_days(values, known.changelog, **tested.arguments(), since=first, until=last)
    news = {day: _of_machines(rows, values) for day, rows in evenings_of(known, first, last).items()}
    still_open = known.of_nodes(_nodes_of(values)).reports
    days = days_of(verdicts, news, level=1.0 - tested.confidence)
    tested.write(verdicts)
    if tested.as_json:
        print(json_text({"verdicts": len(verdicts), "days": plain(days), "regressions": plain(still_open)}))
    else:
        tests = int((verdicts["missing"] == 0).sum())
        print("\n".join(_replay_lines(days, still_open, tests=tests, everything=everything)))


def _replay_lines(
    days: "Sequence[Day]", still_open: "Sequence[Regression]", *, tests: int, everything: bool
) -> list[str]:
    """The days with an alarm; with `everything` those with a suspicious test, too; and what is open at the end."""
    from lepaute.watch.report.summary import change_text, regression_nodes, since_text

    eventful = [day for day in days if day.alarms or (everything and day.suspicions)]
    shown = eventful if everything else eventful[:MOST_DAYS]
    lines = [line for day in shown for line in _day_lines(day, everything=everything)]
    if len(eventful) > len(shown):
        lines.append(f"and {len(eventful) - len(shown)} more days; --all")
    lines += [
        f"open at the end: {regression_nodes(each)}, {since_text(each)}: {'; '.join(map(change_text, each.changes))}"
        for each in still_open
    ]
    suspicious = sum(day.suspicious_tests for day in days)
    span = f", {days[0].date} to {days[-1].date}" if days else ""
    alarms = counted(sum(len(day.alarms) for day in days), "alarm")
    return [*lines, f"{counted(len(days), 'day')}{span}: {counted(tests, 'test')}, {suspicious} suspicious, {alarms}"]


def _day_lines(day: "Day", *, everything: bool) -> list[str]:
    from lepaute.watch.report.summary import change_text, machines_text

    lines = [
        f"{day.date}  ALARM {machines_text(each.machines)}, since {each.since}: "
        f"{'; '.join(map(change_text, each.changes))}{'' if each.worse else ' (for the better)'}"
        for each in day.alarms
    ]
    if everything:
        lines += [
            f"{day.date}  {machines_text(each.machines)}: {'; '.join(map(change_text, each.changes))}, "
            f"p = {each.p_value:.1g}"
            for each in day.suspicions[:MOST_SUSPICIONS]
        ]
        if (more := len(day.suspicions) - MOST_SUSPICIONS) > 0:
            lines.append(f"{day.date}  and {more} more suspicious (--json has all)")
    return lines
