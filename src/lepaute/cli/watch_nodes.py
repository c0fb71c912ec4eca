"""`lepaute watch run` and `health`: tests of idle nodes of a batch system, and the verdict on nodes, for its checks."""

import os
import shlex
import socket
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lepaute.cli.options import AsJson, argument, option, refuse_options
from lepaute.cli.run import workload_parameters
from lepaute.cli.terminal import json_text, note, say
from lepaute.cli.watch_store import Cluster, Place, check_text, ingested, opened, place_of
from lepaute.errors import InputError
from lepaute.kit.json_values import finite_json
from lepaute.kit.later import later
from lepaute.kit.node_sets import fold_node_set, parse_node_set
from lepaute.kit.options import TIME, option_field
from lepaute.kit.quantities import settings_of
from lepaute.kit.text import counted
from lepaute.measure.idle_nodes import NodeHistory, NodeTests, Settings, records_held
from lepaute.measure.schedulers import batch_system, scheduler
from lepaute.measure.shipped import shipped_experiments

if TYPE_CHECKING:
    from lepaute.cli import watch_answer
    from lepaute.watch import drains as watch_drains
    from lepaute.watch.drains import Drains, NodeHealth
else:
    watch_answer = later("lepaute.cli.watch_answer")
    watch_drains = later("lepaute.watch.drains")

#: A node without a result for this many intervals is reported.
_LATE_INTERVALS = 2.0


@dataclass(frozen=True)
class NodeTestOptions:
    """Which nodes are tested, when, and by what jobs."""

    archives: Path = option_field(Path("node-tests"), "for archives and logs; the nodes see it too", metavar="FOLDER")
    cluster: str = option_field("", "cluster the nodes belong to", metavar="NAME")
    scheduler: str = option_field("slurm", "slurm")
    partition: str | None = option_field(None, "partition of Slurm", metavar="NAME")
    nodes: str | None = option_field(None, "only these, such as n[1-16]", metavar="SET")
    account: str | None = option_field(None, "account or project to charge")
    qos: str | None = option_field(None, "quality of service of Slurm")
    most: int = option_field(1, "tests at a time", minimum=1)
    every_s: float = option_field("7d", "a node's results are at least so old", **TIME)
    lasting_s: float = option_field("1h", "submit no test after this time", name="for", **TIME)
    walltime_s: float = option_field("30min", "of a test", **TIME)
    parameter: list[str] | None = option_field(None, "a parameter of the experiment", name="set")
    workload: list[str] | None = option_field(None, "of node-test: NAME=COMMAND, run on each node, too")
    workload_pattern: list[str] | None = option_field(None, "NAME=REGEX: named groups match what it prints")
    dry_run: bool = option_field(False, "print which nodes are due, and do nothing")


def run(
    experiment: Annotated[
        str, argument("[EXPERIMENT]", "what `lepaute run` runs on each node: a name or a script", show_default=True)
    ] = "node-test",
    store: Place = None,
    *,
    options: NodeTestOptions,
    as_json: AsJson = False,
) -> int:
    """Tests idle nodes of a batch system, the one with the oldest result first, and ingests the results.

    Nodes that `lepaute watch health --drain` asked a confirmation run of come first. A test is cancelled when another
    job waits for its node, or when this command is ended. Exit status 1 if a test failed or a node has been without a
    result for too long.
    """
    place = place_of(store)
    batch = batch_system(options.scheduler, options.partition, options.account, options.qos)
    script = Path(experiment)
    if experiment not in shipped_experiments() and not script.is_file():
        known = ", ".join(shipped_experiments())
        raise InputError(f"there is no experiment {experiment[:200]}; give a script, or one of {known}")
    settings_of(parameters := [*(options.parameter or [])])
    if options.workload or options.workload_pattern:
        of_workloads = workload_parameters(experiment, options.workload, options.workload_pattern)
        parameters += [f"{name}={value}" for name, value in of_workloads.items()]
    words = [str(script.absolute()) if script.is_file() else experiment, *(f"--set={text}" for text in parameters)]
    cluster = str(check_text(options.cluster, "--cluster"))
    if options.walltime_s < 1.0:
        raise InputError(f"--walltime is {options.walltime_s:g} s; give at least a second")
    archives = options.archives.absolute()
    with records_held(archives) as records:
        settings = Settings(
            archives,
            tuple(words),
            nodes=None if options.nodes is None else parse_node_set(options.nodes),
            at_a_time=options.most,
            every_s=options.every_s,
            walltime_s=round(options.walltime_s),
        )

        def take(archive: Path) -> None:
            ingested(place, [archive], cluster=cluster)

        tests = NodeTests(batch, settings, lambda: _histories(place, cluster), take, note, records)
        idle = tests.idle()
        if not options.dry_run:
            tests.run(options.lasting_s)
        return _report(tests, idle, dry_run=options.dry_run, as_json=as_json)


def _histories(place: str, cluster: str) -> "Mapping[str, NodeHistory]":
    """When each node was last measured, and since when a confirmation run of it is asked for."""
    from lepaute.watch.changelog import names_of_node
    from lepaute.watch.store.backend import NoStoreError

    try:
        with opened(place) as watch:
            jobs = watch.store.job_states(cluster)
            requested = watch_drains.requested_runs(watch.store.node_actions(), cluster)
    except NoStoreError:  # the first result makes it
        return {}
    last = jobs[jobs["state"] == "done"].groupby("node")["started_s"].max()
    return {
        name: NodeHistory(last.get(node), requested.get(node))
        for node in sorted({*last.index, *requested})
        for name in names_of_node(cluster, node)
    }


def _report(tests: "NodeTests", nodes: "Mapping[str, bool]", *, dry_run: bool, as_json: bool) -> int:
    now_s = time.time()

    def age(node: str) -> str:
        last_s = tests.last_result_s(node)
        return "no result yet" if last_s is None else f"last result {(now_s - last_s) / 86_400.0:.1f} days ago"

    tried = [record for record in tests.records if record.name in tests.touched or record.outcome == "not stored"]
    due, late = tests.due(nodes, now_s), tests.late(nodes, _LATE_INTERVALS * tests.settings.every_s, now_s)
    if as_json:
        columns = ("node", "job", "outcome", "reason", "submitted_s", "ended_s")
        records = [
            {name: getattr(record, name) for name in columns}
            | {"archive": str(record.archive) if record.archive.exists() else None}
            for record in tried
        ]
        print(json_text({"tests": records, "due": due, "idle": [node for node in due if nodes[node]], "late": late}))
    elif dry_run:
        idle = sum(nodes[node] for node in due)
        say(f"{counted(len(due), 'node')} due, {idle} of them idle" if due else "no node is due")
        for node in due:
            say(f"{node}: {age(node)}; {'idle' if nodes[node] else 'not idle'}")
    else:
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in Counter(r.outcome for r in tried).items())
        say(f"{counted(len(tried), 'test')}{f': {outcomes}' if outcomes else ''}")
        for record in tried:
            if record.outcome != "done":
                say(f"{record.node}: {record.outcome}: {record.reason}")
        for node in late:
            say(f"{node}: {age(node)}")
    failed = any(record.outcome in ("failed", "not stored") for record in tried)
    return 1 if failed or (late and not dry_run) else 0


def health(
    context: typer.Context,
    nodes: Annotated[list[str] | None, argument("NODES...", "such as n3 or n[1-16]; default: this node")] = None,
    store: Place = None,
    cluster: Cluster = None,
    drain: Annotated[bool, option("drain regressed nodes of Slurm, once another run confirms it", "--drain")] = False,
    most: Annotated[str, option("nodes that may be drained by Lepaute at a time", metavar="N|X%")] = "5%",
    partition: Annotated[str | None, option("of the nodes that --most counts", metavar="NAME")] = None,
    as_json: AsJson = False,
) -> int:
    """Says whether nodes have regressed; exit status 1 if one has.

    Else 4 if one is unlike its peers, 3 if a change of one is not confirmed yet, 2 if nothing is known of one. The
    regressions are those of `lepaute watch test`. With
    --drain it asks for a confirmation run first, and never touches a node that somebody else drained or resumed.
    """
    from lepaute.watch.alarms.worth_a_look import LABEL
    from lepaute.watch.named_nodes import nodes_named, nodes_text, the_node
    from lepaute.watch.report.summary import EXIT_STATUS

    limit = watch_drains.limit_of(most, "--most")
    this_node = os.environ.get("SLURMD_NODENAME") or socket.gethostname().partition(".")[0]
    if not drain:
        refuse_options(context, ("most", "partition"), "without --drain nothing is drained")
    if nodes and "" in nodes:  # a variable of a script that is not set
        raise InputError("NODES is empty; name nodes such as n[1-16], or leave it out for this one")
    text, of_cluster = check_text(",".join(nodes or ()), "NODES") or this_node, check_text(cluster, "--cluster")
    with opened(store) as watch:
        known = watch.nodes()
        clusters = sorted({cluster for cluster, _ in known})
        if drain and of_cluster is None and len(clusters) > 1:
            raise InputError(
                f"the store has nodes of {', '.join(each or 'no cluster' for each in clusters)[:200]}; "
                "--drain needs --cluster, for the nodes of this Slurm are of one"
            )
        named = nodes_named(known, text, of_cluster)
        meant = {name: the_node(name, each, known) if each else None for name, each in named.items()}
        drains = None
        if drain:
            slurm = scheduler("slurm")
            states = slurm.node_states(partition)
            drains = watch_drains.Drains(states, limit(len(states)), slurm.drain)
        judged = watch_drains.node_health(watch.store, meant, time.time(), drains)
    if as_json:
        steps = [(node, node.verdict) for node in judged]
        objects = [{**finite_json(node), "verdict": step.state, "step": step.name.lower()} for node, step in steps]
        print(json_text({"nodes": objects}))
    else:
        for line, health_state in _health_lines(judged, drains):
            state = "" if health_state is None else health_state.state
            say(line, meaning=watch_answer.MEANING.get(state, "doubtful") if state else None, loud=state)
        if looks := [f"  {line}" for node in judged for line in node.worth_a_look.lines]:
            say("\n".join([f"{LABEL}:", *looks]))
        if not nodes and not any(named.values()):
            there = nodes_text("", (node for of, node in known if of == clusters[0]))
            command = shlex.join(["lepaute", "watch", "health", there, *(("--store", store) if store else ())])
            note(f"{this_node} is this machine, and no node of the store; to ask for one: {command}")
    statuses = {node.verdict.exit_status for node in judged}
    return next(status for status in EXIT_STATUS.values() if status in statuses)


def _health_lines(
    judged: "Sequence[NodeHealth]", drains: "Drains | None"
) -> "list[tuple[str, watch_drains.Verdict | None]]":
    """Of several nodes how many changed first; then a line for those of which the same can be said, and what."""
    if len(judged) == 1:
        return [(f"{judged[0].name}: {_health_text(judged[0], drains)}", judged[0].verdict)]
    known_first = sorted(judged, key=lambda node: node.verdict.is_unknown)
    names_by_text: dict[tuple[str, watch_drains.Verdict], list[str]] = {}
    for node in known_first:
        names_by_text.setdefault((_health_text(node, drains), node.verdict), []).append(node.name)
    counts = Counter(node.verdict for node in judged)
    worst_first = "UNLIKE NOT_CONFIRMED FAILED SILENT UNKNOWN".split()
    others = {verdict: counts.pop(verdict, 0) for verdict in map(watch_drains.Verdict.__getitem__, worst_first)}
    healthy = watch_drains.Verdict.HEALTHY
    changed = f"{sum(counts.values()) - counts[healthy]} of {counted(len(judged), 'node')} changed"
    answer = ", ".join([changed, *(f"{count} {verdict.value}" for verdict, count in others.items() if count)])
    lines = sorted(names_by_text.items(), key=lambda line: line[0][1] is healthy)
    return [(answer, None), *((f"{fold_node_set(tuple(names))}: {text}", state) for (text, state), names in lines)]


def _health_text(node: "NodeHealth", drains: "Drains | None") -> str:
    text = node.verdict.value
    if drains is not None and node.verdict is watch_drains.Verdict.REQUEST:
        text = "changed: a confirmation run is asked for"
    elif drains is not None and node.verdict is watch_drains.Verdict.DRAIN:
        text = f"changed, and confirmed; {node.problem or 'drained now'}"
    elif drains is not None and node.verdict is watch_drains.Verdict.HEALTHY:
        state = drains.states.get(node.name)
        text += ", and still drained: resume it by hand" if state is not None and watch_drains.is_ours(state) else ""
    return f"{text} ({node.reason})" if node.reason else text
