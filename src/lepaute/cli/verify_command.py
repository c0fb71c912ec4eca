"""`lepaute verify command APPLICATION ... -- COMMAND`: predict it, run the command, compare the time that it prints."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from lepaute.cli.options import App, Force, argument, flags_of, with_options_of
from lepaute.cli.simulation import applications_of, note_unused, own_class, platform_of
from lepaute.cli.verify_campaign import VerifyOptions, check_folder, end_by_tolerance, verified
from lepaute.cli.verify_site import where_of
from lepaute.errors import InputError
from lepaute.kit.options import option_field
from lepaute.kit.outputs import check_outputs
from lepaute.kit.quantities import PATTERN_HELP
from lepaute.kit.report.page import check_page_name
from lepaute.measure.schedulers import Request
from lepaute.simulate import Application
from lepaute.simulate.application import Files
from lepaute.simulate.apps import APPLICATIONS, application_class
from lepaute.simulate.apps.own.loading import names_a_class

#: Options of `verify hpl` that are about HPL, nodes or a calibration.
_OF_HPL = ("n", "grid", "dat", "results", "xhpl", "ranks_per_node", "calibrate", "quick")
CAUSES = "the speed of the machine since it was calibrated, the platform, or what the application says of its computing"


@dataclass(frozen=True)
class CommandOptions(VerifyOptions):
    """Those of `verify hpl` that any campaign has, and the command's own."""

    platform: str | None = option_field(None, "platform file of this machine", also=("-p",))
    runs: int | None = option_field(None, "simulated runs of each case; default: 100")
    seed: int = option_field(1, "seed of the simulated runs and the order")
    output: Path = option_field(Path("lepaute-verify-command"), "folder for all files", also=("-o",))
    time_pattern: str | None = option_field(None, PATTERN_HELP)
    timeout: float | None = option_field(
        None, "wall seconds of a real run; default: 300, and ten times the predicted", minimum=1.0
    )


def app_of_commands(arguments: Sequence[str]) -> typer.Typer:
    """The command group: with the one application that the arguments name, or with all but HPL."""
    app = App(help="Predict an application, run a command that prints its time, show both and the error.")
    if arguments and names_a_class(arguments[0]):
        taken = {flag.argument for flag in flags_of(CommandOptions, _OF_HPL)} | {"words", "force"}
        app.command(arguments[0])(command_of(own_class(arguments[0], "verify command", taken)))
        return app
    names = [name for name in APPLICATIONS if name != "hpl"]
    for name in [name for name in arguments[:1] if name in names] or names:
        app.command(name)(command_of(application_class(name)))
    return app


def command_of(application: "type[Application]") -> Callable[..., None]:
    """The command that verifies an application: its options, those of a campaign, and the words of what is run."""

    @with_options_of(application, "values", several=application.about.several, make=dict)
    @with_options_of(CommandOptions, "options", leave_out=_OF_HPL)
    def command(
        context: typer.Context,
        values: dict[str, Any],
        options: CommandOptions,
        words: Annotated[list[str] | None, argument("-- COMMAND", "What is run, such as mpirun and a program.")] = None,
        force: Force = False,
    ) -> None:
        from lepaute.measure.verify.real_run import Command

        check_page_name(options.report)
        check_outputs({"--report": options.report}, (options.platform,), force=force)
        if not words:
            raise InputError("no command is given; write it after two dashes: -- mpirun -np 2 PROGRAM")
        if options.time_pattern is None:
            raise InputError(
                "what is compared is the time that the command prints; say where: --time-pattern 'time: (\\S+) s'"
            )
        if (name := options.platform) is None:
            raise InputError("give the platform of this machine with -p PLATFORM; lepaute calibrate makes it")
        real = Command(tuple(words), options.time_pattern, options.timeout)
        check_folder(options)
        machine = platform_of(name, options.settings)[0]
        cases, _ = applications_of(context, application, values, Files(), lambda: machine)
        for case in cases:
            real.check(case)
        if len({real.of(case) for case in cases}) < len(cases):
            raise InputError(
                f"the command is the same for several of {len(cases)} cases; let it name what varies, as in "
                "mpirun -np {ranks} PROGRAM {grid[0]}"
            )
        where = where_of(None, Request(), None, None, other_machine=options.other_machine)
        which = f", {cases[0].label}," if len(cases) == 1 else ""
        title = f"{cases[0].title}{which} on this machine: predicted and measured"
        verification = verified(cases, lambda: real, options, where, title, CAUSES)
        note_unused(context, application, [case.unused for case in cases])
        end_by_tolerance(verification, options)

    command.__doc__ = (
        f"Predicts {application.about.summary}, seals that, runs a command of yours in shuffled order, and compares."
        "\n\n"
        "The command is run on this machine as it stands, from this folder. {NAME} in it is a parameter of the case, "
        "{ranks} its number of ranks, {grid[0]} a part of one.\n"
        "Its time is the last that --time-pattern finds in what it prints.\n"
        "Real runs that other load disturbed are marked and made again, for no longer than the planned ones took.\n"
        "Each run is kept as it ends: the same command with --resume goes on with a campaign that was interrupted."
    )
    return command
