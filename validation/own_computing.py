"""Three real programs that are not BLAS, emulated on the platform of this machine and then run here.

Fixed before any result for these sizes of halo and cg; the model (simulate/smpi/emulated_run.py) is the fourth:

* programs, of examples/emulation: halo (a stencil), cg (conjugate gradients), fft (rows and MPI_Alltoall); three sizes
  of each, within the second-level cache, the third, and beyond, on 1 and 2 ranks: 18 cases;
* platform: the file that LEPAUTE_PLATFORM names, else `lepaute calibrate` at the start; only its network matters here;
* 4 rounds in random order (seed 16): an emulation with default options, then a real run, rank r on core r;
* error of a case: median of the emulated times / median of the real times that the program prints - 1;
* goals: median absolute error at most 10 %, the worst at most 25 %. Nothing else may run meanwhile.

A first design had all emulations before the real runs: median 10.95 %, worst 30.03 %, with real runs that differed by
up to 50 % within the minute, so now they alternate. That gave 3.27 % and 84.25 % (halo of 1600 on 2 ranks: the
emulation computed both ranks on one core, in one cache); with ranks on cores of their own and sizes chosen anew 5.33 %
and 46.3 % (a core that sleeps is slow when its turn comes; now none sleeps). Sizes were chosen anew again before any
result; those of fft are powers of two.
"""

import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import emulated_program
import numpy
import pandas
from support.report import ROOT, Goal, Options, at_most, run_study, say

from lepaute import Platform, load_platform
from lepaute.kit.command import run_command
from lepaute.measure.toolchain import start_here
from lepaute.simulate import Program, predict
from lepaute.simulate.smpi.building import build_program, program_in
from lepaute.simulate.smpi.emulate import Options as Emulated
from lepaute.simulate.smpi.process import Limits

STUDY = "own_computing"
SOURCES = ROOT / "examples" / "emulation"
WORK = ROOT / "build" / STUDY
SEED, ROUNDS, LIMIT_S = 16, 4, 120.0
#: Size and iterations.
SIZES = {
    "halo": ((350, 700), (1400, 50), (5200, 5)),
    "cg": ((120, 2200), (520, 100), (2100, 6)),
    "fft": ((256, 40), (1024, 3), (2048, 1)),
}
MEDIAN_LIMIT_PERCENT, WORST_LIMIT_PERCENT = 10.0, 25.0

TEXT = """## This machine: emulated programs without BLAS against the real ones

A stencil, conjugate gradients and a Fourier transform (`examples/emulation`), emulated on the platform of
this machine with the default options, and run here, four times in turn. What they compute was timed during the
emulation. Error: median of the emulated times / median of the real times − 1 (`validation/own_computing.py`).

{goals}

{cases}
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A program, its size and iterations, on so many ranks."""

    program: str
    size: int
    iterations: int
    ranks: int

    def arguments(self) -> list[str]:
        return [str(self.size), str(self.iterations)]


def compared(options: Options) -> pandas.DataFrame:
    """A row a case; the table of all runs is written beside."""
    cases = [
        Case(program, size, iterations, ranks)
        for program, sizes in SIZES.items()
        for size, iterations in sizes[: 1 if options.quick else None]
        for ranks in (1, 2)
    ]
    WORK.mkdir(parents=True, exist_ok=True)
    given = os.environ.get("LEPAUTE_PLATFORM")
    path = Path(given) if given else emulated_program.calibrated(options.quick)[0]
    platform = load_platform(path)
    with tempfile.TemporaryDirectory(prefix=f"{STUDY}-") as folder:
        stand_ins = {name: program_in(build_program(SOURCES / name, "make", (), Path(folder)), name) for name in SIZES}
        real = {name: emulated_program.built(SOURCES / name, WORK / name) / name for name in SIZES}
        runs = timed(cases, stand_ins, real, platform, 2 if options.quick else ROUNDS)
    options.write(f"{STUDY}_runs", runs)
    frame = pandas.DataFrame([asdict(case) for case in cases])
    by_case = runs.groupby("case")
    for name in ("emulated", "real"):
        found = by_case[f"{name}_s"]
        frame[f"{name}_s"], frame[f"{name}_low_s"], frame[f"{name}_high_s"] = found.median(), found.min(), found.max()
    frame["memory_share"] = by_case["memory_share"].median()
    frame["error_percent"] = 100.0 * (frame["emulated_s"] / frame["real_s"] - 1.0)
    frame["platform_sha256"] = platform.sha256
    return frame


def emulated(case: Case, program: Path, platform: Platform) -> tuple[float, float]:
    """Emulated time in s, and the memory share that it found, NaN for none."""
    options = Emulated(limits=Limits(timeout_s=LIMIT_S), value_pattern=emulated_program.TIME.pattern)
    prediction = predict(Program(program, tuple(case.arguments()), case.ranks, options=options), platform, runs=1)
    slowdowns = prediction.first.emulated.slowdowns
    share = slowdowns.memory_share if slowdowns is not None else None
    return prediction.first.time_s, numpy.nan if share is None else share


def timed(
    cases: list[Case], stand_ins: dict[str, Path], programs: dict[str, Path], platform: Platform, rounds: int
) -> pandas.DataFrame:
    """A row an emulation and the real run after it, in the order in which they were made."""
    rng = numpy.random.default_rng(SEED)
    coretype = platform.blas.coretype_env if platform.blas is not None else None
    cpus = sorted(os.sched_getaffinity(0))
    starts = {ranks: start_here(ranks, cpus[:ranks], coretype=coretype) for ranks in (1, 2)}
    rows = []
    for number in range(rounds):
        for index in (int(value) for value in rng.permutation(len(cases))):
            case = cases[index]
            start = starts[case.ranks]
            emulated_s, share = emulated(case, stand_ins[case.program], platform)
            argv = [*start.argv, programs[case.program], *case.arguments()]
            record = run_command(argv, what="the real program", timeout_s=LIMIT_S, environment=start.environment)
            real_s = emulated_program.time_in(record.stdout)
            rows.append((index, number, emulated_s, real_s, share, record.start))
        say(f"round {number + 1} of {rounds} done")
    return pandas.DataFrame(rows, columns=["case", "round", "emulated_s", "real_s", "memory_share", "start"])


def judged(frame: pandas.DataFrame) -> list[Goal]:
    errors = frame["error_percent"].abs()
    return [
        at_most("median absolute error in time", MEDIAN_LIMIT_PERCENT, errors.median()),
        at_most("largest absolute error in time", WORST_LIMIT_PERCENT, errors.max()),
    ]


if __name__ == "__main__":
    run_study(compared, judged, TEXT)
