"""`lepaute watch cost NODE`: what a node that has changed costs an HPL, and what leaving it out would."""

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from lepaute.cli.option_fields import with_options_of
from lepaute.cli.simulation_options import PlatformName, Runs, Seed, Settings, platform_of
from lepaute.cli.watch_store import AsJson, Cluster, Place, check_text, opened, start_of
from lepaute.kit.text import counted
from lepaute.simulate.apps.hpl.parameters import Hpl

if TYPE_CHECKING:
    import pandas as pd

    from lepaute.simulate.node_cost import NodeCost
    from lepaute.watch import Watch
    from lepaute.watch.node_state import NodeState

#: The first of them that the node has says how fast it computes.
SPEEDS = ("dgemm_rate_flops", "dgemm_2048_rate_flops", "sentinel_rate_flops", "hpl_rate_flops")
BAR_AFTER_S = 2.0


@with_options_of(Hpl, "hpl")
def cost(
    node: Annotated[str, typer.Argument(metavar="NODE", help="its name in the store, such as 13 or dahu-13")],
    platform: PlatformName,
    hpl: Hpl,
    store: Place = None,
    cluster: Cluster = None,
    factor: Annotated[str | None, typer.Option("--factor", help="a rate of dgemm, or a duration")] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="DATE",
            help="of its state now; else of the regression that stands, or 5 jobs",
        ),
    ] = None,
    latest: Annotated[
        int | None, typer.Option("--latest", help="jobs of the state now, instead of --since", min=1)
    ] = None,
    platform_node: Annotated[
        int | None,
        typer.Option("--platform-node", help="number in the platform; the one at the end of its name unless given"),
    ] = None,
    grid_without: Annotated[
        str | None,
        typer.Option("--grid-without", metavar="PxQ", help="of the job without the node; the fastest unless given"),
    ] = None,
    settings: Settings = None,
    runs: Runs = 10,
    seed: Seed = 1,
    fidelity: Annotated[str, typer.Option("--fidelity", help="auto, full or sampled")] = "auto",
    as_json: AsJson = False,
) -> None:
    """Predicts HPL with the node as the platform says, as it is now, and without it.

    The state of the node is the change of a factor, cpu by cpu, between its jobs since a date and those before, back to
    the last event. dgemm takes so many times as long on its CPUs; all else is as the platform says.
    """
    from lepaute.cli.progress import progress_bar
    from lepaute.kit.quantities import grid_of
    from lepaute.simulate.node_cost import CpuFactors, node_cost
    from lepaute.watch.node_state import LATEST, node_state

    machine, _ = platform_of(platform, settings)
    smaller = None if grid_without is None else grid_of(grid_without)
    with opened(store) as watch:
        values, of_cluster, name = _values_of_node(watch, node, cluster)
        changelog = watch.changelog()
        of_speed = check_text(factor, "--factor") or _speed(values, node)
        since_s = start_of(since, "--since")
        before_s = None
        if since_s is None and latest is None:
            before_s, since_s = standing_dates(watch, values, of_speed)
    state = node_state(
        values,
        of_cluster,
        name,
        of_speed,
        changelog=changelog,
        since_s=since_s,
        before_s=before_s,
        latest=latest or LATEST,
    )
    factors = CpuFactors.of_processors(
        machine.nodes, state.cpus, state.log_slowdown, state.log_covariance, state.degrees_of_freedom
    )
    number = _number_of(name) if platform_node is None else platform_node
    with progress_bar(BAR_AFTER_S) as tell:
        found = node_cost(
            hpl,
            machine,
            number,
            factors,
            runs=runs,
            seed=seed,
            fidelity=fidelity,
            grid_without=smaller,
            progress=lambda what, share: tell(f"simulating {what}", share),
        )
    if as_json:
        json.dump({**_state_dict(state), **found.to_dict()}, sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        print(cost_text(state, found))


def cost_text(state: "NodeState", found: "NodeCost") -> str:
    """What a person reads."""
    from lepaute.cli.predict_text import interval
    from lepaute.watch.values import day_of

    first, hpl = found.as_calibrated, cast(Any, found.as_calibrated.application)
    shown = [
        f"{ratio:.3f} times as long{'' if cpu < 0 else f' on cpu {cpu}'} (95 %: {low:.3f} to {high:.3f})"
        for cpu in state.cpus
        for ratio, low, high in [state.slowdown(cpu)]
    ]
    lines = [
        f"HPL  {hpl.label} ranks on {first.platform_name}: {counted(found.nodes, 'node')}, {state.node} among them",
        f"  {'node ' * state.node.isdigit()}{state.node}: dgemm takes {', '.join(shown)}",
        f"    {state.factor} of {counted(state.r, 'job')}, {day_of(state.now_s[0])} to {day_of(state.now_s[1])}, "
        f"against {state.n}, {day_of(state.before_s[0])} to {day_of(state.before_s[1])}",
        f"  as calibrated  {interval(first.time_s, 's')}",
        f"  as it is now   {interval(found.as_now.time_s, 's')}",
    ]
    if found.without is not None:
        other: Any = found.without.application
        where = f"{counted(found.without.nodes, 'node')}, {other.p} x {other.q}"
        lines.append(f"  without it     {interval(found.without.time_s, 's')}; {where}")
    lines.append(f"  now against as calibrated: {found.slowdown.text}")
    shared = 100.0 * (found.shared_slowdown - 1.0)
    if found.nodes > 1 and found.slowdown.low is not None and found.slowdown.low > found.shared_slowdown > 1.0:
        lines.append(f"    {shared:.1f} % if work were shared by speed; in HPL all nodes wait for the slowest")
    if found.slowest != found.node:
        lines.append(f"    node {found.slowest} of the platform is slower even so, and HPL waits for the slowest")
    if found.gain is not None:
        lines.append(f"  without it against now: {found.gain.text}")
        lines.append(f"    {_advice(found)}")
    lines += [f"  warning: {warning}" for warning in found.warnings]
    return "\n".join(lines)


def _advice(found: "NodeCost") -> str:
    assert found.gain is not None
    if not found.gain.is_told_apart:
        text = "as far as the prediction tells, it makes no difference to leave the node out"
    elif found.gain.ratio < 1.0:
        text = "leave the node out"
    else:
        text = "keep the node, unless another takes its place"
    spare = (
        "the platform has others: with one of them as calibrated" if found.spare_nodes else "the platform has no other"
    )
    return f"{text} ({spare})"


def _state_dict(state: "NodeState") -> dict[str, Any]:
    cpus = []
    for cpu in state.cpus:
        ratio, low, high = state.slowdown(cpu)
        cpus.append({"cpu": cpu, "slowdown": {"mean": ratio, "low": low, "high": high}})
    return {
        "cluster": state.cluster,
        "node": state.node,
        "factor": state.factor,
        "state": {
            "cpus": cpus,
            "jobs_now": state.r,
            "jobs_before": state.n,
            "now_s": list(state.now_s),
            "before_s": list(state.before_s),
            "stratum": state.stratum,
        },
    }


def _values_of_node(watch: "Watch", node: str, cluster: str | None) -> "tuple[pd.DataFrame, str, str]":
    """The factor values of the node, its cluster and its name there; raises InputError where it is none or several."""
    from lepaute.errors import InputError
    from lepaute.kit.node_sets import check_node_name
    from lepaute.watch.named_nodes import nodes_named, the_node

    check_text(cluster, "--cluster")
    known = watch.nodes()
    found = nodes_named(known, check_node_name(node), cluster)
    of_cluster, name = the_node(node, found.get(node, ()), known)
    values = watch.store.values(nodes=[name], cluster=of_cluster)
    if values.empty:
        raise InputError(f"the store has no value of node {node[:80]}; `lepaute watch ingest` adds some")
    return values, of_cluster, name


def standing_dates(watch: "Watch", values: "pd.DataFrame", factor: str) -> tuple[float | None, float | None]:
    """When the first and the latest step of the factor were that stand on the node; None where none does.

    That of `lepaute watch test`: of the node, or of all nodes together.
    """
    from lepaute.watch.open_regressions import open_regressions

    node = values[["cluster", "node"]].iloc[0]
    found = open_regressions(watch.store).of_nodes([(str(node["cluster"]), str(node["node"]))]).rows
    own = found[found["factor"] == factor]
    return (None, None) if own.empty else (float(own["changed_s"].min()), float(own["changed_s"].max()))


def _speed(values: "pd.DataFrame", node: str) -> str:
    from lepaute.errors import InputError

    there = set(values["factor"])
    found = next((name for name in SPEEDS if name in there), None)
    if found is None:
        raise InputError(
            f"no factor of node {node[:80]} is known to say how fast it computes; choose one by --factor: "
            f"{', '.join(sorted(there))}"
        )
    return found


def _number_of(name: str) -> int:
    from re import search

    from lepaute.errors import InputError

    match = search(r"(\d{1,9})$", name.partition(".")[0])
    if match is None:
        raise InputError(f"the name {name[:80]} does not end in a number; give --platform-node N")
    return int(match[1])
