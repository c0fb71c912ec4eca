"""`lepaute watch cost NODE`: what a node that has changed costs an HPL, and what leaving it out would."""

from dataclasses import dataclass
from re import search
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from lepaute.cli.options import AsJson, Details, argument, option, with_options_of
from lepaute.cli.simulation import Simulation, note_unused
from lepaute.cli.terminal import BAR_AFTER_S, json_text, progress_bar, tell
from lepaute.cli.watch_store import DATE, Cluster, Place, check_text, opened
from lepaute.errors import InputError
from lepaute.kit.later import later, pd
from lepaute.kit.node_sets import check_node_name
from lepaute.kit.options import option_field
from lepaute.kit.quantities import grid_of, settings_of
from lepaute.kit.text import change_in_words, counted, value_and_interval
from lepaute.simulate.apps.hpl.parameters import Hpl
from lepaute.simulate.prediction.controls import DEFAULT_RUNS
from lepaute.simulate.prediction.wording import span_of

if TYPE_CHECKING:
    from lepaute.simulate.conditions import Fidelity
    from lepaute.simulate.prediction import node_cost as costs
    from lepaute.simulate.prediction.node_cost import NodeCost
    from lepaute.watch import Watch
    from lepaute.watch.node_state import NodeState
else:
    costs = later("lepaute.simulate.prediction.node_cost")

#: The first of them that the node has says how fast it computes.
SPEEDS = ("dgemm_rate_flops", "dgemm_2048_rate_flops", "sentinel_rate_flops", "hpl_rate_flops")


@dataclass(frozen=True)
class StateOptions:
    """Of what the state of the node is seen."""

    factor: str | None = option_field(None, "a rate of dgemm, or a duration")
    since_s: float | None = option_field(None, "of its state now; else of the open regression, or 5 jobs", **DATE)
    latest: int | None = option_field(None, "jobs of the state now, instead of --since", minimum=1)

    def __post_init__(self) -> None:
        if self.since_s is not None and self.latest is not None:
            raise InputError("--since and --latest both say which jobs are its state now; give one of them")

    def state(self, watch: "Watch", node: str, cluster: str | None) -> "NodeState":
        """Raises InputError where the store does not know the node, or too little of it."""
        from lepaute.watch.node_state import LATEST, node_state

        values, of_cluster, name = _values_of_node(watch, node, cluster)
        factor = check_text(self.factor, "--factor") or _speed(values, node)
        since_s, before_s = self.since_s, None
        if since_s is None and self.latest is None:
            before_s, since_s = standing_dates(watch, values, factor)
        return node_state(
            values,
            of_cluster,
            name,
            factor,
            changelog=watch.changelog(),
            since_s=since_s,
            before_s=before_s,
            latest=self.latest or LATEST,
        )


@with_options_of(Simulation, "simulation", leave_out=("without", "transfer", "lag_s", "any"))
def cost(
    context: typer.Context,
    node: Annotated[str, argument("NODE", "its name in the store, such as 13 or dahu-13")],
    simulation: Simulation,
    hpl: Hpl,
    seen: StateOptions,
    store: Place = None,
    cluster: Cluster = None,
    platform_node: Annotated[int | None, option("number in the platform; default: at the end of its name")] = None,
    grid_without: Annotated[str | None, option("grid without the node; default: the fastest", metavar="PxQ")] = None,
    fidelity: Annotated[str, option("auto, full or sampled")] = "auto",
    details: Details = False,
    as_json: AsJson = False,
) -> None:
    """Predicts HPL with the node as the platform says, as it is now, and without it.

    The state of the node is the change of a factor, cpu by cpu, between its jobs since a date and those before, back to
    the last event. dgemm takes as much longer on its CPUs as its jobs show; all else is as the platform says.
    """
    machine = simulation.machine
    smaller = None if grid_without is None else grid_of(grid_without, "--grid-without")
    with opened(store) as watch:
        state = seen.state(watch, node, cluster)
    factors = costs.CpuFactors.of_processors(
        machine.nodes, state.cpus, state.log_slowdown, state.log_covariance, state.degrees_of_freedom
    )
    match = search(r"(\d{1,9})$", state.node.partition(".")[0])
    if match is None:
        raise InputError(f"the name {state.node[:80]} does not end in a number; give --platform-node N")
    number = int(match[1]) if platform_node is None else platform_node
    with progress_bar(BAR_AFTER_S) as on_progress:
        result = costs.node_cost(
            hpl,
            simulation.given_platform,
            number,
            factors,
            settings=settings_of(simulation.settings or []),
            runs=DEFAULT_RUNS if simulation.runs is None else simulation.runs,
            seed=simulation.seed,
            fidelity=cast("Fidelity", fidelity),
            grid_without=smaller,
            progress=lambda what, share: on_progress(f"simulating {what}", share),
        )
    if as_json:
        print(json_text({**_state_dict(state), **result.to_dict()}))
    else:
        tell(_cost_answer(state, result), _cost_facts(state, result), result.warnings, details=details)
    note_unused(context, Hpl, [hpl.unused])


def _cost_answer(state: "NodeState", result: "NodeCost") -> str:
    """What HPL takes with the node as it is now, and what to do."""
    name = f"{'node ' * state.node.isdigit()}{state.node}"
    takes = f"HPL takes {span_of(result.as_now.time_s)} with"
    with_it = f"{takes} {name} as it is now" if result.gain is None else f"{_advice(result, name)}: {takes} it"
    return f"{with_it}; against as calibrated: {result.slowdown.in_words()}"


def _cost_facts(state: "NodeState", result: "NodeCost") -> list[tuple[str, str]]:
    from lepaute.watch.values import day_of

    first, application = result.as_calibrated, cast(Any, result.as_calibrated.application)
    jobs = f"{state.factor} of {counted(state.r, 'job')} since {day_of(state.now_s[0])} against {state.n} before"
    slowdowns = [
        f"{figure} times as long{'' if cpu < 0 else f' on cpu {cpu}'} (95 %: {bounds})"
        for cpu in state.cpus
        for figure, bounds in [value_and_interval(*state.slowdown(cpu))]
    ]
    facts = [
        ("run", f"{application.label} ranks on {first.platform_name}: {counted(result.nodes, 'node')} with this one"),
        ("node", f"dgemm takes {', '.join(slowdowns)}; {jobs}"),
        ("before", f"{span_of(first.time_s)} as calibrated{_shared(result)}"),
    ]
    if result.without is not None and result.gain is not None:
        other: Any = result.without.application
        spare = "has others: with one of them as calibrated" if result.spare_nodes else "has no other"
        where = f"{counted(result.without.nodes, 'node')}, {other.p} x {other.q} (the platform {spare})"
        facts.append(("without", f"{span_of(result.without.time_s)} on {where}; against now {result.gain.text}"))
    if result.slowest != result.node:
        facts.append(("slowest", f"node {result.slowest} of the platform is slower even so, and HPL waits for it"))
    return facts


def _shared(result: "NodeCost") -> str:
    """What the node would cost if the other nodes took over, where that is less."""
    if result.nodes > 1 and result.slowdown.low is not None and result.slowdown.low > result.shared_slowdown > 1.0:
        slower = change_in_words(result.shared_slowdown, "slower")
        return f"; {slower} if work were shared by speed, but in HPL all nodes wait for the slowest"
    return ""


def _advice(result: "NodeCost", name: str) -> str:
    assert result.gain is not None
    if not result.gain.is_told_apart:
        return f"It makes no certain difference to leave {name} out"
    if result.gain.ratio < 1.0:
        return f"Leave {name} out"
    return f"Keep {name} unless another takes its place"


def _state_dict(state: "NodeState") -> dict[str, Any]:
    names = ("mean", "low", "high")
    cpus = [{"cpu": cpu, "slowdown": dict(zip(names, state.slowdown(cpu), strict=True))} for cpu in state.cpus]
    return {
        **{name: getattr(state, name) for name in ("cluster", "node", "factor")},
        "state": {
            "cpus": cpus,
            "jobs_now": state.r,
            "jobs_before": state.n,
            **{name: getattr(state, name) for name in ("now_s", "before_s", "stratum")},
        },
    }


def _values_of_node(watch: "Watch", node: str, cluster: str | None) -> "tuple[pd.DataFrame, str, str]":
    """The factor values of the node, its cluster and its name there; raises InputError where it is none or several."""
    from lepaute.watch.named_nodes import nodes_named, the_node

    check_text(cluster, "--cluster")
    known = watch.nodes()
    of_cluster, name = the_node(node, nodes_named(known, check_node_name(node), cluster).get(node, ()), known)
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
    steps = open_regressions(watch.store).of_nodes([(str(node["cluster"]), str(node["node"]))]).rows
    dates_s = steps.loc[steps["factor"] == factor, "changed_s"]
    return (None, None) if dates_s.empty else (float(dates_s.min()), float(dates_s.max()))


def _speed(values: "pd.DataFrame", node: str) -> str:
    there = set(values["factor"])
    speed = next((name for name in SPEEDS if name in there), None)
    if speed is None:
        raise InputError(
            f"no factor of node {node[:80]} is known to say how fast it computes; choose one by --factor: "
            f"{', '.join(sorted(there))}"
        )
    return speed
