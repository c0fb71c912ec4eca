"""Emulations as a person wants to read them."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lepaute.cli.predict_text import condition_lines, interval
from lepaute.kit.printable import unfiltered
from lepaute.kit.text import four_digits

if TYPE_CHECKING:
    from lepaute.simulate import Prediction

MOST_ROUTINES = 6


def readable(prediction: "Prediction") -> str:
    """Simulated time of a program, where it went, what had no model, what the simulation took."""
    from lepaute.simulate import Program
    from lepaute.simulate.smpi.emulated_run import LEAST_SHARE

    program, run = prediction.application, prediction.first
    assert isinstance(program, Program)
    assert run is not None
    assert run.emulated is not None
    first, figures = run.emulated, prediction.simulation
    lines = [
        f"{program.name}  {program.ranks} ranks on {prediction.platform_name}",
        f"  time       {interval(prediction.time_s, 's')}",
    ]
    if first.program_s != first.time_s:
        lines.append(f"  program    {four_digits(first.program_s)} s in all")
    computing = f"{four_digits(first.computing_s)} s over all ranks"
    if first.own.charged_s > 0.0:
        computing += f", {100.0 * first.own_share:.0f} % of it the program's own, timed here"
    lines.append(f"  computing  {computing}; {100.0 * first.unmodelled_share:.2g} % of it without a model")
    if first.slowdowns is not None and first.slowdowns.memory_share is not None and first.own_share > LEAST_SHARE:
        lines.append(f"  memory     {100.0 * first.slowdowns.memory_share:.0f} % of the program's own waits for memory")
    uses = sorted((first.fallback | first.kernels).items(), key=lambda item: -item[1].time_s)[:MOST_ROUTINES]
    lines += [f"    {name:<12} {use.calls:>10} calls {four_digits(use.time_s):>12} s" for name, use in uses]
    if prediction.outside is not None:
        lines.append(f"  ranges     {prediction.outside.text()}")
    folded = f", {first.folded_bytes / 1e9:.3g} GB folded" if first.folded else ""
    runs = f"{len(prediction.run_list)} simulated run(s), {first.messages} point-to-point messages each"
    lines.append(f"  from       {runs}, in {figures.wall_s:.2f} s and {figures.peak_rss_bytes / 1e6:.0f} MB{folded}")
    lines += condition_lines(prediction)
    lines += [f"  warning: {warning}" for warning in prediction.warnings]
    return "\n".join(lines)


@contextmanager
def tell_progress(every_s: float = 1.0) -> Iterator[Callable[[float], None] | None]:
    """Gives a function that shows the simulated date on standard error; None where that is no terminal.

    How long a program will run is not known in advance, so there is no bar.
    """
    if not sys.stderr.isatty():
        yield None
        return
    terminal = unfiltered(sys.stderr)
    began_s = last_s = time.monotonic()

    def tell(date_s: float) -> None:
        nonlocal last_s
        now_s = time.monotonic()
        if now_s - last_s >= every_s:
            last_s = now_s
            terminal.write(f"\rsimulated {date_s:.6g} s in {now_s - began_s:.0f} s ")
            terminal.flush()

    try:
        yield tell
    finally:
        if last_s > began_s:
            terminal.write("\r\033[K")
            terminal.flush()
