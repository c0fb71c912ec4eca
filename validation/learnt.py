"""Applications that `lepaute learn` makes of recordings on few ranks, against emulations on many.

Fixed before any result was looked at:

* programs: jacobi (Cartesian grid), wavefront (pipelined sweeps), transpose (an FFT's all-to-all within rows and
  columns of MPI_Comm_split) of tests/data/programs; ep, is, cg, mg, ft, lu of the NAS benchmarks, where --nas has their
  sources (3.4-MPI; lu with 50 iterations); HPL; LAMMPS (lj, of validation/real_programs) and HPCC's RandomAccess, where
  they are installed. Twelve; one that cannot be had here counts as missed, and so does one that learn refuses;
* sizes: such that a run on 256 ranks should take 25 ms or more. SMPI sets up its algorithms at the first collective
  operation, 3.9 us a rank, 1 ms on 256, which no library does; in an earlier trial half of the time of some programs;
* recordings: `lepaute record`, Open MPI, on 2, 4, 8 and 16 ranks, which share the cores of this machine;
* reference: the program emulated on 64 and 256 ranks of dahu-2020-01 with network.flow_factor=scale, no uncertainty,
  Open MPI's rules, no contention of memory, once with `--computing none`, traced; once so that every rank computes
  before each of its calls as long as the learnt class says of this call;
* calls: `lp.check` of the learnt class and the trace: all ranks' calls in order, with peers, tags and sizes; goal: the
  same in all cases that were learnt;
* time: of the learnt class on the same platform, without uncertainty, against the second emulation; goal: within 5 % on
  both numbers of ranks, of 8 of the 12. Computing has the same length on both sides: an emulation times the program
  here, beside whatever else this machine does, other caches and one rank after another, which is no reference for 5 %.
  Told, but no goal: the same of communication alone, all costs 0;
* computing by itself: learnt from 2, 4, 8 and 16 ranks, predicted for 32, kept out: own code of all ranks, and Extra-P
  (--extrap PROGRAM, of PyPI) of the same sums. Of the programs that both can model, the median absolute error; goal:
  ours is not the larger one.

Real runs on cores that are free: learnt_real.py.
"""

import argparse
import math
import os
import re
import shutil
import subprocess
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import pandas
from support.real_runs import AS_ROOT, LEPAUTE, SCALED, emulated_s, quietly
from support.report import ROOT, Goal, Options, run_study, say

import lepaute as lp
from lepaute.errors import LepauteError
from lepaute.kit.command import run_command
from lepaute.measure.verify.real_run import hpl_input_text
from lepaute.simulate.apps.own.checking import _made_of_recording as rows_of_recording
from lepaute.simulate.apps.own.laying import Laying
from lepaute.simulate.apps.own.values import costs_of
from lepaute.simulate.apps.replay.calls import Rows
from lepaute.simulate.apps.replay.collectives import OPENMPI
from lepaute.simulate.apps.replay.laying import RecordedPart, Survey
from lepaute.simulate.apps.replay.operations import Operations
from lepaute.simulate.learn import learn
from lepaute.simulate.smpi.building import compilers
from lepaute.simulate.trace import read_trace
from lepaute.simulate.trace.breakdown import OWN_CODE, breakdown_of
from lepaute.simulate.trace.table import MPI

STUDY = "learnt"
WORK, SOURCES = ROOT / "build" / STUDY, ROOT / "tests" / "data" / "programs"
INPUTS = ROOT / "validation" / "real_programs"
RECORDED, KEPT_OUT, PREDICTED = (2, 4, 8, 16), 32, (64, 256)
LIMIT_PERCENT, WANTED, PROGRAMS, LIMIT_S = 5.0, 8, 12, 900.0
OWN = {
    "--nas": {"type": Path, "help": "the folder of the sources of the NAS benchmarks, 3.4-MPI"},
    "--extrap": {"type": Path, "help": "the program of Extra-P"},
}
LU = "".join(f"--\n--\n{values}\n" for values in ("1 1", "50", "2.0", "1.2", "1e-8 " * 5, "64 64 64"))  # its six inputs
NAS = {"ep": "B", "is": "C", "cg": "A", "mg": "B", "ft": "A", "lu": "A"}
#: Calls before which an emulated rank can be charged.
CHARGING = SOURCES / "learnt_charge.c"
CHARGED = [f"MPI_{name}" for name in re.findall(r"BOTH\((\w+), \w+\);", CHARGING.read_text())]
NAS_FLAGS = {"MPIFC": "mpif90", "MPICC": "mpicc", "FFLAGS": "-O2 -w -fallow-argument-mismatch -fallow-invalid-boz"}


@dataclass(frozen=True)
class Program:
    """words: {here} is the folder that it was built in;  options: of lepaute record."""

    name: str
    words: tuple[str, ...]
    options: tuple[str, ...] = ()
    emulated: bool = True

    @property
    def folder(self) -> Path:
        return WORK / self.name

    def words_in(self, build_folder: str) -> list[str]:
        return [word.replace("{here}", str(WORK / build_folder)) for word in self.words]


BUILT_HERE = (
    Program("jacobi", ("{here}/jacobi", "3072", "1000")),
    Program("wavefront", ("{here}/wavefront", "1024", "20", "16")),
    Program("transpose", ("{here}/transpose", "128", "60")),
)
OTHERS = (
    *(Program(name, (f"{{here}}/npb/bin/{name}.{size}.x",)) for name, size in NAS.items()),
    Program("hpl", ("xhpl-lepaute",), ("--dat", "HPL.dat"), emulated=False),
    Program("lammps", ("lmp", "-in", str(INPUTS / "in.lj"), "-log", "none", "-var", "steps", "20"), emulated=False),
    Program("random", ("hpcc_part", "random", "1"), emulated=False),
)


def compared(options: Options) -> pandas.DataFrame:
    for simulated in (False, True):
        build(WORK / ("smpi" if simulated else "openmpi"), options.own.nas, simulated)
    rows = []
    for program in BUILT_HERE if options.quick else (*BUILT_HERE, *OTHERS):
        for row in rows_of(program, PREDICTED[: 1 if options.quick else None], options.own):
            say(*(f"{name} {value}" for name, value in row.items()), sep=", ")
            rows.append(row)
    return pandas.DataFrame(rows)


def build(here: Path, nas: Path | None, simulated: bool) -> None:
    """The programs, for Open MPI, or for emulations with what charges computing; once."""
    here.mkdir(parents=True, exist_ok=True)
    charging: list[str] = []
    environment = os.environ | ({"PATH": f"{compilers()}:{os.environ['PATH']}"} if simulated else {})
    if simulated:
        shim = str(here / "charge.o")
        argv = ["mpicc", "-O2", "-fPIC", "-c", str(CHARGING), "-o", shim]
        subprocess.run(argv, check=True, env=environment)
        charging = [shim, *(f"-Wl,--wrap={name},--wrap={name.lower()}_" for name in CHARGED)]
    for program in BUILT_HERE:
        source = SOURCES / f"learnt_{program.name}.c"
        argv = ["mpicc", "-O2", str(source), *charging, "-o", str(here / program.name), "-lm"]
        subprocess.run(argv, check=True, env=environment)
    if nas is None or (here / "npb").exists():
        return
    shutil.copytree(nas, here / "npb")
    for path in (here / "npb", *(here / "npb").rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)
    (here / "npb" / "bin").mkdir(exist_ok=True)
    settings = (nas / "config" / "make.def.template").read_text() + "\n"
    settings += "".join(f"{name} = {value}\n" for name, value in NAS_FLAGS.items())  # the last one of a name counts
    settings += "".join(f"{name} = {' '.join(charging)}\n" for name in ("FMPI_LIB", "CMPI_LIB"))
    (here / "npb" / "config" / "make.def").write_text(settings)
    for name, size in NAS.items():
        argv = ["make", name, f"CLASS={size}"]
        subprocess.run(argv, cwd=here / "npb", check=True, env=environment, stdout=subprocess.DEVNULL)


def rows_of(program: Program, ranks: tuple[int, ...], how: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each number of ranks, or one that says why there is none."""
    program.folder.mkdir(parents=True, exist_ok=True)
    if program.name == "lu":
        (program.folder / "inputlu.data").write_text(LU)
    try:
        learnt = quiet_learn([recorded(program, count) for count in RECORDED], WORK / f"{program.name}.py")
    except (LepauteError, subprocess.SubprocessError, OSError) as problem:
        return [{"program": program.name, "learnt": False, "reason": str(problem).replace(f"{WORK}/", "")}]
    found = {"program": program.name, "learnt": True} | computing_of(program, how.extrap)
    if not program.emulated:
        return [found]
    return [found | against_emulation(program, learnt, count) for count in ranks]


def quiet_learn(traces: list[Path], output: Path, recorded_on: str | None = None) -> type[lp.Application]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return learn(traces, output, recorded_on=recorded_on)


def recorded(program: Program, ranks: int, output: Path | None = None) -> Path:
    """The trace of a run here; made once."""
    program.folder.mkdir(parents=True, exist_ok=True)
    trace = output or program.folder / f"r{ranks}.parquet"
    if program.name == "hpl":
        q = max(side for side in range(1, ranks + 1) if ranks % side == 0 and side * side <= ranks)
        text = hpl_input_text(lp.Hpl(n=1500, nb=64, p=q, q=ranks // q), to_stdout=True)
        (program.folder / "HPL.dat").write_text(text)
    if not trace.exists():
        mpirun = ("mpirun", "--oversubscribe", "-np", str(ranks), *program.words_in("openmpi"))
        argv = [*LEPAUTE, "record", "-o", str(trace), *program.options, "--", *mpirun]
        variables = AS_ROOT | {"OPENBLAS_NUM_THREADS": "1"}
        run_command(argv, what="recording", timeout_s=LIMIT_S, environment=variables, folder=program.folder)
    return trace


def against_emulation(program: Program, learnt: type[lp.Application], ranks: int) -> dict[str, Any]:
    platform = lp.override(lp.load_platform("dahu-2020-01"), SCALED)
    free = {name: lp.Cost(0.0) for name, cost in vars(learnt).items() if isinstance(cost, lp.Cost)}
    silent = type(learnt.__name__, (learnt,), free)
    row: dict[str, Any] = {"ranks": ranks}
    for which, computing in ((silent, "no"), (learnt, "learnt")):
        trace = program.folder / f"emulated-{ranks}-{computing}.parquet"
        options = ("--computing", "none", "--fold", "64M")
        try:
            smpi_s = emulated_s(program.words_in("smpi"), ranks, trace, *options, folder=program.folder)
        except LepauteError as problem:
            return row | {"reason": f"emulation: {problem}"}
        finally:
            os.environ.pop("LEARNT_SECONDS", None)
        if computing == "no":
            check = lp.check(learnt(ranks=ranks), trace)  # type: ignore[call-arg]
            row |= {"same_calls": check.same, "reason": "" if check.same else check.text}
        predicted_s = quietly(which(ranks=ranks), platform, runs=1, layers=lp.Layers.only()).time_s.mean  # type: ignore[call-arg]
        row |= {
            f"{computing}_smpi_s": smpi_s,
            f"{computing}_learnt_s": predicted_s,
            f"{computing}_difference_percent": 100.0 * (predicted_s / smpi_s - 1.0),
        }
        if not row["same_calls"]:
            break  # what is to be charged before which call is not known
        os.environ["LEARNT_SECONDS"] = str(write_seconds(learnt(ranks=ranks), trace))  # type: ignore[call-arg]
    os.environ.pop("LEARNT_SECONDS", None)
    return row


def write_seconds(application: lp.Application, path: Path) -> Path:
    """The file of learnt_charge.c: what every rank computes before each of the calls of a trace, which are its own."""
    trace = read_trace(path)
    survey = Survey([trace], str(path), operations=False)
    recorded = RecordedPart(Rows(trace), survey, Operations(), OPENMPI)
    theirs = rows_of_recording(recorded, {})
    counted = numpy.flatnonzero((trace.kind == MPI) & trace.named(CHARGED))
    bounds = numpy.searchsorted(trace.rank[counted], numpy.arange(application.ranks + 1))
    laying = Laying(application, 1)
    laying.lay()
    operations, lists, _, _ = laying.listed()
    seconds_of = {number: cost[1] for number, cost in enumerate(costs_of(application))}
    before_s = numpy.zeros(len(counted))
    for rank, track in enumerate(laying.tracks):
        charges, passed_s = [], 0.0
        for number in (op for first, count, times in track.parts for op in track.ops[first : first + count] * times):
            code, _, _, _, which, _, units, *_ = operations[number]
            if code == "compute":
                passed_s += units * seconds_of[which]
            elif made := _calls(code, lists, which):
                charges += [passed_s, *[0.0] * (made - 1)]
                passed_s = 0.0
        numpy.add.at(before_s, numpy.searchsorted(counted, theirs(rank)[1]), charges)
    output = path.with_suffix(".seconds")
    output.write_bytes(bounds.astype("int64").tobytes() + before_s.tobytes())
    return output


def _calls(code: str, lists: Sequence[Any], which: int) -> int:
    """Calls of a recording that an operation makes."""
    if code == "exchange":
        return 2 * len(lists[which][0]) + bool(lists[which][0])
    return int(code != "step" and (code not in ("waitall", "waitany") or bool(lists[which][0])))


def own_code_s(trace: Path) -> float:
    """Of all ranks together."""
    return float(breakdown_of(read_trace(trace)).by_rank_s[:, OWN_CODE].sum())


def computing_of(program: Program, extrap: Path | None) -> dict[str, Any]:
    """Own code on the ranks that were kept out, predicted by the class of the others and by Extra-P."""
    try:
        points = {ranks: recorded(program, ranks) for ranks in (*RECORDED, KEPT_OUT)}
        learnt = quiet_learn([points[ranks] for ranks in RECORDED], program.folder / "kept_out.py")
    except (LepauteError, subprocess.SubprocessError, OSError) as problem:
        return {"computing": str(problem).replace(f"{WORK}/", "")}
    prediction = quietly(learnt(ranks=KEPT_OUT), "dahu-2020-01", runs=1, layers=lp.Layers.only())  # type: ignore[call-arg]
    real_s, predicted_s = own_code_s(points[KEPT_OUT]), prediction.breakdown.total_s["compute"]
    row = {"own_code_s": real_s, "own_code_error_percent": 100.0 * (predicted_s / real_s - 1.0)}
    if extrap is not None:
        places = " ".join(f"({ranks})" for ranks in RECORDED)
        text = f"PARAMETER p\nPOINTS {places}\nREGION own_code\nMETRIC time\n"
        text += "".join(f"DATA {own_code_s(points[ranks])}\n" for ranks in RECORDED)
        (program.folder / "extrap.txt").write_text(text)
        argv = [str(extrap), "--text", "--disable-progress", "--print", "functions-python", "extrap.txt"]
        done = run_command(argv, what="Extra-P", timeout_s=LIMIT_S, folder=program.folder)
        function = done.stdout.strip().splitlines()[-1]
        value = eval(function, {"p": KEPT_OUT, "log2": math.log2})  # noqa: S307
        row |= {"extrap": function, "extrap_error_percent": 100.0 * (value / real_s - 1.0)}
    return row


def judged(frame: pandas.DataFrame) -> list[Goal]:
    learnt = frame[frame["learnt"]].dropna(subset=["ranks"])
    same = int(learnt["same_calls"].eq(True).sum())
    close = learnt["learnt_difference_percent"].abs() <= LIMIT_PERCENT
    good = sum(int(close[rows.index].sum()) == len(PREDICTED) for _, rows in learnt.groupby("program"))
    goals = [
        Goal("cases with all calls of the emulation", "all", f"{same} of {len(learnt)}", same == len(learnt)),
        Goal(f"programs within {LIMIT_PERCENT:g} % in time", f"{WANTED} of {PROGRAMS}", str(good), good >= WANTED),
    ]
    if "extrap_error_percent" in frame:
        both = frame.drop_duplicates("program").dropna(subset=["own_code_error_percent", "extrap_error_percent"])
        ours, theirs = (both[f"{who}_error_percent"].abs().median() for who in ("own_code", "extrap"))
        what, seen = "computing on 32 ranks, median error, and Extra-P's", f"{ours:.1f} % and {theirs:.1f} %"
        goals.append(Goal(what, "not larger", f"{seen}, {len(both)} programs", bool(ours <= theirs)))
    return goals


def text(frame: pandas.DataFrame) -> str:
    refused = frame[~frame["learnt"]]
    reasons = "; ".join(f"{row.program} ({str(row.reason)[:90]} ...)" for row in refused.itertuples())
    programs = ", ".join(frame["program"].drop_duplicates())
    return f"""## Applications learnt from recordings

    .venv/bin/python validation/{STUDY}.py --nas FOLDER --extrap PROGRAM

Learnt from 2, 4, 8 and 16 ranks here, of {programs}, against emulations on 64 and 256 ranks of `dahu-2020-01` that
compute as long before each call. Refused: {reasons or "none"}.

{{goals}}

{{cases}}
"""


if __name__ == "__main__":
    run_study(compared, judged, text, own=OWN)
