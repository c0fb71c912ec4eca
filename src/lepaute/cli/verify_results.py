"""`lepaute verify hpl --results HPL.out`: predictions against results that exist already; nothing is run."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from lepaute.cli.options import is_given
from lepaute.cli.simulation import platform_of

if TYPE_CHECKING:
    from lepaute.platform import Platform
    from lepaute.simulate import Hpl, Prediction
    from lepaute.verify.known_results import KnownResults

#: Arguments of the command that --results goes with, besides those of Hpl that no line of results says.
ALLOWED = frozenset(
    {"results", "dat", "platform", "settings", "runs", "seed", "tolerance", "as_json", "output_dir", "ranks_per_node"}
)


def compare_results(
    context: typer.Context,
    results: Path,
    dat: Path | None,
    values: dict[str, Any],
    platform: str | None,
    settings: list[str] | None,
    *,
    runs: int,
    seed: int,
    ranks_per_node: int | None,
    as_json: bool,
    output_dir: Path,
    tolerance: float | None,
) -> None:
    """Predicts the cases of the file, prints both, and writes the comparison where a folder was asked for.

    Raises InputError for options that would run something, or that say otherwise than the file, and typer.Exit where
    an error exceeds the tolerance.
    """
    from lepaute.cli.predict import announced
    from lepaute.cli.terminal import BAR_AFTER_S, progress_bar
    from lepaute.errors import InputError
    from lepaute.kit.outputs import check_output_folder
    from lepaute.simulate import Mapping, predict_all
    from lepaute.verify.known_results import CAUSES, FILES, known_results
    from lepaute.verify.report import show, warning_lines
    from lepaute.verify.verification import JSON_FILE, PLOT_FILE, check_unused, exceeds

    given = known_otherwise(context, values, dat)
    if platform is None:
        raise InputError("--results are compared with the predictions of a platform; give it with -p PLATFORM")
    saved = is_given(context, "output_dir")
    if saved:
        check_output_folder(output_dir, "--output-dir")
        check_unused(output_dir, FILES)
    machine, overrides = platform_of(platform, settings)

    def predict(cases: "Sequence[Hpl]", repeat: int) -> "Sequence[Prediction]":
        mapping = Mapping()
        if ranks_per_node is not None:
            from lepaute.cli.verify_site import spread

            threads = cases[0].threads_per_rank
            nodes = -(-max(case.ranks for case in cases) // ranks_per_node)
            mapping = spread(machine, nodes, ranks_per_node, threads)
        run_s = announced(cases, machine, runs, mapping)
        with progress_bar(BAR_AFTER_S) as tell:
            return predict_all(
                cases,
                machine,
                runs=runs,
                seed=seed,
                repeat=repeat,
                applied=overrides,
                mapping=mapping,
                progress=lambda share: tell("simulating", share),
                run_s=run_s,
            )

    known = known_results(results, given, predict)
    for line in (*known.warnings(), *doubts(known, machine)):
        print(f"warning: {line}", file=sys.stderr)
    try:
        if as_json:
            json.dump(known.to_dict(), sys.stdout, indent=2)
            print()
        else:
            for line in warning_lines(known.cases, JSON_FILE if saved else "--json"):
                print(line, file=sys.stderr)
            show(known.table, known.run_table, sys.stdout, causes=CAUSES)
            print("".join(f"{line}\n" for line in gap_lines(known, machine)), end="")
            print("".join(f"{line}\n" for line in known.bests()), end="")
        sys.stdout.flush()
    finally:  # whoever does not read the results to their end has them in the folder
        if saved:
            known.save(output_dir)
    if saved and not as_json:
        print(f"Picture: {output_dir / PLOT_FILE}.")
    if tolerance is not None and exceeds(known.table, tolerance):
        raise typer.Exit(1)


def doubts(known: "KnownResults", machine: "Platform") -> list[str]:
    """Readings that no machine has."""
    from lepaute.verify.gap import impossible

    measured = zip(known.cases, known.table["measured_time_s"], strict=True)
    return [doubt for case, time_s in measured if (doubt := impossible(case, time_s, machine))]


def gap_lines(known: "KnownResults", machine: "Platform") -> list[str]:
    """The case furthest off its prediction, where to look for the cause, and where its predicted time goes."""
    from lepaute.cli.prediction_text import where_the_time_goes
    from lepaute.verify.gap import largest_gap

    gap = largest_gap(known.cases, known.table.to_dict("records"), machine)
    return [] if gap is None else [*gap[1], *where_the_time_goes(gap[0].prediction)]


def known_otherwise(context: typer.Context, values: dict[str, Any], dat: Path | None) -> dict[str, Any]:
    """Fields of Hpl that a line of results does not say, as the command line or an HPL.dat has them.

    Raises InputError for options that go with real runs, or that each line of results decides.
    """
    from lepaute.cli.options import flags_of
    from lepaute.errors import InputError
    from lepaute.simulate.apps.hpl.hpl_dat import read_hpl_dat
    from lepaute.simulate.apps.hpl.hpl_results import SAID_BY_LINES
    from lepaute.simulate.apps.hpl.parameters import Hpl, places

    flags = {flag.argument: flag.fields[0].name for flag in flags_of(Hpl)}
    free = {argument for argument, field in flags.items() if field not in SAID_BY_LINES}
    wrong = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name and is_given(context, parameter.name) and parameter.name not in ALLOWED | free
    ]
    if wrong:
        raise InputError(f"--results runs nothing and brings its own cases; leave out {', '.join(wrong)}")
    given = {flags[argument]: values[flags[argument]] for argument in free if is_given(context, argument)}
    if dat is None:
        return given
    known = read_hpl_dat(dat).values
    return {name: known[name][0] for name, _ in places() if name not in SAID_BY_LINES} | given
