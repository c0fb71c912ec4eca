"""The options that commands which simulate share: the platform, the runs, the mapping of ranks, the trace."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import MISSING, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lepaute.cli.options import COMBINATIONS, flags_of, is_given, option, refuse_options
from lepaute.cli.terminal import note
from lepaute.errors import InputError
from lepaute.kit.options import TIME, option_field, options_of, word_of
from lepaute.kit.picture import files_of
from lepaute.kit.quantities import numbers_of, settings_of
from lepaute.kit.text import ranks_text, seconds
from lepaute.simulate.apps.own.sides import balanced_sides
from lepaute.simulate.apps.replay.collectives import MeasuredFile

if TYPE_CHECKING:
    from lepaute.simulate import Application, Layers, Mapping, PredictionRequest
    from lepaute.simulate.conditions import Transfer
    from lepaute.simulate.platform import Platform
    from lepaute.simulate.trace import Trace
    from lepaute.simulate.tracing import TraceRequest


def platform_names() -> list[str]:
    """Those that are shipped, for shells that complete."""
    from lepaute.simulate.platform import shipped_names

    return list(shipped_names())


PLATFORM_HELP = "a platform file, or the name of a shipped one"
PlatformName = Annotated[str, option(PLATFORM_HELP, "--platform", "-p", autocompletion=platform_names)]


@dataclass(frozen=True)
class Simulation:
    """A platform, and the runs that are simulated on it."""

    platform: str = option_field(MISSING, PLATFORM_HELP, also=("-p",), complete=platform_names)
    settings: list[str] | None = option_field(None, "FIELD=VALUE of the platform", name="set")
    runs: int | None = option_field(None, "simulated runs; default: 12 to 100, as many as are quick; emulations: 10")
    seed: int = option_field(1, "run i uses seed + i")
    without: str | None = option_field(None, "layers of uncertainty that are not drawn, such as days,noise; or all")
    transfer: Path | None = option_field(None, "YAML of prediction errors of earlier studies, which widen the interval")
    lag_s: float | None = option_field(
        None, "time between calibration and run, such as 30min or 2h; default: both in one session", **TIME
    )
    any: bool = option_field(
        False, "of any run, which may meet the slow state; default: of undisturbed runs", name="any/--undisturbed"
    )

    @property
    def inputs(self) -> list[str | Path | None]:
        return [self.platform, self.transfer]

    def layers(self) -> "Layers":
        """The layers that are drawn; raises InputError for one that is not known."""
        from lepaute.simulate.conditions import Layers

        return Layers.without([] if self.without is None else [name.strip() for name in self.without.split(",")])

    def learnt(self) -> "Transfer | None":
        """The layer of the file; raises InputError where it holds none."""
        if self.transfer is None:
            return None
        from lepaute.simulate.conditions import read_transfer

        return read_transfer(self.transfer)

    @cached_property
    def given_platform(self) -> "Platform":
        """Without the settings."""
        from lepaute.simulate.platform import load_platform

        return load_platform(self.platform)

    @cached_property
    def machine(self) -> "Platform":
        """The platform with the settings."""
        return platform_of(self.given_platform, self.settings)[0]

    def read(self) -> "Platform":
        """The platform with the settings; raises InputError for anything of the options that cannot be read."""
        self.layers()
        self.learnt()
        return self.machine

    def request(self, **further: Any) -> "PredictionRequest":
        """What the options ask for, on the given platform;  further : fields that others decide."""
        from lepaute.simulate import PredictionRequest

        return PredictionRequest(
            seed=self.seed,
            layers=self.layers(),
            settings=settings_of(self.settings or []),
            transfer=self.learnt(),
            lag_s=self.lag_s,
            state="any" if self.any else "undisturbed",
            **({"runs": self.runs} | further),
        )


@dataclass(frozen=True)
class Placement:
    """Where ranks run."""

    mapping: str = option_field("sequential", "ranks to nodes: sequential or random")
    mapping_seed: int | None = option_field(None, "seed of a random mapping; default: 1")
    hostfile: Path | None = option_field(None, "slots for ranks: lines as host slots=N or host:N")
    rankfile: Path | None = option_field(None, "a place for each rank: rank 0=host slot=0:1")
    map_hosts: str | None = option_field(
        None,
        "how hosts of a file map to nodes: by-number (at the end of the host name; the default) or in-order",
        metavar="by-number|in-order",
    )

    @property
    def inputs(self) -> list[Path | None]:
        return [self.hostfile, self.rankfile]

    def on(self, platform: "Platform", threads: int) -> "Mapping":
        """The mapping that is meant; raises InputError for options that contradict each other."""
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
class TraceFiles:
    """What to trace of a run, and where to write it."""

    trace: Path | None = option_field(None, "kernels and messages of a run, Parquet")
    perfetto: Path | None = option_field(None, "the same for the Perfetto viewer, JSON or JSON.gz")
    gantt: Path | None = option_field(None, "the same as a picture, .png or .svg")
    trace_ranks: str | None = option_field(None, "such as 0,5-7; else all that fit")
    trace_steps: str | None = option_field(None, "such as 0,5-7; else all that fit")

    @property
    def outputs(self) -> dict[str, Path | tuple[Path, ...] | None]:
        return {"--trace": self.trace, "--perfetto": self.perfetto, "--gantt": files_of(self.gantt)}

    @property
    def requested(self) -> bool:
        return any(path is not None for path in self.outputs.values())

    def request(self) -> "TraceRequest | None":
        """What to trace, None where no output needs it; raises InputError for a choice of ranks without an output."""
        from lepaute.simulate.tracing import TraceRequest

        if not self.requested:
            if self.trace_ranks is not None or self.trace_steps is not None:
                raise InputError("--trace-ranks and --trace-steps choose what a trace holds; ask for --trace FILE too")
            return None
        return TraceRequest(
            ranks=None if self.trace_ranks is None else numbers_of(self.trace_ranks, "--trace-ranks"),
            steps=None if self.trace_steps is None else numbers_of(self.trace_steps, "--trace-steps"),
        )

    def check_single(self, count: int) -> None:
        """Raises InputError where a trace of several emulations is asked for."""
        if self.requested and count > 1:
            raise InputError(f"a trace is of one combination, and there are {count}; shorten the lists")

    def write(self, trace: "Trace | None") -> None:
        """Writes the files that were asked for, and tells on standard error what is in them."""
        if trace is None:
            return
        from lepaute.simulate.trace import write_trace
        from lepaute.simulate.trace.gantt import plot_gantt
        from lepaute.simulate.trace.report import written_text as trace_written
        from lepaute.simulate.trace.viewers import write_perfetto, written_text

        if self.trace is not None:
            write_trace(trace, self.trace)
            note(trace_written(self.trace, trace))
        if self.perfetto is not None:
            note(written_text(self.perfetto, write_perfetto(trace, self.perfetto)))
        if self.gantt is not None:
            window = plot_gantt(trace, self.gantt)
            span = f"from {seconds(window.low_s)} to {seconds(window.high_s)}"
            note(f"{self.gantt}: {ranks_text(len(window.ranks))} {span}")


def platform_of(name: "str | Platform", settings: list[str] | None) -> "tuple[Platform, dict[str, str]]":
    """The platform with the settings of the command line, and these by field."""
    from lepaute.simulate.platform import load_platform, override

    overrides = settings_of(settings or [])
    platform = load_platform(name)
    return (override(platform, overrides) if overrides else platform), overrides


def applications_of(
    context: typer.Context,
    application: "type[Application]",
    values: dict[str, Any],
    files: Any,
    platform: "Callable[[], Platform]",
) -> "tuple[list[Application], bool]":
    """The runs that the options describe, one for each combination of several values, and whether an input file does.

    Raises InputError where neither or both do.
    """
    each = [one | files.filled(values | one, platform) for one in values.pop(COMBINATIONS, [{}])]
    values |= each[0]
    flags = {flag.fields[0].name: flag for flag in flags_of(application)}
    further = {name: value for name, value in values.items() if name not in files.decides}
    combinations: list[Application] | None = files.combinations(further)
    if combinations is not None:
        decided = {flag.argument for name, flag in flags.items() if name in files.decides}
        refuse_options(context, decided, f"{files.input_option} and these options contradict each other")
        return combinations, True
    missing = [flag for name, flag in flags.items() if flag.is_required and values[name] is None]
    if missing:
        instead = f", or {files.input_option} FILE" if files.input_option else ""
        options = f"{missing[0].name} {missing[0].argument.upper()} and further options{instead}"
        raise InputError(f"no run of {application.about.title} is described: give {options}")
    made = list(dict.fromkeys(application(**read_measured(values | one)) for one in each))
    if "p" in flags and not is_given(context, flags["p"].argument):
        nodes, threads = platform().nodes, made[0].threads_per_rank
        if (ranks := nodes.count * (nodes.cores // threads)) > 1:
            rows, columns = sorted(balanced_sides(ranks, 2))
            note(f"lepaute: 1 rank, as there is no --grid; --grid {rows}x{columns} fills all nodes of the platform")
    return made, False


def read_measured(values: dict[str, Any]) -> dict[str, Any]:
    """Values of options, the calls of an archive in the place of its name. Raises InputError, ArchiveError."""
    file = values.get("collectives")
    if not isinstance(file, MeasuredFile):
        return values
    from lepaute.measure.compare.summaries import measured_calls

    return values | {"collectives": measured_calls(file.path, file.library or None)}


def note_unused(context: typer.Context, application: type, unused: Sequence[dict[str, str]]) -> None:
    """Names, on standard error, the options of the command line whose fields are unused in all runs."""
    for flag in flags_of(application):
        reasons = [of_run.get(flag.fields[0].name) for of_run in unused]
        if is_given(context, flag.argument) and all(reasons):
            note(f"lepaute: {flag.name} has no effect: {reasons[0]}")


def own_class(text: str, command: str, taken: Collection[str]) -> "type[Application]":
    """The class FILE.py:CLASS, for a command whose other parameters are `taken`.

    Raises InputError where there is none, or where a field of it has such a name.
    """
    from lepaute.simulate.apps.own.loading import loaded

    described = loaded(text)
    if both := sorted(options_of(described).keys() & taken):
        field = f"{described.about.title}.{both[0]}"
        raise InputError(f"{field}: lepaute {command} has an option of that name; give it another one")
    return described
