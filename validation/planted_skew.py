"""A barrier that one rank leaves 40 µs late reverses the verdict of a benchmark that trusts it, and not ours.

After figures 10 and 11 of Hunold and Carpen-Amarie, "MPI Benchmarking Revisited": Open MPI and MPICH, each as it is and
with validation/late_barrier.c, by which rank 0, the root, leaves MPI_Barrier 40 µs late. Fixed before anything was
looked at: 2 ranks on 2 cores, 8 mpiruns of each of the four in turn; MPI_Bcast of 64, 1024 and 8192 bytes, 200 calls
after MPI_Barrier, after our dissemination barrier, and in windows of 200 µs; clocks by HCA. The time of an mpirun is
the median of its calls: longest local time after MPI_Barrier (the benchmark that trusts it), or last end less first
start by rank 0's clock after the dissemination barrier and in windows (ours).

A verdict is the library with the lower median over mpiruns where Mann and Whitney's test has p < 0.05, else none. The
late barrier is given to the library that is faster by ours without it. Goals, for each size that ours decides: the
trusting benchmark now says the opposite, ours the same; the median exit skew recorded is 40 µs within 5 %.
"""

import os
from functools import partial
from pathlib import Path

import pandas
from support.mpi_probe import COLLECTIVES, LIBRARIES, TITLES, Program, measured, preloaded, program
from support.report import Goal, Options, in_scratch, markdown, run_study

SHIM = Path(__file__).with_name("late_barrier.c")
LATE_NS = 40_000
SIZES = (64, 1024, 8192)
SYNCHRONISATIONS = ("MPI_Barrier", "dissemination", "window")
MPIRUNS, CALLS, WINDOW_NS = 8, 200, 200_000
ALPHA = 0.05
TRUSTING, OURS, WINDOWS = "trusts MPI_Barrier", "dissemination, global", "windows, global"
WAYS = (TRUSTING, OURS, WINDOWS)


def run(_: Options, folder: Path) -> pandas.DataFrame:
    """Every call: library, late, mpirun and what `measured` gives."""
    rows = [
        f"Bcast,blocking,{size},{CALLS},{synchronisation},0,{WINDOW_NS if synchronisation == 'window' else 0}"
        for size in SIZES
        for synchronisation in SYNCHRONISATIONS
    ]
    os.environ.update(LEPAUTE_LATE_RANK="0", LEPAUTE_LATE_NS=str(LATE_NS))
    programs: list[tuple[str, bool, Program]] = []
    for library in LIBRARIES:
        plain = program(library, COLLECTIVES, folder)
        programs += [(library, False, plain), (library, True, preloaded(plain, SHIM))]
    frames = []
    for mpirun in range(MPIRUNS):
        for library, late, probe in programs:
            frame = measured(probe, rows, folder)
            for place, (key, value) in enumerate((("library", library), ("late", late), ("mpirun", mpirun))):
                frame.insert(place, key, value)
            frames.append(frame)
    calls = pandas.concat(frames, ignore_index=True).drop(columns=["row", "operation", "window_ns"])
    return calls.round(0).astype({f"skew{end}_ns": "int64" for end in ("", "_low", "_high")})


def times_of(calls: pandas.DataFrame) -> pandas.DataFrame:
    """The median of each mpirun, us, by each way: (library, late, mpirun, size_bytes) x WAYS."""
    keys = ["library", "late", "mpirun", "size_bytes"]

    def median(synchronisation: str, column: str) -> pandas.Series:
        chosen = calls[(calls["synchronisation"] == synchronisation) & ~calls["marked"]]
        return chosen.groupby(keys)[column].median() * 1e-3

    return pandas.DataFrame(
        {
            TRUSTING: median("MPI_Barrier", "local_ns"),
            OURS: median("dissemination", "global_ns"),
            WINDOWS: median("window", "global_ns"),
        }
    )


def of(times: pandas.DataFrame, way: str, size: int, library: str, late: bool) -> pandas.Series:
    """The times of the mpiruns of one library."""
    keys = times.index.to_frame()
    chosen = (keys["library"] == library) & (keys["late"] == late) & (keys["size_bytes"] == size)
    return times.loc[chosen, way].dropna()


def verdict(times: pandas.DataFrame, way: str, size: int, late: str = "") -> str:
    """The faster library, "" for none; `late`: the one whose barrier is late."""
    from scipy.stats import mannwhitneyu

    samples = {library: of(times, way, size, library, library == late) for library in LIBRARIES}
    is_short = any(len(sample) < MPIRUNS // 2 for sample in samples.values())
    if is_short or mannwhitneyu(*samples.values()).pvalue >= ALPHA:
        return ""
    return min(samples, key=lambda library: float(samples[library].median()))


def judged(calls: pandas.DataFrame) -> list[Goal]:
    times, goals = times_of(calls), []
    for size in SIZES:
        truth = verdict(times, OURS, size)
        if not truth:
            goals.append(Goal(f"{size} bytes", "a verdict without the late barrier", "none", None))
            continue
        (other,) = (library for library in LIBRARIES if library != truth)
        for way in WAYS:
            wanted = other if way == TRUSTING else truth
            reached = verdict(times, way, size, late=truth)
            how = f"the way that {way}" if way == TRUSTING else f"ours ({way})"
            what = f"{size} bytes, late barrier for {TITLES[truth]}: faster by {how}"
            goals.append(Goal(what, TITLES[wanted], TITLES.get(reached, "no verdict"), reached == wanted))
    late = calls[calls["late"] & (calls["synchronisation"] == "MPI_Barrier")]
    for library in LIBRARIES:
        skew = float(late.loc[late["library"] == library, "skew_ns"].median()) * 1e-3
        what = f"exit skew of {TITLES[library]}'s late barrier, median"
        goals.append(Goal(what, "38 to 42 µs", f"{skew:.2f} µs", 38 <= skew <= 42))
    return goals


def page(calls: pandas.DataFrame) -> str:
    rows = []
    for (library, how), group in calls[calls["late"]].groupby(["library", "synchronisation"]):
        cells = [f"{group[name].median() * 1e-3:.2f}" for name in ("skew_ns", "skew_low_ns", "skew_high_ns")]
        rows.append((TITLES[str(library)], str(how), *cells, f"{100 * group['marked'].mean():.1f} %"))
    return f"""## A barrier that one rank leaves late

    .venv/bin/python validation/planted_skew.py

Open MPI and MPICH of Debian on 2 cores of a virtual machine; rank 0 leaves MPI_Barrier 40 µs late, or does not. A
benchmark that takes local times after that barrier reverses its verdict; global times after a barrier of our own, or in
windows, do not (figure 11 of Hunold and Carpen-Amarie).

{{goals}}

No verdict is no reversal: in windows clocks err by about 0.2 µs, beside differences of 0.4 µs.

Exit skew of each synchronisation beside a late MPI_Barrier, us: median, and the median ends of its interval; calls that
windows marked:

{markdown(("library", "synchronisation", "skew", "from", "to", "marked"), rows)}

{{cases}}
"""


if __name__ == "__main__":
    run_study(partial(in_scratch, "planted-skew-", run), judged, page, has_quick=False, packed="")
