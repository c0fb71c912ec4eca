"""Sentinels on this machine, outside of a calibration."""

import os
from typing import TYPE_CHECKING

from lepaute.kit.command import run_command
from lepaute.kit.temporary import temporary_folder
from lepaute.measure.sentinel import duration_of

if TYPE_CHECKING:
    from lepaute.measure.sentinel import Guard

#: A sentinel takes half a second; one that takes this long hangs.
LIMIT_S = 60.0


def watch_here(guard: "Guard") -> float:
    """Seconds of a call. Raises EnvironmentProblem where the program fails."""
    with temporary_folder("lepaute-sentinel-") as folder:
        design, out = folder / "design.csv", folder / "raw.csv"
        design.write_text(guard.design)
        run_command(
            guard.words(str(guard.program), str(design), str(out), sorted(os.sched_getaffinity(0))),
            what="the sentinel",
            timeout_s=LIMIT_S,
            environment=guard.environment,
            folder=folder,
        )
        return duration_of(path.read_text() for path in sorted(folder.glob(f"{out.name}.r*")))
