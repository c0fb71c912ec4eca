"""Collective operations against SMPI with the same algorithm forced, and against its selectors.

Fixed before any result was looked at:

* platform: dahu-2020-01 with the settings of native_against_smpi.py and exact sharing, a rank a node; messages of a
  rank to itself, by which SMPI copies, are free; no layers; a case is a run of one operation (collectives.c), root 0;
* forced: 10 operations, every algorithm of SMPI that the core has too, 8 B, 1, 16, 128 KiB and 1 MiB (of the vector of
  a broadcast or a reduction, else of a block), 4, 6 and 16 ranks where SMPI's algorithm takes them: 400, by seed 56;
* selectors: the same operations, sizes and ranks, by the rules of openmpi and mpich, and SMPI's selectors `ompi`
  and `mpich`; not judged: for many algorithms SMPI takes others (linear broadcasts are chains in segments of 8 KiB);
* difference: time of the core / time under SMPI - 1; goal: at most 2 % in 95 % of the forced cases.
"""

import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import pandas
from native_against_smpi import EXACT, SETTINGS
from support.report import Goal, Options, markdown, run_study, say

from lepaute import Platform, _core, load_platform
from lepaute.errors import SimulationError
from lepaute.simulate import Layers
from lepaute.simulate.apps.replay.collectives import Part, parts_of
from lepaute.simulate.apps.replay.operations import Operations
from lepaute.simulate.machine.core import machine_of
from lepaute.simulate.machine.mapping import Mapping, Slot
from lepaute.simulate.platform.io import override
from lepaute.simulate.smpi.building import compilers
from lepaute.simulate.smpi.emulate import Options as Emulated
from lepaute.simulate.smpi.emulate import emulate_run

STUDY = "collectives"
SEED, CASES, LIMIT_PERCENT, SHARE = 56, 400, 2.0, 0.95
SIZES, RANKS = (8, 1024, 16384, 131072, 1048576), (4, 6, 16)
FREE = "{above_bytes: 0, protocol: eager, latency_s: 0.0, bandwidth_Bps: 1.0e+15, send: [0.0, 0.0], isend: [0.0, 0.0], receive: [0.0, 0.0], noise_relative_sd: 0.0}"  # noqa: E501
ALONE = {"network.loopback.segments": f"[{FREE}]", "network.loopback.shared": "false"}
#: Rules of the core, and SMPI's selector.
SELECTORS = {"openmpi": "ompi", "mpich": "mpich"}
OPERATIONS = ("barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "allgatherv", "alltoall",
              "reduce_scatter")  # fmt: skip


def always(_bytes: int, _ranks: int) -> bool:
    return True


def even_blocks(size: int, ranks: int) -> bool:
    return size // 8 % ranks == 0


def power_of_two(_bytes: int, ranks: int) -> bool:
    return ranks & (ranks - 1) == 0


class Forced(NamedTuple):
    """An algorithm by SMPI's name, and what the core does in its place."""

    operation: str
    name: str
    parts: Callable[[int, int], Sequence[Part]]
    takes: Callable[[int, int], bool] = always


def forced(operation: str, name: str, algorithm: str, takes: Callable[[int, int], bool] = always, segment: Any = 0,
           fan_out: Any = 0) -> Forced:  # fmt: skip
    """One operation; segment, fan_out: numbers, or functions of bytes and ranks."""

    def value(given: Any, size: int, ranks: int) -> float:
        return float(given(size, ranks) if callable(given) else given)

    code = "allgather" if operation == "allgatherv" else operation

    def parts(size: int, ranks: int) -> Sequence[Part]:
        return (Part(code, size, algorithm, value(segment, size, ranks), value(fan_out, size, ranks)),)

    return Forced(operation, name, parts, takes)


def pipeline_segment(size: int, ranks: int) -> int:
    """SMPI's, of a broadcast."""
    if ranks < 1.6134e-6 * size + 2.1102:
        return 1 << 17
    if ranks < 2.3679e-6 * size + 1.1787:
        return 1 << 16
    return 1 << 14 if ranks < 3.2118e-6 * size + 8.7936 else 1 << 17


def reduce_pipeline_segment(size: int, ranks: int) -> int:
    kib = size / 1024
    return 1024 if ranks > 0.0410 * kib + 9.7128 else 32768 if ranks > 0.0033 * kib + 1.6761 else 65536


def binomial_segment(size: int, ranks: int) -> int:
    small = (ranks < 8 and size < 20480) or size < 2048
    return 1024 if not small and ranks > 0.6016 * size / 1024 + 1.3496 else 0


def half(_bytes: int, ranks: int) -> int:
    return ranks // 2


FORCED = (
    forced("bcast", "binomial_tree", "binomial"),
    forced("bcast", "ompi_pipeline", "chains", segment=pipeline_segment, fan_out=1),
    forced("bcast", "ompi_split_bintree", "split-binary", lambda size, _ranks: size >= 16384,
           segment=lambda size, _ranks: 1024 if size < 370728 else 8192),
    Forced("bcast", "scatter_LR_allgather", lambda size, ranks: (
        Part("scatter", size / ranks), Part("allgather", size / ranks, "ring")), even_blocks),
    Forced("bcast", "scatter_rdb_allgather", lambda size, ranks: (
        Part("scatter", size / ranks), Part("allgather", size / ranks, "recursive-doubling")),
        lambda size, ranks: even_blocks(size, ranks) and power_of_two(size, ranks)),
    forced("reduce", "binomial", "binomial"),
    forced("reduce", "ompi_chain", "chains", segment=65536, fan_out=half),
    forced("reduce", "ompi_pipeline", "chains", segment=reduce_pipeline_segment, fan_out=1),
    forced("reduce", "ompi_binary", "binary", segment=32768),
    forced("reduce", "ompi_binomial", "near-first", segment=binomial_segment),
    forced("reduce", "ompi_in_order_binary", "in-order-binary"),
    forced("reduce", "ompi_basic_linear", "linear"),
    forced("reduce", "scatter_gather", "rabenseifner", lambda size, _ranks: size >= 1024),
    forced("allreduce", "rdb", "recursive-doubling"),
    forced("allreduce", "lr", "ring", even_blocks),
    forced("allreduce", "ompi_ring_segmented", "ring", even_blocks),
    forced("allreduce", "rab_rdb", "rabenseifner", lambda size, _ranks: size >= 1024),
    forced("gather", "ompi_basic_linear", "linear"),
    forced("gather", "ompi_binomial", "binomial"),
    forced("gather", "ompi_linear_sync", "on-request", segment=lambda size, _ranks: 32768 if size > 92160 else 1024),
    forced("scatter", "ompi_basic_linear", "linear"),
    forced("scatter", "ompi_binomial", "near-first"),
    forced("scatter", "ompi_linear_nb", "linear-posted"),
    *(forced("allgather", name, algorithm, takes) for name, algorithm, takes in (
        ("bruck", "bruck", always), ("rdb", "recursive-doubling", power_of_two), ("ring", "pairwise", always),
        ("ompi_neighborexchange", "neighbours", always), ("NTSLR", "ring", always))),
    *(forced("allgatherv", name, algorithm, always) for name, algorithm in (
        ("ompi_bruck", "bruck"), ("ompi_neighborexchange", "neighbours"), ("mpich_ring", "ring"))),
    forced("alltoall", "basic_linear", "linear-posted"),
    forced("alltoall", "mvapich2_scatter_dest", "linear-posted", fan_out=4),
    forced("alltoall", "pair", "exclusive-or", power_of_two),
    forced("alltoall", "ring", "pairwise"),
    forced("alltoall", "bruck", "bruck"),
    forced("reduce_scatter", "ompi_basic_recursivehalving", "halving"),
    forced("reduce_scatter", "ompi_butterfly", "butterfly"),
    forced("reduce_scatter", "ompi_ring", "ring"),
    forced("reduce_scatter", "mpich_pair", "pairwise"),
    *(forced("barrier", f"ompi_{name}", algorithm, lambda size, _ranks: size == SIZES[0]) for name, algorithm in (
        ("basic_linear", "linear"), ("recursivedoubling", "recursive-doubling"), ("bruck", "dissemination"),
        ("tree", "binomial"), ("doublering", "double-ring"))),
)  # fmt: skip


def compared(options: Options) -> pandas.DataFrame:
    """A row a case."""
    platform = override(load_platform("dahu-2020-01"), SETTINGS | EXACT | ALONE)
    every = [("forced", way.operation, way.name, size, ranks, way.parts(size, ranks))
             for way, size, ranks in product(FORCED, SIZES, RANKS) if way.takes(size, ranks)]  # fmt: skip
    chosen = sorted(numpy.random.default_rng(SEED).permutation(len(every))[:CASES])
    cases = [every[at] for at in chosen]
    for rules, operation, size, ranks in product(SELECTORS, OPERATIONS, SIZES, RANKS):
        if operation != "barrier" or size == SIZES[0]:
            whole = size * ranks if operation == "reduce_scatter" else size
            parts = parts_of(operation, whole, ranks, rules)
            cases.append((rules, operation, SELECTORS[rules], size, ranks, parts))
    rows = []
    with tempfile.TemporaryDirectory(prefix=f"{STUDY}-") as folder:
        program = built(Path(folder))
        for at, (kind, operation, name, size, ranks, parts) in enumerate(cases[:: 20 if options.quick else 1]):
            setting = f"smpi/{operation}:{name}" if kind == "forced" else f"smpi/coll-selector:{name}"
            smpi_s = emulated(platform, program, [f"--cfg={setting}", operation, str(size)], ranks)
            core_s = of_core(platform, parts, ranks)
            rows.append({
                "kind": kind, "operation": operation, "algorithm": name, "bytes": size, "ranks": ranks,
                "core_s": core_s, "smpi_s": smpi_s, "difference_percent": 100.0 * (core_s / smpi_s - 1.0),
            })  # fmt: skip
            say(f"[{at + 1}] {kind} {operation} {name} {size} B, {ranks}: {rows[-1]['difference_percent']:+.2f} %")
    return pandas.DataFrame(rows)


def built(folder: Path) -> Path:
    program = folder / STUDY
    path = {"PATH": f"{compilers()}{os.pathsep}{os.environ['PATH']}"}
    source = Path(__file__).with_suffix(".c")
    subprocess.run(["mpicc", "-O2", str(source), "-o", str(program)], check=True, env=os.environ | path)
    return program


def mapping(ranks: int) -> Mapping:
    """A rank a node."""
    return Mapping(slots=tuple(Slot(node, 0) for node in range(ranks)))


def emulated(platform: Platform, program: Path, arguments: list[str], ranks: int) -> float:
    """Seconds under SMPI; nan where it fails at an algorithm."""
    options = Emulated(computing="none", contention=False, privatize=False)
    try:
        return emulate_run(
            program, arguments, platform, ranks, layers=Layers.only(), mapping=mapping(ranks), options=options
        ).program_s
    except SimulationError as problem:
        say(problem)
        return numpy.nan


def of_core(platform: Platform, parts: Sequence[Part], ranks: int) -> float:
    operations = Operations()
    numbers = [operations.number("step", "")]
    for part in parts:
        amounts = (part.size_bytes, part.segment_bytes, part.fan_out)
        numbers.append(operations.number(part.code, "MPI", sizes=amounts, algorithm=part.algorithm))
    code = [_core.ProgramRankCode(numbers, [(0, len(numbers), 1)])] * ranks
    parameters = operations.parameters([list(range(ranks))], code, 1)
    layers, cores = Layers.only().to_core(), mapping(ranks).cores(platform, ranks)
    return _core.simulate_program(parameters, machine_of(platform), layers, cores, 1, None, None, None, None).time_s


def judged(frame: pandas.DataFrame) -> list[Goal]:
    size = frame.loc[frame["kind"] == "forced", "difference_percent"].abs()
    share = (size <= LIMIT_PERCENT).mean()
    return [
        Goal("forced cases", f"{CASES}", f"{len(size)}", len(size) == CASES),
        Goal(f"forced cases within {LIMIT_PERCENT:g} %", f"at least {SHARE:.0%}", f"{share:.1%}", share >= SHARE),
    ]


def text(frame: pandas.DataFrame) -> str:
    size = frame["difference_percent"].abs()
    rows = []
    for kind, part in frame.assign(size=size).groupby("kind", sort=False):
        for name, cases in [*part.groupby("operation"), ("all", part)]:
            rows.append((
                kind, name, f"{len(cases)}", f"{cases['size'].median():.2f} %", f"{(cases['size'] > 2).sum()}",
                f"{(cases['size'] > 10).sum()}", f"{cases['size'].max():.1f} %", f"{cases['size'].isna().sum()}",
            ))  # fmt: skip
    header = ("", "operation", "cases", "median", "beyond 2 %", "beyond 10 %", "largest", "SMPI failed")
    return f"""## Collective operations against SMPI

One operation by the core and under SMPI (`validation/collectives.py`):

{{goals}}

{markdown(header, rows)}

SMPI's selectors choose other algorithms than the libraries' sources. Open MPI 4.1.4 sends the core's messages, in
number and bytes between any two of 2 to 8 ranks (`tests/end_to_end/test_collectives_of_open_mpi.py`).
"""


if __name__ == "__main__":
    run_study(compared, judged, text)
