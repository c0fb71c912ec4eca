"""What the archive of a campaign says of it: libraries, cases, numbers, and the level of every factor (table VI of "MPI
Benchmarking Revisited")."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from lepaute.kit.json_values import to_json
from lepaute.kit.text import exact_seconds
from lepaute.measure.archive.mpi_campaign import CampaignFacts, CaseFacts, LibraryFacts, algorithm_key, settings_text
from lepaute.measure.comparison import entries
from lepaute.measure.comparison.cases import REDUCTIONS, ComparisonRequest
from lepaute.measure.comparison.mpirun import Cell
from lepaute.measure.comparison.numbers import batches_of
from lepaute.measure.comparison.places import Place
from lepaute.measure.experiment.workspace import Workspace
from lepaute.measure.node_agent.facts import cpuinfo_field


def facts_of(
    workspace: Workspace,
    cells: Sequence[Cell],
    place: Place,
    networks: Mapping[str, str],
    libraries: Sequence[LibraryFacts],
    environment: Path,
    seed: int,
) -> CampaignFacts:
    """What is known now.

    libraries: as far as they are known by themselves; networks: by cell, what joins its ranks
    environment: the folder with what the first node is and runs
    """
    request = cells[0].setting.request
    chosen, stage = workspace.noted(entries.MpirunsChosen), workspace.noted(entries.FirstStage)
    complete = [
        each for each in workspace.noted(entries.MpirunEnded) if each.block >= 0 and each.outcome == entries.COMPLETE
    ]
    made = {(each.cell, each.block, each.place) for each in complete}
    mpiruns = min((sum(name == cell.name for name, _, _ in made) for cell in cells), default=0)
    libraries = tuple(_completed(workspace, library, cells) for library in libraries)
    return CampaignFacts(
        ranks=request.ranks,
        fewer_ranks=request.fewer_ranks,
        nodes=() if place.is_here else place.names,
        slots=place.slots,
        varied=dict(request.factors),
        oversubscribed=any(place.shares_cores(ranks) for ranks in request.all_ranks),
        libraries=libraries,
        cases=_case_facts(workspace, request, [cell.name for cell in cells], chosen[0].needed if chosen else {}),
        precision=request.precision,
        budget_s=request.budget_s,
        blocks=len({block for _, block, _ in made}),
        mpiruns=mpiruns,
        planned_s=stage[0].planned_s if stage else 0.0,
        spent_s=sum(each.wall_s for each in workspace.noted(entries.MpirunEnded)),
        capped=bool(chosen and chosen[0].capped),
        factors=factors_of(cells, place, networks, libraries, environment, mpiruns, seed),
        derivation=(*(stage[0].derivation if stage else ()), *(chosen[0].derivation if chosen else ())),
        primary=tuple((case.operation, case.form, case.size_bytes) for case in request.primary_cases),
        more={"asked": to_json(request)},
    )


def _completed(workspace: Workspace, library: LibraryFacts, cells: Sequence[Cell]) -> LibraryFacts:
    mine = {cell.name for cell in cells if cell.label == library.label}
    lacking = {
        f"{each.operation} ({each.form})": each.why for each in workspace.noted(entries.Lacking) if each.library in mine
    }
    algorithms = {
        algorithm_key(str(each.case), each.ranks): each.algorithm
        for each in workspace.noted(entries.AlgorithmSeen)
        if each.library == library.label
    }
    return replace(library, lacking=lacking, algorithms=algorithms)


def _case_facts(
    workspace: Workspace, request: ComparisonRequest, labels: Sequence[str], needed: Mapping[str, float | None]
) -> tuple[CaseFacts, ...]:
    numbers = {entry.case: entry for entry in workspace.noted(entries.CaseNumbers)}
    facts = []
    for case in entries.measurable(workspace, request, labels):
        if (entry := numbers.get(case)) is None:
            continue
        counts = [count for label in labels if (count := needed.get(f"{label}: {case}")) is not None]
        facts.append(
            CaseFacts(
                operation=case.operation,
                form=case.form,
                size_bytes=case.size_bytes,
                calls=entry.calls,
                batches=batches_of(entry.calls),
                window_s=1e-9 * entry.window_ns,
                mpiruns=max(counts, default=None),
                reduction=str(request.reduction) if case.operation in REDUCTIONS else "",
            )
        )
    return tuple(facts)


UNKNOWN = "unknown"
#: Members of environment/NODE/ that a factor is read from.
_CLOCK_RATE = ("governor.txt", "frequency_driver.txt", "boost.txt", "no_turbo.txt")


def factors_of(
    cells: Sequence[Cell],
    place: Place,
    networks: Mapping[str, str],
    libraries: Sequence[LibraryFacts],
    environment: Path,
    mpiruns: int,
    seed: int,
) -> dict[str, str]:
    """Name and level of each factor; mpiruns: of each cell, the other arguments as of `facts_of`."""
    setting, request = cells[0].setting, cells[0].setting.request
    varied = {name: f"varied: {', '.join(levels)}" for name, levels in request.factors}

    def read(name: str) -> str:
        path = environment / name
        return path.read_text(errors="replace").strip() if path.is_file() else ""

    rates = [f"{name.removesuffix('.txt')} {text}" for name in _CLOCK_RATE if (text := read(name))]
    cpu = read("cpuinfo.txt")
    megahertz = cpuinfo_field("cpu MHz", cpu)
    waits = {"window": "window-based", "round-time": "round-time (a moment of rank 0's clock, sent before each call)"}
    return {
        **{f"MPI implementation: {library.label}": library.text for library in libraries},
        **{f"configuration: {library.label}": library.build for library in libraries},
        **{f"compiler and flags: {library.label}": f"{library.compiler}: {library.flags}" for library in libraries},
        **{f"variables: {library.label}": settings_text(library.settings) or "none" for library in libraries},
        "network": _network_text(cells, networks),
        "processes": "; ".join(_processes_text(place, ranks) for ranks in request.all_ranks),
        "message sizes": f"{len(request.sizes_bytes)} from {request.sizes_bytes[0]} to {request.sizes_bytes[-1]} bytes",
        "reductions": str(request.reduction),
        "root": f"rank {request.root}",
        **(
            {"overlap": f"{exact_seconds(request.compute_s)} of work before operations are waited for"}
            if request.compute_s
            else {}
        ),
        "synchronization method": waits.get(setting.synchronisation, setting.synchronisation),
        "clock synchronization": request.clock_method,
        "clock source": f"{request.clock} (kernel: {read('clocksource.txt') or UNKNOWN})",
        "window size": "of each case, in the facts and in each row; adapted after the calls to warm up",
        "mpirun": f"{mpiruns} distinct calls for each library, shuffled in blocks of several of each; seed {seed}",
        "calls": "of each case, in the facts; in batches of all cases in shuffled order",
        "warm-up": f"{request.warm_up} calls before each batch, kept with negative numbers",
        "DVFS level": "; ".join(rates) or "unknown: this machine has no cpufreq",
        "clock rate": f"{megahertz} MHz when the campaign began" if megahertz else UNKNOWN,
        "cache": (
            f"cold: {setting.cold_bytes} bytes are overwritten before each call"
            if setting.cold_bytes
            else "warm: no cache control, buffers are reused"
        ),
        "pinning": "; ".join(dict.fromkeys(_pinning_text(cell, place) for cell in cells)),
        "outliers": "none removed; marks of late starts and of long calls are kept",
        "processor": cpuinfo_field("model name", cpu) or UNKNOWN,
        "operating system": read("uname.txt") or UNKNOWN,
        "disturbed mpiruns": "by CPU time of other processes and of the hypervisor, and by sentinels; repeated, kept",
        **varied,
    }


def _network_text(cells: Sequence[Cell], networks: Mapping[str, str]) -> str:
    """Network that joins the ranks of every cell; once where it is the same for all."""
    texts = {cell.name: networks.get(cell.name, UNKNOWN) for cell in cells}
    same = set(texts.values())
    return same.pop() if len(same) == 1 else "; ".join(f"{name}: {text}" for name, text in texts.items())


def _processes_text(place: Place, ranks: int) -> str:
    shared = f", which share {place.cores(ranks)} cores" if place.shares_cores(ranks) else ""
    if place.is_here:
        return f"{ranks} ranks on one node{shared}"
    counts = Counter(place.nodes_of(ranks))
    return f"{ranks} ranks{shared}: " + ", ".join(f"{count} on {place.names[node]}" for node, count in counts.items())


def _pinning_text(cell: Cell, place: Place) -> str:
    pus = cell.setting.pus
    if pus is None:
        return "none"
    bound = ",".join(map(str, pus))
    return f"rank r on hardware thread r of {bound}" + ("" if place.is_here else ", each on its node")
