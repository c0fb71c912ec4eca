"""The same campaign in a simulation: the probe itself, emulated on a platform, with clocks made from the simulated one.

Each rank has a clock of its own, up to a second ahead or behind and drifting, newly drawn for each block; messages have
the platform's latencies, late by exponential times (probes/probe_clocks.c), since simulated ones do not scatter.
"""

from datetime import UTC, datetime
from pathlib import Path

import pandas

from lepaute.errors import InputError
from lepaute.kit.json_values import to_json
from lepaute.kit.temporary import temporary_folder
from lepaute.measure.archive import ArchiveWriter
from lepaute.measure.clocks.campaign import PROGRAM, SOURCES
from lepaute.measure.clocks.request import (
    KIND,
    MPIRUNS,
    SYNCHRONISATIONS,
    ClockFacts,
    ClockRequest,
    design_text,
    table_of,
)
from lepaute.measure.experiment.life import Progress, silent
from lepaute.measure.raw_files import read_raw
from lepaute.measure.toolchain import C_FLAGS, probe_source
from lepaute.simulate.machine.mapping import Mapping, Slot
from lepaute.simulate.platform import Platform
from lepaute.simulate.platform.nodes import refuse_groups
from lepaute.simulate.smpi.building import build_program, program_in
from lepaute.simulate.smpi.emulate import Options, emulate_run
from lepaute.simulate.smpi.process import Limits
from lepaute.version import __version__

#: Of a simulation, unless told: from this many on, ends of intervals of pairs of six methods are the fourth values.
DEFAULT_BLOCKS = 20
_LIMIT_S = 3600.0


def simulate_clocks(
    out_archive: str | Path,
    asked: ClockRequest,
    platform: "Platform",
    *,
    seed: int = 1,
    progress: Progress | None = None,
) -> Path:
    """Simulates the blocks and writes their archive; returns its path.

    asked: with ranks and drift_ppm; as many blocks as `mpiruns`, or DEFAULT_BLOCKS; a rank on each node, or as many as
           it takes
    Raises InputError if the platform is too small, EnvironmentProblem if SimGrid is missing, SimulationError.
    """
    if asked.ranks is None or asked.drift_ppm is None:
        raise InputError("a simulation of clocks needs ranks and their drift")
    tell, path = progress or silent, Path(out_archive)
    blocks = asked.mpiruns or DEFAULT_BLOCKS
    # As few ranks on each node as it takes, on its first cores
    refuse_groups(platform, "simulated clocks")
    nodes, cores = platform.nodes.count, platform.nodes.cores
    if asked.ranks > nodes * cores:
        raise InputError(f"--simulate has {asked.ranks} ranks; platform {platform.name} has cores for {nodes * cores}")
    each = -(-asked.ranks // nodes)
    slots = tuple(Slot(node, core) for node in range(-(-asked.ranks // each)) for core in range(each))
    mapping = Mapping(slots=slots, source="--simulate")
    facts = ClockFacts(
        asked=asked,
        ranks=asked.ranks,
        library="emulated by SimGrid/SMPI",
        simulated=platform.name,
        platform_sha256=platform.sha256,
    )
    created = datetime.now(UTC).isoformat(timespec="milliseconds")
    metadata = {"kind": KIND, "created": created, "name": "clocks", "seed": seed, "status": "complete"}
    more = {"partial": False, "lepaute_version": __version__, "warnings": [], KIND: to_json(facts)}
    options = Options(computing="none", contention=False, collectives="openmpi", limits=Limits(_LIMIT_S))
    with temporary_folder("lepaute-clocks-", plain=True) as folder, ArchiveWriter(path, metadata | more) as archive:
        tell("compiling the probe for emulation", 0.0)
        program = _built(folder)
        parts, rows = [], []
        for block in range(blocks):
            tell(f"block {block + 1} of {blocks}", block / blocks)
            order, of_block, stem = asked.order(block, seed), seed * 1000003 % 2**31 + block, f"mpirun{block:04d}"
            raw = folder / f"{stem}.csv"
            words = asked.words(order, str(raw), of_block, simulated=True)
            emulate_run(
                program, words, platform, asked.ranks, seed=of_block, mapping=mapping, options=options, folder=folder
            )
            archive.add_file(f"raw/{stem}.csv", raw)
            archive.add_bytes(f"designs/{stem}.csv", design_text(order).encode())
            parts.append((block, read_raw(raw)[0]))
            rows.append({"mpirun": block, "block": block, "order": ",".join(order), "seed": of_block})
        archive.add_table(SYNCHRONISATIONS, table_of(parts))
        archive.add_table(MPIRUNS, pandas.DataFrame(rows).assign(failure="", disturbed=False, causes=""))
    tell("done", 1.0)
    return path


def _built(folder: Path) -> Path:
    words = (*C_FLAGS, f"'-DLEPAUTE_VERSION=\"{__version__}\"'", "-o", PROGRAM, *SOURCES, "-lm")
    return program_in(build_program(probe_source(), f"mpicc {' '.join(words)}", (), folder), PROGRAM)
