"""`lepaute watch health`: the verdict on nodes, for a scheduler's health check, and draining those that regressed."""

import json
import os
from typing import TYPE_CHECKING, Annotated

import typer

from lepaute.cli.watch_store import AsJson, Cluster, Place, check_text, opened

if TYPE_CHECKING:
    from lepaute.watch.drains import Drains, Limit, NodeHealth


def health(
    nodes: Annotated[
        str | None,
        typer.Argument(metavar="[NODES]", help="such as n3 or n[1-16]; unless given, this node as Slurm names it"),
    ] = None,
    store: Place = None,
    cluster: Cluster = None,
    drain: Annotated[
        bool, typer.Option("--drain", help="drain regressed nodes of Slurm, once a confirmation run has confirmed it")
    ] = False,
    most: Annotated[
        str, typer.Option("--most", metavar="N|X%", help="nodes that may be drained by Lepaute at a time")
    ] = "5%",
    partition: Annotated[
        str | None, typer.Option("--partition", metavar="NAME", help="whose nodes --most counts; default: all")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Says whether nodes have regressed; exit status 1 if one has, else 2 if nothing is known of one.

    The regressions are those of `lepaute watch test`. With
    --drain it asks for a confirmation run first, and never touches a node that somebody else drained or resumed.
    """
    import time

    from lepaute.errors import InputError
    from lepaute.watch.drains import Verdict, limit_of, node_health
    from lepaute.watch.named_nodes import nodes_named, the_node

    limit = limit_of(most, "--most")
    if partition is not None and not drain:
        raise InputError("--partition goes with --drain")
    text, of_cluster = check_text(nodes, "NODES") or _this_node(), check_text(cluster, "--cluster")
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
        drains = _slurm_drains(partition, limit) if drain else None
        found = node_health(watch.store, meant, time.time(), drains)
    if as_json:
        print(json.dumps({"nodes": [_plain(each) for each in found]}, indent=2))
    else:
        for each in found:
            print(_line(each, drains))
    verdicts = {each.verdict for each in found}
    return 1 if verdicts - {Verdict.HEALTHY, Verdict.UNKNOWN} else 2 if Verdict.UNKNOWN in verdicts else 0


def _this_node() -> str:
    import socket

    return os.environ.get("SLURMD_NODENAME") or socket.gethostname().partition(".")[0]


def _slurm_drains(partition: str | None, limit: "Limit") -> "Drains":
    from lepaute.measure.schedulers import scheduler
    from lepaute.watch.drains import Drains

    slurm = scheduler("slurm")
    nodes = slurm.node_states(partition)
    return Drains(nodes, limit.of(len(nodes)), slurm.drain)


def _line(each: "NodeHealth", drains: "Drains | None") -> str:
    from lepaute.watch.drains import Verdict

    text = f"{each.name}: {each.verdict.value}"
    if drains is not None and each.verdict is Verdict.REQUEST:
        text = f"{each.name}: regressed: a confirmation run is asked for"
    elif drains is not None and each.verdict is Verdict.DRAIN:
        text = f"{each.name}: regressed, and confirmed; {each.problem or 'drained now'}"
    elif drains is not None and each.verdict is Verdict.HEALTHY and _drained_by_us(each.name, drains):
        text += ", and still drained: resume it by hand"
    return f"{text} ({each.reason})" if each.reason else text


def _drained_by_us(node: str, drains: "Drains") -> bool:
    from lepaute.watch.drains import is_ours

    return node in drains.states and is_ours(drains.states[node])


def _plain(each: "NodeHealth") -> dict[str, object]:
    return {
        "name": each.name,
        "cluster": each.cluster,
        "node": each.node,
        "verdict": each.verdict.name.lower(),
        "reason": each.reason,
        "problem": each.problem,
    }
