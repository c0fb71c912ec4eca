"""Temporal variability: how much slower HPL is where the duration of dgemm varies from call to call."""

import pandas
from support.report import Goal, Options, at_most, markdown, signed

from lepaute.study.evaluation import Point
from lepaute.study.ready import temporal_variability
from what_if.runs import nodes_of, simulate

STUDY = "sensitivity_temporal"
PUBLISHED = "sensitivity/temporal_dgemm_variability.csv"
MEAN_LIMIT_PERCENT = 3.0


def compared(options: Options) -> pandas.DataFrame:
    """A row a published simulation, with ours."""
    frame = pandas.read_csv(options.data(PUBLISHED)).drop(columns=["source_archive", "dgemm_file", "gflops"])
    if options.quick:
        chosen = (frame["platform_id"] <= 2) & (frame["matrix_size"] == 100_000)
        frame = frame[chosen & frame["variation_coefficient"].isin([0.0, 0.1])]
    frame = frame.sort_values(["platform_id", "variation_coefficient", "matrix_size"], ignore_index=True)
    return simulate(
        frame,
        nodes_of(options),
        lambda subject, rows: temporal_variability(subject, sorted(set(rows["variation_coefficient"]))),
        lambda row: Point({"variation": row["variation_coefficient"]}),
        grid="8x32",
    )


def judged(frame: pandas.DataFrame) -> list[Goal]:
    return [at_most("mean absolute difference in time", MEAN_LIMIT_PERCENT, frame["error_percent"].abs().mean())]


def text(frame: pandas.DataFrame) -> str:
    errors = frame.pivot_table(index="matrix_size", columns="variation_coefficient", values="error_percent")
    rows = [
        (f"{n:,}", *(signed(value) for value in row)) for n, row in zip(errors.index, errors.to_numpy(), strict=True)
    ]
    return f"""## What if dgemm varied more from call to call

256 synthetic nodes, one rank of 32 threads per node, 8 × 32 ranks, NB 512, 2ring, depth 1, binary exchange; all
parameters of the published emulation are known. One run of each, {len(frame)} in all.

{{goals}}

Mean difference to the published emulation over {frame["platform_id"].nunique()} platform(s), by N and standard
deviation / mean of a call; bias {signed(frame["error_percent"].mean())}, largest
{signed(frame.loc[frame["error_percent"].abs().idxmax(), "error_percent"])}.

{markdown(("N", *(f"{value:g}" for value in errors.columns)), rows)}
"""
