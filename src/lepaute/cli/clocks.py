"""`lepaute clocks`: how well clocks are brought together, measured here, on nodes or simulated, and by which method."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lepaute.cli.options import (
    DETAILS_HELP,
    FORCE_HELP,
    argument,
    arguments_of,
    option,
    refuse_options,
    reject_other_options,
)
from lepaute.cli.run import PythonOnNodes, SchedulerName
from lepaute.cli.terminal import json_text, note, notes_printed, progress_bar, say, tell
from lepaute.errors import InputError
from lepaute.kit.files import write_atomic
from lepaute.kit.options import SHARE, TIME, option_field
from lepaute.kit.outputs import check_archive_output, check_outputs
from lepaute.kit.picture import files_of
from lepaute.kit.printable import terminal_columns
from lepaute.kit.quantities import seconds_of
from lepaute.kit.report.page import check_page_name
from lepaute.kit.tables import shown_table
from lepaute.kit.text import counted
from lepaute.measure.archive import Archive
from lepaute.measure.schedulers import Request
from lepaute.simulate.platform import load_platform

if TYPE_CHECKING:
    from lepaute.measure.clocks.comparison import Found

#: Whose nodes a simulation is on, unless told.
PLATFORM = "dahu-2020-01"


@dataclass(frozen=True)
class ClockOptions:
    """What is measured, or simulated."""

    ranks: int | None = option_field(None, "Ranks; default: 2 here, on nodes all slots.", name="np", also=("--ranks",))
    methods: str = option_field("SKaMPI,Netgauge,JK,HCA,HCA2,HCA3", "Which methods are measured.", metavar="METHOD,...")
    after: str = option_field(
        "0,5,10,20", "When the errors are looked at, after each synchronisation; the first is 0.", metavar="TIME,..."
    )
    clock: str = option_field("clock_gettime", "MPI_Wtime, clock_gettime or rdtscp.", metavar="CLOCK")
    mpiruns: int | None = option_field(None, "Starts of mpirun; default: as many as --budget allows; simulated 20.")
    budget_s: float = option_field("5min", "Time for all mpiruns together.", **TIME)
    simulate: str | None = option_field(
        None,
        "Simulate RANKS ranks whose clocks drift by up to PPM ppm instead; a third value makes the drift wander: 64,1 "
        "or 64,1,0.05.",
        metavar="RANKS,PPM[,PPM]",
    )
    platform: str | None = option_field(None, f"To simulate; default: {PLATFORM}.", name="platform", also=("-p",))
    ranks_per_node: int | None = option_field(None, "Ranks on each node.", minimum=1)
    hostfile: Path | None = option_field(None, "Nodes and ranks of each, by ssh: lines as host slots=N or host:N.")
    seed: int = option_field(1, "Seed of the order of methods, and of simulated clocks.", minimum=0)
    resume: bool = option_field(False, "Resume an interrupted measurement.")


@dataclass(frozen=True)
class ClockAnswer:
    """What is made of the measurement."""

    margin: float = option_field(
        "25%", "Choose the cheapest method whose error is shown to be at most this far above the smallest.", **SHARE
    )
    enough_s: float = option_field(
        "100ns", "Errors shown to be at most this count as equal to the smallest.", metavar="TIME", quantity=seconds_of
    )
    report: Path | None = option_field(None, "The answer as a page.", metavar="FILE.html")
    plot: Path | None = option_field(None, "Error over time, and against duration: .png, .svg or .pdf.", metavar="FILE")
    details: bool = option_field(False, DETAILS_HELP)
    as_json: bool = option_field(False, "Print all of it as one JSON object.", name="json")
    force: bool = option_field(False, FORCE_HELP)


#: Parameters that an answer uses, and a simulation.
_ANSWERING = arguments_of(ClockAnswer)
_SIMULATING = {"simulate", "platform", "methods", "after", "mpiruns", "seed", "output"}


def command(
    context: typer.Context,
    what: Annotated[
        str | None,
        argument(
            "[LIBRARY]",
            "The MPI library, as lepaute compare names one (openmpi, mpich, a prefix, a compiler wrapper); "
            "default: that of the mpicc on PATH. ARCHIVE.zip: says what a measurement holds.",
        ),
    ] = None,
    *,
    options: ClockOptions,
    request: Request,
    answer: ClockAnswer,
    output: Annotated[Path, option("Archive to write.", "--output", "-o")] = Path("clocks.zip"),
    scheduler: SchedulerName = None,
    python: PythonOnNodes = None,
) -> None:
    """Measures how far off the clocks of ranks are, by each method that synchronises them, and recommends one.

    Every mpirun synchronises by all methods, in shuffled order, then measures the errors; everything is
    archived. The answer says which method to take for how long a measurement, how far off clocks are then, and what a
    synchronisation takes.
    """
    from lepaute.measure.clocks.campaign import measure_clocks
    from lepaute.measure.clocks.comparison import compared
    from lepaute.measure.clocks.request import ClockRequest, methods_of, moments_of, simulated_of
    from lepaute.measure.clocks.simulated import simulate_clocks
    from lepaute.measure.comparison.measuring import asked_place

    check_page_name(answer.report)
    outputs = {"--report": answer.report, "--plot": files_of(answer.plot)}
    if what is not None and what.endswith(".zip"):
        reject_other_options(context, {"what", *_ANSWERING}, "an archive is measured already")
        check_outputs(outputs, inputs=[what], force=answer.force)
        archive = Archive.open(what)
    else:
        if options.simulate is not None:
            used = _SIMULATING | _ANSWERING
            reject_other_options(context, used, "--simulate says how many ranks and measures nothing")
        elif options.platform is not None:
            raise InputError("--platform is of a simulation; give --simulate, too")
        if options.mpiruns is not None:
            refuse_options(context, ("budget_s",), "--mpiruns says how much is measured")
        check_outputs({"--output": output, **outputs}, inputs=[options.hostfile], force=answer.force)
        check_archive_output(output, force=answer.force)
        known = options.simulate
        ranks, drift_ppm, wander_ppm = (options.ranks, None, 0.0) if known is None else simulated_of(known)
        clock_request = ClockRequest(
            methods=methods_of(options.methods),
            after_s=moments_of(options.after),
            ranks=ranks,
            clock=options.clock,
            mpiruns=options.mpiruns,
            budget_s=options.budget_s,
            drift_ppm=drift_ppm,
            wander_ppm=wander_ppm,
        )
        with notes_printed(), progress_bar() as tell:
            if options.simulate is not None:
                platform = load_platform(PLATFORM if options.platform is None else options.platform)
                path = simulate_clocks(output, clock_request, platform, seed=options.seed, progress=tell)
            else:
                name, nodes, slots = asked_place(options.hostfile, scheduler, request, options.ranks_per_node)
                path = measure_clocks(
                    output,
                    clock_request,
                    library=what,
                    slots=slots or options.ranks_per_node,
                    seed=options.seed,
                    progress=tell,
                    scheduler=name,
                    request=nodes,
                    python=python,
                    resume=options.resume,
                )
        archive = Archive.open(path)
        note(f"wrote {path}: archive {archive.id[:12]}, {counted(len(archive.members()), 'member')}")
    _show(compared(archive, margin=answer.margin, enough_s=answer.enough_s), answer, archive.path)


def _show(found: "Found", options: ClockAnswer, archive: Path) -> None:
    from lepaute.measure.clocks import report

    if options.report is not None:
        write_atomic(options.report, report.page(found, report.command_of(found, archive)))
        note(f"wrote {options.report}")
    if options.plot is not None:
        report.write_plot(found, options.plot)
        note("wrote " + ", ".join(map(str, files_of(options.plot) or ())))
    if options.as_json:
        print(json_text({"answer": report.answer(found), **found.to_dict()}))
        return
    tell(report.answer(found), report.fact_lines(found), found.caveats, details=options.details)
    print(shown_table(*report.methods_table(found), terminal_columns()))
    if options.details:
        say("\n".join(report.detail_lines(found)))
