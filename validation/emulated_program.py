"""A small real program on two ranks of this machine, against its emulation on the platform that was calibrated here.

Fixed before any result was looked at:

* program: examples/emulation/summa_fortran: a matrix product in Fortran, dgemm between broadcasts;
* platform: `lepaute calibrate` (seed 1) at the start, with the kernels of OpenBLAS of the runs. A calibration that says
  that other load disturbed it is made again once; where the last one says so as well, the page tells that nothing was
  shown;
* cases: 10 (seed 20): N log-uniform in strata of 800 to 5000, NB 64, 96, 128, 192, 256 twice each, grids 1 x 2 and 2 x
  1; NB and products beyond the calibration's on purpose: a user's program does not ask what was calibrated;
* emulation: before the first real run, all layers, mean of seeds 1 to 5; real runs: 6 of each case in random rounds,
  fresh processes, one thread. Disturbed runs (measure/machine_load.py) are made again, at most three times, and used
  only where a case has no others. Each waits for two quiet seconds: at most three minutes, five for all runs together;
* error: mean of the emulated times / mean of the real times that the program prints - 1; goals: mean absolute error at
  most 10 %, each at most 10 %.
"""

import json
import os
import re
import shutil
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy
import pandas
from support.real_runs import LEPAUTE
from support.report import ROOT, Goal, Options, at_most, run_study, say, write_atomic

from lepaute import Platform, load_platform
from lepaute.errors import LepauteError
from lepaute.kit.command import run_command
from lepaute.measure.machine_load import load_between, sample
from lepaute.measure.toolchain import start_here
from lepaute.simulate import Program, predict
from lepaute.simulate.smpi.building import build_program, program_in
from lepaute.simulate.smpi.emulate import Options as Emulated
from lepaute.simulate.smpi.process import Limits

STUDY = "emulated_program"
SOURCE = ROOT / "examples" / "emulation" / "summa_fortran"
WORK = ROOT / "build" / STUDY
SEED, CASES, RANKS = 20, 10, 2
N_RANGE, BLOCKS, GRIDS = (800, 5000), (64, 96, 128, 192, 256), ((1, 2), (2, 1))
EMULATION_SEEDS, ROUNDS, ATTEMPTS = 5, 6, 4
MEAN_LIMIT_PERCENT, EACH_LIMIT_PERCENT = 10.0, 10.0
CALIBRATIONS = 2
PROGRAM_LIMIT_S, EMULATION_LIMIT_S, CALIBRATION_LIMIT_S = 120.0, 300.0, 900.0
LOOK_S, WAIT_TO_CALIBRATE_S, WAIT_TO_RUN_S = 2.0, 180.0, 300.0
#: Where other load makes the numbers worthless.
DISTURBED = """**Other load disturbed the calibration, twice: what follows shows how much that matters, and nothing \
about the emulation.** It is to be repeated on a quiet machine.

"""
TIME = re.compile(r"^time: +([\d.]+) s$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Case:
    """One product: order of the matrices, width of the panels, P x Q ranks."""

    n: int
    nb: int
    p: int
    q: int

    def arguments(self) -> list[str]:
        return [str(value) for value in asdict(self).values()]


def cases_of(quick: bool) -> list[Case]:
    """The cases, from their seed alone."""
    rng = numpy.random.default_rng(SEED)
    low, high = (numpy.log(value) for value in N_RANGE)
    places = (numpy.arange(CASES) + rng.random(CASES)) / CASES
    sizes = [int(value) for value in numpy.exp(low + (high - low) * places)]
    blocks = rng.permutation(numpy.repeat(BLOCKS, CASES // len(BLOCKS)))
    grids = rng.permutation(numpy.repeat(numpy.arange(len(GRIDS)), CASES // len(GRIDS)))
    cases = [Case(n, int(nb), *GRIDS[grid]) for n, nb, grid in zip(sizes, blocks, grids, strict=True)]
    return cases[:2] if quick else cases


def compared(options: Options) -> pandas.DataFrame:
    """A row a case: the emulation, then the real runs, whose own table is written beside."""
    cases = cases_of(options.quick)
    program = built(SOURCE, WORK / "real") / "summa"
    platform_file, is_disturbed = calibrated(options.quick)
    platform = load_platform(platform_file)
    frame = pandas.DataFrame(map(asdict, cases))
    with tempfile.TemporaryDirectory(prefix=f"{STUDY}-") as folder:
        stand_in = program_in(build_program(SOURCE, "make", (), Path(folder)), program.name)
        emulations = [emulated(case, stand_in, platform, 2 if options.quick else EMULATION_SEEDS) for case in cases]
    means = [(numpy.mean(times), numpy.std(times, ddof=1), len(times)) for times in emulations]
    frame[["emulated_s", "emulated_sd_s", "seeds"]] = pandas.DataFrame(means)
    write_atomic(WORK / "emulated.csv", frame.to_csv(index=False).encode())
    runs = measured(cases, program, platform, 2 if options.quick else ROUNDS)
    options.write(f"{STUDY}_runs", runs)
    for name, chosen in (("real", undisturbed(runs)), ("real_all", runs)):
        found = chosen.groupby("case")["time_s"].agg(["mean", "std", "count"])
        frame[[f"{name}_s", f"{name}_sd_s", f"{name}_runs"]] = found.reindex(frame.index)
    frame["error_percent"] = 100.0 * (frame["emulated_s"] / frame["real_s"] - 1.0)
    frame["platform_sha256"] = platform.sha256
    frame["calibration_disturbed"] = is_disturbed
    return frame


def built(source: Path, folder: Path) -> Path:
    """The real program, built by its Makefile in a copy of its folder."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    run_command(["make", "-s", "-B", "-C", folder], what=f"make in {source.name}", timeout_s=PROGRAM_LIMIT_S)
    return folder


def calibrated(quick: bool) -> tuple[Path, bool]:
    """The platform of this machine, measured now, and whether other load disturbed that."""
    WORK.mkdir(parents=True, exist_ok=True)
    path, archive = WORK / "platform.yaml", WORK / "calibration.zip"
    words = [*LEPAUTE, "calibrate", "-o", path, "--archive", archive, "--seed", "1"]
    is_disturbed = True
    for _ in range(1 if quick else CALIBRATIONS):
        for old in (path, archive):
            old.unlink(missing_ok=True)
        say("calibrating: two minutes; leave the machine alone")
        if not quick:
            wait_for_quiet(WAIT_TO_CALIBRATE_S)
        argv = [*words, *(["--quick"] if quick else [])]
        record = run_command(argv, what="the calibration", timeout_s=CALIBRATION_LIMIT_S)
        say(record.stdout, record.stderr, sep="")
        is_disturbed = "other load disturbed too many runs" in record.stdout + record.stderr
        if not is_disturbed:
            break
    return path, is_disturbed


def wait_for_quiet(limit_s: float) -> float:
    """Returns when nothing else ran for a while, or after `limit_s`; what is left of `limit_s`, 0 or more."""
    deadline_s = time.monotonic() + limit_s
    while time.monotonic() < deadline_s:
        before = sample()
        time.sleep(LOOK_S)
        if not load_between(before, sample(), os.cpu_count() or RANKS).disturbances():
            break
    return max(deadline_s - time.monotonic(), 0.0)


def emulated(case: Case, program: Path, platform: Platform, seeds: int) -> list[float]:
    """The times that the emulated program prints, one a seed, in s."""
    options = Emulated(limits=Limits(timeout_s=EMULATION_LIMIT_S), value_pattern=TIME.pattern)
    prediction = predict(Program(program, tuple(case.arguments()), RANKS, options=options), platform, runs=seeds)
    times = [run.time_s for run in prediction.run_list]
    say(f"emulated {case}: {numpy.mean(times):.4f} s")
    for warning in prediction.warnings:
        say(f"  {warning}")
    return times


def measured(cases: list[Case], program: Path, platform: Platform, rounds: int) -> pandas.DataFrame:
    """A row a real run, in the order in which they were made."""
    rng = numpy.random.default_rng(SEED + 1)
    coretype = platform.blas.coretype_env if platform.blas is not None else None
    start = start_here(RANKS, sorted(os.sched_getaffinity(0))[:RANKS], coretype=coretype)
    rows, patience_s = [], WAIT_TO_RUN_S
    for number in range(rounds):
        for index in (int(value) for value in rng.permutation(len(cases))):
            for attempt in range(ATTEMPTS):
                # A look at a quiet machine is no waiting.
                patience_s = wait_for_quiet(patience_s + LOOK_S)
                before = sample()
                argv, limit_s = [*start.argv, program, *cases[index].arguments()], PROGRAM_LIMIT_S
                record = run_command(argv, what="the real program", timeout_s=limit_s, environment=start.environment)
                causes = load_between(before, sample(), os.cpu_count() or RANKS).disturbances()
                time_s = time_in(record.stdout)
                rows.append((index, number, attempt, time_s, record.start, "; ".join(causes)))
                if not causes or patience_s <= 0.0:
                    break
        say(f"round {number + 1} of {rounds} of the real program done")
    return pandas.DataFrame(rows, columns=["case", "round", "attempt", "time_s", "start", "disturbed_by"])


def undisturbed(runs: pandas.DataFrame) -> pandas.DataFrame:
    """The runs that count: those that nothing disturbed, and all of a case that has no others."""
    quiet = runs["disturbed_by"] == ""
    return runs[quiet | ~quiet.groupby(runs["case"]).transform("any")]


def time_in(output: str) -> float:
    """The time that the program printed, in s."""
    found = TIME.search(output)
    if found is None:
        raise LepauteError(f"the program printed no time; its output: {json.dumps(output[-300:])}")
    return float(found[1])


def judged(frame: pandas.DataFrame) -> list[Goal]:
    errors = frame["error_percent"].abs()
    return [
        at_most("mean absolute error in time", MEAN_LIMIT_PERCENT, errors.mean()),
        at_most("largest absolute error in time", EACH_LIMIT_PERCENT, errors.max()),
    ]


def text(frame: pandas.DataFrame) -> str:
    return f"""## This machine: an emulated program against the real one

A matrix product in Fortran (`examples/emulation/summa_fortran`) on two ranks, emulated on
the platform that `lepaute calibrate` wrote here and then run here. Error: mean of the emulated times / mean of the real
times − 1 (`validation/emulated_program.py`).

{DISTURBED if frame["calibration_disturbed"].any() else ""}{{goals}}

{{cases}}
"""


if __name__ == "__main__":
    run_study(compared, judged, text)
