"""Real programs, recorded here alone and beside copies of themselves, and replayed against real runs on free cores.

Fixed before any result was looked at:

* programs: of Debian (`apt-get install lammps quantum-espresso quantum-espresso-data libopenmpi-dev libmpich-dev
  python3-mpi4py gfortran`): LAMMPS (lj, eam, chain, as its benchmarks of these names), Quantum ESPRESSO (si), parts of
  HPC Challenge built from Debian's source, each by itself (hpcc-fft, hpcc-ptrans, hpcc-random); cg, fft, halo of
  examples/emulation; five of the NAS benchmarks, where --nas has them; five of tests/data/programs (C, Fortran 90
  and 2008, mpi4py);
* recordings: `lepaute record` on 2 ranks, bound to a core each, of 1, 2 and 4 copies of a program at a time, one after
  the other; 3 rounds, or as many as begin in 10 minutes. Open MPI yields where copies share a core;
* own code: of the first copy, mean over its ranks, without waiting for a core. Compared in a round with that of the
  program alone; of each program the median over the rounds. None is left out;
* PLATFORM: `lepaute calibrate` (seed 1, Open MPI), just before;
* predictions: of the recording of median own code for each number of copies; 20 runs, seed 1, all layers, --recorded-on
  this platform, --lag twenty minutes, before the first real run;
* real runs on 2 ranks: 2 rounds in random order. Disturbed runs (rule of `lepaute verify`) are made again, at most
  three times, and count only where a program has no others;
* compared: the time from MPI_Init to MPI_Finalize of the slowest rank (validation/real_programs/timed.c); error =
  predicted / mean of the real runs - 1; a run is inside where the 95 % interval of one run has it;
* goals: own code beside copies within 3 % in the median, and of 9 in 10 programs within 8 % of that alone; mean
  absolute error at most 5 %, single runs inside in 90 to 98 %.

A run before the first page had no lag, and own code the variance of one day and run: 35 % inside.
"""

import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas
from support.real_runs import LEPAUTE, kernels_of, quietly, tell
from support.report import ROOT, Goal, Options, at_most, close, run_study, say

import lepaute as lp
from lepaute.errors import LepauteError
from lepaute.kit.command import run_command
from lepaute.kit.mpi_library import find_library
from lepaute.measure.hpl_source import hpcc_tarball
from lepaute.measure.probes import build_probes
from lepaute.measure.verify import campaign
from lepaute.measure.verify.campaign import Plan, predict_cases, run_cases
from lepaute.measure.verify.comparison import compare, run_table
from lepaute.measure.verify.machine import compute_share, guard_of
from lepaute.measure.verify.real_run import Command, Here
from lepaute.simulate.trace.breakdown import COMPUTE, OWN_CODE, breakdown_of
from lepaute.simulate.trace.reading import TraceParts, read_trace

STUDY = "real_programs"
INPUTS, WORK = ROOT / "validation" / STUDY, ROOT / "build" / STUDY
SOURCES = ROOT / "tests" / "data" / "programs"
RECORDINGS, RUNS, SEED = 3, 20, 1
LAG_S = 1200.0
ROUNDS = 2
MEAN_LIMIT_PERCENT, INSIDE_PERCENT = 5.0, (90.0, 98.0)
COPIES = (1, 2, 4)
OWN_MEDIAN_PERCENT, OWN_LIMIT_PERCENT, OWN_SHARE = 3.0, 8.0, 0.9
PATTERN = r"from MPI_Init to MPI_Finalize: (\S+) s"
RANKS = 2
LIMIT_S = 300.0
#: From the first to the last round of recordings.
RECORDED_S = 600.0
PSEUDOPOTENTIAL = Path("/usr/share/doc/quantum-espresso/examples/EPW/sic/pp/Si.pz-vbc.UPF.gz")
COPPER = Path("/usr/share/lammps/potentials/Cu_u3.eam")
LAMMPS = {"lj": 80, "chain": 160, "eam": 40}
HPCC = {"fft": (4000, 10), "ptrans": (3000, 2), "random": (500, 2)}
EXAMPLES = {"cg": ("1000", "100"), "fft": ("2048", "4"), "halo": ("2000", "200")}
NAS = {"cg": "A", "mg": "A", "ft": "A", "is": "A", "ep": "W"}
FURTHER = {"integral.c": "mpicc", "sort.c": "mpicc", "heat.f90": "mpif90", "bodies.f90": "mpif90"}
OWN = {
    "-p --platform": {"type": Path, "help": "platform file of this machine"},
    "--nas": {"type": Path, "help": "the folder of the NAS benchmarks, built"},
}
TEXT = f"""## Real programs replayed on their own machine, Open MPI

Recorded on {RANKS} ranks here, replayed on the platform of this machine, against fresh runs.

    .venv/bin/python validation/{STUDY}.py -p PLATFORM

{{goals}}

{{cases}}
"""
SHARED = "sharing"


@dataclass(frozen=True)
class Real:
    """A program: its folder, and its words."""

    name: str
    words: tuple[str, ...]
    libraries: tuple[str, ...] = ("openmpi", "mpich")

    @property
    def folder(self) -> Path:
        return WORK / self.name

    def folder_of(self, copy: int) -> Path:
        """That of a copy, which may write there."""
        return self.folder.with_name(f"{self.name}.{copy}") if copy else self.folder


def programs(library: str) -> list[Real]:
    """Those of a library; {here} is the folder of what is built with it."""
    debian = ("openmpi",)
    found = [
        *(
            Real(f"lammps-{name}", ("lmp", "-in", f"in.{name}", "-log", "none", "-var", "steps", str(steps)), debian)
            for name, steps in LAMMPS.items()
        ),
        Real("espresso-si", ("pw.x", "-in", "si.in"), debian),
        *(Real(f"hpcc-{part}", ("{here}/hpcc_part", part, str(times))) for part, (_, times) in HPCC.items()),
        *(Real(name, (f"{{here}}/{name}", *arguments)) for name, arguments in EXAMPLES.items()),
        *(Real(f"nas-{name}", (f"{{here}}/nas/{name}.{size}.x",), debian) for name, size in NAS.items()),
        *(Real(Path(name).stem, (f"{{here}}/{Path(name).stem}",), debian) for name in FURTHER),
        Real("primes", ("/usr/bin/python3", str(SOURCES / f"{STUDY}_primes.py")), debian),
    ]
    return [program for program in found if library in program.libraries]


def prepare(library: str) -> None:
    """Builds what is built, and puts the inputs into the folders of the programs; once."""
    here = WORK / library
    for program in programs(library):
        program.folder.mkdir(parents=True, exist_ok=True)
        if "{here}" not in program.words[0] and shutil.which(program.words[0]) is None:
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
        for name, compiler in FURTHER.items():
            words = ["-O2", SOURCES / f"{STUDY}_{name}", "-lm", "-o", here / Path(name).stem]
            subprocess.run([f"{compiler}.{library}", *words], check=True)
        for name in LAMMPS:
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


def command(program: Real, library: str, ranks: int, *, timed: bool, copy: int = 0, copies: int = 1) -> list[str]:
    here, preload = WORK / library, str(WORK / library / "timed.so")
    if library == "mpich":
        own = ["-bind-to", "core"] if ranks <= RANKS else []
        own += ["-genv", "LD_PRELOAD", preload] if timed else []
    else:
        own = ["--bind-to", "core"] if ranks <= RANKS else ["--oversubscribe", "--bind-to", "none"]
        own += ["--allow-run-as-root"] if os.geteuid() == 0 else []
        own += ["-x", f"LD_PRELOAD={preload}"] if timed else []
        own += ["--mca", "mpi_yield_when_idle", "1"] if copies > 1 else []
    words = [word.replace("{here}", str(here)) for word in program.words]
    return [f"mpirun.{library}", *own, "-wdir", str(program.folder_of(copy)), "-np", str(ranks), *words]


def lepaute(*words: str, environment: dict[str, str] | None = None) -> None:
    """One command of ours; its words go to standard error."""
    done = run_command([*LEPAUTE, *words], what=words[0], timeout_s=900.0, environment=environment)
    lines = (done.stdout + done.stderr).splitlines()
    say(*(line for line in lines if line.startswith(("lepaute", str(WORK)))), sep="\n")


def recorded(program: Real, library: str, ranks: int, number: int, kernels: dict[str, str], copies: int = 1) -> Path:
    """The recording of the first of so many copies that run at a time."""

    def record(copy: int) -> Path:
        path = WORK / f"{program.name}-{library}-{ranks}-{number}-{copies}-{copy}.parquet"
        if copy:
            shutil.copytree(program.folder, program.folder_of(copy), dirs_exist_ok=True)
        words = command(program, library, ranks, timed=False, copy=copy, copies=copies)
        lepaute("record", "-o", str(path), "--force", "--", *words, environment={**SINGLE, **kernels})
        return path

    with ThreadPoolExecutor(copies) as pool:
        return next(iter(pool.map(record, range(copies))))


def recordings_of(chosen: list[Real], library: str, kernels: dict[str, str], rounds: int) -> pandas.DataFrame:
    """A row a recording: own code of a rank, kernels included, in the mean, and how much load there was."""
    end_s, rows = time.monotonic() + RECORDED_S, []
    for number in range(rounds):
        if number and time.monotonic() > end_s:
            break
        for program in chosen:
            for copies in COPIES:
                load, begin_s = os.getloadavg()[0], time.monotonic()
                path = recorded(program, library, RANKS, number, kernels, copies)
                trace = TraceParts(path)
                own_s = breakdown_of(read_trace(path)).by_rank_s[:, [COMPUTE, OWN_CODE]].sum(axis=1).mean()
                rows.append({"round": number, "program": program.name, "copies": copies, "own_s": own_s,
                             "length_s": length_s(trace), "took_s": time.monotonic() - begin_s, "load_before": load,
                             "calls": trace.rows, "path": path})  # fmt: skip
    frame = pandas.DataFrame(rows)
    alone = frame["own_s"].where(frame["copies"] == 1).groupby([frame["round"], frame["program"]]).transform("max")
    return frame.assign(own_ratio=frame["own_s"] / alone)


def length_s(trace: TraceParts) -> float:
    """From MPI_Init to the last MPI_Finalize."""
    return float(max(trace.metadata["ends_s"]))


SINGLE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def compared(options: Options) -> pandas.DataFrame:
    """A row a program and number of copies; recordings and real runs have tables of their own."""
    library, quick, nas = "openmpi", options.quick, options.own.nas
    prepare(library)
    if nas is not None:
        shutil.copytree(nas, WORK / library / "nas", dirs_exist_ok=True)
    if quick:
        campaign.MAXIMUM_EXTRA_ATTEMPTS = 0
    chosen = [program for program in programs(library) if nas is not None or not program.name.startswith("nas-")]
    chosen = chosen[5::4] if quick else chosen
    if options.own.platform is None:
        raise LepauteError("give the platform of this machine with -p")
    path = options.own.platform.resolve()
    platform = lp.load_platform(path)
    coretype = platform.blas.coretype_env if platform.blas is not None else None
    recordings = recordings_of(chosen, library, kernels_of(platform), 1 if quick else RECORDINGS)
    options.write(SHARED, recordings.drop(columns="path"), "%.5g")
    close_recordings(options, recordings)
    medians = {
        key: rows.iloc[len(rows) // 2] for key, rows in recordings.sort_values("own_s").groupby(["program", "copies"])
    }
    made = [[medians[program.name, copies] for program in chosen] for copies in COPIES]
    os.environ.update(SINGLE)

    def predicted(replay: lp.TraceReplay, **more: Any) -> lp.Prediction:
        return quietly(replay, platform, runs=2 if quick else RUNS, seed=SEED, lag_s=LAG_S, **more)

    predictions = [
        predict_cases(
            [lp.TraceReplay(row["path"], recorded_on=str(path)) for row in rows], lambda _: None, predicted, tell
        )
        for rows in made
    ]
    guard = guard_of(platform, build_probes().dgemm, coretype)
    commands = {
        row["path"]: Command(tuple(command(program, library, RANKS, timed=True)), PATTERN, LIMIT_S, coretype)
        for program, row in zip(chosen, made[0], strict=True)
    }
    runs = run_cases(
        predictions[0],
        Plan(1 if quick else ROUNDS, SEED),
        lambda replay, limit_s: commands[replay.recording].run(replay, limit_s),
        tell,
        watch=(lambda: None) if guard is None else (lambda: Here().watch(guard)),
    )
    table = run_table(predictions[0], runs, platform.sentinel)
    table["program"] = [chosen[case].name for case in table["case"]]
    options.write(f"{STUDY}_runs", table.drop(columns="varied", errors="ignore"))
    frames = []
    for copies, rows, cases in zip(COPIES, made, predictions, strict=True):
        frame = compare(cases, table).drop(columns="varied", errors="ignore")
        frame["program"], frame["copies"] = [program.name for program in chosen], copies
        frame["calls"] = [row["calls"] for row in rows]
        frame["computing_percent"] = [100.0 * compute_share(case.prediction) for case in cases]
        frame["platform_sha256"] = platform.sha256
        frames.append(frame)
    return pandas.concat(frames, ignore_index=True)


def close_recordings(options: Options, recordings: pandas.DataFrame) -> None:
    """Writes their section."""
    beside = recordings[recordings["copies"] > 1]
    apart = 100.0 * (beside.groupby(["program", "copies"])["own_ratio"].median() - 1.0).abs()
    worst = apart.groupby("program").max()
    far, wanted, load = worst.index[worst > OWN_LIMIT_PERCENT], OWN_SHARE * len(worst), recordings["load_before"]
    near = len(worst) - len(far)
    goals = [
        at_most("own code beside copies and alone, median difference", OWN_MEDIAN_PERCENT, apart.median()),
        Goal(f"programs within {OWN_LIMIT_PERCENT:g} %", f"{wanted:g} of {len(worst)}", str(near), near >= wanted),
    ]
    text = f"""## Own code of programs that share cores

Beside one and three copies on the same {RANKS} cores, over that alone (`validation/{STUDY}.py`). Load was
{load.min():.0f} to {load.max():.0f}, so that replays were compared with no run on free cores.
Further apart: {", ".join(far)}.

{{goals}}

{{cases}}
"""
    close(options, SHARED, goals, text)


def judged(frame: pandas.DataFrame) -> list[Goal]:
    runs, (low, high) = frame["n_counting"].sum(), INSIDE_PERCENT
    share = 100.0 * frame["n_inside"].sum() / runs
    seen, met = f"{share:.0f} % of {runs}", low <= share <= high
    return [
        at_most("mean absolute error in time", MEAN_LIMIT_PERCENT, frame["error_percent"].abs().mean()),
        Goal("single runs inside the 95 % interval", f"{low:g} to {high:g} %", seen, met),
    ]


if __name__ == "__main__":
    run_study(compared, judged, TEXT, own=OWN)
