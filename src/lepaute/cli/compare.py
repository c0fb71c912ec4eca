"""`lepaute compare`: MPI libraries, measured side by side into an archive, and which is faster."""

from pathlib import Path
from typing import Annotated

import typer

from lepaute.cli.options import Force
from lepaute.kit.outputs import check_archive_output


def command(
    libraries: Annotated[
        list[str],
        typer.Argument(
            metavar="LIBRARY...",
            help="A name (openmpi, mpich), a prefix (/opt/mpi), a compiler wrapper, or module:NAME; or LABEL= and one. "
            "One or two archives (LEFT.zip RIGHT.zip): compares what they hold. Two files, or LABEL=FILE, of what the "
            "OSU or the Intel MPI benchmarks printed: compares these as far as they go.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Archive to write.")] = Path("comparison.zip"),
    ops: Annotated[
        str,
        typer.Option(
            metavar="OP,...",
            help="Operations, such as bcast; ibcast: nonblocking; bcast_init: persistent; scan_in_place: MPI_IN_PLACE.",
        ),
    ] = "bcast,allreduce",
    sizes: Annotated[
        str, typer.Option(metavar="FROM:TO", help="Message sizes in bytes, a range or a list such as 8,64K.")
    ] = "1:1M",
    np: Annotated[int, typer.Option("--np", help="Ranks.")] = 2,
    datatype: Annotated[
        str,
        typer.Option(help="Of reductions, whose sizes are whole counts of it: byte, int8_t, int, long, float, double."),
    ] = "double",
    op: Annotated[
        str, typer.Option(help="Of reductions: sum, prod, max, min, band, bor, bxor, land, lor.", metavar="OP")
    ] = "sum",
    root: Annotated[int, typer.Option(help="Rank, of operations that have a root.", min=0)] = 0,
    compute: Annotated[
        str | None,
        typer.Option(
            help="Nonblocking operations also with so much work before they are waited for: shows what overlaps.",
            metavar="TIME",
        ),
    ] = None,
    precision: Annotated[
        str, typer.Option(help="Wanted half-width of the 95 % interval of a mean.", metavar="SHARE")
    ] = "2%",
    budget: Annotated[str, typer.Option(help="Time for all mpiruns together.", metavar="TIME")] = "5min",
    calls: Annotated[
        int | None, typer.Option(help="Calls of each case in an mpirun; derived from a trial unless given.")
    ] = None,
    mpiruns: Annotated[
        int | None, typer.Option(help="Starts of each library, whatever the budget; derived unless given.")
    ] = None,
    synchronisation: Annotated[
        str | None,
        typer.Option(
            help="Before each call: MPI_Barrier, dissemination, double, window or round-time (the default; "
            "dissemination where ranks share cores).",
            metavar="METHOD",
        ),
    ] = None,
    clock: Annotated[str, typer.Option(help="MPI_Wtime, clock_gettime or rdtscp.", metavar="CLOCK")] = "clock_gettime",
    clock_method: Annotated[
        str, typer.Option(help="SKaMPI, Netgauge, JK, HCA, HCA2 or HCA3.", metavar="METHOD")
    ] = "HCA",
    cold: Annotated[
        bool, typer.Option("--cold", help="Overwrite the private last-level cache before each call.")
    ] = False,
    warm_up: Annotated[int, typer.Option(help="Calls before each batch; kept, with negative numbers.")] = 5,
    limit: Annotated[
        str | None,
        typer.Option(
            help="Time after which an mpirun is ended; in proportion to its trial unless given.", metavar="TIME"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of sizes and of every order.", min=0)] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted campaign.")] = False,
    margin: Annotated[
        str, typer.Option(help="A difference that is certainly smaller counts as none.", metavar="SHARE")
    ] = "2%",
    correction: Annotated[
        str,
        typer.Option(
            help="Of the p-values of all rows: fdr bounds the share of false ones among the decided (Benjamini and "
            "Hochberg), holm the chance of any.",
            metavar="fdr|holm",
        ),
    ] = "fdr",
    primary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OP:SIZE",
            help="A row that counts most; the campaign is planned for these, corrected by themselves.",
        ),
    ] = None,
    left: Annotated[
        str | None, typer.Option(metavar="LABEL", help="The library to compare, where archives hold more than two.")
    ] = None,
    right: Annotated[str | None, typer.Option(metavar="LABEL", help="The one to compare it with.")] = None,
    fail_if_slower: Annotated[
        str | None,
        typer.Option(
            help="End with status 1 where the right library is shown to take longer than the left one by more.",
            metavar="SHARE",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="With --fail-if-slower: end with status 3 where a row is undecided.")
    ] = False,
    measure_only: Annotated[
        bool, typer.Option("--measure-only", help="Write the archive, and say nothing of which is faster.")
    ] = False,
    report: Annotated[
        list[Path] | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="The comparison: a page (.html), all data (.json), the rows (.csv), a LaTeX table (.tex), or a figure "
            "(.png, .svg, .pdf); several times.",
        ),
    ] = None,
    tune: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Measures a library with each of its algorithms; writes a file that chooses those shown faster.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as one JSON object.")] = False,
    force: Force = False,
) -> None:
    """Measures MPI libraries side by side on this machine, writes an archive with every call, and compares them.

    Several mpiruns of each library, in blocks in shuffled order; sizes and operations are shuffled inside. Close other
    programs first; `lepaute doctor` reports what would disturb. Archives given instead of libraries are compared, and
    so are files of what other benchmarks printed.
    """
    import signal
    import sys

    from lepaute.archive import Archive
    from lepaute.archive.mpi_campaign import facts
    from lepaute.cli.compare_tuning import variants_to_measure
    from lepaute.cli.compare_wanted import Wanted
    from lepaute.cli.terminal import notes_printed, progress_bar
    from lepaute.compare.verdicts import correction_of
    from lepaute.kit.quantities import share_of, time_of
    from lepaute.kit.text import counted, seconds
    from lepaute.measure.comparison.campaign import measure_libraries
    from lepaute.measure.comparison.reductions import reduction_of

    wanted = Wanted(
        left,
        right,
        share_of(margin, "--margin"),
        report or (),
        tune,
        measure_only,
        as_json,
        correction_of(correction),
        tuple(primary or ()),
        None if fail_if_slower is None else share_of(fail_if_slower, "--fail-if-slower"),
        strict,
        force,
    )
    if wanted.made_of_files(libraries):
        return
    wanted.check_measuring(libraries, output)
    if tune is not None:
        libraries, mpiruns = variants_to_measure(
            libraries[0], ops, sizes, np, seed, mpiruns, reduction_of(datatype, op)
        )
    # A batch system ends a job with SIGTERM: mpirun must end too, and what was measured be kept.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    check_archive_output(output, force=force)
    with notes_printed(), progress_bar() as tell:
        path = measure_libraries(
            libraries,
            output,
            ops=ops,
            sizes=sizes,
            ranks=np,
            precision=share_of(precision, "--precision"),
            budget_s=time_of(budget, "--budget"),
            synchronisation=synchronisation,
            clock=clock,
            clock_method=clock_method,
            cold=cold,
            warm_up=warm_up,
            calls=calls,
            mpiruns=mpiruns,
            limit_s=None if limit is None else time_of(limit, "--limit"),
            primary=primary or (),
            datatype=datatype,
            op=op,
            root=root,
            compute_s=None if compute is None else time_of(compute, "--compute"),
            seed=seed,
            progress=tell,
            resume=resume,
        )
    measured = Archive.open(path)
    about = facts(measured)
    for warning in measured.about.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if not as_json:
        for library in about.libraries:
            print(f"{library.label}: {library.family} {library.version} ({library.mpirun})")
        print(
            f"{counted(len(about.cases), 'case')}, {counted(about.mpiruns, 'mpirun')} of each library in "
            f"{seconds(about.spent_s)}; planned at least {seconds(about.planned_s)}"
        )
        print(f"{path}: archive {measured.id[:12]}, {len(measured.members())} members")
    wanted.make_of_measured(measured)
