"""The simulations of the what-if studies: one run for each published row."""

from collections.abc import Callable
from typing import Any

import pandas
from pydantic import ValidationError
from support.options import Options
from support.simulations import Case, predict_all

from lepaute import Hpl, Platform
from what_if.synthetic import NODES, THREADS


def hpl_of(n: int, p: int, q: int) -> Hpl:
    """The parameters that all what-if studies share: NB 512, 2ring, depth 1, binary exchange."""
    return Hpl(n=n, nb=512, p=p, q=q, depth=1, bcast="2ring", swap="binary-exchange", threads_per_rank=THREADS)


def nodes_of(options: Options) -> dict[int, pandas.DataFrame]:
    """The synthetic nodes by platform_id."""
    return dict(iter(pandas.read_csv(options.data(NODES)).groupby("platform_id")))


def simulate(
    frame: pandas.DataFrame, hpl: Callable[[dict[str, Any]], Hpl], platform: Callable[[dict[str, Any]], Platform]
) -> pandas.DataFrame:
    """`frame` (with time_s, renamed published_s) with predicted_s, error_percent and, where refused, why.

    Every row is one run with the seed of its platform_id, so that platforms differ in their noise as well.
    """
    frame = frame.rename(columns={"time_s": "published_s"}).reset_index(drop=True)
    cases, refusals = {}, {}
    for place, row in enumerate(frame.to_dict("records")):
        label = ", ".join(
            f"{key} {value}" for key, value in row.items() if key != "published_s" and not pandas.isna(value)
        )
        try:
            cases[place] = Case(label, hpl(row), platform(row), runs=1, seed=int(row["platform_id"]))
        except ValidationError as error:  # a topology that platforms do not have
            refusals[place] = f"{error.errors()[0]['loc']}: {error.errors()[0]['msg']}"
    times = {}
    for place, outcome in zip(cases, predict_all(list(cases.values())), strict=True):
        refusals[place] = outcome.refusal
        times[place] = float("nan") if outcome.prediction is None else outcome.prediction.time_s.mean
    frame["predicted_s"] = [times.get(place, float("nan")) for place in range(len(frame))]
    frame["refusal"] = [refusals[place] for place in range(len(frame))]
    frame["error_percent"] = 100.0 * (frame["predicted_s"] / frame["published_s"] - 1.0)
    return frame
