"""`lepaute predict hpl`: how long HPL will take on a platform."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lepaute.cli import hpl_options as options
from lepaute.cli.entry import INTERRUPTED, complain
from lepaute.cli.predict_stencil import stencil
from lepaute.kit.files import write_whole
from lepaute.kit.outputs import check_outputs
from lepaute.version import __version__

if TYPE_CHECKING:
    from lepaute.platform import Platform
    from lepaute.simulate import Hpl, Mapping
    from lepaute.simulate.tracing import TraceRequest
    from lepaute.trace import Trace

BAR_AFTER_S = 2.0

app = typer.Typer(help="How long an application will take on a platform.")


@app.callback()
def group() -> None:
    """How long an application will take on a platform."""


@app.command()
def hpl(
    context: typer.Context,
    platform: Annotated[str, typer.Option("--platform", "-p", help="a platform file, or the name of a shipped one")],
    dat: options.Dat = None,
    n: Annotated[str | None, typer.Option("--n", help="order of the matrix; suffixes k and M")] = None,
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
    threads_per_rank: Annotated[int, typer.Option("--threads-per-rank", min=1)] = 1,
    mapping: options.MappingWord = "sequential",
    mapping_seed: options.MappingSeed = None,
    hostfile: options.Hostfile = None,
    rankfile: options.Rankfile = None,
    settings: options.Settings = None,
    runs: Annotated[int, typer.Option("--runs", help="simulated runs")] = 10,
    seed: Annotated[int, typer.Option("--seed", help="run i uses seed + i")] = 1,
    fidelity: Annotated[str, typer.Option("--fidelity", help="auto, full or sampled")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="results in the form of HPL.out")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="a PNG of the runs")] = None,
    trace: Annotated[Path | None, typer.Option("--trace", help="kernels and messages of a run, Parquet")] = None,
    perfetto: Annotated[Path | None, typer.Option("--perfetto", help="the same for the Perfetto viewer, JSON")] = None,
    gantt: Annotated[Path | None, typer.Option("--gantt", help="the same as a picture, PNG")] = None,
    trace_ranks: Annotated[str | None, typer.Option("--trace-ranks", help="such as 0,5-7; else all that fit")] = None,
    trace_steps: Annotated[str | None, typer.Option("--trace-steps", help="such as 0,5-7; else all that fit")] = None,
) -> None:
    """Predicts the time and rate of HPL, with the 95 % prediction interval for one further run."""
    from lepaute.cli.predict_text import readable, summary
    from lepaute.cli.progress import progress_bar
    from lepaute.errors import InputError
    from lepaute.kit.quantities import count, grid_of, settings_of
    from lepaute.platform import load_platform, override
    from lepaute.simulate import predict_all
    from lepaute.simulate.hpl_dat import HplDat, read_hpl_dat
    from lepaute.simulate.hpl_out import report

    check_outputs(
        {"--output": output, "--plot": plot, "--trace": trace, "--perfetto": perfetto, "--gantt": gantt},
        inputs=[platform, dat, hostfile, rankfile],
    )
    if dat is not None:
        options.refuse_beside_dat(context)
        wanted = read_hpl_dat(dat)
        hpls = wanted.combinations(threads_per_rank)
    elif n is not None:
        p, q = grid_of(grid)
        one = options.hpl_of(
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
        hpls, wanted = [one], HplDat.of(one)
    else:
        raise InputError("say what to predict: --n N and further options, or --dat HPL.dat")
    if plot is not None and len(hpls) > 1:
        raise InputError(f"--plot shows one combination, and there are {len(hpls)}; shorten the lists of HPL.dat")
    request = narrowed(trace_request(trace_ranks, trace_steps, [trace, perfetto, gantt]), hpls)
    overrides = settings_of(settings or [])
    machine = load_platform(platform)
    if overrides:
        machine = override(machine, overrides)
    placed = options.mapping_of(mapping, mapping_seed, hostfile, rankfile, machine, threads_per_rank)
    run_s = foretold(hpls, machine, runs, placed, "full" if request and fidelity == "auto" else fidelity)
    try:
        with progress_bar(BAR_AFTER_S) as tell:
            predictions = predict_all(
                hpls,
                machine,
                runs=runs,
                seed=seed,
                settings=overrides,
                mapping=placed,
                fidelity=fidelity,
                trace=request,
                progress=lambda share: tell("simulating", share),
                run_s=run_s,
            )
    except KeyboardInterrupt:
        complain("interrupted")
        os._exit(INTERRUPTED)  # a normal exit would wait for the runs that are under way
    if plot is not None:
        predictions[0].plot(plot)
    write_trace_files(predictions[0].trace, trace, perfetto, gantt)
    if output is not None:
        write_whole(output, report(wanted, predictions, __version__))
    if as_json:
        found = [prediction.to_dict() for prediction in predictions]
        json.dump(found[0] if dat is None else {"predictions": found}, sys.stdout, indent=2)
        sys.stdout.write("\n")
    elif len(predictions) == 1:
        print(readable(predictions[0], machine))
    else:
        if output is None:
            print(report(wanted, predictions, __version__))
        print(summary(predictions))


app.command()(stencil)


def trace_request(ranks: str | None, steps: str | None, outputs: Sequence[Path | None]) -> "TraceRequest | None":
    """What to trace, None where no output needs it; raises InputError for a choice of ranks without an output."""
    from lepaute.errors import InputError
    from lepaute.kit.quantities import numbers_of
    from lepaute.simulate.tracing import TraceRequest

    if all(path is None for path in outputs):
        if ranks is not None or steps is not None:
            raise InputError("--trace-ranks and --trace-steps choose what a trace holds; ask for --trace FILE too")
        return None
    return TraceRequest(
        ranks=None if ranks is None else numbers_of(ranks, "--trace-ranks"),
        steps=None if steps is None else numbers_of(steps, "--trace-steps"),
    )


def narrowed(request: "TraceRequest | None", hpls: Sequence["Hpl"]) -> "TraceRequest | None":
    """The request, of a part of a large run, which is then told on standard error."""
    if request is None or len(hpls) > 1:
        return request
    request.check(hpls[0])
    found = request.narrowed(hpls[0])
    told = []
    if found.ranks is not None and request.ranks is None:
        told.append(f"{len(found.ranks)} of {hpls[0].ranks} ranks (first process row and column; --trace-ranks)")
    if found.steps is not None and request.steps is None:
        told.append(f"steps {found.steps[0]} to {found.steps[-1]} (--trace-steps)")
    if told:
        print(f"lepaute: the trace of the whole run would be too long; traced are {', '.join(told)}", file=sys.stderr)
    return found


def write_trace_files(trace: "Trace | None", parquet: Path | None, perfetto: Path | None, gantt: Path | None) -> None:
    """Writes what is asked for, and tells on standard error what is in it."""
    if trace is None:
        return
    from lepaute.trace import write_trace
    from lepaute.trace.gantt import plot_gantt
    from lepaute.trace.perfetto import write_perfetto

    if parquet is not None:
        write_trace(trace, parquet)
        print(
            f"{parquet}: {len(trace)} calls of {len(trace.ranks)} ranks; lepaute trace show {parquet}", file=sys.stderr
        )
    if perfetto is not None:
        count = write_perfetto(trace, perfetto)
        print(f"{perfetto}: {count} events; open it at ui.perfetto.dev", file=sys.stderr)
    if gantt is not None:
        window = plot_gantt(trace, gantt)
        print(f"{gantt}: {len(window.ranks)} ranks from {window.low_s:.6g} to {window.high_s:.6g} s", file=sys.stderr)


def foretold(
    hpls: Sequence["Hpl"], machine: "Platform", runs: int, mapping: "Mapping", fidelity: str
) -> list[float] | None:
    """Seconds that a run of each will take, where it matters; a long prediction is announced on standard error."""
    from lepaute.kit.quantities import duration_of
    from lepaute.simulate.estimate import WORTH_TELLING_S, available_cores, estimated_wall_s
    from lepaute.simulate.predict import expected_run_s

    run_s = expected_run_s(hpls, machine, runs=runs, mapping=mapping, fidelity=fidelity)
    if run_s is None:
        return None
    cores = available_cores()
    wall_s = estimated_wall_s(run_s, runs, cores)
    if wall_s > WORTH_TELLING_S:
        what = f"{len(hpls)} combination(s) x {runs} run(s)" if len(hpls) > 1 else f"{runs} run(s)"
        print(f"lepaute: this will take about {duration_of(wall_s)}: {what} on {cores} core(s)", file=sys.stderr)
    return run_s
