"""From archives to models: reads observations, fits everything, and makes a platform of it."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import get_type_hints

import numpy as np
import pandas

from lepaute.errors import FitError
from lepaute.kit.frames import frame_of
from lepaute.kit.notebook import table_html
from lepaute.measure.archive import Archive, Archives
from lepaute.measure.archive.metadata import Metadata
from lepaute.measure.fit.kernels.form import Form
from lepaute.measure.fit.kernels.kernel_fit import FittedKernel
from lepaute.measure.fit.kernels.platform_kernel import QualityRow, common_relative_sd, kernel_model, quality_row
from lepaute.measure.fit.kernels.polynomial import machine_excess
from lepaute.measure.fit.kernels.selection import Selection, select
from lepaute.measure.fit.messages.conditions import ConditionEffect
from lepaute.measure.fit.messages.distances import FlowCurve, SwitchTree
from lepaute.measure.fit.messages.links import FittedLinks, MessageTables, fitted_links, network_model
from lepaute.measure.fit.messages.network import FittedNetwork
from lepaute.measure.fit.numeric import one_blas_thread
from lepaute.measure.fit.observations.calibrations import (
    THREADS,
    NodeShape,
    calibrations,
    hosts_of,
    seen_hosts,
    shape_of,
    without_disturbed,
)
from lepaute.measure.fit.observations.calls import (
    FIRST_TOUCH,
    MODELLED,
    Calls,
    calls_by_kernel,
    glue_calls,
    place_of,
    pooled_observations,
)
from lepaute.measure.fit.observations.columns import checked_table
from lepaute.measure.fit.observations.factors import (
    FactorTest,
    factor_tests,
    pooled_factors,
    sentence,
    usual_conditions,
)
from lepaute.measure.fit.variability.crowding import Crowding, crowding_of, relieved, with_size_error
from lepaute.measure.fit.variability.days import block_effects, days_of, discrepancies, process_effects, wandering_of
from lepaute.measure.fit.variability.dependence import (
    DependenceReport,
    FrequencyEffect,
    dependence_reports,
    frequency_effect,
    monitoring_of,
    time_scale_of,
)
from lepaute.measure.fit.variability.episodes import in_usual_state, without_slow_messages
from lepaute.measure.fit.variability.sentinels import change_warnings, drift_of, sentinel_of, watches
from lepaute.measure.observation_columns import FLOWS, KERNELS, P2P, RING, SEMANTICS
from lepaute.simulate.platform.kernel_model import KernelModel, told_of_missing
from lepaute.simulate.platform.network_model import Network
from lepaute.simulate.platform.schema import Blas, Days, Platform, Sentinel, SlowState, Wandering

#: Called with what is being fitted and the share of the work that is done.
Progress = Callable[[str, float], None]
NODE = 1
#: Share of the work that the models of kernels take.
KERNELS_SHARE = 0.8
#: Probes that a warning names, all of one node.
MAX_NAMED = 9
#: How the warning begins that the models include disturbed runs.
DISTURBED = "other load disturbed too many runs"


@dataclass(frozen=True)
class FittedModels:
    """Models of a machine as values of a platform, and how good they are.

    hosts          : the nodes that were measured, in the order of the platform's
    selections     : which member of the family each kernel got, and what else was tried
    dependence     : what successive calls of each kernel have in common
    frequency      : how far the clocks of the cores explain what differs between steps; None if that is unknown
    tree           : the switches between the nodes, where messages that leave one take longer
    flows          : what several messages at once between two nodes reach; None if they were not measured
    fitted_between : messages between nodes before they became the platform's network; None if they were not measured
    conditions     : how much longer messages take while the machine does something else, where that was measured
    notes          : for readers of the platform, one sentence each
    warnings       : for whoever runs the fit, one line each
    sentinel       : how fast the machine was on average; None if no sentinels were run
    slow_state     : in which it is for a while now and then; None if that was not seen
    factor_tests   : of every factor besides the sizes that the observations have, such as the operands' content
    """

    hosts: tuple[str, ...]
    kernels: list[KernelModel]
    network: Network
    days: Days | None
    wandering: Wandering | None
    quality: list[QualityRow]
    selections: list[Selection]
    dependence: list[DependenceReport]
    tree: SwitchTree | None
    flows: FlowCurve | None
    fitted_between: FittedNetwork | None
    conditions: tuple[ConditionEffect, ...]
    notes: list[str]
    warnings: list[str]
    factor_tests: tuple[FactorTest, ...] = ()
    frequency: FrequencyEffect | None = None
    sentinel: Sentinel | None = None
    slow_state: SlowState | None = None

    def __repr__(self) -> str:
        return f"<FittedModels of {', '.join(self.hosts)}: {', '.join(model.kernel for model in self.kernels)}>"

    def _repr_html_(self) -> str:
        shown = ["kernel", "threads", "form", "n_calls", "time_s", "discrepancy", "ranges"]
        rows = [[getattr(row, name) for name in shown] for row in self.quality]
        return table_html(f"Models of {', '.join(self.hosts)}", shown, rows, self.warnings)

    def to_frame(self) -> pandas.DataFrame:
        """The quality of each kernel's model, a row a model; columns are the fields of `QualityRow`."""
        return frame_of(map(asdict, self.quality), get_type_hints(QualityRow))


@one_blas_thread()
def models(
    archives: Archives,
    forms: Mapping[str, Form] | None = None,
    network_condition: str | None = None,
    progress: Progress = lambda *_: None,
) -> FittedModels:
    """Fits kernels, network and block effects to the observations of one or more calibrations of the same nodes.

    forms             : members of the family asked for, by kernel, see `form.requested_forms`; others are selected
    network_condition : what the machine did while the messages were measured that the platform is to have (see
                        `conditions.CONDITIONS`); None: the point-to-point measurements, nothing else
    Raises FitError when an archive is no calibration, or nodes differ in processor or BLAS kernels.
    """
    given = calibrations(archives)
    frames = [checked_table(archive, KERNELS) for archive in given]
    hosts, absent = seen_hosts(hosts_of(given[0]), frames)
    several = len(hosts) > 1
    kernel_frames, short_kernels = without_disturbed(frames, ("host", "probe", "cpu") if several else ("probe", "cpu"))
    messages, short_p2p = _messages(given, several)
    tests = factor_tests(pooled_factors(kernel_frames))
    shape = shape_of(given)
    table = pooled_observations([usual_conditions(frame) for frame in kernel_frames], hosts, shape)
    table, watched, episodes = in_usual_state(table, watches(given), hosts)
    messages, slow_messages = (messages, 0) if episodes is None else without_slow_messages(messages, episodes, several)
    links = _links(given, messages, hosts, network_condition)
    found, notes = _fit_all(_by_threads(table), forms or {}, progress)
    if not found:
        raise FitError("no kernel could be fitted; the archives hold no usable calls, calibrate again")
    excess, excess_error = machine_excess(
        piece.pooled for each in found for piece in each.kernel.pieces if each.name != FIRST_TOUCH
    )
    found = [replace(each, kernel=each.kernel.settled(excess, excess_error)) for each in found]
    effects = block_effects(
        [(each.calls, each.kernel) for each in found if not each.name.endswith("_glue") and each.name != FIRST_TOUCH]
    )
    if effects is not None:
        differences = process_effects(effects)
        found = [replace(each, kernel=each.kernel.with_effects(differences)) for each in found]
    places = _places(table, shape)
    rows, kernel_values = [], []
    progress("errors of the models", KERNELS_SHARE)
    errors = discrepancies([(each.calls, each.kernel) for each in found], effects, excess)
    for each, discrepancy in zip(found, errors, strict=True):
        crowding = with_size_error(each.crowding, each.calls, each.kernel, effects)
        rows.append(quality_row(each.calls, each.kernel, discrepancy, each.threads))
        at = places["socket" if each.kernel.form.per_socket else "cpu"]
        noise_of_sizes = (crowding.rows, crowding.relative_sd)
        error = float(np.hypot(discrepancy, common_relative_sd(each.kernel, each.calls)))
        kernel_values.append(kernel_model(each.kernel, error, noise_of_sizes, at, each.selection.modes, each.threads))
    # Wandering and dependence are those of the calls with the fewest threads, of which there are most.
    fewest = min(each.threads for each in found)
    table = _by_threads(table)[fewest].reset_index(drop=True)
    fitted = {
        each.name: (each.calls, each.kernel) for each in found if each.threads == fewest and each.name != FIRST_TOUCH
    }
    warnings = [f"{host} was not measured, and is no node of the platform" for host in absent]
    if short := (*short_kernels, *short_p2p):
        some = ", ".join(short[:MAX_NAMED]) + (f" and {len(short) - MAX_NAMED} more" if short[MAX_NAMED:] else "")
        warnings.append(f"{DISTURBED} of {some}: the models include them")
    if short or any(_disturbed_somewhere(archive) for archive in given):
        notes.append("Other load disturbed the calibration; calibrate again on a quiet machine.")
    notes += [f"{sentence(test)}; the model holds for random content." for test in tests if test.matters]
    notes += links.notes
    warnings += [*change_warnings(watched), *([] if episodes is None else [episodes.sentence(slow_messages)])]
    scale = time_scale_of(table, fitted)
    days = None if effects is None else days_of(effects, scale, drift_of(watched))
    if effects is None:
        notes.append("A single block was measured: the spread between days is unknown.")
    wandering = None if effects is None or scale is None else wandering_of(scale)
    return FittedModels(
        hosts,
        kernel_values,
        network_model(links.inside, links.between, links.link_Bps),
        days,
        wandering,
        rows,
        [each.selection for each in found],
        dependence_reports(table, fitted, wandering.relative_sd if wandering else 0.0),
        links.tree,
        links.flows,
        links.between,
        links.effects,
        notes,
        warnings,
        tests,
        # Monotonic clocks of several archives may be of several boots.
        frequency_effect(table, fitted, monitoring_of(given[0], hosts) if len(given) == 1 else {}),
        sentinel_of(watched),
        None if episodes is None else episodes.slow_state,
    )


def platform_from_archive(archives: Archives, name: str) -> tuple[Platform, list[QualityRow]]:
    """The platform of the machine that the archives measured, and the quality of its models.

    Raises FitError as `models` does.
    """
    platform, fitted = platform_and_models(archives, name)
    return platform, fitted.quality


def platform_and_models(
    archives: Archives,
    name: str,
    forms: Mapping[str, Form] | None = None,
    network_condition: str | None = None,
    progress: Progress = lambda *_: None,
) -> tuple[Platform, FittedModels]:
    """The platform of the nodes that the archives measured, and the models in it with their quality and warnings.

    Every core of a node is a cpu of its own, so that models are per core.
    Raises FitError as `models` does.
    """
    given = calibrations(archives)
    fitted = models(given, forms, network_condition, progress)
    about, count, shape = given[0].about, len(fitted.hosts), shape_of(given)
    cores = about.node_cores or 1 + max(core for archive in given for core in archive.about.cores or (0,))
    # says that the cores are not those of the machine, if they were made up for a test
    layouts = [machine.layout for machine in about.machines.values() if machine.layout is not None]
    made_up = next((layout.source for layout in layouts if "=" in layout.source), None)
    description = " ".join(
        [
            f"{about.cpu_model or 'A machine'}, calibrated {about.created or 'at an unknown date'}.",
            *([] if made_up is None else [f"Its layout was made up ({made_up}): cores shared hardware threads."]),
            _told_of_links(count, fitted),
            *told_of_missing(fitted.kernels, sorted(MODELLED)),
            *fitted.notes,
        ]
    )
    platform = Platform(
        name=name,
        description=description,
        source=_source(about),
        archive_id=given[0].id,
        blas=_blas(about),
        sentinel=fitted.sentinel,
        nodes={  # type: ignore[arg-type]  # validated by pydantic
            "count": count,
            "first_number": NODE,
            "cores": cores,
            "cpus": cores,
            "core_to_cpu": "modulo",
            "sockets": shape.even_sockets,
            "memory_bytes": about.memory_bytes,
            "cpu_model": (about.cpu_model or "")[:200] or None,
        },
        kernels=tuple(fitted.kernels),
        network=fitted.network,
        days=fitted.days,
        wandering=fitted.wandering,
        slow_state=fitted.slow_state,
    )
    if fitted.tree is not None:
        topology = fitted.tree.topology(fitted.network.node_link.bandwidth_Bps)
        platform = platform.model_copy(update={"topology": topology})
    return platform, fitted


def _messages(archives: "list[Archive]", several: bool) -> tuple[MessageTables, tuple[str, ...]]:
    """Tables of messages without disturbed runs, and the links that cannot do without these."""
    among_links = ("host", "link") if several else ()
    p2p, short = without_disturbed(_tables(archives, P2P), among_links)
    ring, flows = (without_disturbed(_tables(archives, name), among_links)[0] for name in (RING, FLOWS))
    return MessageTables(p2p, _tables(archives, SEMANTICS), ring, flows), short


def _links(
    archives: "list[Archive]", tables: MessageTables, hosts: tuple[str, ...], condition: str | None
) -> FittedLinks:
    number = {host: NODE + place for place, host in enumerate(hosts)}
    switches = [[number[name] for name in names if name in number] for names in archives[0].about.switches]
    known = sum(map(len, switches)) == len(hosts)
    return fitted_links(tables, len(hosts) > 1, condition, [nodes for nodes in switches if nodes] if known else [])


def _tables(archives: "list[Archive]", name: str) -> list[pandas.DataFrame]:
    return [
        checked_table(archive, name).assign(archive=number)
        for number, archive in enumerate(archives)
        if name == P2P or name in archive.members()
    ]


def _told_of_links(count: int, fitted: FittedModels) -> str:
    if fitted.fitted_between is not None:
        link_Bps = fitted.network.node_link.bandwidth_Bps
        flows = 1 if fitted.flows is None or fitted.flows.best[1] < link_Bps else fitted.flows.best[0]
        use = "one large message makes" if flows == 1 else f"{flows} large messages at once make"
        return f"{count} nodes; the link of a node is as wide as {use} use of between two of them."
    nodes = "One node" if count == 1 else f"{count} nodes"
    return f"{nodes}: messages between nodes were not measured, and cost here what they cost inside the node."


def _blas(about: "Metadata") -> Blas | None:
    """The kernels that the archive says were measured; None if it does not say."""
    if not about.blas.core:
        return None
    return Blas(core=about.blas.core, coretype_env=about.blas.coretype_env or None)


def _disturbed_somewhere(archive: "Archive") -> bool:
    """Whether an archive of an older version, which does not say which rows, holds disturbed runs."""
    if "disturbed" in archive.table(KERNELS).columns:
        return False
    return any("disturbed" in text for text in archive.about.warnings)


def _source(about: "Metadata") -> str:
    library = f"{about.blas.library or 'BLAS'} with {about.blas.core or 'unknown'} kernels"
    return f"calibration by Lepaute {about.lepaute_version}, {library}, {about.mpi.version or 'MPI'}"


@dataclass(frozen=True)
class _Found:
    """A kernel run by this many threads: its calls as they would be alone, and what was fitted to them."""

    name: str
    threads: int
    calls: Calls
    crowding: Crowding
    kernel: FittedKernel
    selection: Selection


def _by_threads(table: pandas.DataFrame) -> dict[int, pandas.DataFrame]:
    return {int(threads): table[(table[THREADS] == threads).to_numpy()] for threads in sorted(table[THREADS].unique())}


def _fit_all(
    tables: Mapping[int, pandas.DataFrame], forms: Mapping[str, Form], progress: Progress
) -> tuple[list[_Found], list[str]]:
    """Kernels of the tables of each number of threads; those that cannot be fitted are noted."""
    found, notes = [], []
    for place, (threads, table) in enumerate(tables.items()):
        calls = calls_by_kernel(table)
        calls.update(glue_calls(table))
        for number, (name, measured) in enumerate(calls.items()):
            if len(measured) == 0:
                continue
            progress(f"fitting {name}", KERNELS_SHARE * (place + number / len(calls)) / len(tables))
            crowding = crowding_of(measured)
            alone = relieved(measured, crowding.rows)
            try:
                kernel, selection = select(alone, forms)
            except FitError as problem:
                with_threads = "" if threads == 1 else f" with {threads} threads"
                notes.append(f"{name}{with_threads} has no model: {problem}.")
                continue
            found.append(_Found(name, threads, alone, crowding, kernel, replace(selection, threads=threads)))
    return found, notes


def _places(table: pandas.DataFrame, shape: NodeShape) -> dict[str, dict[int, tuple[int, int]]]:
    """The platform's numbers of node and cpu of each measured core, and of node and socket of each socket."""
    cores = [(int(cpu), place_of(int(cpu))) for cpu in table["cpu"].unique()]
    sockets = [(int(socket), divmod(int(socket), shape.sockets)) for socket in table["socket"].unique()]
    return {
        name: {number: (NODE + node, place) for number, (node, place) in places}
        for name, places in (("cpu", cores), ("socket", sockets))
    }
