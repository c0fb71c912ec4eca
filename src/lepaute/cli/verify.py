"""`lepaute verify hpl`: predict HPL, run the real one here or on nodes, show both and the error; or use an HPL.out.

`verify_command` has the same for any other application and the command that runs it.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import typer

from lepaute.cli.options import COMBINATIONS, App, Force, flags_of, is_given, reject_other_options, with_options_of
from lepaute.cli.predict import announced
from lepaute.cli.prediction_text import MAX_KERNELS, shares_of_time
from lepaute.cli.run import PythonOnNodes, SchedulerName
from lepaute.cli.simulation import applications_of, platform_of
from lepaute.cli.terminal import BAR_AFTER_S, note, progress_bar, say, warn
from lepaute.cli.verify_campaign import VerifyOptions, check_folder, end_by_tolerance, print_results, verified
from lepaute.cli.verify_command import app_of_commands
from lepaute.cli.verify_site import spread, where_of
from lepaute.errors import InputError
from lepaute.kit.extras import need
from lepaute.kit.files import write_atomic
from lepaute.kit.outputs import check_output_folder, check_outputs
from lepaute.kit.quantities import grid_of, whole_of
from lepaute.kit.report.page import check_page_name
from lepaute.measure.schedulers import Request
from lepaute.simulate import Mapping, Prediction, PredictionRequest, predict_all
from lepaute.simulate.apps.hpl import Hpl, HplFiles
from lepaute.simulate.apps.hpl.hpl_dat import read_hpl_dat
from lepaute.simulate.apps.hpl.hpl_out import SAID_BY_LINES

_RUNS_OF_RESULTS = 10
#: Arguments of the command that --results goes with, besides those of Hpl that no line of results says.
_WITH_RESULTS = frozenset(
    "results dat platform settings runs seed tolerance details as_json output report force ranks_per_node".split()
)


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """The command group: with what the arguments name, or with all."""
    app = App(help="Predict, run the real application here or on nodes, show both and the error.")
    if arguments[:1] != ["command"]:
        app.command()(hpl)
    if arguments[:1] != ["hpl"]:
        app.add_typer(app_of_commands(arguments[1:]), name="command")
    return app


@with_options_of(Hpl, "values", leave_out=("n", "p", "q"), several=Hpl.about.several, make=dict)
def hpl(
    context: typer.Context,
    values: dict[str, Any],
    options: VerifyOptions,
    request: Request,
    scheduler: SchedulerName = None,
    python: PythonOnNodes = None,
    force: Force = False,
) -> None:
    """Predicts HPL, seals the predictions, runs the real HPL in shuffled order, and compares.

    With --nodes or --scheduler it runs on those nodes, core by core and node by node as predicted.
    Real runs that other load disturbed are marked and made again, at most three times, and for no longer than the
    planned runs took (or a minute). Close other programs meanwhile.
    Each run is kept as it ends: the same command with --resume goes on with a campaign that was interrupted.
    With --results it compares an HPL.out with predictions of its cases, and runs nothing.
    """
    from lepaute.measure.verify.real_run import build_program, check_machine, user_program

    check_page_name(options.report)
    inputs = (options.dat, options.results, options.platform, options.xhpl)
    check_outputs({"--report": options.report}, inputs, force=force)
    if options.results is not None:
        table = _compared_with_results(context, options.results, values, options)
    else:
        if options.calibrate == (options.platform is not None):
            raise InputError("give either -p PLATFORM, or --calibrate to measure this machine first")
        if options.quick and not options.calibrate:
            raise InputError("--quick applies to the calibration; give --calibrate as well")
        if options.calibrate:
            need("fit", "--calibrate")
        where = where_of(scheduler, request, python, options.ranks_per_node, other_machine=options.other_machine)
        check_folder(options)
        cases = _cases_of(context, values, options)
        for case in cases if where.is_here else ():
            check_machine(case)
        program = partial(build_program, note)
        if options.xhpl is not None:
            program = partial(user_program, options.xhpl, here=where.is_here)
        place, sizes = "this machine" if where.is_here else "the nodes", {case.nb for case in cases}
        block_size = f", NB = {sizes.pop()}" if len(sizes) == 1 else ""
        table = verified(cases, program, options, where, f"HPL on {place}{block_size}: predicted and measured")
    end_by_tolerance(table, options)


def _cases_of(context: typer.Context, values: dict[str, Any], options: VerifyOptions) -> list[Hpl]:
    """The cases of an HPL.dat, each once, or those of the options: all orders on each grid, by all other values."""
    further = values.pop(COMBINATIONS)
    if options.dat is None:
        return [
            Hpl(n=order, p=p, q=q, **values | others)
            for p, q in (grid_of(text, "--grid") for text in options.grid.split(","))
            for order in (whole_of(word, "n") for word in options.n.split(","))
            for others in further
        ]
    machine = lambda: platform_of(options.platform or "", None)[0]  # noqa: E731
    cases, _ = applications_of(context, Hpl, values, HplFiles(options.dat), machine)
    return [case for case in dict.fromkeys(cases) if isinstance(case, Hpl)]


def _compared_with_results(
    context: typer.Context, results: Path, values: dict[str, Any], options: VerifyOptions
) -> Any:
    """Predicts the cases of the file, prints both, and saves the comparison where a folder was asked for; its table.

    Ends by the verdict, with --tolerance only where HPL itself calls a result wrong.
    Raises InputError for options that would run something, or that say otherwise than the file.
    """
    from lepaute.measure.verify.known_results import CAUSES, FILES, known_results
    from lepaute.measure.verify.verification import JSON_FILE, PLOT_FILE, check_unused

    given = _known_otherwise(context, values)
    dat = None if options.dat is None else read_hpl_dat(options.dat)
    if options.platform is None:
        raise InputError("--results are compared with the predictions of a platform; give it with -p PLATFORM")
    folder = options.output if is_given(context, "output") else None
    if folder is not None:
        check_output_folder(folder, "--output")
        check_unused(folder, FILES)
    machine, overrides = platform_of(options.platform, options.settings)
    runs = _RUNS_OF_RESULTS if options.runs is None else options.runs

    def predict(cases: Sequence[Hpl], repeat: int) -> "Sequence[Prediction]":
        mapping, per_node = Mapping(), options.ranks_per_node
        if per_node is not None:
            nodes = -(-max(case.ranks for case in cases) // per_node)
            mapping = spread(machine, nodes, per_node, cases[0].threads_per_rank)
        request = PredictionRequest(runs=runs, seed=options.seed, repeat=repeat, applied=overrides, mapping=mapping)
        run_s = announced(cases, machine, request)
        with progress_bar(BAR_AFTER_S) as tell:
            return predict_all(cases, machine, request, progress=lambda share: tell("simulating", share), run_s=run_s)

    known = known_results(results, given, predict, machine, options.ranks_per_node, dat)
    warn(known.warnings())
    judged = known.verdict
    # A case that is off, where to look for the cause, and the best cases.
    where = [] if judged.case is None else shares_of_time(judged.case.prediction, MAX_KERNELS)
    parts = [*judged.lines, *zip(("where", ""), where, strict=False)]
    facts = [f"  {name:<7} {text}" for name, text in parts]
    warnings_in = "--json" if folder is None else JSON_FILE
    try:
        if not options.as_json:
            say(f"{judged.text}.")
        if known.cases or options.as_json:
            print_results(known, warnings_in, options, [*facts, *known.bests()], causes=CAUSES)
    finally:  # whoever does not read the results to their end has them in the folder
        if folder is not None:
            known.save(folder)
        if options.report is not None:
            from lepaute.measure.verify.report import page

            title = f"HPL: predicted, and as in {known.source}"
            beside = [*known.warnings(), *map(": ".join, judged.lines), *known.bests()]
            write_atomic(options.report, page(known, title, CAUSES, beside, answer=judged.text, where=where))
    if folder is not None and not options.as_json and known.cases:
        say(f"Picture: {folder / PLOT_FILE}.")
    if status := judged.status(limited=options.tolerance is not None):
        raise typer.Exit(status)
    return known.table


def _known_otherwise(context: typer.Context, values: dict[str, Any]) -> dict[str, Any]:
    """Fields of Hpl that a line of results does not say, as the command line has them.

    Raises InputError for options that go with real runs, or that each line of results decides.
    """
    flags = {flag.argument: flag.fields[0].name for flag in flags_of(Hpl)}
    free = {argument for argument, field in flags.items() if field not in SAID_BY_LINES}
    reject_other_options(context, _WITH_RESULTS | free, "--results runs nothing and brings its own cases")
    if len(values.pop(COMBINATIONS)) > 1:
        raise InputError("--results are of one choice of what their lines do not say; give one value of each option")
    return {flags[argument]: values[flags[argument]] for argument in free if is_given(context, argument)}
