"""`measure_libraries`: a campaign from what a user asks for, on this machine or on nodes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lepaute.errors import InputError
from lepaute.kit.documents import read_bytes
from lepaute.kit.hostfiles import read_slots
from lepaute.kit.node_sets import check_node_name, fold_node_set
from lepaute.kit.numbers import path_of, whole
from lepaute.kit.text import counted, percent
from lepaute.measure.comparison import cases
from lepaute.measure.comparison.campaign import Comparison
from lepaute.measure.comparison.factors import build_of, combinations, parse_factors
from lepaute.measure.comparison.libraries import NamedLibrary, named_libraries, ready_library
from lepaute.measure.experiment.life import Announce, Progress, campaign_options, ignore_announcement, silent
from lepaute.measure.schedulers import Request, default_scheduler
from lepaute.measure.schedulers import scheduler as scheduler_named
from lepaute.simulate.apps.replay.calls import Rows
from lepaute.simulate.apps.replay.collectives import OPENMPI
from lepaute.simulate.apps.replay.laying import RecordedPart, Survey
from lepaute.simulate.apps.replay.operations import Operations
from lepaute.simulate.trace.messages import BLOCKING_OF
from lepaute.simulate.trace.reading import TraceParts

#: Cases of a campaign: those that take most of the time in collective calls, up to this share of it and this many.
SHARE, MAX_CASES = 0.98, 24
#: Cases with at least so much of the time are those that it is planned for.
DECIDING_SHARE = 0.05
#: Of what is left out, less is not worth a word.
MIN_SHARE = 0.01
_OF_PARTS = ("Reduce_scatter", "Reduce_scatter_block")
_DATATYPES = ("MPI_DOUBLE", "MPI_INT", "MPI_INT8_T")


def measure_libraries(
    libraries: Sequence[str],
    out_archive: str | Path,
    *,
    ops: str = "bcast,allreduce",
    sizes: str = "1:1M",
    ranks: int | Sequence[int] = 2,
    precision: float = 0.02,
    budget_s: float = 300.0,
    synchronisation: str | None = None,
    clock: str = "clock_gettime",
    clock_method: str = "HCA",
    cold: bool = False,
    warm_up: int = 5,
    calls: int | None = None,
    mpiruns: int | None = None,
    limit_s: float | None = None,
    primary: Sequence[str] = (),
    datatype: str = cases.DATATYPE,
    op: str = cases.OPERATOR,
    root: int = 0,
    compute_s: float | None = None,
    ranks_per_node: int | None = None,
    hostfile: str | Path | None = None,
    scheduler: str | None = None,
    request: Request | None = None,
    python: str | None = None,
    factors: Sequence[str] | None = None,
    recording: str | Path | None = None,
    seed: int = 1,
    progress: Progress | None = None,
    announce: Announce | None = None,
    resume: bool = False,
) -> Path:
    """Measures MPI libraries side by side, on this machine or on nodes, and writes the archive; returns its path.

    libraries : SPEC or LABEL=SPEC each: openmpi, mpich, a prefix, a compiler wrapper, module:NAME
    ops, sizes: lists as `operations_of` and `sizes_of` read them
    ranks     : one number, or several, which are measured in the same blocks
    precision .. root: see `ComparisonRequest`; datatype, op: with or without MPI_ before
    primary   : OP:SIZE each; the campaign is planned for these rows, see `ComparisonRequest`
    compute_s : nonblocking operations are measured again with so much work before they are waited for
    ranks_per_node: on each node in turn, one on each core unless given; hostfile: nodes with the ranks of each, instead
    factors   : NAME=a,b each, crossed and shuffled like libraries, see `measure.comparison.factors`
    recording : a trace whose collective calls are measured, instead of ops, sizes, ranks, primary and datatype, see
                `campaign_for`
    scheduler, request, python: where nodes come from, which, and the interpreter there; this machine unless given
    progress  : called with what is being done and the share of the work that is done
    announce  : called once, after the trial, with the seconds that the mpiruns will take
    resume    : go on with a campaign of that archive that did not end
    Raises InputError for what makes no sense, for a budget in which nothing could be decided, and for an mpirun that is
    not its library's, EnvironmentProblem if a library is missing or cannot be measured, KeyboardInterrupt. When
    measurements had begun they are archived beside as NAME.partial.zip, and the exception has a note that says so.
    """
    arguments = dict(locals())
    tell, named = progress or silent, named_libraries(libraries)
    asked = request_of(named, **arguments)
    name, wanted, _ = asked_place(hostfile, scheduler, request, ranks_per_node)
    build_levels = list(dict.fromkeys(build_of(each) for each in combinations(asked.varied)))
    ready = {
        build: [ready_library(each, lambda message: tell(message, 0.0), build) for each in named]
        for build in build_levels
    }
    comparison = Comparison(campaign_options(out_archive, seed, name, wanted, python), ready, asked, tell)
    comparison.announce = announce or ignore_announcement
    return comparison.to_the_end(resume=resume)


def request_of(named: Sequence[NamedLibrary], **arguments: Any) -> cases.ComparisonRequest:
    """The request that arguments of `measure_libraries` make; raises InputError for what makes no sense."""
    options: dict[str, Any] = {**(measure_libraries.__kwdefaults__ or {}), **arguments}
    *fewer, most = _numbers_of_ranks(options["ranks"])
    place = [options[name] for name in ("hostfile", "scheduler", "request", "ranks_per_node")]
    _, wanted, slots = asked_place(*place)
    operations, compute_s = cases.operations_of(options["ops"]), options["compute_s"]
    reduction = cases.reduction_of(options["datatype"], options["op"])
    if compute_s is not None:
        operations = cases.with_overlapped(operations)
    reduces = any(operation in cases.REDUCTIONS for operation, _ in operations)
    made = {
        "libraries": tuple((each.label, each.spec) for each in named),
        "operations": operations,
        "sizes_bytes": cases.sizes_of(options["sizes"], options["seed"], reduction if reduces else None),
        "ranks": most,
        "fewer_ranks": tuple(fewer),
        "primary": cases.rows_of(options["primary"]),
        "datatype": reduction.datatype,
        "op": reduction.op,
        "compute_s": compute_s or 0.0,
        "nodes": wanted.nodes or "",
        "slots": tuple(slots.items()),
        "factors": tuple((each.name, each.levels) for each in parse_factors(options["factors"] or ())),
    }
    if options["recording"] is not None:
        made |= campaign_for(path_of(options["recording"], "the recording"))[0]
    same = {name: options[name] for name in cases.ComparisonRequest.__dataclass_fields__ if name in options}
    return cases.ComparisonRequest(**same | made)


def _numbers_of_ranks(ranks: int | Sequence[int]) -> list[int]:
    """Increasing. Raises InputError for none, and for what are no numbers of ranks."""
    given = [ranks] if isinstance(ranks, int) else list(ranks)
    numbers = sorted({whole(each, "--np", 2, cases.MAX_RANKS + 1) for each in given})
    if not numbers:
        raise InputError("--np is empty; give a number of ranks, or several such as 2,4,8")
    return numbers


def asked_place(
    hostfile: str | Path | None, scheduler: str | None, request: Request | None, ranks_per_node: int | None
) -> tuple[str, Request, dict[str, int]]:
    """The scheduler, what it is asked for, and the ranks of each host of a hostfile.

    Raises InputError for options that the scheduler does not have, or that contradict each other.
    """
    wanted = request or Request()
    slots = _slots_of(hostfile, wanted, ranks_per_node)
    if slots:
        wanted = replace(wanted, nodes=fold_node_set(tuple(slots)))
    name = default_scheduler(wanted.nodes) if scheduler is None else scheduler
    kind = scheduler_named(name)
    kind.known_nodes(wanted)  # refuses what it does not support
    if kind.on_this_machine and ranks_per_node is not None:
        raise InputError("--ranks-per-node applies to nodes; give --nodes or --scheduler as well")
    return name, wanted, slots


def _slots_of(hostfile: str | Path | None, request: Request, ranks_per_node: int | None) -> dict[str, int]:
    """Ranks of each host of a hostfile, none without one. Raises InputError for one that cannot be used."""
    if hostfile is None:
        return {}
    if request.nodes is not None or request.count is not None or ranks_per_node is not None:
        raise InputError(
            "a hostfile names the nodes and the ranks of each; give no --nodes, --count or --ranks-per-node"
        )
    path = path_of(hostfile, "the hostfile")
    slots = read_slots(read_bytes(path, "a hostfile").decode(errors="replace"), path.name)
    return {check_node_name(host): count for host, count in slots.items()}


def campaign_for(recording: Path) -> tuple[dict[str, Any], list[str]]:
    """Fields of a `ComparisonRequest` for the blocking collective calls of all ranks of a recording, those that take
    most time first, and what is not measured, sentences. Raises InputError where there is none, or no recording."""
    parts = TraceParts(recording)
    survey = Survey(parts, str(recording))
    took_s: Counter[tuple[str, int]] = Counter()
    unmeasured_s: Counter[str] = Counter()
    for part in parts:
        made, _, members, sizes = RecordedPart(Rows(part), survey, Operations(), OPENMPI).meetings()
        times_s = part.end_s[made] - part.start_s[made]
        for code, count, size, time_s in zip(part.name[made], members, sizes, times_s, strict=True):
            operation = (name := part.names[code]).removeprefix("MPI_")
            size_bytes = round(float(size / count if operation in _OF_PARTS else size))
            if name not in BLOCKING_OF.values() or operation not in cases.COLLECTIVES or size_bytes > cases.MAX_BYTES:
                unmeasured_s[name] += time_s
            elif count != survey.ranks:
                unmeasured_s[f"{name} of {counted(int(count), 'rank')}"] += time_s
            else:
                took_s[operation, size_bytes * (operation not in cases.UNSIZED)] += time_s
    if not took_s:
        raise InputError(f"{recording}: has no blocking collective call of all its ranks; nothing is to be measured")
    total_s = took_s.total() + unmeasured_s.total()
    chosen: list[tuple[str, int]] = []
    for case, time_s in took_s.most_common():
        if len(chosen) < MAX_CASES and sum(took_s[before] for before in chosen) < SHARE * total_s:
            chosen.append(case)
        else:
            unmeasured_s["calls of further sizes"] += time_s
    reduced = [size for operation, size in chosen if operation in cases.REDUCTIONS]
    fitting = (name for name in _DATATYPES if not any(size % cases.DATATYPES[name] for size in reduced))
    rows = tuple((operation, cases.BLOCKING, size) for operation, size in chosen)
    caveats = [
        f"not measured: {name}, {percent(time_s / total_s)} of the time in collective calls"
        for name, time_s in unmeasured_s.most_common()
        if time_s > MIN_SHARE * total_s
    ]
    return {
        "operations": tuple(dict.fromkeys(row[:2] for row in rows)),
        "sizes_bytes": tuple(sorted({size for _, size in chosen})),
        "ranks": survey.ranks,
        "fewer_ranks": (),
        "rows": rows,
        "primary": tuple(row for row in rows if took_s[row[::2]] >= DECIDING_SHARE * total_s),
        "datatype": next(fitting),
    }, caveats
