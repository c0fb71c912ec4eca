"""`lepaute watch replay`: what the watch would have said on each day, with what was known on it."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lepaute.cli.watch_store import AsJson, Cluster, Nodes, Place, date_of, opened
from lepaute.cli.watch_tests import (
    Confidence,
    Csv,
    Factors,
    Pooled,
    Windows,
    chosen_values,
    vectors_of,
    windows_of,
    write_csv,
)

if TYPE_CHECKING:
    from lepaute.watch.report.history import Day

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
    as_json: AsJson = False,
) -> None:
    """Replays the store day by day: each day is judged by what was measured and logged up to it.

    Nothing is recorded. The alarms are those of `lepaute watch test` with its usual level, given every evening.
    """
    from lepaute.cli.watch_replay_text import replay_text
    from lepaute.kit.outputs import check_outputs
    from lepaute.watch.alarms.procedure import judge_days
    from lepaute.watch.judging.replay import replay as replay_days
    from lepaute.watch.report.history import days_of

    check_outputs({"--csv": csv}, inputs=[])
    first, last = date_of(since, "--since"), date_of(until, "--until")
    with opened(store) as watch:
        values = chosen_values(watch, node, cluster, None)
        changelog = watch.changelog()
    verdicts = replay_days(
        values,
        changelog,
        factors=vectors_of(factor),
        windows=windows_of(window),
        confidence=confidence,
        pooled=pooled,
        since=first,
        until=last,
    )
    alarms = judge_days(values, changelog).alarms
    found = days_of(verdicts, alarms, level=1.0 - confidence, since=first, until=last)
    if csv is not None:
        write_csv(csv, verdicts)
    if as_json:
        print(json.dumps(_json(found, len(verdicts)), indent=2))
    else:
        print(replay_text(found, tests=int((verdicts["missing"] == 0).sum()), everything=everything, most=MOST_DAYS))


def _json(found: "tuple[Day, ...]", verdicts: int) -> dict[str, Any]:
    return {"verdicts": verdicts, "days": [day.to_dict() for day in found]}
