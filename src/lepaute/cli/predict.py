"""`lepaute predict hpl`: how long HPL will take on a platform."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lepaute.cli import hpl_options as options
from lepaute.cli.predict_stencil import stencil

if TYPE_CHECKING:
    from lepaute.platform import Platform
    from lepaute.simulate import Prediction, Spread

app = typer.Typer(help="How long an application will take on a platform.")


@app.callback()
def group() -> None:
    """How long an application will take on a platform."""


@app.command()
def hpl(
    platform: Annotated[str, typer.Option("--platform", "-p", help="a platform file, or the name of a shipped one")],
    n: Annotated[str, typer.Option("--n", help="order of the matrix; suffixes k and M")],
    nb: options.Nb = 128,
    grid: Annotated[str, typer.Option("--grid", help="process grid, as 8x8")] = "1x1",
    depth: options.Depth = 1,
    bcast: options.Bcast = "2ring",
    swap: options.Swap = "binary-exchange",
    swap_threshold: options.SwapThreshold = None,
    pfact: options.Pfact = "crout",
    rfact: options.Rfact = "right",
    nbmin: options.Nbmin = 2,
    ndiv: options.Ndiv = 2,
    pmap: options.Pmap = "row",
    l1: options.L1 = "transposed",
    u: options.U = "transposed",
    equil: options.Equil = 1,
    align: options.Align = 8,
    threads_per_rank: Annotated[int, typer.Option("--threads-per-rank")] = 1,
    settings: options.Settings = None,
    runs: Annotated[int, typer.Option("--runs", help="simulated runs")] = 10,
    seed: Annotated[int, typer.Option("--seed", help="run i uses seed + i")] = 1,
    fidelity: Annotated[str, typer.Option("--fidelity", help="auto or full")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
    plot: Annotated[Path | None, typer.Option("--plot", help="a PNG of the runs")] = None,
) -> None:
    """Predicts the time and rate of HPL, with the 95 % prediction interval for one further run."""
    from lepaute.cli.quantities import count, grid_of, settings_of
    from lepaute.errors import InputError
    from lepaute.platform import load_platform, override
    from lepaute.simulate import predict

    if fidelity not in ("auto", "full"):
        raise InputError(f"fidelity is {fidelity!r}; it is auto or full (sampled is not there yet)")
    p, q = grid_of(grid)
    parameters = options.hpl_of(
        n=count(n, "n"),
        nb=nb,
        p=p,
        q=q,
        depth=depth,
        bcast=bcast,
        swap=swap,
        swap_threshold=swap_threshold,
        pfact=pfact,
        rfact=rfact,
        nbmin=nbmin,
        ndiv=ndiv,
        pmap=pmap,
        l1=l1,
        u=u,
        equil=equil,
        align=align,
        threads_per_rank=threads_per_rank,
    )
    overrides = settings_of(settings or [])
    machine = load_platform(platform)
    if overrides:
        machine = override(machine, overrides)
    prediction = with_progress(
        lambda progress: predict(parameters, machine, runs=runs, seed=seed, settings=overrides, progress=progress), runs
    )
    if plot is not None:
        prediction.plot(plot)
    if as_json:
        json.dump(prediction.to_dict(), sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        print(readable(prediction, machine))


app.command()(stencil)


def with_progress(simulate: "Callable[[Callable[[int], None] | None], Prediction]", runs: int) -> "Prediction":
    """Runs `simulate`, with a progress bar where standard error is a terminal (Rich is loaded only then)."""
    if not sys.stderr.isatty():
        return simulate(None)
    from lepaute.cli.progress import progress_bar

    with progress_bar() as tell:
        return simulate(lambda done: tell("simulating runs", done / runs))


def readable(prediction: "Prediction", machine: "Platform") -> str:
    """The answer as a person wants it."""
    hpl_run, time_s, rate = prediction.hpl, prediction.time_s, prediction.rate_gflops
    lines = [
        f"HPL  N = {hpl_run.n}  NB = {hpl_run.nb}  {hpl_run.p} x {hpl_run.q} ranks on {prediction.platform_name}",
        f"  time    {interval(time_s, 's')}",
        f"  rate    {interval(rate, 'Gflop/s')}",
    ]
    nodes = machine.nodes
    used = -(-hpl_run.ranks * hpl_run.threads_per_rank // nodes.cores)
    if nodes.peak_flops_per_core:
        peak = nodes.peak_flops_per_core * hpl_run.ranks * hpl_run.threads_per_rank / 1e9
        lines.append(f"  peak    {100.0 * rate.mean / peak:.1f} % of {peak:.0f} Gflop/s")
    there = f" of {used * nodes.memory_bytes / 1e9:.1f} GB on {used} node(s)" if nodes.memory_bytes else ""
    lines.append(f"  memory  {hpl_run.memory_bytes / 1e9:.2f} GB for the matrix{there}")
    if (energy_j := prediction.energy_j) is not None:
        lines.append(f"  energy  {interval(energy_j, 'J')}; {energy_j.mean / time_s.mean:.4g} W on average")
    busy = sum(prediction.kernel_time_s.values()) + prediction.waiting_s
    if busy > 0.0:
        shares = sorted(prediction.kernel_time_s.items(), key=lambda item: -item[1])[:4]
        text = ", ".join(f"{name} {100.0 * seconds / busy:.1f} %" for name, seconds in shares)
        lines.append(f"  where   {text}, communication and waiting {100.0 * prediction.waiting_s / busy:.1f} %")
    runs = len(prediction.run_list)
    wall_s = prediction.simulation.wall_s
    lines.append(
        f"  from    {runs} simulated run(s), {prediction.simulation.messages} messages each, in {wall_s:.2f} s"
    )
    lines += [f"  warning: {warning}" for warning in prediction.warnings]
    return "\n".join(lines)


def interval(spread: "Spread", unit: str) -> str:
    """Mean and interval in words."""
    if spread.low is None:
        return f"{spread.mean:.4g} {unit}  (one run: no interval)"
    return (
        f"{spread.mean:.4g} {unit}, 95 % prediction interval {spread.low:.4g} .. {spread.high:.4g} "
        f"(+- {spread.half_width_percent:.1f} %)"
    )
