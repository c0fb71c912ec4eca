"""`lepaute emulate hpl`: HPL's own code on a simulated machine."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from lepaute.cli import hpl_options as options
from lepaute.kit.outputs import check_outputs


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
    runs: Annotated[int, typer.Option("--runs", help="simulated runs")] = 1,
    seed: Annotated[int, typer.Option("--seed", help="run i uses seed + i")] = 1,
    timeout: Annotated[float, typer.Option("--timeout", help="wall seconds of a run")] = 3600.0,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
    trace: Annotated[Path | None, typer.Option("--trace", help="kernels and messages of a run, Parquet")] = None,
    gantt: Annotated[Path | None, typer.Option("--gantt", help="the same as a picture, PNG")] = None,
) -> None:
    """Emulates the real HPL with simulated kernels: what `predict hpl` predicts, by its own code."""
    import signal
    import tempfile

    from lepaute.cli.emulate_text import tell_progress
    from lepaute.cli.emulate_trace import Wanted
    from lepaute.cli.predict_text import readable
    from lepaute.errors import InputError
    from lepaute.kit.quantities import count, grid_of, settings_of
    from lepaute.measure.hpl_source import source_key, unpack_source
    from lepaute.platform import load_platform, override
    from lepaute.simulate.hpl_dat import read_hpl_dat
    from lepaute.simulate.smpi.hpl import START_S, build_hpl_smpi, emulate_hpl
    from lepaute.simulate.smpi.process import Limits

    check_outputs({"--trace": trace, "--gantt": gantt}, inputs=[platform, dat, hostfile, rankfile])
    if dat is not None:
        options.refuse_beside_dat(context)
        hpls = read_hpl_dat(dat).combinations(threads_per_rank)
    elif n is not None:
        p, q = grid_of(grid)
        hpls = [
            options.hpl_of(
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
        ]
    else:
        raise InputError("say what to emulate: --n N and further options, or --dat HPL.dat")
    # A batch system ends a job with SIGTERM: SimGrid's process must end too, and its folder go.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    overrides = settings_of(settings or [])
    machine = load_platform(platform)
    if overrides:
        machine = override(machine, overrides)
    placed = options.mapping_of(mapping, mapping_seed, hostfile, rankfile, machine, threads_per_rank)
    program = build_hpl_smpi(unpack_source, source_key())
    with tempfile.TemporaryDirectory(prefix="lepaute-emulate-") as temporary, tell_progress() as on_progress:
        wanted = Wanted(trace, gantt, Path(temporary))
        predictions = [
            emulate_hpl(
                one,
                machine,
                program,
                runs=runs,
                seed=seed,
                settings=overrides,
                mapping=placed,
                limits=Limits(timeout),
                progress=on_progress,
                keep=wanted.keep if one is hpls[0] else None,
            )
            for one in hpls
        ]
        metadata = {"application": "hpl", "platform": machine.name, "seed": seed, "ranks": hpls[0].ranks}
        wanted.write(metadata, (START_S, START_S + predictions[0].run_list[0].time_s))
    if as_json:
        found = [prediction.to_dict() for prediction in predictions]
        json.dump(found[0] if dat is None else {"predictions": found}, sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        print("\n".join(readable(prediction, machine) for prediction in predictions))
