"""The memory hierarchy: bandwidth against buffer size, stride, width of an element, unrolling and allocation.

Every combination in random order, in blocks of fresh processes. `lepaute fit` finds the plateaus.
Parameters: max_bytes, min_bytes, per_octave, strides, element_bytes, unrolls, allocations, blocks, batch_bytes, cpu.
"""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field

import lepaute as lp
from lepaute.measure.design import Design
from lepaute.measure.design.memory import hierarchy_sizes
from lepaute.measure.experiment.options import parsed_parameters
from lepaute.measure.raw_files import rows_of
from lepaute.measure.toolchain import C_FLAGS, probe_source

SOURCES = ("probe_memory.c", "memory_read.c", "probe_common.c")
HEADERS = ("memory_read.h", "probe_common.h")
LIMIT_S = 600.0
#: Columns of the probe's rows; the design's are there already.
SEEN = {"passes": int, "read_bytes": int, "page": int, "cpu": int, "start_s": float, "duration_s": float}


Whole = Annotated[int, Field(ge=0, lt=10**16)]
#: Such as 1,8.
Wholes = Annotated[tuple[Whole, ...], BeforeValidator(lambda text: str(text).split(",")), Field(max_length=1000)]


class Parameters(BaseModel, frozen=True, extra="forbid"):
    max_bytes: Whole = 128 << 20
    min_bytes: Whole = 1 << 10
    per_octave: Whole = 4
    strides: Wholes = (1, 8)
    element_bytes: Wholes = (8, 16)
    unrolls: Wholes = (1, 8)
    allocations: Whole = 2
    blocks: Whole = 2
    batch_bytes: Wholes = (1 << 20,)
    cpu: Whole = 0


class MemoryHierarchy(lp.Job):
    def design(self) -> Design:
        self._chosen = chosen = parsed_parameters(Parameters, self.parameters)
        return lp.design.memory_design(
            self.seed,
            sizes_bytes=hierarchy_sizes(chosen.min_bytes, chosen.max_bytes, chosen.per_octave),
            strides=chosen.strides,
            element_bytes=chosen.element_bytes,
            unrolls=chosen.unrolls,
            allocations=chosen.allocations,
            fresh=True,
            batch_bytes=chosen.batch_bytes,
            blocks=chosen.blocks,
        )

    def setup(self) -> None:
        self.install("gcc", "libc6-dev")
        for name in (*SOURCES, *HEADERS):
            self.nodes.write(name, (probe_source() / name).read_bytes())
        self.nodes.run("gcc", *C_FLAGS, *SOURCES, "-lm", "-o", "probe-memory")

    def run(self) -> None:
        seen: dict[str, list[dict[str, str]]] = {}
        block, first = None, 0
        for row in self.rows():
            if row["block"] != block:  # a fresh process measures a block, of which an interrupted run may have parts
                block = row["block"]
                first, seen = self._measure(int(str(block)))
            number = int(str(row["design_row"])) - first
            for node, rows in seen.items():
                call = rows[number]
                self.record(node=node, process=block, **{name: kind(call[name]) for name, kind in SEEN.items()})

    def _measure(self, block: int) -> tuple[int, dict[str, list[dict[str, str]]]]:
        """Runs the rows of a block on all nodes: the number of its first one, and by node what was seen of each."""
        design = self.workspace.design
        assert design is not None
        numbers = [number for number, row in enumerate(design) if row["block"] == block]
        part = Design(design.header, design.columns, tuple(design.rows[number] for number in numbers))
        self.nodes.write("design.csv", part.to_csv())
        words = ("--design", "design.csv", "--out", "raw.csv", "--cpu", self._chosen.cpu)
        self.nodes.run("./probe-memory", *words, "--seed", 1000 * self.seed + block, timeout_s=LIMIT_S)
        raw = self.nodes.read("raw.csv")
        return numbers[0], {node: rows_of(content.decode()) for node, content in raw.items()}
