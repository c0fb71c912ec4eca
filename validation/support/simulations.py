"""Many predictions, one after the other or side by side.

Studies of Dahu (factorial.py, geometry.py, matrix_size.py) take 12 runs with seeds 1 to 12 and their priced draws, the
default of large ones (until November 2026 10 runs), all layers, fidelity sampled (within 0.5 % of full), others as
in dahu/hpl/README.md, the defaults of lepaute.Hpl, and copy_l: the makefile of the real runs (Ezibenroc/peanut,
abstract_hpl.py, HPL_OPTS) has -DHPL_NO_MPI_DATATYPE, which makes HPL copy L in every panel.
"""

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pandas

import lepaute
from lepaute import Hpl, Platform, Prediction
from lepaute.errors import InputError
from support.report import Goal, at_most, say

SEED = 1


@dataclass(frozen=True, slots=True)
class Case:
    """A prediction to make; run i uses seed + i."""

    label: str
    hpl: Hpl
    platform: Platform
    runs: int
    seed: int = SEED


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a case: a prediction, or the engine's reason for refusing it."""

    case: Case
    prediction: Prediction | None
    refusal: str = ""
    wall_s: float = field(default=0.0, compare=False)


def columns_of(prediction: Prediction, real_s: pandas.Series) -> dict[str, Any]:
    """Of a table: what was predicted, what was real, and how far apart they are."""
    time_s = prediction.time_s
    return {
        "runs": len(prediction.run_list),
        "seed": prediction.seed,
        "predicted_s": time_s.mean,
        "low_s": time_s.low,
        "high_s": time_s.high,
        "real_s": real_s.mean(),
        "real_sd_s": real_s.std(),
        "real_runs": len(real_s),
        "real_inside": int(real_s.between(time_s.low, time_s.high).sum()),
        "error_percent": 100.0 * (time_s.mean / real_s.mean() - 1.0),
        "version": prediction.version,
        "platform_sha256": prediction.platform_sha256,
    }


def predict_all(cases: Sequence[Case], fidelity: str = "full") -> list[Outcome]:
    """The outcomes, in the order of the cases; a line on standard error for each as it is done.

    fidelity : never `auto`, so that no size decides what is compared.
    Runs of one case share the cores; cases of one run are simulated side by side.
    """
    alone = any(case.runs > 1 for case in cases)
    started, outcomes = time.perf_counter(), list[Outcome]()
    with ThreadPoolExecutor(1 if alone else os.cpu_count() or 1) as pool:
        for outcome in pool.map(partial(outcome_of, fidelity=fidelity), cases):
            outcomes.append(outcome)
            done = len(outcomes)
            found = f"{outcome.prediction.time_s.mean:.2f} s" if outcome.prediction else outcome.refusal
            left_s = (time.perf_counter() - started) / done * (len(cases) - done)
            say(
                f"[{done}/{len(cases)}] {outcome.case.label}: {found} "
                f"(simulated in {outcome.wall_s:.1f} s; about {left_s / 60.0:.0f} min left)"
            )
    return outcomes


def outcome_of(case: Case, fidelity: str) -> Outcome:
    started = time.perf_counter()
    try:
        prediction = lepaute.predict(case.hpl, case.platform, runs=case.runs, seed=case.seed, fidelity=fidelity)
    except InputError as error:
        return Outcome(case, None, str(error), time.perf_counter() - started)
    return Outcome(case, prediction, "", time.perf_counter() - started)


def emulation_errors(frame: pandas.DataFrame, models: Sequence[str]) -> tuple[str, str]:
    """Mean and largest absolute errors of published emulations, in words."""
    errors = {model: frame[f"{model}_error_percent"].abs() for model in models}
    means = ", ".join(f"{values.mean():.2f} % ({model})" for model, values in errors.items())
    return means, ", ".join(f"{values.max():.2f} % ({model})" for model, values in errors.items())


#: Goals of every study; an interval that is wider than the second says too little.
MIN_INSIDE_PERCENT, MAX_HALF_WIDTH_PERCENT = 90.0, 7.0


def half_widths_percent(frame: pandas.DataFrame) -> pandas.Series:
    """Half of each interval, per cent of the prediction."""
    return 50.0 * (frame["high_s"] - frame["low_s"]) / frame["predicted_s"]


def inside_percent(frame: pandas.DataFrame) -> float:
    """Share of the real runs inside; frame: a row a case with real_inside and real_runs."""
    return float(100.0 * frame["real_inside"].sum() / max(1, frame["real_runs"].sum()))


def coverage_goals(frame: pandas.DataFrame, what: str = "", least_percent: float = MIN_INSIDE_PERCENT) -> list[Goal]:
    """Enough real runs inside, in intervals that are not too wide; `what` names the cases."""
    inside, runs = int(frame["real_inside"].sum()), int(frame["real_runs"].sum())
    share = inside_percent(frame)
    return [
        Goal(
            f"{what}real runs inside the 95 % intervals",
            f"at least {least_percent:g} %",
            f"{share:.0f} % ({inside} of {runs})" if runs else "nothing simulated",
            share >= least_percent if runs else None,
        ),
        at_most(f"{what}median half-width", MAX_HALF_WIDTH_PERCENT, float(half_widths_percent(frame).median())),
    ]
