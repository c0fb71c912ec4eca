"""`lepaute record`: a real run, its kernels and messages in the trace format."""

from pathlib import Path
from typing import Annotated

import typer

from lepaute.cli.options import Force


def command(
    words: Annotated[
        list[str], typer.Argument(metavar="-- mpirun ... PROGRAM", help="The command to run.", show_default=False)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The trace to write.")] = Path("trace.parquet"),
    mpicc: Annotated[
        Path | None,
        typer.Option(
            "--mpicc", help="The program's MPI library, by its compiler, prefix or name; by default that of mpirun."
        ),
    ] = None,
    dat: Annotated[Path | None, typer.Option("--dat", help="Input file of xhpl-lepaute; by default HPL.dat.")] = None,
    solve: Annotated[int, typer.Option("--solve", help="Which of the runs in HPL.dat, from 1.", min=1)] = 1,
    every_call: Annotated[
        bool, typer.Option("--every-call", help="Record each unsuccessful probe, instead of merging successive ones.")
    ] = False,
    force: Force = False,
) -> None:
    """Runs a program under MPI and records its MPI and BLAS calls, at some ten nanoseconds each.

    lepaute record -o trace.parquet -- mpirun -np 2 PROGRAM. The program must use its MPI and BLAS as shared libraries.
    The word xhpl-lepaute is the HPL that is built here, whose own loops and phases are recorded too; it reads HPL.dat.
    Exit status 1 where the program fails; the trace then holds what it did until then.
    """
    import signal
    import sys

    from lepaute.kit.files import check_output, is_stream
    from lepaute.kit.outputs import check_outputs
    from lepaute.measure.record import record
    from lepaute.trace import write_trace

    check_outputs({"--output": output}, inputs=[dat], force=force)
    # A batch system ends a job with SIGTERM: the ranks must end too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    recording = record(
        words,
        workspace=Path() if is_stream(check_output(output)) else output.parent,
        mpicc=mpicc,
        dat=dat,
        solve=solve,
        every_call=every_call,
        progress=lambda what: print(what, file=sys.stderr),
    )
    write_trace(recording.trace, output)
    for warning in recording.trace.metadata["warnings"]:
        print(f"warning: {warning}", file=sys.stderr)
    ranks = len(recording.trace.ranks)
    print(f"{output}: {len(recording.trace)} calls of {ranks} ranks; lepaute trace show {output}", file=sys.stderr)
    if recording.returncode != 0:
        print(f"lepaute: the program failed (exit status {recording.returncode})", file=sys.stderr)
        raise typer.Exit(1)
