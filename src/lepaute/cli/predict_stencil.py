"""`lepaute predict stencil`: how long a 3D halo-exchange stencil will take on a platform."""

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from lepaute.cli.hpl_options import Settings

if TYPE_CHECKING:
    from lepaute.simulate.stencil import StencilPrediction


def stencil(
    platform: Annotated[str, typer.Option("--platform", "-p", help="a platform file, or the name of a shipped one")],
    cells: Annotated[str, typer.Option("--cells", help="cells along x, y and z, as 512x512x512")],
    grid: Annotated[str, typer.Option("--grid", help="processes along x, y and z, as 4x4x2")] = "1x1x1",
    iterations: Annotated[str, typer.Option("--iterations", help="suffixes k and M")] = "100",
    allreduce: Annotated[
        str, typer.Option("--allreduce", help="none, binomial, recursive-doubling or ring")
    ] = "recursive-doubling",
    allreduce_values: Annotated[int, typer.Option("--allreduce-values", help="doubles reduced an iteration")] = 1,
    periodic: Annotated[bool, typer.Option("--periodic/--open", help="are opposite faces neighbours?")] = True,
    halo: Annotated[int, typer.Option("--halo", help="layers of cells that a neighbour needs")] = 1,
    value_bytes: Annotated[float, typer.Option("--value-bytes", help="sent for each cell of a face")] = 8.0,
    cell_time: Annotated[float, typer.Option("--cell-time", help="seconds to compute a cell, all cores busy")] = 0.0,
    cell_bytes: Annotated[float, typer.Option("--cell-bytes", help="bytes to and from memory for a cell")] = 0.0,
    node_memory_bandwidth: Annotated[
        float | None, typer.Option("--node-memory-bandwidth", help="bytes per second, shared by the ranks of a node")
    ] = None,
    noise: Annotated[float, typer.Option("--noise", help="relative standard deviation of a sweep")] = 0.0,
    settings: Settings = None,
    runs: Annotated[int, typer.Option("--runs", help="simulated runs")] = 10,
    seed: Annotated[int, typer.Option("--seed", help="run i uses seed + i")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
) -> None:
    """Predicts the time of a 3D halo-exchange stencil with an all-reduction in each iteration."""
    from lepaute.cli.progress import progress_bar
    from lepaute.kit.quantities import settings_of, whole
    from lepaute.platform import load_platform, override
    from lepaute.simulate.stencil import Stencil, predict_stencil

    run = Stencil(
        cells=box_of(cells, "cells"),
        grid=box_of(grid, "grid"),
        iterations=whole(iterations, "iterations"),
        allreduce=allreduce,
        allreduce_values=allreduce_values,
        periodic=periodic,
        halo=halo,
        value_bytes=value_bytes,
        cell_time_s=cell_time,
        cell_bytes=cell_bytes,
        node_memory_Bps=node_memory_bandwidth,
        noise_relative_sd=noise,
    )
    overrides = settings_of(settings or [])
    machine = load_platform(platform)
    if overrides:
        machine = override(machine, overrides)
    if sys.stderr.isatty():
        with progress_bar() as tell:
            prediction = predict_stencil(
                run,
                machine,
                runs=runs,
                seed=seed,
                settings=overrides,
                progress=lambda done: tell("simulating runs", done / runs),
            )
    else:
        prediction = predict_stencil(run, machine, runs=runs, seed=seed, settings=overrides)
    if as_json:
        json.dump(prediction.to_dict(), sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        print(readable(prediction))


def box_of(text: str, name: str) -> tuple[int, int, int]:
    """(x, y, z) of XxYxZ, each with an optional suffix k, M or G; raises InputError for anything else."""
    from lepaute.errors import InputError
    from lepaute.kit.quantities import whole

    parts = text.lower().split("x")
    if len(parts) != 3 or not all(parts):
        raise InputError(f"{name} is {text!r}; it is X x Y x Z such as 4x4x2")
    x, y, z = (whole(part, name) for part in parts)
    return x, y, z


def readable(prediction: "StencilPrediction") -> str:
    """The answer as a person wants it."""
    from lepaute.cli.predict_text import interval

    run, time_s = prediction.stencil, prediction.time_s
    lines = [
        f"stencil  {' x '.join(map(str, run.cells))} cells, {run.iterations} iterations, "
        f"{' x '.join(map(str, run.grid))} ranks on {prediction.platform_name}",
        f"  time    {interval(time_s, 's')}",
        f"  rate    {interval(prediction.rate_cells_per_s, 'cells/s')}",
    ]
    if (energy_j := prediction.energy_j) is not None:
        lines.append(f"  energy  {interval(energy_j, 'J')}; {energy_j.mean / time_s.mean:.4g} W on average")
    busy_s = prediction.computing_s + prediction.waiting_s
    if busy_s > 0.0:
        lines.append(
            f"  where   computing {100.0 * prediction.computing_s / busy_s:.1f} %, "
            f"communication and waiting {100.0 * prediction.waiting_s / busy_s:.1f} %"
        )
    lines.append(f"  ranges  {prediction.outside.text()}")
    simulation = prediction.simulation
    lines.append(
        f"  from    {len(prediction.run_list)} simulated run(s), {simulation.messages} messages each, "
        f"in {simulation.wall_s:.2f} s"
    )
    lines += [f"  warning: {warning}" for warning in prediction.warnings]
    return "\n".join(lines)
