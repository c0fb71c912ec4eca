"""Sentinels on this machine, outside of a calibration."""

from functools import cache
from typing import TYPE_CHECKING

from lepaute.kit.command import run_command
from lepaute.kit.temporary import temporary_folder
from lepaute.measure.layout import layout_here
from lepaute.measure.sentinel import duration_of

if TYPE_CHECKING:
    from lepaute.measure.sentinel import Guard

#: A sentinel takes half a second; one that takes this long hangs.
LIMIT_S = 300.0


def watch_here(guard: "Guard") -> float:
    """Seconds of a call. Raises EnvironmentProblem where the program fails."""
    with temporary_folder("lepaute-sentinel-") as folder:
        design, out = folder / "design.csv", folder / "raw.csv"
        design.write_text(guard.design)
        run_command(
            guard.words(str(guard.program), str(design), str(out), _pus(guard.cores)),
            what="the sentinel",
            timeout_s=LIMIT_S,
            environment=guard.environment,
            folder=folder,
        )
        return duration_of(path.read_text() for path in sorted(folder.glob(f"{out.name}.r*")))


@cache
def _pus(cores: int) -> tuple[int, ...]:
    """The hardware threads of so many cores, as a calibration binds to them; of all where there are fewer."""
    layout = layout_here()
    return layout.pus(range(min(cores, len(layout.cores))))
