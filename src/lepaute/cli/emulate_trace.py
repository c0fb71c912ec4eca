"""The trace of an emulation: SMPI's own, with the kernels and the calls of MPI put into it."""

import json
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

from lepaute.cli.simulation_options import TraceFiles
from lepaute.kit.temporary import temporary_folder

if TYPE_CHECKING:
    from lepaute.simulate import Prediction
    from lepaute.simulate.smpi.emulate import Keep


class EmulatedTrace:
    """Holds what the trace is made of while the program runs, in a folder that goes at the end of the block."""

    def __init__(self, files: TraceFiles) -> None:
        self._files = files
        self._asked_for = files.asked_for
        self._kept = ExitStack()

    def __enter__(self) -> Self:
        self.folder = self._kept.enter_context(temporary_folder("lepaute-emulate-", plain=True))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._kept.close()

    @property
    def keep(self) -> "Keep | None":
        """What the emulation is to keep; None where no trace is asked for."""
        from lepaute.simulate.smpi.emulate import Keep

        names = ("smpi.trace", "smpi.kernels", "smpi.calls", "smpi.nodes")
        return Keep(*(self.folder / name for name in names)) if self._asked_for else None

    def write(self, prediction: "Prediction", part: tuple[float, float] | None = None) -> None:
        """Writes what is asked for of its first run, and tells on standard error what is in it.

        part : simulated dates between which calls begin that are kept; the first becomes 0
        """
        if not self._asked_for:
            return
        from lepaute.trace.kernels import merge_kernels, read_kernels
        from lepaute.trace.recorded_calls import merge_calls
        from lepaute.trace.smpi import convert

        metadata = {
            "application": prediction.application.name,
            "platform": prediction.platform_name,
            "seed": prediction.seed,
            "ranks": prediction.application.ranks,
            **json.loads((self.folder / "smpi.nodes").read_text(encoding="utf-8")),
        }
        trace = merge_calls(convert(self.folder / "smpi.trace", metadata), self.folder / "smpi.calls")
        if (self.folder / "smpi.kernels").is_file():
            trace = merge_kernels(trace, read_kernels(self.folder / "smpi.kernels"))
        if part is not None:
            trace = trace.where((trace.start_s >= part[0]) & (trace.start_s < part[1]))
            trace = replace(trace, start_s=trace.start_s - part[0])
        self._files.write(trace)
