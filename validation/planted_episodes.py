"""Archives with a planted episode that no counter shows: is it left out, and what does a fit lose by it?

Fixed before the first result: machines as in `simulated_truth.py` of the kinds process and run (2 and 3 %), one node,
NB = 128, N = 4000 on 1 x 2. In each archive all calls of every table between two dates take 1.7 times as long, and
what follows in their process begins later: in one launch of steps on both cores, drawn, for up to its length of 0.2
to 0.5 s. The same archive is fitted without the episode as well. Further runs on the true machine are undisturbed, 20
each.

Other archives: one of each kind of machine, without an episode, is fitted with and without the search for a slow state.
There are no archives of calibrations in tests/data nor in the reference data.

Goals: the mean prediction moves by 2 % at most in the median archive; the half-width grows by a quarter at most; 90 to
98 % of the further runs are inside; where no slow state is seen, predictions with and without the search differ by
0.1 % at most.
"""

import tempfile
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas
from support.report import Goal, Options, at_most, run_study, say
from truth import calibration
from truth.law import KINDS as ALL_KINDS
from truth.law import NB, Effects, law_of, scatter_of
from truth.runs import fitted, true_runs_s

from lepaute import fit
from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.measure.fit import fitted_models
from lepaute.simulate import Hpl, predict

KINDS, FACTOR = ("process", "run"), 1.7
MACHINES, QUICK_MACHINES, RUNS = 20, 2, 20
STEPS = (calibration.STEPS_SIDE_BY_SIDE, calibration.STEPS_TOGETHER)
PROCESS = ["host", "block", "probe", "attempt", "rank", "cpu"]


def simulated(options: Options) -> pandas.DataFrame:
    count = QUICK_MACHINES if options.quick else MACHINES
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            rows.append(machine(number, Path(folder)))
            say(rows[-1])
        for kind in list(ALL_KINDS)[: QUICK_MACHINES if options.quick else None]:
            rows.append(other(kind, Path(folder)))
            say(rows[-1])
    return pandas.DataFrame(rows).round(5)


def machine(number: int, folder: Path) -> dict[str, object]:
    """One archive, fitted as it is and with an episode planted."""
    rng = np.random.default_rng([51, number])
    hpl, scatter = Hpl(n=4000, nb=NB, p=1, q=2), scatter_of(KINDS)
    law, effects = law_of(scatter, rng), Effects(scatter, rng)
    clean = calibration.write_calibration(folder / f"{number}.zip", law, effects, 1, rng)
    disturbed, slow_s = planted(clean, folder / f"{number}-planted.zip", rng)
    platforms = [fitted(path) for path in (clean, disturbed)]
    without, spread = (predict(hpl, platform, runs=RUNS, seed=number + 1).time_s for platform in platforms)
    times = np.array(true_runs_s(hpl, law, effects, 1, RUNS, rng))
    state = platforms[1].slow_state
    return {
        "machine": number,
        "slow_s": slow_s,
        "seen": state is not None,
        "factor": np.nan if state is None else state.factor,
        "clean_s": without.mean,
        "clean_percent": without.half_width_percent,
        "predicted_s": spread.mean,
        "percent": spread.half_width_percent,
        "true_s": float(times.mean()),
        "inside": float(np.mean((times >= spread.low) & (times <= spread.high))),
    }


def other(kind: str, folder: Path) -> dict[str, object]:
    """One archive without an episode, fitted with and without the search for a slow state."""
    rng = np.random.default_rng([52, list(ALL_KINDS).index(kind)])
    scatter = scatter_of((kind,))
    path = calibration.write_calibration(folder / f"{kind}.zip", law_of(scatter, rng), Effects(scatter, rng), 1, rng)
    searched, _ = fit.platform_and_models(Archive.open(path), "made-up")
    with patch.object(fitted_models, "in_usual_state", lambda table, watches, _hosts: (table, list(watches), None)):
        unsearched, _ = fit.platform_and_models(Archive.open(path), "made-up")
    predicted_s, clean_s = (
        predict(Hpl(n=4000, nb=NB, p=1, q=2), platform, runs=RUNS, seed=1).time_s.mean
        for platform in (searched, unsearched)
    )
    seen = searched.slow_state is not None
    return {"machine": kind, "seen": seen, "clean_s": clean_s, "predicted_s": predicted_s}


def planted(clean: Path, target: Path, rng: np.random.Generator) -> tuple[Path, float]:
    """The archive with an episode, and how long it is."""
    archive = Archive.open(clean)
    kernels = archive.table("observations/kernels.parquet")
    launches = kernels[kernels["probe"].isin(STEPS)].groupby(["probe", "block"])["start_s"].agg(["min", "max"])
    first_s, last_s = launches.iloc[int(rng.integers(len(launches)))]
    length_s = rng.uniform(0.5, 1.0) * (last_s - first_s)
    begin_s = first_s + rng.uniform(0.0, 0.5) * (last_s - first_s)
    with ArchiveWriter(target, {**archive.metadata, "id": None}) as writer:
        for name in ("kernels", "p2p", "semantics"):
            table = archive.table(f"observations/{name}.parquet")
            writer.add_table(f"observations/{name}.parquet", stretched(table, begin_s, begin_s + length_s))
    return target, float(length_s)


def stretched(table: pandas.DataFrame, begin_s: float, end_s: float) -> pandas.DataFrame:
    """All calls that begin between these dates take longer, and what follows in their process begins later."""
    slow = ((table["start_s"] >= begin_s) & (table["start_s"] < end_s)).to_numpy()
    more_s = pandas.Series(np.where(slow, (FACTOR - 1.0) * table["duration_s"], 0.0), index=table.index)
    keys = [table[name] for name in PROCESS if name in table.columns]
    return table.assign(
        duration_s=table["duration_s"] + more_s, start_s=table["start_s"] + more_s.groupby(keys).cumsum() - more_s
    )


def parts_of(frame: pandas.DataFrame) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """The rows of planted episodes, and those of other archives, with how far the search moves their predictions."""
    others = frame[frame["inside"].isna()]
    moved = 100.0 * (others["predicted_s"] / others["clean_s"] - 1.0).abs()
    return frame[frame["inside"].notna()], others.assign(moved=moved, seen=others["seen"].astype(str) == "True")


def judged(frame: pandas.DataFrame) -> list[Goal]:
    frame, others = parts_of(frame)
    moved = float((frame["predicted_s"] / frame["clean_s"] - 1.0).abs().median()) * 100.0
    wider = float((frame["percent"] / frame["clean_percent"]).median())
    inside = 100.0 * float(frame["inside"].mean())
    error = 100.0 * float(frame["inside"].sem())
    return [
        at_most("the mean prediction moves by, median", 2.0, moved),
        at_most("half-width over that without the episode, median", 1.25, wider, ""),
        Goal("further runs inside", "90 to 98 %", f"{inside:.1f} ± {error:.1f} %", 90.0 <= inside <= 98.0),
        at_most("other archives without a slow state move by", 0.1, float(others[~others["seen"]]["moved"].max())),
    ]


def text(frame: pandas.DataFrame) -> str:
    frame, others = parts_of(frame)
    changed = [f"{row.machine} ({row.moved:.2f} %)" for row in others[others["seen"]].itertuples()]
    seen = int((frame["seen"].astype(str) == "True").sum())
    error = 100.0 * float((frame["predicted_s"] / frame["true_s"] - 1.0).abs().mean())
    return (
        "## Planted episodes\n\n"
        f"{len(frame)} archives in which all calls take {FACTOR} times as long for a while "
        f"(`validation/planted_episodes.py`): seen in {seen}; mean error of the predicted time {error:.1f} %. "
        f"Of {len(others)} archives of other kinds without one, fits that change: {', '.join(changed) or 'none'}.\n\n"
        "{goals}\n"
    )


if __name__ == "__main__":
    run_study(simulated, judged, text)
