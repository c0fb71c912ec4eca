"""The distribution over runs of a program that was emulated."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError
from lepaute.simulate.mapping import Mapping
from lepaute.simulate.outside_ranges import OutsideRanges, outside_ranges
from lepaute.simulate.population import on_its_day
from lepaute.simulate.predict import Layers
from lepaute.simulate.prediction import Spread, spread_of
from lepaute.simulate.smpi.emulate import Keep, Options, emulate_run
from lepaute.simulate.smpi.emulated_run import EmulatedRun, checked_pattern
from lepaute.simulate.smpi.warnings import emulation_warnings
from lepaute.version import __version__

if TYPE_CHECKING:
    from lepaute.platform.schema import Platform


@dataclass(frozen=True)
class Emulation:
    """What a program will do on a platform. Keys of the JSON as those of a prediction (design, section 5).

    ranks : their number; arguments : of the program
    outside : what the first run spent outside the ranges of the models, of the time of the whole program
    """

    application: str
    arguments: tuple[str, ...]
    ranks: int
    platform_name: str
    platform_sha256: str
    seed: int
    run_list: tuple[EmulatedRun, ...]
    warnings: tuple[str, ...]
    settings: dict[str, str]
    options: Options
    outside: OutsideRanges

    @property
    def time_s(self) -> Spread:
        """Simulated time of what was asked for, in seconds."""
        return spread_of([run.time_s for run in self.run_list])

    @property
    def unmodelled_share(self) -> float:
        """Share of the computing of the first run that no model of the platform stands for, from 0 to 1."""
        run = self.run_list[0]
        if run.computing_s <= 0.0:
            return 0.0
        return sum(use.time_s for use in run.fallback.values()) / run.computing_s

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        first = self.run_list[0]
        folding = self.options.folding
        return {
            "application": self.application,
            "platform": self.platform_name,
            "platform_sha256": self.platform_sha256,
            "parameters": {
                "np": self.ranks,
                "arguments": list(self.arguments),
                "computing": self.options.computing,
                "fold_bytes": folding.from_bytes,
                **({"set": self.settings} if self.settings else {}),
            },
            "seed": self.seed,
            "time_s": self.time_s.to_dict(),
            "runs": [
                {
                    "seed": run.seed,
                    "time_s": run.time_s,
                    "program_s": run.program_s,
                    "region_s": run.region_s,
                    "value_s": run.value_s,
                }
                for run in self.run_list
            ],
            "fidelity": "smpi",
            "warnings": list(self.warnings),
            "outside_ranges": self.outside.to_dict(),
            "routines": {
                name: {"calls": use.calls, "time_s": use.time_s, "modelled": modelled}
                for modelled, uses in ((True, first.kernels), (False, first.fallback))
                for name, use in uses.items()
            },
            "computing_s": first.computing_s,
            "unmodelled_share": self.unmodelled_share,
            "simulation": {
                "wall_s": sum(run.wall_s for run in self.run_list),
                "cpu_s": sum(run.cpu_s for run in self.run_list),
                "peak_rss_bytes": max(run.peak_rss_bytes for run in self.run_list),
                "folded_bytes": first.folded_bytes,
                "messages": first.messages,
            },
            "version": __version__,
        }


def emulate(
    program: Path,
    arguments: Sequence[str],
    platform: "Platform",
    ranks: int,
    *,
    runs: int = 1,
    seed: int = 1,
    layers: Layers | None = None,
    settings: dict[str, str] | None = None,
    mapping: Mapping | None = None,
    options: Options | None = None,
    folder: Path | None = None,
    on_line: Callable[[str], None] | None = None,
    on_complaint: Callable[[str], None] | None = None,
    on_progress: Callable[[float], None] | None = None,
    keep: Keep | None = None,
) -> Emulation:
    """Runs `program`, built with the compilers of compilers(), `runs` times on the simulated platform; run i uses
    seed + i.

    settings : overrides of the platform that were applied before, recorded in the result
    on_line, on_complaint : are given each line that the first run prints on standard output, and on standard error
    keep : traces of the first run to keep
    Raises what emulate_run() raises.
    """
    if runs < 1:
        raise InputError(f"runs is {runs}; at least one run is simulated")
    wanted = options or Options()
    if wanted.value_pattern is not None:
        checked_pattern(wanted.value_pattern)
    done = tuple(
        emulate_run(
            program,
            arguments,
            platform,
            ranks,
            seed=seed + run,
            layers=layers,
            mapping=mapping,
            options=wanted,
            folder=folder,
            on_line=on_line if run == 0 else None,
            on_complaint=on_complaint if run == 0 else None,
            on_progress=on_progress,
            keep=keep if run == 0 else None,
        )
        for run in range(runs)
    )
    # Models that are drawn anew have no fitted ranges.
    first_day = on_its_day(platform, seed, days=(layers or Layers()).days)
    return Emulation(
        application=program.name,
        arguments=tuple(arguments),
        ranks=ranks,
        platform_name=platform.name,
        platform_sha256=platform.sha256,
        seed=seed,
        run_list=done,
        warnings=tuple(emulation_warnings(done[0], platform, wanted)),
        settings=settings or {},
        options=wanted,
        outside=outside_ranges(done[0].kernels, first_day, ranks * done[0].program_s),
    )
