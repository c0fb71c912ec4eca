"""Counts of what the real HPL does (scripts/record_hpl_counts.py), and of what the engine does."""

import csv
import gzip
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lepaute import _core
from lepaute.simulate.apps.hpl.parameters import BROADCASTS, FACTORISATIONS, FORMS, ORDERS, SWAPS, Hpl

DATA = Path(__file__).resolve().parent / "data"
PHASES = ("broadcast", "swap", "solve")  # of the core; what is left of the total are the pivot exchanges
GLUE = ("pdfact_glue", "pdupdate_glue", "first_touch")  # no kernels of the real program
UNIT_S = 1e-9  # a kernel of work w takes w UNIT_S, so that its time tells its work
BY_LENGTH = frozenset({"dtrsv", "dscal", "idamax", "daxpy", "dcopy", "dlocswp"})
BY_VOLUME = frozenset({"dgemm", "dgemm_nn", "dtrsm", "dtrsm_left"})


@dataclass(frozen=True)
class Counted:
    """One run of the real program; sent by phase and rank: messages and bytes; of each kernel: calls and work."""

    series: str
    hpl: Hpl
    sent: dict[str, list[tuple[int, int]]]
    kernels: dict[str, tuple[int, int]]

    @property
    def probes(self) -> bool:
        """Whether the number of kernel calls depends on when a panel comes."""
        return self.hpl.on().kernels.probing


def counted_runs() -> Iterator[Counted]:
    text = gzip.decompress((DATA / "hpl_counts.csv.gz").read_bytes()).decode()
    rows = csv.DictReader(line for line in io.StringIO(text) if not line.startswith("#"))
    for row in rows:
        hpl = Hpl(
            **{
                name: int(row[name])
                for name in ("n", "nb", "p", "q", "depth", "nbmin", "ndiv", "swap_threshold", "align")
            },
            bcast=tuple(BROADCASTS)[int(row["bcast"])],
            swap=tuple(SWAPS)[int(row["swap"])],
            pfact=tuple(FACTORISATIONS)[int(row["pfact"])],
            rfact=tuple(FACTORISATIONS)[int(row["rfact"])],
            pmap=tuple(ORDERS)[int(row["pmap"])],
            l1=tuple(FORMS)[int(row["l1"])],
            u=tuple(FORMS)[int(row["u"])],
            equil=row["equil"] == "1",
        )
        yield Counted(
            row["series"],
            hpl,
            {name: [pair(entry) for entry in row[f"sent_{name}"].split()] for name in ("pivots", *PHASES)},
            {name: pair(rest) for name, _, rest in (entry.partition(":") for entry in row["kernels"].split())},
        )


def pair(text: str) -> tuple[int, int]:
    first, _, second = text.partition(":")
    return int(first), int(second)


def pivots_of(n: int) -> list[int]:
    lines = (DATA / "hpl_pivots.csv").read_text().splitlines()
    rows = dict(line.split(",") for line in lines if line[0].isdigit())
    return [int(row) for row in rows[str(n)].split()]


def counting_machine(ranks: int) -> _core.Machine:
    """A node a rank; kernels take their work in nanoseconds, messages next to nothing up to 1 kB, then rendezvous."""
    machine = _core.Machine()
    machine.nodes = ranks
    terms = {name: index for index, name in enumerate(_core.term_names())}
    kernels = []
    for name in _core.kernel_names():
        if name in GLUE:
            continue
        mean = [0.0] * len(terms)
        mean[terms["n" if name in BY_LENGTH else "mnk" if name in BY_VOLUME else "mn"]] = UNIT_S
        piece, kernel = _core.KernelPiece(), _core.MachineKernel()
        piece.mean = mean
        kernel.name = name
        kernel.models = [_core.KernelModel([piece])]
        kernels.append(kernel)
    machine.kernels = kernels
    segments = []
    for above_bytes, protocol in ((0.0, "eager"), (1000.0, "rendezvous")):
        segment = _core.Segment()
        segment.above_bytes, segment.protocol = above_bytes, protocol
        segment.latency_s, segment.bandwidth_Bps = 1e-6, 1e10
        segments.append(segment)
    network = machine.network
    for links in (network.loopback, network.remote, network.loopback_noncontiguous, network.remote_noncontiguous):
        links.segments = segments
    network.node_link_Bps = network.loopback_Bps = 1e10
    network.iprobe_s = 1e-7
    return machine


def simulated(hpl: Hpl, pivots: list[int] | None = None) -> _core.HplResult:
    """One run on a machine that counts; with pivots drawn by the engine unless they are given."""
    parameters = hpl.on().core_parameters()
    if pivots is not None:
        parameters.pivot_rows = pivots
    layers = _core.Layers()
    layers.coefficients = layers.days = layers.discrepancy = layers.noise = False
    return _core.simulate_hpl(parameters, counting_machine(hpl.ranks), layers, list(range(hpl.ranks)), 1)
