"""A 3D halo-exchange stencil with an all-reduction in each iteration: its parameters, each described once."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal, get_args

from lepaute.errors import InputError
from lepaute.kit.notebook import changed_fields
from lepaute.kit.numbers import plain
from lepaute.kit.options import Option, check_fields, option
from lepaute.kit.quantities import box_of, whole_of
from lepaute.simulate.application import About, Application, Rate
from lepaute.simulate.behaviour import Behaviour, Kernels

Allreduce = Literal["none", "binomial", "recursive-doubling", "ring"]
ALLREDUCES: tuple[Allreduce, ...] = get_args(Allreduce)
MOST = 2**31 - 1  # of processes and of cells along a dimension: the core counts in 32 and 64 bits


class StencilBehaviour(Behaviour):
    application: "Stencil"

    @property
    def events(self) -> float:
        """Faces sent, sweeps, and the messages of the reductions, about."""
        stencil = self.application
        reduced = {"none": 0, "ring": 2 * stencil.ranks}.get(stencil.allreduce, stencil.ranks.bit_length())
        return float(stencil.iterations * stencil.ranks * (7 + reduced))

    @property
    def kernels(self) -> Kernels:
        return Kernels(modelled=False, exact=("a cell",))

    @property
    def draws(self) -> frozenset[str]:
        return frozenset({"noise"} if self.application.noise_relative_sd > 0.0 else ())


def _box(name: str, such_as: str, what: str = "", **more: Any) -> dict[str, Option]:
    read = partial(box_of, name=name, such_as=such_as)
    return option(f"{what or name} along x, y and z, as {such_as}", parse=read, metavar="XxYxZ", **more)


@dataclass(frozen=True, slots=True)
class Stencil(Application):
    """One run: `cells` of a box on a `grid` of processes along x, y and z, ranks in the order of MPI_Cart_create.

    Each iteration exchanges the faces with the six neighbours (x, y, z; one way, then the other), sweeps over the
    cells, and reduces `allreduce_values` doubles over all ranks. A cell takes cell_time_s, or what its cell_bytes take
    from the node's memory bandwidth shared by the node's ranks, whichever is longer; noise_relative_sd is the relative
    standard deviation of a sweep. halo is in layers of cells, value_bytes are sent for each cell of a face.
    Raises InputError for what cannot be.
    """

    about: ClassVar[About] = About(
        "stencil",
        "a 3D halo-exchange stencil with an all-reduction in each iteration",
        core="stencil",
        behaviour=StencilBehaviour,
        rate=Rate("rate_cells_per_s", "cells/s"),
        several=("grid",),
    )

    cells: tuple[int, int, int] = field(metadata=_box("cells", "512x512x512"))
    grid: tuple[int, int, int] = field(default=(1, 1, 1), metadata=_box("grid", "4x4x2", "processes", default="1x1x1"))
    iterations: int = field(
        default=100, metadata=option("suffixes k and M", parse=partial(whole_of, name="iterations"), minimum=1)
    )
    allreduce: Allreduce = field(
        default="recursive-doubling", metadata=option("all-reduction of each iteration", choices=ALLREDUCES)
    )
    allreduce_values: int = field(default=1, metadata=option("doubles reduced an iteration", minimum=1))
    periodic: bool = field(default=True, metadata=option("are opposite faces neighbours?", name="periodic/--open"))
    halo: int = field(default=1, metadata=option("layers of cells that a neighbour needs", minimum=1))
    value_bytes: float = field(default=8.0, metadata=option("sent for each cell of a face", minimum=0.0))
    cell_time_s: float = field(
        default=0.0, metadata=option("seconds to compute a cell, all cores busy", name="cell-time", minimum=0.0)
    )
    cell_bytes: float = field(default=0.0, metadata=option("bytes to and from memory for a cell", minimum=0.0))
    node_memory_Bps: float | None = field(  # noqa: N815 - the unit
        default=None,
        metadata=option("bytes per second, shared by the ranks of a node", name="node-memory-bandwidth", minimum=1.0),
    )
    noise_relative_sd: float = field(
        default=0.0, metadata=option("relative standard deviation of a sweep", name="noise", minimum=0.0)
    )

    __repr__ = changed_fields

    def __post_init__(self) -> None:
        check_fields(self, largest=MOST)
        for name in ("cells", "grid"):
            given = getattr(self, name)
            box = tuple(map(plain, given)) if isinstance(given, Iterable) else ()
            if [type(each) for each in box] != [int] * 3:
                raise InputError(f"{name} is {given!r:.80}; it must be three whole numbers, such as (64, 64, 64)")
            object.__setattr__(self, name, box)
        for axis, processes, cells in zip("xyz", self.grid, self.cells, strict=True):
            if not (1 <= processes <= cells <= MOST):
                raise InputError(f"{cells} cells along {axis} cannot be shared by {processes} processes; both are >= 1")
            if cells // processes < self.halo:
                raise InputError(
                    f"{cells} cells along {axis} leave {cells // processes} to a process, fewer than the "
                    f"{self.halo} layers of the halo; take fewer processes along {axis} or a thinner halo"
                )
        if self.cell_bytes > 0.0 and not (self.node_memory_Bps and 0.0 < self.node_memory_Bps < math.inf):
            raise InputError(
                "cell_bytes (--cell-bytes) needs the memory bandwidth of a node in bytes per second: node_memory_Bps "
                "(--node-memory-bandwidth)"
            )
        if self.cell_time_s == 0.0 and self.cell_bytes == 0.0:
            raise InputError(
                "say what a cell costs: cell_time_s (--cell-time), or cell_bytes and node_memory_Bps (--cell-bytes, "
                "--node-memory-bandwidth)"
            )

    @property
    def unused(self) -> dict[str, str]:
        unused = {} if self.allreduce != "none" else {"allreduce_values": "nothing is reduced"}
        return unused if self.cell_bytes else unused | {"node_memory_Bps": "cells move no bytes (--cell-bytes)"}

    @property
    def ranks(self) -> int:
        return math.prod(self.grid)

    @property
    def steps(self) -> int:
        return self.iterations

    @property
    def label(self) -> str:
        """64 x 64 x 64 cells, 100 iterations, 2 x 2 x 1."""
        cells, grid = " x ".join(map(str, self.cells)), " x ".join(map(str, self.grid))
        return f"{cells} cells, {self.iterations} iterations, {grid}"

    def rate_cells_per_s(self, time_s: float) -> float:
        """Cells computed a second, over all iterations, by a run of `time_s` seconds."""
        return math.prod(self.cells) * self.iterations / time_s
