"""Real programs, recorded here and replayed on this machine's own platform, against fresh real runs.

    .venv/bin/python validation/real_programs.py [--quick] [--summarise] [-p PLATFORM]

Fixed before any result was looked at:

* programs: of Debian (`apt-get install lammps quantum-espresso quantum-espresso-data libopenmpi-dev libmpich-dev`):
  LAMMPS (lj, eam, chain, as its benchmarks of these names), Quantum ESPRESSO (si), parts of HPC Challenge built from
  Debian's source, each by itself (hpcc-fft, hpcc-ptrans, hpcc-random); cg, fft, halo of examples/emulation;
* recordings: `lepaute record` on 2 ranks, three of each, of which the one of median length is replayed;
* platform: `lepaute calibrate` (seed 1, Open MPI), just before;
* predictions: 20 runs, seed 1, all layers, --recorded-on this platform, --lag ten minutes, before the first real run;
* real runs on 2 ranks: rounds in random order, 3 to 8 of them, as many as begin in the first seven minutes. Disturbed
  runs (rule of `lepaute verify`) are made again, at most three times, and count only where a program has no others;
* compared: the time from MPI_Init to MPI_Finalize of the slowest rank (validation/real_programs/timed.c); error =
  predicted / mean of the real runs - 1; a run is inside where the 95 % interval of one run has it;
* goals: mean absolute error at most 5 %, single runs inside in 90 to 98 %.

A run before the one of the page had no lag, and own code the variance of one day and run: 35 %
inside.
"""

import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas
from support.real_runs import LEPAUTE, kernels_of, quietly, tell
from support.report import ROOT, Goal, Options, at_most, run_study, say

import lepaute as lp
from lepaute.errors import LepauteError
from lepaute.kit.mpi_library import find_library
from lepaute.measure.hpl_source import hpcc_tarball
from lepaute.measure.probes import build_probes
from lepaute.measure.verify import campaign
from lepaute.measure.verify.campaign import Case, Plan, RecordedRun, predict_cases, run_cases
from lepaute.measure.verify.comparison import compare, run_table
from lepaute.measure.verify.machine import compute_share, guard_of
from lepaute.measure.verify.real_run import Command, Here
from lepaute.simulate.trace.reading import TraceParts

STUDY = "real_programs"
INPUTS, WORK = ROOT / "validation" / STUDY, ROOT / "build" / STUDY
RECORDINGS, RUNS, SEED = 3, 20, 1
LAG_S = 600.0
MIN_ROUNDS, MAX_ROUNDS = 3, 8
MEAN_LIMIT_PERCENT, INSIDE_PERCENT = 5.0, (90.0, 98.0)
PATTERN = r"from MPI_Init to MPI_Finalize: (\S+) s"
RANKS = 2
LIMIT_S = 300.0
#: From the start of the script to the last round of real runs.
LAST_ROUND_S = 420.0
PSEUDOPOTENTIAL = Path("/usr/share/doc/quantum-espresso/examples/EPW/sic/pp/Si.pz-vbc.UPF.gz")
COPPER = Path("/usr/share/lammps/potentials/Cu_u3.eam")
HPCC = {"fft": (4000, 10), "ptrans": (3000, 2), "random": (500, 2)}
EXAMPLES = {"cg": ("1000", "100"), "fft": ("2048", "4"), "halo": ("2000", "200")}
OWN = {"-p --platform": {"type": Path, "help": "this machine, calibrated before, instead of now"}}
TEXT = f"""## Real programs replayed on their own machine, Open MPI

Recorded on {RANKS} ranks here, replayed on the platform of this machine, against fresh runs.

    .venv/bin/python validation/{STUDY}.py

{{goals}}

{{cases}}
"""


@dataclass(frozen=True)
class Real:
    """A program: its folder, and its words."""

    name: str
    words: tuple[str, ...]
    libraries: tuple[str, ...] = ("openmpi", "mpich")

    @property
    def folder(self) -> Path:
        return WORK / self.name


def programs(library: str) -> list[Real]:
    """Those of a library; {here} is the folder of what is built with it."""
    debian = ("openmpi",)
    lammps = ("lj", "chain", "eam")
    found = [
        *(Real(f"lammps-{name}", ("lmp", "-in", f"in.{name}", "-log", "none"), debian) for name in lammps),
        Real("espresso-si", ("pw.x", "-in", "si.in"), debian),
        *(Real(f"hpcc-{part}", ("{here}/hpcc_part", part, str(times))) for part, (_, times) in HPCC.items()),
        *(Real(name, (f"{{here}}/{name}", *arguments)) for name, arguments in EXAMPLES.items()),
    ]
    return [program for program in found if library in program.libraries]


def prepare(library: str) -> None:
    """Builds what is built, and puts the inputs into the folders of the programs; once."""
    here = WORK / library
    for program in programs(library):
        program.folder.mkdir(parents=True, exist_ok=True)
        own = shutil.which(program.words[0])
        if "{here}" not in program.words[0] and own is None:
            raise LepauteError(f"{program.words[0]}: no such program; the head of this script names Debian's packages")
    here.mkdir(parents=True, exist_ok=True)
    mpi = find_library(f"mpicc.{library}")
    mpi.compile(["-O2", "-fPIC", "-shared", str(INPUTS / "timed.c"), "-o", str(here / "timed.so")], what="timed.c")
    for name in EXAMPLES:
        source = ROOT / "examples" / "emulation" / name / f"{name}.c"
        mpi.compile(["-O2", str(source), "-lm", "-o", str(here / name)], what=name)
    if not (here / "hpcc_part").exists():
        build_hpcc(mpi, here)
    for part, (order, _) in HPCC.items():
        written = (INPUTS / "hpccinf.txt").read_text().replace("{n}", str(order))
        (WORK / f"hpcc-{part}" / "hpccinf.txt").write_text(written)
    if library == "openmpi":
        for name in ("lj", "chain", "eam"):
            shutil.copy(INPUTS / f"in.{name}", WORK / f"lammps-{name}")
        shutil.copy(COPPER, WORK / "lammps-eam")
        (WORK / "lammps-chain" / "data.chain").write_text(chains(100, 18))
        shutil.copy(INPUTS / "si.in", WORK / "espresso-si")
        potential = subprocess.run(["zcat", PSEUDOPOTENTIAL], stdout=subprocess.PIPE, check=True).stdout
        (WORK / "espresso-si" / "Si.pz-vbc.UPF").write_bytes(potential)


def build_hpcc(mpi: Any, here: Path) -> None:
    """hpcc_part, of Debian's source package; without what finds the precision of numbers by loops, not optimised."""
    folder = here / "hpcc"
    folder.mkdir(exist_ok=True)
    subprocess.run(["tar", "-xzf", hpcc_tarball(), "-C", folder, "--strip-components=1"], check=True)
    flags = ["-w", "-include", str(ROOT / "probes" / "hpl_compat.h"), "-DHPL_CALL_CBLAS"]
    flags += [f"-I{folder / name}" for name in ("include", "hpl/include", "FFT", "RandomAccess", "PTRANS")]
    plain = [*folder.glob("hpl/src/auxil/HPL_dlamch.c"), *folder.glob("src/HPL_slamch.c"), *folder.glob("src/noopt.c")]
    patterns = [f"{name}/*.c" for name in ("FFT", "PTRANS", "RandomAccess", "STREAM", "DGEMM", "src", "hpl/src/*")]
    patterns += [f"hpl/testing/{name}/*.c" for name in ("matgen", "pmatgen", "ptest", "ptimer", "timer")]
    sources = sorted({path for pattern in patterns for path in folder.glob(pattern)} - {*plain, folder / "src/hpcc.c"})
    sources = [path for path in sources if not path.stem.endswith(("_vanilla", "_opt"))]
    objects = []
    for source in plain:
        objects.append(here / f"{source.stem}.o")
        mpi.compile(["-O0", *flags, "-c", str(source), "-o", str(objects[-1])], what="hpcc")
    words = [*map(str, [INPUTS / "hpcc_part.c", *sources, *objects]), "-lblas", "-lm", "-o", str(here / "hpcc_part")]
    mpi.compile(["-O2", *flags, *words], what="hpcc", timeout_s=600.0)


def chains(beads: int, width: int) -> str:
    """LAMMPS' data of width x width straight chains of so many beads, at the density of the benchmark."""
    side = 0.8442 ** (-1.0 / 3.0)
    places = [(x, y, z) for y in range(width) for z in range(width) for x in range(beads)]
    atoms = [
        f"{number} {1 + y * width + z} 1 {(x + 0.5) * side:.6f} {(y + 0.5) * side:.6f} {(z + 0.5) * side:.6f}"
        for number, (x, y, z) in enumerate(places, start=1)
    ]
    bound = [number for number, (x, _, _) in enumerate(places, start=1) if x]
    bonds = [f"{place} 1 {number - 1} {number}" for place, number in enumerate(bound, start=1)]
    box = [f"0 {n * side:.6f} {axis}lo {axis}hi" for axis, n in zip("xyz", (beads, width, width), strict=True)]
    head = ["chains", "", f"{len(atoms)} atoms", f"{len(bonds)} bonds", "1 atom types", "1 bond types", "", *box]
    return "\n".join([*head, "", "Masses", "", "1 1.0", "", "Atoms # bond", "", *atoms, "", "Bonds", "", *bonds]) + "\n"


def command(program: Real, library: str, ranks: int, *, timed: bool) -> list[str]:
    here, preload = WORK / library, str(WORK / library / "timed.so")
    if library == "mpich":
        own = ["-bind-to", "core"] if ranks <= RANKS else []
        own += ["-genv", "LD_PRELOAD", preload] if timed else []
    else:
        own = ["--bind-to", "core"] if ranks <= RANKS else ["--oversubscribe", "--bind-to", "none"]
        own += ["--allow-run-as-root"] if os.geteuid() == 0 else []
        own += ["-x", f"LD_PRELOAD={preload}"] if timed else []
    words = [word.replace("{here}", str(here)) for word in program.words]
    return [f"mpirun.{library}", *own, "-wdir", str(program.folder), "-np", str(ranks), *words]


def lepaute(*words: str, environment: dict[str, str] | None = None) -> None:
    """One command of ours; its words go to standard error."""
    argv = [*LEPAUTE, *words]
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          timeout=900.0, env=os.environ | (environment or {}))  # fmt: skip
    if done.returncode:
        raise LepauteError((done.stdout.strip().splitlines() or ["no output"])[-1])
    said = [line for line in done.stdout.splitlines() if line.startswith(("lepaute", str(WORK)))]
    say(*said, sep="\n")


def recorded(program: Real, library: str, ranks: int, number: int, kernels: dict[str, str]) -> Path:
    path = WORK / f"{program.name}-{library}-{ranks}-{number}.parquet"
    words = command(program, library, ranks, timed=False)
    lepaute("record", "-o", str(path), "--force", "--", *words, environment={**SINGLE, **kernels})
    return path


def length_s(trace: TraceParts) -> float:
    """From MPI_Init to the last MPI_Finalize."""
    return float(max(trace.metadata["ends_s"]))


SINGLE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def compared(options: Options) -> pandas.DataFrame:
    """A row a program; real runs have a table of their own."""
    end_s, library, quick = time.monotonic() + LAST_ROUND_S, "openmpi", options.quick
    prepare(library)
    if quick:
        campaign.MAXIMUM_EXTRA_ATTEMPTS = 0
    chosen = programs(library)[5::4] if quick else programs(library)
    path = WORK / "platform.yaml"
    if options.own.platform is not None:
        shutil.copy(options.own.platform, path)
    else:
        lepaute("calibrate", "-o", str(path), "--archive", str(WORK / "calibration.zip"), "--seed", "1", "--force",
                *(["--quick"] if quick else []))  # fmt: skip
    platform = lp.load_platform(path)
    coretype = platform.blas.coretype_env if platform.blas is not None else None
    kernels = kernels_of(platform)
    paths = []
    for program in chosen:
        made = [recorded(program, library, RANKS, number, kernels) for number in range(1 if quick else RECORDINGS)]
        paths.append(sorted(made, key=lambda each: length_s(TraceParts(each)))[len(made) // 2])
    replays = [lp.TraceReplay(each, recorded_on=str(path)) for each in paths]
    os.environ.update(SINGLE)
    commands = [
        Command(tuple(command(program, library, RANKS, timed=True)), PATTERN, LIMIT_S, coretype) for program in chosen
    ]

    def predicted(replay: lp.TraceReplay, **more: Any) -> lp.Prediction:
        return quietly(replay, platform, runs=2 if quick else RUNS, seed=SEED, lag_s=LAG_S, **more)

    cases = predict_cases(replays, lambda _: None, predicted, tell)
    guard = guard_of(platform, build_probes().dgemm, coretype)
    of_replay = dict(zip(paths, commands, strict=True))
    runs = measured(
        cases,
        lambda replay, limit_s: of_replay[replay.recording].run(replay, limit_s),
        (lambda: None) if guard is None else (lambda: Here().watch(guard)),
        end_s,
        1 if quick else MIN_ROUNDS,
    )
    table = run_table(cases, runs, platform.sentinel)
    table["program"] = [chosen[case].name for case in table["case"]]
    frame = compare(cases, table)
    frame["program"] = [program.name for program in chosen]
    frame["calls"] = [TraceParts(each).rows for each in paths]
    frame["computing_percent"] = [100.0 * compute_share(case.prediction) for case in cases]
    frame["platform_sha256"] = platform.sha256
    options.write(f"{STUDY}_runs", table.drop(columns="varied", errors="ignore"))
    return frame.drop(columns="varied", errors="ignore")


def measured(
    cases: list[Case],
    run_once: Callable[[Any, float], Any],
    watch: Callable[[], float | None],
    end_s: float,
    least: int,
) -> list[RecordedRun]:
    """All real runs: as many rounds as begin before end_s, on the clock of time.monotonic, and at least so many."""
    rng, plan = random.Random(SEED), Plan(MAX_ROUNDS, SEED)
    runs: list[RecordedRun] = []
    for number in range(MAX_ROUNDS):
        if number >= least and time.monotonic() > end_s:
            break
        order = rng.sample(range(len(cases)), len(cases))
        for case in order:
            runs = run_cases(cases, plan, run_once, tell, runs, watch=watch, wanted=[(case, number)])
    return runs


def judged(frame: pandas.DataFrame) -> list[Goal]:
    runs, (low, high) = frame["n_counting"].sum(), INSIDE_PERCENT
    share = 100.0 * frame["n_inside"].sum() / runs
    seen, met = f"{share:.0f} % of {runs}", low <= share <= high
    return [
        at_most("mean absolute error in time", MEAN_LIMIT_PERCENT, frame["error_percent"].abs().mean()),
        Goal("single runs inside the 95 % interval", f"{low:g} to {high:g} %", seen, met),
    ]


if __name__ == "__main__":
    run_study(STUDY, compared, judged, TEXT, own=OWN)
