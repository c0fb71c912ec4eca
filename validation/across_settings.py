"""Programs recorded under one setting of this machine and predicted for another, against real runs under that one.

Fixed before any result was looked at:

* programs: those of real_programs.py that are built here, on 2 ranks; settings: Open MPI (plain); MPICH; Open MPI while
  `stress-ng --cpu 1 --cpu-load 40 --taskset 1` computes beside rank 1 (slowed). Of another machine there is none here;
* under each setting `lepaute calibrate --seed 1`, then three recordings of each program, of which the median one is
  replayed;
* predictions for PAIRS before the first real run: 20 runs, seed 1, all layers, --lag a quarter of an hour,
  --recorded-on; of own code both bounds, as there is no counter;
* real runs: 3 rounds over the settings, random order of programs, MPI_Init to MPI_Finalize; none is left out. Error =
  predicted / mean of the real runs - 1; inside: the mean between the ends of the 95 % interval of one run;
* goals: mean absolute error of each pair of different settings at most 10 %; means inside in at least 90 %.
"""

import contextlib
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas
import real_programs
from real_programs import LIMIT_S, PATTERN, RANKS, RECORDINGS, RUNS, SEED, SINGLE, Real
from support.real_runs import kernels_of, quietly
from support.report import ROOT, Goal, Options, at_least, at_most, markdown, run_study, signed

import lepaute as lp
from lepaute.measure.verify.real_run import Command
from lepaute.simulate.trace.reading import TraceParts

STUDY = "across_settings"
WORK = ROOT / "build" / STUDY
ROUNDS, LAG_S = 3, 900.0
LIMIT_PERCENT, INSIDE_PERCENT = 10.0, 90.0
LOAD = ("stress-ng", "--cpu", "1", "--cpu-load", "40", "--taskset", "1", "--quiet")


@dataclass(frozen=True)
class Setting:
    """The library of the programs, and what computes beside them."""

    name: str
    library: str = "openmpi"
    beside: tuple[str, ...] = ()

    @property
    def platform(self) -> Path:
        return WORK / f"{self.name}.yaml"

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """The machine under this setting."""
        if not self.beside:
            yield
            return
        with subprocess.Popen(self.beside) as process:
            try:
                yield
            finally:
                process.terminate()


SETTINGS = {one.name: one for one in (Setting("plain"), Setting("mpich", "mpich"), Setting("slowed", beside=LOAD))}
#: Recorded under the first, predicted for the second.
PAIRS = (("plain", "plain"), ("mpich", "mpich"), ("plain", "mpich"), ("mpich", "plain"), ("plain", "slowed"),
         ("slowed", "plain"))  # fmt: skip


def calibrated(setting: Setting, *, quick: bool) -> None:
    """Makes the platform of a setting, with its library first on PATH."""
    folder = WORK / "bin" / setting.library
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("mpicc", "mpirun", "mpiexec"):  # no links: MPICH's mpiexec looks for its proxy beside itself
        (folder / name).write_text(f'#!/bin/sh\nexec /usr/bin/{name}.{setting.library} "$@"\n')
        (folder / name).chmod(0o755)
    environment = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    archive = WORK / f"{setting.name}.zip"
    words = ("calibrate", "-o", str(setting.platform), "--archive", str(archive), "--seed", str(SEED), "--force")
    real_programs.lepaute(*words, *(["--quick"] if quick else []), environment=environment)


def recorded(setting: Setting, program: Real, times: int) -> Path:
    """The recording of median length."""
    kernels = kernels_of(lp.load_platform(setting.platform))
    paths = []
    for number in range(times):
        made = real_programs.recorded(program, setting.library, RANKS, number, kernels)
        paths.append(WORK / f"{program.name}-{setting.name}-{number}.parquet")
        shutil.move(made, paths[-1])
    lengths = {path: real_programs.length_s(TraceParts(path)) for path in paths}
    return sorted(paths, key=lambda path: lengths[path])[len(paths) // 2]


def compared(options: Options) -> pandas.DataFrame:
    """A row a pair of settings and program; real runs have a table of their own."""
    quick = options.quick
    chosen = real_programs.programs("mpich")[-2 if quick else 0 :]  # those that are built here
    WORK.mkdir(parents=True, exist_ok=True)
    os.environ.update(SINGLE)
    for library in {setting.library for setting in SETTINGS.values()}:
        real_programs.prepare(library)
    recordings: dict[tuple[str, str], Path] = {}
    for setting in SETTINGS.values():
        with setting.held():
            calibrated(setting, quick=quick)
            for program in chosen:
                recordings[setting.name, program.name] = recorded(setting, program, 1 if quick else RECORDINGS)
    rows = []
    for pair in PAIRS:
        source, target = (SETTINGS[name] for name in pair)
        for program in chosen:
            replay = lp.TraceReplay(recordings[source.name, program.name], recorded_on=str(source.platform))
            runs = 2 if quick else RUNS
            took = quietly(replay, lp.load_platform(target.platform), runs=runs, seed=SEED, lag_s=LAG_S).time_s
            rows.append({"recorded": source.name, "target": target.name, "program": program.name,
                         "predicted_s": took.mean, "low_s": took.low, "high_s": took.high})  # fmt: skip
    runs = real_runs(chosen, 1 if quick else ROUNDS)
    frame = pandas.DataFrame(rows)
    real = runs.groupby(["setting", "program"])["time_s"].agg(["mean", "std", "count"])
    keys = list(zip(frame["target"], frame["program"], strict=True))
    frame["real_s"], frame["real_sd_s"], frame["runs"] = (real.loc[keys, column].to_numpy() for column in real.columns)
    frame["error_percent"] = 100.0 * (frame["predicted_s"] / frame["real_s"] - 1.0)
    frame["inside"] = frame["real_s"].between(frame["low_s"], frame["high_s"])
    options.write(f"{STUDY}_runs", runs)
    return frame


def real_runs(chosen: list[Real], rounds: int) -> pandas.DataFrame:
    rng, rows = random.Random(SEED), []
    for number in range(rounds):
        for setting in SETTINGS.values():
            coretype = kernels_of(lp.load_platform(setting.platform)).get("OPENBLAS_CORETYPE")
            with setting.held():
                for program in rng.sample(chosen, len(chosen)):
                    words = real_programs.command(program, setting.library, RANKS, timed=True)
                    run = Command(tuple(words), PATTERN, LIMIT_S, coretype).run(lp.Hpl(n=1, nb=1), LIMIT_S)
                    rows.append({"round": number, "setting": setting.name, "program": program.name,
                                 "time_s": run.time_s})  # fmt: skip
    return pandas.DataFrame(rows)


def judged(frame: pandas.DataFrame) -> list[Goal]:
    across = frame[frame["recorded"] != frame["target"]]
    share = 100.0 * across["inside"].mean()
    goals = [
        at_most(f"{source} to {target}, mean absolute error", LIMIT_PERCENT, rows["error_percent"].abs().mean())
        for (source, target), rows in across.groupby(["recorded", "target"], sort=False)
    ]
    seen = f"{share:.0f} % of {len(across)}"
    return [*goals, at_least("means inside the 95 % interval of one run", INSIDE_PERCENT, share, seen)]


def text(frame: pandas.DataFrame) -> str:
    pairs = [
        [
            source,
            target,
            f"{rows['error_percent'].abs().mean():.1f} %",
            signed(rows["error_percent"].mean()),
            f"± {(50.0 * (rows['high_s'] - rows['low_s']) / rows['predicted_s']).median():.0f} %",
            f"{rows['inside'].sum()} of {len(rows)}",
        ]
        for (source, target), rows in frame.groupby(["recorded", "target"], sort=False)
    ]
    header = ["recorded", "predicted for", "mean absolute error", "mean error", "median interval", "inside"]
    return f"""## Recorded under one setting, predicted for another

    .venv/bin/python validation/{STUDY}.py

Six programs on 2 ranks, recorded under Open MPI (plain), MPICH, and Open MPI while another program takes 40 % of a core
(slowed), replayed on the other setting, calibrated by itself. The first two rows are no goals. Waiting for a core that
another program has is in no model.

{{goals}}

{markdown(header, pairs)}

{{cases}}
"""


if __name__ == "__main__":
    run_study(compared, judged, text)
