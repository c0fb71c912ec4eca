"""The simulations whose results must not differ in a bit, as the driver same_bits.cpp reads them."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import lepaute as lp
from lepaute.simulate.apps.hpl.parameters import Broadcast, Swap
from lepaute.simulate.apps.own.laying import Laying
from lepaute.simulate.machine.core import machine_of
from lepaute.simulate.platform import load_platform, override

SEEDS = (1, 2, 3)
#: Ranks are dealt to so many nodes in turn, so that messages stay on a node, leave it, and share its link.
DEALT_OVER = 5
WINDOWS_STEPS = 320


@dataclass(frozen=True, slots=True)
class Case:
    """One simulation.

    fields : of the parameters, in the driver's words
    platform : a shipped one, with these settings
    noise : the kind of the kernels' noise in the place of half-normal
    """

    name: str
    fields: Mapping[str, object]
    ranks: int
    application: str = "hpl"
    platform: str = "dahu-2020-01"
    settings: Mapping[str, str] = field(default_factory=dict)
    noise: str = ""
    topology: str = ""
    without: str = ""
    trace: bool = False
    dealt_over: int = DEALT_OVER


def hpl(name: str, n: int = 2400, nb: int = 64, grid: tuple[int, int] = (3, 4), **more: object) -> Case:
    """A run of HPL; `more`: fields of the parameters, and those of Case."""
    own = {key: more.pop(key) for key in tuple(more) if key in Case.__slots__}
    p, q = grid
    return Case(name, {"n": n, "nb": nb, "p": p, "q": q} | more, p * q, **own)  # type: ignore[arg-type]


def stencil(name: str, **more: object) -> Case:
    """A run of the stencil on 4 x 3 x 2 processes."""
    usual = {"grid": "4 3 2", "cells": "120 96 64", "iterations": 20, "cell_time_s": 2e-9, "noise_relative_sd": 0.02}
    return Case(name, usual | more, 24, "stencil")


class Calls(lp.Application):
    """Calls of all kinds, in an order of its own for each `which`."""

    ranks: int = 24
    which: int = 0
    from_any: bool = False
    unit = lp.Cost(1e-5, error=0.1, noise=0.2)

    def run(self, me: Any) -> Iterator[Any]:
        draws = random.Random(self.which)
        row = yield me.split(me.rank % 3)
        for _ in me.steps(10):
            shift, size = draws.randrange(1, me.size), draws.choice((8, 3000, 200_000))
            to, source = (me.rank + shift) % me.size, (me.rank - shift) % me.size
            yield me.compute(self.unit, 1 + (me.rank * 7 + shift) % 5)
            got = yield me.irecv(None if self.from_any else source, 3)
            sent = yield me.isend(to, size, 3)
            yield me.compute("dgemm", 64, 64, 64)
            yield me.waitall([got, sent])
            yield me.exchange([((me.rank + by) % me.size, size) for by in (1, -1, 5, -5)])
            yield me.isend(to, 100, 4)
            yield me.probe(None if self.from_any else source, 4)
            yield me.receive(source, 4)
            yield me.bcast(size, shift)
            yield row.allreduce(size, draws.choice(("ring", "binomial", "recursive-doubling")))
            yield row.alltoall(size // 8, draws.choice(("pairwise", "bruck")))
            yield row.allgather(800)
            yield me.reduce(size)
            yield me.gather(800, 2)
            yield me.scatter(800, 3)
            yield me.barrier()


def program(name: str, which: int, **more: object) -> Case:
    """A program of calls of all kinds."""
    return Case(name, {"which": which, **more}, 24, "program")


BROADCASTS, SWAPS = get_args(Broadcast), get_args(Swap)
CASES = (
    *(
        hpl(f"{bcast}, {swap}, depth {depth}", bcast=bcast, swap=swap, depth=depth)
        for place, bcast in enumerate(BROADCASTS)
        for swap, depth in zip(SWAPS, (place % 3, (place + 1) % 3, (place + 2) % 3), strict=True)
    ),
    *(
        hpl(f"{pfact}, {rfact}, nbmin {nbmin}, ndiv {ndiv}", pfact=pfact, rfact=rfact, nbmin=nbmin, ndiv=ndiv)
        for pfact, rfact, nbmin, ndiv in (("left", "crout", 4, 3), ("right", "left", 8, 2), ("crout", "right", 1, 4))
    ),
    *(
        hpl(f"L1 {l1}, U {u}, {swap}", l1=l1, u=u, swap=swap)
        for l1, u, swap in (
            ("no-transposed", "transposed", "binary-exchange"),
            ("transposed", "no-transposed", "spread-roll"),
            ("no-transposed", "no-transposed", "mix"),
        )
    ),
    hpl("column-major, 8 x 8", n=2000, grid=(8, 8), pmap="column"),
    hpl("spread-roll without equilibration", swap="spread-roll", equil=0),
    hpl("mix, threshold 128", swap="mix", swap_threshold=128),
    hpl("alignment 64, L copied", align=64, copy_l=1),
    hpl("pivots in the first row", pivots="first-row"),
    *(hpl(f"{p} x {q}", grid=(p, q)) for p, q in ((1, 1), (1, 7), (7, 1), (5, 3))),
    hpl("one node", dealt_over=1),
    hpl("32 nodes, one rank each", grid=(4, 8), dealt_over=32),
    hpl("Dahu of April 2019", n=2000, grid=(4, 8), platform="dahu-2019-04"),
    hpl("loaded network, long broadcast", bcast="long", platform="dahu-2020-01-loaded"),
    hpl("stampede-like", n=6000, nb=256, grid=(4, 8), platform="stampede-like", dealt_over=32),
    hpl("exascale-like, 16 x 16, spread-roll", n=8000, nb=512, grid=(16, 16), platform="exascale-like", dealt_over=32,
        swap="spread-roll"),
    hpl("32 x 32", n=8000, nb=128, grid=(32, 32), dealt_over=32),
    *(hpl(f"sampled, {swap}", n=WINDOWS_STEPS * 64, grid=(2, 3), sampled=1, swap=swap) for swap in SWAPS[:2]),
    *(
        hpl(f"exact sharing, {bcast}", grid=(4, 8), settings={"network.sharing": "exact"}, bcast=bcast)
        for bcast in ("2ring", "long")
    ),
    hpl("flow factor scale", settings={"network.flow_factor": "scale"}),
    hpl("shared loopback", settings={"network.loopback.shared": "true"}),
    hpl("slow links", settings={"network.node_link.bandwidth_Bps": "1e9"}),
    hpl("slow links, exact", settings={"network.node_link.bandwidth_Bps": "1e9", "network.sharing": "exact"}),
    *(hpl(f"{noise} noise", noise=noise) for noise in ("normal", "lognormal")),
    hpl("noise alone", without="coefficients days discrepancy network extrapolation"),
    hpl("all but the noise", without="noise"),
    hpl("traced", grid=(2, 3), trace=True),
    hpl("torus 4 x 4 x 2", grid=(4, 8), topology="torus 4 4 2", dealt_over=32),
    hpl("fat tree", grid=(4, 8), topology="fat-tree 8 4 1 2 1 1", dealt_over=32),
    hpl("dragonfly, exact", grid=(4, 8), topology="dragonfly 2 2 2 2 4 2 2", dealt_over=32,
        settings={"network.sharing": "exact"}),
    *(stencil(f"stencil, {allreduce}", allreduce=allreduce) for allreduce in
      ("none", "binomial", "recursive-doubling", "ring")),
    stencil("stencil, open box, wide halo", periodic=0, halo=2),
    stencil("stencil, memory", cell_bytes=48, node_memory_Bps=1.2e11, allreduce_values=1000),
    *(program(f"program {which}", which) for which in range(3)),
    program("program, from any", 3, from_any=True),
)  # fmt: skip


def write_cases(folder: Path, cases: Sequence[Case]) -> Path:
    """Writes the machines and the file of the cases; returns the file."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for number, case in enumerate(cases):
        platform = override(load_platform(case.platform), case.settings)
        machine_of_case = machine_of(platform)
        own = Calls(**case.fields) if case.application == "program" else None  # type: ignore[arg-type]
        if own is not None:
            machine_of_case.kernels = [*machine_of_case.kernels, *own.on(platform).kernels.make()]
        text = machine_of_case.text()
        if case.noise:
            text = text.replace("half-normal", case.noise)
        machine = folder / f"{number}.machine"
        machine.write_text(text, encoding="utf-8")
        lines += case_lines(case, machine, platform.nodes.cores)
        lines += [] if own is None else program_lines(own)
    path = folder / "cases.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def program_lines(application: lp.Application) -> list[str]:
    """What its ranks do, in the driver's words."""
    laying = Laying(application, 1)
    laid = laying.lay()
    ops, lists, groups, _ = laying.listed()

    def words(*values: object) -> str:
        return " ".join(map(str, values))

    return [
        words("kernels", *laid.parameters.kernels),
        *(["by_date"] if laid.parameters.by_date else []),
        *(words("op", *op[:8]) for op in ops),
        *(words("list", len(numbers), *numbers, *sizes) for numbers, sizes in lists),
        *(words("communicator", *group) for group in groups),
        *(
            words("rank", len(track.ops), *track.ops, *(number for part in track.parts for number in part))
            for track in laying.tracks
        ),
    ]


def case_lines(case: Case, machine: Path, cores_per_node: int) -> list[str]:
    """One case in the driver's words."""
    cores = [(rank % case.dealt_over) * cores_per_node + rank // case.dealt_over for rank in range(case.ranks)]
    return [
        f"case {case.name}",
        f"application {case.application}",
        f"machine {machine}",
        f"cores {' '.join(map(str, cores))}",
        f"seeds {' '.join(map(str, SEEDS))}",
        *(f"set {name} {value}" for name, value in case.fields.items() if case.application != "program"),
        *([f"topology {case.topology}"] if case.topology else []),
        *([f"without {case.without}"] if case.without else []),
        *(["trace"] if case.trace else []),
    ]
