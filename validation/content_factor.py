"""What matrices hold, and how long dgemm takes: the tests of `lepaute fit` on the published bit-flip experiment.

Fixed before any test was run; the medians of the jobs were seen, and the goals are what the thesis says (8.5):

* data: experiment/bit-flips, calls of dgemm on dahu-1, 8000 for each content: one value, a sequence, random numbers;
  and random numbers with 0 to 53 low bits masked. Constant matrices are fastest, random ones slowest; durations fall
  with the mask;
* each content is a job of its own, so the valid test exchanges jobs: for the mask, which has an order, the trend over
  jobs' medians, all 5040 orders; for five kinds of content no p can be small. Beside it, half minutes at the same time
  since the start of their jobs are exchanged, 9999 permutations: contents differ by more than a job does within itself;
* effects: ratios to random content, `lepaute.stats.permutation`, seed 1;
* goals: the trend has p <= 0.05 by jobs; constant below sequence below random, each interval against random without 1;
  with each larger mask the ratio falls.
"""

import numpy
import pandas
from support.report import Goal, Options, run_study

from lepaute.stats.permutation import permutation_test

FOLDER = "experiment/bit-flips"
STUDIES = {"matrix_content": "generation_method_perf", "mask_size": "mask_size_perf"}
NEEDS = tuple(f"{FOLDER}/{name}.csv.gz" for name in STUDIES.values())
REFERENCES = {"matrix_content": "random", "mask_size": "0"}
CONSTANTS = ("0", "0.987", "1")
SLICE_S = 30.0
PERMUTATIONS, SEED, SIGNIFICANT = 9999, 1, 0.05


def compared(options: Options) -> pandas.DataFrame:
    """A row a node and level."""
    parts = []
    for factor, name in STUDIES.items():
        calls = pandas.read_csv(options.data(f"{FOLDER}/{name}.csv.gz"), dtype={factor: str})
        if options.quick:
            calls = calls.iloc[::20]
        parts += [tested(rows, factor, str(host)) for host, rows in calls.groupby("host")]
    return pandas.concat(parts, ignore_index=True)


def tested(calls: pandas.DataFrame, factor: str, host: str) -> pandas.DataFrame:
    """Both tests of one factor on one node, and the effect of each level."""
    logs = numpy.log(calls["duration"])
    jobs = logs.groupby([calls["jobid"], calls[factor]]).median().reset_index()
    levels = sorted(set(calls[factor]), key=float) if factor == "mask_size" else None
    how = {"permutations": PERMUTATIONS, "seed": SEED}
    by_job = permutation_test(jobs["duration"], list(jobs[factor]), [0] * len(jobs), ordered=levels, **how)
    since = calls["timestamp"] - calls.groupby("jobid")["timestamp"].transform("min")
    slices = (since // SLICE_S).astype(int).rename("slice")
    halves = logs.groupby([calls["jobid"], calls[factor], slices]).median().reset_index()
    of_halves = (list(halves[name]) for name in (factor, "slice"))
    by_slice = permutation_test(halves["duration"], *of_halves, reference=REFERENCES[factor], **how)
    groups = calls.groupby(factor)
    rows = groups.agg(calls=("duration", "size"), jobs=("jobid", "nunique"), median_s=("duration", "median"))
    rows = rows.loc[list(by_slice.levels)].rename_axis("level").reset_index()
    rows.insert(0, "factor", factor)
    rows.insert(1, "host", host)
    effects = [(effect.difference, effect.low, effect.high) for effect in by_slice.effects]
    rows[["ratio", "low", "high"]] = numpy.exp([(0.0, numpy.nan, numpy.nan), *effects])
    return rows.assign(p_by_job=by_job.p_value, least_p_by_job=by_job.least_p, p_by_half_minute=by_slice.p_value)


def judged(frame: pandas.DataFrame) -> list[Goal]:
    goals = []
    for host, rows in frame.groupby("host"):
        masks = rows[rows["factor"] == "mask_size"].assign(bits=lambda part: part["level"].astype(int))
        kinds = rows[rows["factor"] == "matrix_content"].set_index("level")
        p = float(masks["p_by_job"].iloc[0])
        goals.append(Goal(f"{host}: trend with the mask, by jobs", f"p <= {SIGNIFICANT}", f"{p:.2g}", p <= SIGNIFICANT))
        ratios = masks.sort_values("bits")["ratio"].to_numpy()
        steps = int(numpy.sum(numpy.diff(ratios) < 0))
        what, wanted = f"{host}: the larger the mask, the faster", len(ratios) - 1
        goals.append(Goal(what, f"{wanted} of {wanted} steps", f"{steps} of {wanted}", steps == wanted))
        constants, sequence = kinds.loc[list(CONSTANTS), "ratio"], float(kinds.loc["sequential", "ratio"])
        order = bool((constants < sequence).all()) and sequence < 1
        said = f"{constants.min():.3f} to {constants.max():.3f}, {sequence:.3f}, 1"
        goals.append(Goal(f"{host}: constant, sequence, random", "in this order", said, order))
        outside, wanted = int((kinds["high"].dropna() < 1).sum()), len(kinds) - 1
        seen = f"{outside} of {wanted}"
        goals.append(Goal(f"{host}: intervals below 1", f"{wanted} of {wanted}", seen, outside == wanted))
    return goals


def text(frame: pandas.DataFrame) -> str:
    return f"""## Content of the matrices: the published bit-flip experiment

Calls of dgemm on one node of Dahu, {int(frame["calls"].max())} for each content, tested as `lepaute fit` tests
factors (`validation/content_factor.py`). Each content was measured in one job, so only the masks, which are ordered,
can show an effect that is not due to jobs. Some processors do not show it (thesis, section 8.5).

{{goals}}

{{cases}}
"""


if __name__ == "__main__":
    run_study(compared, judged, text, needs=NEEDS, dtype={"level": str})
