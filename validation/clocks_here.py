"""Clocks synchronised on this machine, where errors are known: all ranks share the clock that theirs are made of.

Fixed before anything was looked at; other programs use the machine meanwhile, at any load:

* shifted: 2 ranks of Open MPI and MPICH; rank 1's clock is up to 1 s off and drifts by up to 100 ppm, drawn anew; 10
  trials of six methods; errors 0, 5 and 20 s afterwards. Goals: after 5 and 20 s the medians of JK, HCA, HCA2 and HCA3
  are ten times below those of SKaMPI and Netgauge; 1.96 deviations and the bound hold 93 % of errors;
* hosts: the same on 4 hosts with an sshd each, a rank on each, over TCP, 3 trials. Goal: 93 %. A first measurement
  reached 88.9 %; since then points are weighted by their round trips (lep_clock_fitted), and all was measured anew;
* recorder: `lepaute record` of 2 ranks whose clocks differ by 1 s, 5 recordings of 50 barriers, against the program's
  own notes. Goal: at most the error that the recording states (clock_error_s);
* RDTSCP (figures 2 and 3 of Hunold and Carpen-Amarie): 8 mpiruns with the frequency of /proc/cpuinfo, 8 with it
  estimated, in turn; drift by what the difference grew in 10 s. Goal: the estimated drift is ten times the given
  (theirs: almost ten).
"""

import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas
from clock_bench import METHODS, OFFSETS_ALONE
from support.mpi_probe import LIBRARIES, SYNCHRONISATION, TITLES, Program, program
from support.real_runs import LEPAUTE
from support.report import ROOT, Goal, Options, at_least, in_scratch, markdown, run_study

from lepaute.simulate.trace.reading import read_trace

sys.path.insert(0, str(ROOT / "tests"))
MADE = ("--made", "1", "--ahead-s", "1", "--drift", "1e-4", "--after-s", "0,5,20")
TRIALS, HOSTS, HOST_TRIALS, RECORDINGS, TSC_MPIRUNS, TSC_AFTER_S = 10, 4, 3, 5, 8, "0,2,5,10"
SHIFT_NS = 1_000_000_000


def measured(_: Options, folder: Path) -> pandas.DataFrame:
    """A row an error: part, library, mpirun, trial, method, rank, after_s, error_ns, deviation_ns, bound_ns, Hz."""
    programs = {library: program(library, SYNCHRONISATION, folder) for library in LIBRARIES}
    frames = []
    for number, (library, probe) in enumerate(programs.items()):
        errors = synchronised(probe, folder, 2, *MADE, "--trials", str(TRIALS), "--seed", str(51 + number))
        frames.append(errors.assign(part="shifted", library=library))
    frames.append(on_hosts(programs["openmpi"], folder).assign(part="hosts", library="openmpi"))
    frames.append(recorded(programs["openmpi"], folder))
    given = f"rdtscp:{round(megahertz()) * 1_000_000}"
    for mpirun in range(TSC_MPIRUNS):
        for clock in (given, "rdtscp:estimated"):
            words = ("--methods", "Netgauge", "--clock", clock, "--after-s", TSC_AFTER_S)
            errors = synchronised(programs["openmpi"], folder, 2, *words)
            part = "RDTSCP given" if clock == given else "RDTSCP estimated"
            frames.append(errors.assign(part=part, library="openmpi", mpirun=mpirun))
    return pandas.concat(frames, ignore_index=True)


def synchronised(probe: Program, folder: Path, ranks: int, *options: str, **how: object) -> pandas.DataFrame:
    """The errors of all ranks but rank 0."""
    out = folder / "errors.csv"
    probe.run(ranks, "--out", str(out), *options, **how)
    rows = pandas.read_csv(out, comment="#")
    rows = rows[rows["rank"] > 0].drop(columns=["ranks", "duration_s", "true_offset_ns", "true_drift"])
    frequency = re.search(r"#@clock_frequency_Hz=([\d.]+)", out.read_text())
    return rows.assign(frequency_Hz=float(frequency[1]) if frequency else np.nan)


def on_hosts(probe: Program, folder: Path) -> pandas.DataFrame:
    """A rank on each of four hosts, each with an sshd of its own."""
    from farms.sshd import sshd_farm

    names = [f"node{number}" for number in range(1, HOSTS + 1)]
    with sshd_farm(folder / "sshd", names) as farm:
        hostfile = folder / "hostfile"
        hostfile.write_text(probe.library.launcher.hostfile_text(names, 1))
        return synchronised(
            probe,
            folder,
            HOSTS,
            *MADE,
            *("--trials", str(HOST_TRIALS), "--seed", "61"),
            pinned=False,
            hosts=(str(hostfile), f"ssh -F {farm.ssh_config}"),
            launcher_options=("--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"),
        )


def recorded(probe: Program, folder: Path) -> pandas.DataFrame:
    """Largest error of a start in each recording, with what the recording states as a bound."""
    binary, trace = folder / "recorded", folder / "trace.parquet"
    source = Path(__file__).parent / "support" / "recorded_shift.c"
    probe.library.compile(["-O2", str(source), "-o", str(binary)], what="building the program to record")
    start = probe.library.launcher.start(2, cores=(0, 1), options=("-x", "LEPAUTE_RECORD_TEST_SHIFT_NS"))
    variables = {**os.environ, **start.environment, "LEPAUTE_RECORD_TEST_SHIFT_NS": str(SHIFT_NS)}
    record = [*LEPAUTE, "record", "--force", "-o", str(trace), "--"]
    rows = []
    for mpirun in range(RECORDINGS):
        trace.unlink(missing_ok=True)
        words = [*record, *start.argv, str(binary)]
        done = subprocess.run(words, check=True, capture_output=True, text=True, env=variables)
        notes = np.array([line.split() for line in re.findall(r"(?m)^\d+ \d+ \d+$", done.stdout)], dtype=np.int64)
        truth = [notes[notes[:, 0] == rank][:, 2] for rank in range(2)]
        seen = read_trace(trace)
        calls = seen.where(seen.named(["MPI_Barrier"]))
        starts = [np.sort(calls.where(calls.rank == rank).start_s) for rank in range(2)]
        error_ns = (starts[1] - starts[0]) * 1e9 - (truth[1] - truth[0])
        rows.append((mpirun, float(np.median(error_ns)), seen.metadata["clock_error_s"] * 1e9))
    frame = pandas.DataFrame(rows, columns=["mpirun", "error_ns", "bound_ns"])
    return frame.assign(part="recorder", library="openmpi", deviation_ns=0.0, rank=1, method="recorder", after_s=0.0)


def megahertz() -> float:
    found = re.search(r"cpu MHz\s*: ([\d.]+)", Path("/proc/cpuinfo").read_text())
    return float(found[1]) if found else 2000.0


def held(errors: pandas.DataFrame) -> float:
    """Share of errors within 1.96 deviations and the bound."""
    limit = 1.96 * errors["deviation_ns"] + errors["bound_ns"]
    return float((errors["error_ns"].abs() <= limit).mean())


def medians(errors: pandas.DataFrame) -> pandas.Series:
    """Median size of an error, us: (method, after_s)."""
    return errors.assign(size=errors["error_ns"].abs() * 1e-3).groupby(["method", "after_s"])["size"].median()


def drifts(errors: pandas.DataFrame, part: str) -> np.ndarray:
    """By how much the difference grew in ten seconds, ns a second, in each mpirun."""
    table = errors[errors["part"] == part].pivot_table(index="mpirun", columns="after_s", values="error_ns")
    return ((table[10.0] - table[0.0]) / 10.0).to_numpy()


def judged(errors: pandas.DataFrame) -> list[Goal]:
    goals = []
    for library in LIBRARIES:
        one = errors[(errors["part"] == "shifted") & (errors["library"] == library)]
        seen = medians(one)
        for after_s in (5.0, 20.0):
            least = min(float(seen[method, after_s]) for method in OFFSETS_ALONE)
            factor = least / max(float(seen[method, after_s]) for method in METHODS if method not in OFFSETS_ALONE)
            what = f"{TITLES[library]}, shifted, after {after_s:g} s: offsets alone / JK, HCA, HCA2 and HCA3"
            goals.append(Goal(what, "at least 10", f"{factor:.0f}", factor >= 10))
        goals.append(at_least(f"{TITLES[library]}, shifted: errors within deviations and bound", 93, 100 * held(one)))
    share = 100 * held(errors[errors["part"] == "hosts"])
    goals.append(at_least("4 hosts: errors within deviations and bound", 93, share))
    one = errors[errors["part"] == "recorder"]
    within = int((one["error_ns"].abs() <= one["bound_ns"]).sum())
    what = "recorder: recordings within the stated error"
    goals.append(Goal(what, f"{RECORDINGS}", f"{within}", within == RECORDINGS))
    given, estimated = (float(np.median(np.abs(drifts(errors, f"RDTSCP {how}")))) for how in ("given", "estimated"))
    factor = estimated / given if given else np.inf
    goals.append(Goal("RDTSCP: drift, estimated over given", "at least 10", f"{factor:.0f}", factor >= 10))
    return goals


def figure(value: float) -> str:
    """Three digits, without an exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def page(errors: pandas.DataFrame) -> str:
    recordings = errors[errors["part"] == "recorder"]
    bounds = recordings["bound_ns"] * 1e-3
    ticks = []
    for how in ("given", "estimated"):
        one, rate = errors[errors["part"] == f"RDTSCP {how}"], np.abs(drifts(errors, f"RDTSCP {how}"))
        frequency = one.groupby("mpirun")["frequency_Hz"].first() * 1e-6
        span = f"{frequency.min():.6f} to {frequency.max():.6f}"
        ticks.append((how, span, figure(float(np.median(rate))), figure(float(rate.max()))))
    return f"""## Clocks synchronised on this machine

    .venv/bin/python validation/clocks_here.py

A virtual machine of 2 cores, loaded by other programs (load average about 6); all clocks are made from the one of the
machine, so that errors are known. On the four hosts, 4 ranks share 2 busy cores.

{{goals}}

{{cases}}

Recordings of two ranks whose clocks are 1 s apart: starts are off by {recordings["error_ns"].abs().max() * 1e-3:.2f} µs
at most (median of the calls of a recording), with {bounds.min():.2f} to {bounds.max():.2f} µs stated. The time-stamp
counter (figures 2 and 3): frequency of rank 0, MHz, and how two ranks of one machine drift apart, ns a second:

{markdown(("frequency", "MHz", "median drift", "largest"), ticks)}
"""


if __name__ == "__main__":
    run_study(partial(in_scratch, "clocks-here-", measured), judged, page, has_quick=False, packed="")
