"""The options that commands which simulate share: the platform, the mapping of ranks, the trace."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lepaute.cli.option_fields import EACH, flags_of
from lepaute.kit.options import option
from lepaute.kit.quantities import lag_of

if TYPE_CHECKING:
    from lepaute.platform import Platform
    from lepaute.simulate import Application, Layers, Mapping
    from lepaute.simulate.conditions import Transfer
    from lepaute.simulate.tracing import TraceRequest
    from lepaute.trace import Trace


def platform_names() -> list[str]:
    """Those that are shipped, for shells that complete."""
    from lepaute.platform import shipped_names

    return list(shipped_names())


PlatformName = Annotated[
    str,
    typer.Option(
        "--platform", "-p", help="a platform file, or the name of a shipped one", autocompletion=platform_names
    ),
]
Settings = Annotated[list[str] | None, typer.Option("--set", help="FIELD=VALUE of the platform")]
Runs = Annotated[int, typer.Option("--runs", help="simulated runs")]
Seed = Annotated[int, typer.Option("--seed", help="run i uses seed + i")]
AsJson = Annotated[bool, typer.Option("--json", help="one JSON object on standard output")]


@dataclass(frozen=True)
class Placement:
    """Where ranks run, as the command line says it."""

    mapping: str = field(default="sequential", metadata=option("ranks to nodes: sequential or random"))
    mapping_seed: int | None = field(default=None, metadata=option("of a random mapping; 1 if not given"))
    hostfile: Path | None = field(default=None, metadata=option("slots for ranks: lines as host slots=N or host:N"))
    rankfile: Path | None = field(default=None, metadata=option("a place for each rank: rank 0=host slot=0:1"))
    map_hosts: str | None = field(
        default=None,
        metadata=option(
            "which node a host of a file is: by-number, that at the end of its name, unless given; in-order, the next",
            metavar="by-number|in-order",
        ),
    )

    @property
    def inputs(self) -> list[Path | None]:
        """Files that are read."""
        return [self.hostfile, self.rankfile]

    def on(self, platform: "Platform", threads: int) -> "Mapping":
        """The mapping that is meant; raises InputError for options that contradict each other."""
        from lepaute.errors import InputError
        from lepaute.kit.options import word_of
        from lepaute.simulate.machine.mapping import BY_NUMBER, IN_ORDER, Mapping, read_hostfile, read_rankfile

        if self.mapping.casefold() not in ("sequential", "random"):
            raise InputError(
                f"mapping is {self.mapping!r}; it is sequential or random, or give --hostfile or --rankfile"
            )
        if self.map_hosts is not None and self.hostfile is None and self.rankfile is None:
            raise InputError("--map-hosts goes with --hostfile or --rankfile, and there is neither")
        hosts = BY_NUMBER if self.map_hosts is None else word_of(self.map_hosts, (BY_NUMBER, IN_ORDER), "--map-hosts")
        is_random = self.mapping.casefold() == "random"
        if self.mapping_seed is not None and not is_random:
            raise InputError("--mapping-seed goes with --mapping random, which is not asked for")
        if self.rankfile is not None:
            if self.hostfile is not None or is_random:
                raise InputError("a rankfile places every rank; give no --hostfile and no --mapping beside it")
            return read_rankfile(self.rankfile, platform, threads, hosts=hosts)
        seed = (1 if self.mapping_seed is None else self.mapping_seed) if is_random else None
        if self.hostfile is not None:
            return read_hostfile(self.hostfile, platform, threads, seed=seed, hosts=hosts)
        return Mapping() if seed is None else Mapping("random", seed)


@dataclass(frozen=True)
class Uncertainty:
    """What the runs of a prediction draw."""

    without: str | None = field(
        default=None, metadata=option("layers of uncertainty that are not drawn, such as days,noise; or all")
    )
    transfer: Path | None = field(default=None, metadata=option("a layer learnt from other studies, YAML"))
    lag_s: float | None = field(
        default=None,
        metadata=option(
            "time since the calibration, such as 30min or 2h; within that of the calibration unless given",
            name="lag",
            metavar="TIME",
            parse=lag_of,
        ),
    )

    @property
    def inputs(self) -> list[Path | None]:
        """Files that are read."""
        return [self.transfer]

    def layers(self) -> "Layers":
        """The layers that are on; raises InputError for one that is not known."""
        from lepaute.simulate.conditions import Layers

        names = [] if self.without is None else [name.strip() for name in self.without.split(",")]
        return Layers.without(names)

    def learnt(self) -> "Transfer | None":
        """The layer of the file; raises InputError for what is none."""
        if self.transfer is None:
            return None
        from lepaute.simulate.conditions import read_transfer

        return read_transfer(self.transfer)


@dataclass(frozen=True)
class TraceFiles:
    """What to trace of a run, and where to write it."""

    trace: Path | None = field(default=None, metadata=option("kernels and messages of a run, Parquet"))
    perfetto: Path | None = field(default=None, metadata=option("the same for the Perfetto viewer, JSON or JSON.gz"))
    gantt: Path | None = field(default=None, metadata=option("the same as a picture, PNG"))
    trace_ranks: str | None = field(default=None, metadata=option("such as 0,5-7; else all that fit"))
    trace_steps: str | None = field(default=None, metadata=option("such as 0,5-7; else all that fit"))

    @property
    def outputs(self) -> dict[str, Path | None]:
        """The files by option."""
        return {"--trace": self.trace, "--perfetto": self.perfetto, "--gantt": self.gantt}

    @property
    def asked_for(self) -> bool:
        """Whether anything is to be traced."""
        return any(path is not None for path in self.outputs.values())

    def request(self) -> "TraceRequest | None":
        """What to trace, None where no output needs it; raises InputError for a choice of ranks without an output."""
        from lepaute.errors import InputError
        from lepaute.kit.quantities import numbers_of
        from lepaute.simulate.tracing import TraceRequest

        if not self.asked_for:
            if self.trace_ranks is not None or self.trace_steps is not None:
                raise InputError("--trace-ranks and --trace-steps choose what a trace holds; ask for --trace FILE too")
            return None
        return TraceRequest(
            ranks=None if self.trace_ranks is None else numbers_of(self.trace_ranks, "--trace-ranks"),
            steps=None if self.trace_steps is None else numbers_of(self.trace_steps, "--trace-steps"),
        )

    def write(self, trace: "Trace | None") -> None:
        """Writes what is asked for, and tells on standard error what is in it."""
        if trace is None:
            return
        from lepaute.trace import write_trace
        from lepaute.trace.gantt import plot_gantt
        from lepaute.trace.viewers import write_perfetto, written_text

        if self.trace is not None:
            write_trace(trace, self.trace)
            note(f"{self.trace}: {len(trace)} calls of {len(trace.ranks)} ranks; lepaute trace show {self.trace}")
        if self.perfetto is not None:
            note(written_text(self.perfetto, write_perfetto(trace, self.perfetto)))
        if self.gantt is not None:
            window = plot_gantt(trace, self.gantt)
            note(f"{self.gantt}: {len(window.ranks)} ranks from {window.low_s:.6g} to {window.high_s:.6g} s")


def note(text: str) -> None:
    """A line on standard error."""
    print(text, file=sys.stderr)


def platform_of(name: "str | Platform", settings: list[str] | None) -> "tuple[Platform, dict[str, str]]":
    """The platform with the settings of the command line, and these by field."""
    from lepaute.kit.quantities import settings_of
    from lepaute.platform import load_platform, override

    overrides = settings_of(settings or [])
    platform = load_platform(name)
    return (override(platform, overrides) if overrides else platform), overrides


def applications_of(
    context: typer.Context, application: "type[Application]", values: dict[str, Any], files: Any
) -> "tuple[list[Application], bool]":
    """The runs that the options describe, one for each grid, and whether an input file does.

    Raises InputError where neither or both do.
    """
    from lepaute.errors import InputError

    grids = values.pop(EACH, [{}])
    combinations: list[Application] | None = files.combinations(
        {name: value for name, value in values.items() if name not in files.decides}
    )
    if combinations is not None:
        given = [
            flag.name
            for flag in flags_of(application)
            if flag.fields[0].name in files.decides and is_given(context, flag.argument)
        ]
        if given:
            raise InputError(
                f"{files.input_option} and {', '.join(given)} contradict each other; give one or the others"
            )
        return combinations, True
    missing = [flag for flag in flags_of(application) if flag.is_required and values[flag.fields[0].name] is None]
    if missing:
        instead = f", or {files.input_option} FILE" if files.input_option else ""
        option = f"{missing[0].name} {missing[0].argument.upper()}"
        raise InputError(f"no run of {application.title} is described: give {option} and further options{instead}")
    return list(dict.fromkeys(application(**values | grid) for grid in grids)), False


def is_given(context: typer.Context, name: str) -> bool:
    """Whether the command line has the option, rather than its default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
