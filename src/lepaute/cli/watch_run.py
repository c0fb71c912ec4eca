"""`lepaute watch run`: tests the nodes of a batch system while they are idle, and puts the results into the store."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lepaute.cli.watch_store import AsJson, Place, check_text, opened, place_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lepaute.measure.idle_nodes import NodeHistory, NodeTests, SubmittedTest

#: A node without a result for so many intervals is reported.
_LATE_INTERVALS = 2.0


def run(
    experiment: Annotated[
        str, typer.Argument(metavar="[EXPERIMENT]", help="what `lepaute run` runs on each node: a name or a script")
    ] = "node-test",
    store: Place = None,
    archives: Annotated[
        Path, typer.Option("--archives", metavar="FOLDER", help="for archives and logs; the nodes must see it as well")
    ] = Path("node-tests"),
    cluster: Annotated[str, typer.Option("--cluster", metavar="NAME", help="cluster the nodes belong to")] = "",
    scheduler: Annotated[str, typer.Option("--scheduler", help="slurm or oar")] = "slurm",
    partition: Annotated[
        str | None, typer.Option("--partition", metavar="NAME", help="partition of Slurm, queue of OAR")
    ] = None,
    nodes: Annotated[str | None, typer.Option("--nodes", metavar="SET", help="only these, such as n[1-16]")] = None,
    account: Annotated[str | None, typer.Option("--account", help="account or project to charge")] = None,
    qos: Annotated[str | None, typer.Option("--qos", help="quality of service of Slurm")] = None,
    most: Annotated[int, typer.Option("--most", min=1, help="tests at a time")] = 1,
    every: Annotated[str, typer.Option("--every", metavar="TIME", help="a node's results are at least so old")] = "7d",
    lasting: Annotated[str, typer.Option("--for", metavar="TIME", help="submit no test after this time")] = "1h",
    walltime: Annotated[str, typer.Option("--walltime", metavar="TIME", help="of a test")] = "30min",
    parameter: Annotated[list[str] | None, typer.Option("--set", help="a parameter of the experiment")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="print which nodes are due, and do nothing")] = False,
    as_json: AsJson = False,
) -> int:
    """Tests idle nodes of a batch system, the one with the oldest result first, and ingests the results.

    Nodes that `lepaute watch health --drain` asked a confirmation run of come first. A test is cancelled when another
    job waits for its node, or when this command is ended. Exit status 1 if a test failed or a node has been without a
    result for too long.
    """
    import signal

    from lepaute.errors import InputError
    from lepaute.kit.node_sets import parse_node_set
    from lepaute.kit.quantities import settings_of, time_of
    from lepaute.measure.idle_nodes import NodeTests, Settings, records_held
    from lepaute.measure.schedulers import batch_system
    from lepaute.measure.shipped import shipped_experiments

    # cron and systemd end a job with SIGTERM: tests that run must not be left behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    place, batch = place_of(store), batch_system(scheduler, partition, account, qos)
    script = Path(experiment)
    if experiment not in shipped_experiments() and not script.is_file():
        known = ", ".join(shipped_experiments())
        raise InputError(f"there is no experiment {experiment[:200]}; give a script, or one of {known}")
    settings_of(parameter or [])
    words = [str(script.absolute()) if script.is_file() else experiment, *(f"--set={one}" for one in parameter or [])]
    check_text(cluster, "--cluster")
    walltime_s, every_s, lasting_s = (
        time_of(text, option) for text, option in ((walltime, "--walltime"), (every, "--every"), (lasting, "--for"))
    )
    if walltime_s < 1.0:
        raise InputError(f"--walltime is {walltime}; give at least a second")
    with records_held(archives.absolute()) as records:
        settings = Settings(
            archives.absolute(),
            tuple(words),
            nodes=None if nodes is None else parse_node_set(nodes),
            at_a_time=most,
            every_s=every_s,
            walltime_s=round(walltime_s),
        )
        tests = NodeTests(
            batch, settings, lambda: _histories(place, cluster), _ingest_into(place, cluster), _say, records
        )
        idle = tests.idle()
        if not dry_run:
            tests.run(lasting_s)
        return _report(tests, idle, dry_run=dry_run, as_json=as_json)


def _histories(place: str, cluster: str) -> "Mapping[str, NodeHistory]":
    """When each node was last measured, and since when a confirmation run of it is asked for."""
    from lepaute.measure.idle_nodes import NodeHistory
    from lepaute.store.backend import NoStoreError
    from lepaute.watch.changelog import names_of_node
    from lepaute.watch.drains import requested_runs

    try:
        with opened(place) as watch:
            jobs = watch.store.job_states(cluster)
            requested = requested_runs(watch.store.node_actions(), cluster)
    except NoStoreError:  # the first result makes it
        return {}
    last = jobs[jobs["state"] == "done"].groupby("node")["started_s"].max()
    return {
        name: NodeHistory(last.get(node), requested.get(node))
        for node in sorted({*last.index, *requested})
        for name in names_of_node(cluster, node)
    }


def _say(event: str) -> None:
    import sys

    print(event, file=sys.stderr, flush=True)


def _ingest_into(place: str, cluster: str) -> "Callable[[Path], None]":
    from lepaute.cli.watch_ingest import ingested

    def take(archive: Path) -> None:
        ingested(place, [archive], cluster=cluster)

    return take


def _report(tests: "NodeTests", nodes: "Mapping[str, bool]", *, dry_run: bool, as_json: bool) -> int:
    import time

    now_s = time.time()
    tried = [record for record in tests.records if record.name in tests.touched or record.outcome == "not stored"]
    failed = [record for record in tried if record.outcome in ("failed", "not stored")]
    due, late = tests.due(nodes, now_s), tests.late(nodes, _LATE_INTERVALS * tests.settings.every_s, now_s)
    if as_json:
        plain = {
            "tests": [_plain(record) for record in tried],
            "due": due,
            "idle": [node for node in due if nodes[node]],
            "late": late,
        }
        print(json.dumps(plain, indent=2))
    elif dry_run:
        for node in due:
            print(f"{node}: {_age(tests, node, now_s)}; {'idle' if nodes[node] else 'not idle'}")
        if not due:
            print("no node is due")
    else:
        _print_outcomes(tests, tried, late, now_s)
    return 1 if failed or (late and not dry_run) else 0


def _print_outcomes(tests: "NodeTests", tried: "list[SubmittedTest]", late: list[str], now_s: float) -> None:
    from collections import Counter

    from lepaute.kit.text import counted

    counts = Counter(record.outcome for record in tried)
    summary = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    print(f"{counted(sum(counts.values()), 'test')}{f': {summary}' if summary else ''}")
    for record in tried:
        if record.outcome != "done":
            print(f"{record.node}: {record.outcome}: {record.reason}")
    for node in late:
        print(f"{node}: {_age(tests, node, now_s)}")


def _age(tests: "NodeTests", node: str, now_s: float) -> str:
    last_s = tests.last_result_s(node)
    return "no result yet" if last_s is None else f"last result {(now_s - last_s) / 86_400.0:.1f} days ago"


def _plain(record: "SubmittedTest") -> dict[str, object]:
    return {
        "node": record.node,
        "job": record.job,
        "outcome": record.outcome,
        "reason": record.reason,
        "submitted_s": record.submitted_s,
        "ended_s": record.ended_s,
        "archive": str(record.archive) if record.archive.exists() else None,
    }
