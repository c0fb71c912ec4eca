"""`lepaute watch test` and `replay`: which machines have changed, and what would have been said on each day."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lepaute.cli.options import DETAILS_HELP, FORCE_HELP, Details
from lepaute.cli.terminal import BAR_AFTER_S, json_text, progress_bar
from lepaute.cli.watch_store import NODES_HELP, Place, check_text, date_of, end_of, opened, stage, start_of
from lepaute.errors import InputError
from lepaute.kit.files import write_whole
from lepaute.kit.options import option_field
from lepaute.kit.outputs import check_outputs
from lepaute.kit.printable import terminal_columns
from lepaute.kit.quantities import numbers_of, share_of
from lepaute.kit.text import counted

if TYPE_CHECKING:
    import pandas as pd

    from lepaute.watch import Watch
    from lepaute.watch.open_regressions import OpenRegressions

#: A test below this is evidence by itself: one of a million by chance.
STRONG = 1e-6


@dataclass(frozen=True)
class TestOptions:
    """What is tested, and where the tests go."""

    node: str | None = option_field(None, NODES_HELP, metavar="SET")
    cluster: str | None = option_field(None, "only this cluster", metavar="NAME")
    factor: list[str] | None = option_field(
        None, "a factor, or several tested as one vector, as 'a & b'; default: every factor"
    )
    windows: tuple[int, ...] = option_field(
        "1,5", "test the mean of the latest R jobs", name="window", metavar="R,...", quantity=numbers_of
    )
    confidence: float = option_field(
        "99.99%",
        "confidence level of one test: p-values below 1 - SHARE are flagged",
        metavar="SHARE",
        quantity=share_of,
    )
    pooled: bool = option_field(False, "pool the covariance over all machines of a cluster")
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
    level: float | None = option_field(
        None, "accepted share of false alarms; 5%, fixed by the first test", metavar="SHARE", quantity=share_of
    )
    least_change: float | None = option_field(
        None,
        "smallest relative change worth an alarm; 0.2%, fixed by the first test",
        metavar="SHARE",
        quantity=share_of,
    )
    details: bool = option_field(False, DETAILS_HELP)
    strict: bool = option_field(False, "exit status 1 for a recent test of p < 1e-6 as well, confirmed or not")


def run_tests(tested: TestOptions, options: ReportOptions, store: Place = None) -> int:
    """Tests new jobs and reports the machines that changed; exit status 1 while a regression is open.

    A regression is an alarm of a procedure that bounds the share of false alarms over all machines, factors and days.
    It is open until the machine is back or an event explains it. A suspicious test is a single one: among thousands,
    some always are.
    """
    from lepaute.cli.watch_answer import tested_text
    from lepaute.watch.alarms.procedure import settings_of
    from lepaute.watch.notices.notice import few_machines, notices, unconfirmed_changes, worth_a_look
    from lepaute.watch.report.summary import OF_VERDICTS, summarise
    from lepaute.watch.values import plain

    with opened(store) as watch, progress_bar(BAR_AFTER_S) as tell:
        values = chosen_values(watch, tested.node, tested.cluster, options.until_s)
        judged, new = _judged(watch, options, stage(tell, "judging days", 0.0, 0.5))
        verdicts = watch.test(
            nodes=sorted(values["node"].unique()),
            **tested.arguments(),
            until_s=options.until_s,
            columns=OF_VERDICTS if tested.csv is None else None,
            standing=judged.rows,
            progress=stage(tell, "testing jobs", 0.5, 0.9),
        )
        tell("looking at all of them", 0.9)
        verdicts = _of_machines(verdicts, values)
        nodes = _nodes_of(values)
        open_here = judged.of_nodes(nodes)
        sentences = [
            *notices(values, judged.changelog),
            *unconfirmed_changes(judged, nodes),
            *few_machines(open_here.values, judged.changelog),
        ]
        false_alarms = settings_of(watch.store).level
    level = 1.0 - tested.confidence
    looks = worth_a_look(open_here)
    summary = summarise(verdicts, values, open_here.rows, sentences, looks, level=level, since_s=options.since_s)
    tested.write(verdicts)
    if tested.as_json:
        print(json_text({**plain(summary), "new_alarms": new}))
    else:
        print(tested_text(summary, false_alarms, terminal_columns(sys.stdout), details=options.details))
    strong = any(suspicion.p_value < STRONG for suspicion in summary.suspicions)
    return 1 if summary.regressions or (options.strict and strong) else 0


def _judged(
    watch: "Watch", options: ReportOptions, progress: Callable[[float], None]
) -> "tuple[OpenRegressions, list[dict[str, Any]]]":
    """What is open by all nodes, and the alarms of days that are recorded now: of all days, whatever was asked for."""
    from lepaute.watch.alarms.procedure import check_settings, record_alarms, settings_of
    from lepaute.watch.open_regressions import open_regressions

    given = {"level": options.level, "least_change": options.least_change}
    settings = replace(settings_of(watch.store), **{name: value for name, value in given.items() if value is not None})
    check_settings(watch.store, settings)
    whole = open_regressions(watch.store, settings=settings, progress=progress)
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


def replay(
    tested: TestOptions,
    store: Place = None,
    since: Annotated[str | None, typer.Option(metavar="DATE", help="first day to show")] = None,
    until: Annotated[str | None, typer.Option(metavar="DATE", help="last day to show")] = None,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE.html", help="a page: what would have been found, and when")
    ] = None,
    details: Details = False,
) -> None:
    """Replays the store day by day: each day is judged by what was measured and logged up to it.

    Nothing is recorded. The regressions of an evening are those that `lepaute watch test` would have named then.
    """
    from lepaute.cli.watch_answer import replayed_text
    from lepaute.report.files import check_page_name, write_report
    from lepaute.watch.alarms.procedure import settings_of
    from lepaute.watch.judging.replay import replay as replay_days
    from lepaute.watch.open_regressions import open_regressions
    from lepaute.watch.report.history import days_of, evenings_of
    from lepaute.watch.report.replay_page import Replayed, page

    check_page_name(report)
    if report is not None:
        check_outputs({"--csv": tested.csv, "--report": report}, force=tested.force)
    first = None if since is None else date_of(since, "--since")
    last = None if until is None else date_of(until, "--until")
    with opened(store) as watch, progress_bar(BAR_AFTER_S) as tell:
        values = chosen_values(watch, tested.node, tested.cluster, None)
        known = open_regressions(
            watch.store,
            until_s=None if until is None else end_of(until, "--until"),
            progress=stage(tell, "judging days", 0.0, 0.3),
        )
        false_alarms = settings_of(watch.store).level
        verdicts = replay_days(
            values,
            known.changelog,
            **tested.arguments(),
            since=first,
            until=last,
            progress=stage(tell, "testing jobs", 0.3, 0.6),
        )
        evenings = evenings_of(known, first, last, stage(tell, "asking each evening", 0.6))
        news = {day: _of_machines(rows, values) for day, rows in evenings.items()}
    still_open = known.of_nodes(_nodes_of(values)).reports
    days = days_of(verdicts, news, level=1.0 - tested.confidence)
    tested.write(verdicts)
    tests = int((verdicts["missing"] == 0).sum())
    nodes, factors = len(_nodes_of(values)), values["factor"].nunique()
    what = f"{counted(nodes, 'node')}, {counted(factors, 'factor')}"
    replayed = Replayed(days, still_open, tests, false_alarms, 1.0 - tested.confidence, what)
    if report is not None:
        write_report(report, lambda: page(replayed), replayed.to_dict)
    if tested.as_json:
        print(json_text({"verdicts": len(verdicts), **replayed.to_dict()}))
    else:
        width = terminal_columns(sys.stdout)
        print(replayed_text(days, still_open, tests, false_alarms, width, details=details))
