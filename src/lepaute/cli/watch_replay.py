"""`lepaute watch replay`: what the watch would have said on each day, with what was known on it."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lepaute.cli.output_options import Force
from lepaute.cli.watch_store import AsJson, Cluster, Nodes, Place, date_of, end_of, opened
from lepaute.cli.watch_tests import (
    Confidence,
    Csv,
    Factors,
    Pooled,
    Windows,
    chosen_values,
    of_machines,
    pairs_of,
    vectors_of,
    windows_of,
    write_csv,
)

if TYPE_CHECKING:
    from lepaute.watch.report.history import Day
    from lepaute.watch.report.summary import Regression

#: Days without --all.
MOST_DAYS = 40


def replay(
    store: Place = None,
    node: Nodes = None,
    cluster: Cluster = None,
    factor: Factors = None,
    window: Windows = "1,5",
    confidence: Confidence = 0.9999,
    pooled: Pooled = False,
    since: Annotated[str | None, typer.Option("--since", metavar="DATE", help="first day to show")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="DATE", help="last day to show")] = None,
    everything: Annotated[bool, typer.Option("--all", help="show days with suspicious tests as well")] = False,
    csv: Csv = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Replays the store day by day: each day is judged by what was measured and logged up to it.

    Nothing is recorded. The regressions of an evening are those that `lepaute watch test` would have named then.
    """
    from lepaute.cli.watch_replay_text import replay_text
    from lepaute.kit.outputs import check_outputs
    from lepaute.watch.judging.replay import replay as replay_days
    from lepaute.watch.open_regressions import open_regressions
    from lepaute.watch.report.history import days_of, evenings_of

    check_outputs({"--csv": csv}, force=force)
    first, last = date_of(since, "--since"), date_of(until, "--until")
    with opened(store) as watch:
        values = chosen_values(watch, node, cluster, None)
        known = open_regressions(watch.store, until_s=end_of(until, "--until"))
    verdicts = replay_days(
        values,
        known.changelog,
        factors=vectors_of(factor),
        windows=windows_of(window),
        confidence=confidence,
        pooled=pooled,
        since=first,
        until=last,
    )
    news = {day: of_machines(rows, values) for day, rows in evenings_of(known, first, last).items()}
    left = known.of_nodes(pairs_of(values)).reports
    found = days_of(verdicts, news, level=1.0 - confidence)
    if csv is not None:
        write_csv(csv, verdicts)
    if as_json:
        print(json.dumps(_json(found, left, len(verdicts)), indent=2))
    else:
        tests = int((verdicts["missing"] == 0).sum())
        print(replay_text(found, left, tests=tests, everything=everything, most=MOST_DAYS))


def _json(found: "tuple[Day, ...]", left: "tuple[Regression, ...]", verdicts: int) -> dict[str, Any]:
    from lepaute.watch.values import plain

    return {"verdicts": verdicts, "days": plain(found), "regressions": plain(left)}
