"""The trace of an emulation: SMPI's own, with the kernels put into it."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lepaute.simulate.smpi.emulate import Keep


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to write of the trace; `folder` holds what it is made of."""

    parquet: Path | None
    gantt: Path | None
    folder: Path

    @property
    def keep(self) -> "Keep | None":
        """What the emulation is to keep; None where no trace is wanted."""
        from lepaute.simulate.smpi.emulate import Keep

        if self.parquet is None and self.gantt is None:
            return None
        return Keep(self.folder / "smpi.trace", self.folder / "smpi.kernels")

    def write(self, metadata: dict[str, Any], part: tuple[float, float] | None = None) -> None:
        """Writes what is wanted, and tells on standard error what is in it.

        part : simulated dates between which calls begin that are kept; the first becomes 0
        """
        if self.keep is None:
            return
        from lepaute.trace import write_trace
        from lepaute.trace.gantt import plot_gantt
        from lepaute.trace.kernels import merge_kernels, read_kernels
        from lepaute.trace.smpi import convert

        trace = convert(self.folder / "smpi.trace", metadata)
        if (self.folder / "smpi.kernels").is_file():
            trace = merge_kernels(trace, read_kernels(self.folder / "smpi.kernels"))
        if part is not None:
            trace = trace.where((trace.start_s >= part[0]) & (trace.start_s < part[1]))
            trace = replace(trace, start_s=trace.start_s - part[0])
        if self.parquet is not None:
            write_trace(trace, self.parquet)
            count = f"{len(trace)} calls of {len(trace.ranks)} ranks"
            print(f"{self.parquet}: {count}; lepaute trace show {self.parquet}", file=sys.stderr)
        if self.gantt is not None:
            window = plot_gantt(trace, self.gantt)
            span = f"{len(window.ranks)} ranks from {window.low_s:.6g} to {window.high_s:.6g} s"
            print(f"{self.gantt}: {span}", file=sys.stderr)
