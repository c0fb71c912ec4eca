"""Spatial variability: is the cluster faster without its slowest nodes, in another shape of the grid?"""

from typing import Any

import pandas
from support.report import Goal, Options, markdown, signed

from lepaute.study.evaluation import Point
from lepaute.study.ready import Subject, slowest_nodes
from lepaute.study.schema import Study
from what_if.runs import RESOLUTION_PERCENT, effect_goals, nodes_of, same_order, simulate

STUDY = "sensitivity_nodes"
PUBLISHED = "sensitivity/spatial_removing_nodes.csv.gz"
SUBSET_PLATFORMS, SUBSET_SIZES = (1, 2, 3), (100_000, 300_000, 500_000)


def compared(options: Options) -> pandas.DataFrame:
    """A row a published simulation, with ours."""
    frame = pandas.read_csv(options.data(PUBLISHED)).drop(columns=["source_archive", "dgemm_file", "gflops"])
    if options.quick:
        chosen = (frame["platform_id"] == 1) & (frame["matrix_size"] == 100_000)
        frame = frame[chosen & frame["nb_removed_nodes"].isin([0, 16]) & frame["proc_p"].between(4, 16)]
    elif not options.full:
        frame = frame[frame["platform_id"].isin(SUBSET_PLATFORMS) & frame["matrix_size"].isin(SUBSET_SIZES)]
    frame = frame.sort_values(["platform_id", "matrix_size", "nb_removed_nodes", "proc_p"], ignore_index=True)
    return simulate(frame, nodes_of(options), study_of, point_of)


def study_of(subject: Subject, rows: pandas.DataFrame) -> Study:
    """The ready study of the numbers of nodes and the grids of the rows."""
    grids = [f"{p}x{q}" for p, q in zip(rows["proc_p"], rows["proc_q"], strict=True)]
    return slowest_nodes(subject, sorted({int(count) for count in rows["nb_removed_nodes"]}), grids)


def point_of(row: dict[str, Any]) -> Point:
    """Where a row is in the study."""
    return Point({"left_out": row["nb_removed_nodes"], "grid": f"{row['proc_p']}x{row['proc_q']}"})


def best_times(frame: pandas.DataFrame, column: str) -> pandas.DataFrame:
    """Mean over the platforms of the time of the best grid relative to that with no node removed, in per cent; a row a
    size, a column a number of removed nodes."""
    best = frame.groupby(["platform_id", "matrix_size", "nb_removed_nodes"])[column].min().unstack()
    return (100.0 * (best.div(best[0], axis=0) - 1.0)).groupby("matrix_size").mean().drop(columns=0)


def order_of_grids(frame: pandas.DataFrame) -> pandas.DataFrame:
    """A row for each size and number of removed nodes: pairs of grids, those in the same order, same best grid."""
    rows = []
    for (n, removed), group in frame.groupby(["matrix_size", "nb_removed_nodes"]):
        means = group.groupby("proc_p")[["predicted_s", "published_s", "platform_id"]].agg(
            {"predicted_s": "mean", "published_s": "mean", "platform_id": "count"}
        )
        means = means[means["platform_id"] == means["platform_id"].max()]  # grids that all platforms have
        same, pairs = same_order(means["predicted_s"], means["published_s"])
        ours, theirs = means["predicted_s"].idxmin(), means["published_s"].idxmin()
        loss = 100.0 * (means.loc[ours, "published_s"] / means.loc[theirs, "published_s"] - 1.0)
        rows.append({"n": n, "removed": removed, "grids": len(means), "pairs": pairs, "same": same, "loss": loss})
    return pandas.DataFrame(rows)


def judged(frame: pandas.DataFrame) -> list[Goal]:
    order = order_of_grids(frame)
    same, pairs = int(order["same"].sum()), int(order["pairs"].sum())
    ours, published = (best_times(frame, f"{who}_s").stack() for who in ("predicted", "published"))
    what = "nodes: pairs of grids of the same nodes in the same order, where published times differ by at least"
    return [
        Goal(f"{what} {RESOLUTION_PERCENT:g} %", "all", f"{same} of {pairs}", same == pairs),
        *effect_goals(ours, published, "nodes, time of the best grid without the slowest nodes"),
    ]


def text(frame: pandas.DataFrame) -> str:
    whole = frame[frame["nb_removed_nodes"] == 0].groupby(["proc_p", "proc_q", "matrix_size"])
    times = whole[["predicted_s", "published_s"]].mean().unstack()
    relative = {who: 100.0 * (times[f"{who}_s"] / times[f"{who}_s"].min() - 1.0) for who in ("predicted", "published")}
    grids = [
        (
            f"{p} × {q}",
            *(f"{signed(relative['predicted'].loc[(p, q), n])} ({signed(relative['published'].loc[(p, q), n])})"
              for n in times["predicted_s"].columns),
        )
        for p, q in times.index
    ]  # fmt: skip
    order = order_of_grids(frame)
    sizes = [f"N = {n:,}" for n in times["predicted_s"].columns]
    platforms = ", ".join(str(number) for number in sorted(frame["platform_id"].unique()))
    return f"""## What if the slowest nodes were left out

256 synthetic nodes with small differences, the slowest 0 to 16 left out, all grids that use the others; NB 512;
broadcast, depth and swap are not published and taken as in the study of variability. One run of each, {len(frame)} in
all: platforms {platforms}. Mean difference to the published emulation
{signed(frame["error_percent"].mean())}, mean absolute {frame["error_percent"].abs().mean():.1f} % (no goal).

{{goals}}

{{cases}}

Time of a grid of all 256 nodes, relative to the best: ours (published).

{markdown(("grid", *sizes), grids)}

The grid predicted to be best is at most {order["loss"].max():.1f} % slower than the published best, in published times.
"""
