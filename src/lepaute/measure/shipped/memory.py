"""The memory hierarchy: bandwidth against buffer size, stride, width of an element, unrolling and allocation.

Every combination in random order, in blocks of fresh processes. `lepaute fit` finds the plateaus.
Parameters: max_bytes, min_bytes, per_octave, strides, element_bytes, unrolls, allocations, blocks, batch_bytes, cpu.
"""

import lepaute as lp
from lepaute.design import Design
from lepaute.design.memory import hierarchy_sizes
from lepaute.errors import InputError
from lepaute.measure.raw_files import rows_of
from lepaute.measure.toolchain import C_FLAGS, probe_source

SOURCES = ("probe_memory.c", "memory_read.c", "probe_common.c")
HEADERS = ("memory_read.h", "probe_common.h")
LIMIT_S = 600.0
#: Of the probe's rows; the design's are there already.
SEEN = {"passes": int, "read_bytes": int, "page": int, "cpu": int, "start_s": float, "duration_s": float}


PARAMETERS = frozenset(
    "max_bytes min_bytes per_octave strides element_bytes unrolls allocations blocks batch_bytes cpu".split()
)


class MemoryHierarchy(lp.Job):
    def design(self) -> Design:
        if unknown := sorted(set(self.parameters) - PARAMETERS):  # a typing error would measure something else
            raise InputError(f"there is no parameter {unknown[0][:60]}; known: {', '.join(sorted(PARAMETERS))}")
        return lp.design.memory_design(
            self.seed,
            sizes_bytes=hierarchy_sizes(
                self._number("min_bytes", 1 << 10), self._number("max_bytes", 128 << 20), self._number("per_octave", 4)
            ),
            strides=self._numbers("strides", "1,8"),
            element_bytes=self._numbers("element_bytes", "8,16"),
            unrolls=self._numbers("unrolls", "1,8"),
            allocations=self._number("allocations", 2),
            fresh=True,
            batch_bytes=self._numbers("batch_bytes", str(1 << 20)),
            blocks=self._number("blocks", 2),
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
        words = ("--design", "design.csv", "--out", "raw.csv", "--cpu", self._number("cpu", 0))
        self.nodes.run("./probe-memory", *words, "--seed", 1000 * self.seed + block, timeout_s=LIMIT_S)
        raw = self.nodes.read("raw.csv")
        return numbers[0], {node: rows_of(content.decode()) for node, content in raw.items()}

    def _number(self, name: str, default: int) -> int:
        (number,) = self._numbers(name, str(default), most=1)
        return number

    def _numbers(self, name: str, default: str, most: int = 1000) -> list[int]:
        """A parameter that is a list of whole numbers; raises InputError for anything else."""
        text = str(self.parameters.get(name, default))
        cells = text.split(",")
        if len(cells) > most or not all(cell.isascii() and cell.isdigit() and len(cell) < 16 for cell in cells):
            what = "a whole number" if most == 1 else "a list of whole numbers such as 1,8"
            raise InputError(f"{name} is {text[:60]!r}; it is {what}")
        return [int(cell) for cell in cells]
