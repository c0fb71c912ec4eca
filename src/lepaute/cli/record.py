"""`lepaute record`: a real run, its kernels and messages in the trace format."""

from pathlib import Path
from typing import Annotated

import typer

from lepaute.cli.options import Force
from lepaute.cli.terminal import interrupt_on_sigterm, note
from lepaute.cli.trace import write_with_warnings
from lepaute.kit.files import check_output, is_stream
from lepaute.kit.outputs import check_outputs


def command(
    words: Annotated[
        list[str], typer.Argument(metavar="-- mpirun ... PROGRAM", help="The command to run.", show_default=False)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The trace to write.")] = Path("trace.parquet"),
    mpicc: Annotated[
        Path | None,
        typer.Option(help="The program's MPI library, by its compiler, prefix or name; by default that of mpirun."),
    ] = None,
    dat: Annotated[Path | None, typer.Option(help="Input file of xhpl-lepaute; by default HPL.dat.")] = None,
    solve: Annotated[int, typer.Option(help="Which of the runs in HPL.dat, from 1.", min=1)] = 1,
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
    from lepaute.measure.record import record

    check_outputs({"--output": output}, inputs=[dat], force=force)
    interrupt_on_sigterm()
    recording = record(
        words,
        workspace=Path() if is_stream(check_output(output)) else output.parent,
        mpicc=mpicc,
        dat=dat,
        solve=solve,
        every_call=every_call,
        progress=note,
    )
    write_with_warnings(recording.trace, output)
    if recording.returncode != 0:
        note(f"lepaute: the program failed (exit status {recording.returncode})")
        raise typer.Exit(1)
