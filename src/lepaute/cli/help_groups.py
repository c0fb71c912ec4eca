"""Options of a command's help under headings: what everybody needs first, the twelve options of HPL.dat last.

An option has one heading in all commands, and its place below it. It stands without one in a command of few options,
and where it would be alone.
"""

from typing import Any

#: Fewer options than this stand in one list, in the order of the command.
FEW_OPTIONS = 14
#: What an option without a heading stands under.
OTHER = "Options"
#: Headings in their order, with the options below them.
GROUPS: dict[str, tuple[str, ...]] = {
    heading: tuple(names.split())
    for heading, names in (
        ("Problem", "n memory-fraction nb grid cells iterations threads-per-rank dat np source make binary "
         "time-pattern solve"),
        ("Platform", "platform set lag any transfer like"),
        ("What is measured", "methods after simulate ops sizes datatype op root compute cold factor"),
        (OTHER, ""),
        ("How precisely", "precision budget sessions every mpiruns calls warm-up limit repeats"),
        ("Clocks", "clock-method clock synchronisation"),
        ("Verdict", "margin enough correction primary left right fail-if-slower strict measure-only tolerance "
         "level least-change confidence pooled window"),
        ("Nodes", "scheduler nodes count ranks-per-node job queue walltime constraint account image "
         "ssh-config python switches"),
        ("Where ranks run", "mapping mapping-seed hostfile rankfile map-hosts"),
        ("Simulated runs", "runs seed without fidelity against parts workers"),
        ("Program", "fold private shared-globals skip computing collectives contention memory-share stack stall "
         "timeout every-probe"),
        ("Output", "output report plot scaling json csv latex details quiet archive archives keep-folders "
         "resume force help"),
        ("Trace of a run", "trace perfetto gantt trace-ranks trace-steps"),
        ("HPL.dat", "depth bcast swap swap-threshold pfact rfact nbmin ndiv pmap l1 u equil align"),
    )
}  # fmt: skip
#: Headings of commands that have the first of their options; elsewhere the others mean something of their own.
_NEEDS_FIRST = ("Clocks", "Nodes", "Simulated runs", "Program", "Trace of a run", "HPL.dat")
_PLACES = {name: (heading, at) for heading, names in GROUPS.items() for at, name in enumerate(names)}


def write_parameters(command: Any, context: Any, formatter: Any) -> None:
    """Writes arguments and options of a command, in the place of Typer's one list."""
    arguments: list[tuple[str, str]] = []
    options: dict[str, tuple[str, str]] = {}
    for each in command.get_params(context):
        record = each.get_help_record(context)
        if record is not None and each.param_type_name == "argument":
            arguments.append(record)
        elif record is not None:
            options[name_of(each)] = record
    for heading, records in (("Arguments", arguments), *grouped(options).items()):
        if records:
            with formatter.section(heading):
                formatter.write_dl(records)


def grouped(options: dict[str, tuple[str, str]]) -> dict[str, list[tuple[str, str]]]:
    """What is printed of the options, by heading; the keys are names as `name_of` has them."""
    if len(options) < FEW_OPTIONS:
        return {OTHER: list(options.values())}
    names: dict[str, list[str]] = {heading: [] for heading in GROUPS}
    for name in options:
        heading, _ = _PLACES.get(name, (OTHER, 0))
        belongs = heading not in _NEEDS_FIRST or GROUPS[heading][0] in options
        names[heading if belongs else OTHER].append(name)
    alone = [below[0] for heading, below in names.items() if len(below) == 1 and heading != OTHER]
    return {
        heading: [options[name] for name in options if name in {*below, *alone}]
        if heading == OTHER
        else [options[name] for name in sorted(below, key=_PLACES.__getitem__) if name not in alone]
        for heading, below in names.items()
    }


def name_of(parameter: Any) -> str:
    """The first long spelling, without its dashes."""
    return long_name(parameter).lstrip("-")


def long_name(parameter: Any) -> str:
    """The first long spelling; of an argument its name."""
    return str(next((each for each in parameter.opts if each.startswith("--")), parameter.opts[0]))
