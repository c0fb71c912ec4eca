"""Topology: a fat tree of two levels with fewer and fewer top switches."""

import pandas
from support.report import Goal, Options, markdown, seconds, signed

from lepaute.study.evaluation import Point
from lepaute.study.ready import top_switches
from what_if.runs import effect_goals, nodes_of, relative_effects, same_order, simulate

STUDY = "sensitivity_switches"
PUBLISHED = "sensitivity/topology_removing_switches.csv"
WHOLE = "2;32,8;1,4;1,8"  # nothing removed: four top switches
CROSSBAR = "cluster"
NAMES = {CROSSBAR: "one switch", WHOLE: "4 top switches"} | {
    f"2;32,8;1,{top};1,8": f"{top} top switch{'es' * (top > 1)}" for top in (3, 2, 1)
}


def compared(options: Options) -> pandas.DataFrame:
    """A row a published simulation, with ours."""
    frame = pandas.read_csv(options.data(PUBLISHED)).drop(columns=["source_archive", "dgemm_file", "gflops"])
    if options.quick:
        frame = frame[(frame["platform_id"] <= 1) & (frame["matrix_size"] == 100_000)]
    frame = frame.sort_values(["platform_id", "topo", "matrix_size"], ignore_index=True)
    # Of parallel cables only the first: so did SimGrid before 3.32 (2022), and the study is of 2020. Its routes also
    # get longer latencies where they cross more cables, by a factor that depends on the size; that is left out here.
    return simulate(
        frame,
        nodes_of(options),
        lambda subject, _: top_switches(subject, WHOLE, cables="first"),
        lambda row: Point({"scenario": NAMES[row["topo"]]}),
        grid="16x16",
    )


def effects(frame: pandas.DataFrame) -> tuple[pandas.Series, pandas.Series]:
    """(ours, published): per cent against the whole tree, by size and topology, mean over the platforms."""
    keys = ["platform_id", "matrix_size"]
    whole = frame[frame["topo"] == WHOLE][[*keys, "predicted_s", "published_s"]]
    changed = frame.merge(whole, on=keys, suffixes=("", "_whole"))
    changed = changed[changed["topo"] != WHOLE]
    ours, published = (
        relative_effects(changed, f"{who}_s", f"{who}_s_whole", ["matrix_size", "topo"])
        for who in ("predicted", "published")
    )
    return ours, published


def judged(frame: pandas.DataFrame) -> list[Goal]:
    if frame["predicted_s"].isna().any():
        return [
            Goal("simulated", str(len(frame)), f"{frame['predicted_s'].notna().sum()}: {frame['refusal'].max()}", False)
        ]
    ours, published = effects(frame)
    same = pairs = 0
    for _, rows in frame.groupby("matrix_size"):
        means = rows.groupby("topo")[["predicted_s", "published_s"]].mean()
        counts = same_order(means["predicted_s"], means["published_s"])
        same, pairs = same + counts[0], pairs + counts[1]
    order = Goal("switches: pairs of topologies in the same order", "all", f"{same} of {pairs}", same == pairs)
    return [*effect_goals(ours, published, "switches"), order]


def text(frame: pandas.DataFrame) -> str:
    shown = [name for name in NAMES if name != WHOLE]
    rows = []
    if frame["predicted_s"].notna().all():
        ours, published = effects(frame)
        means = frame[frame["topo"] == WHOLE].groupby("matrix_size")[["predicted_s", "published_s"]].mean()
        for n, row in means.iterrows():
            cells = [f"{signed(ours[n, topo])} ({signed(published[n, topo])})" for topo in shown]
            rows.append((f"{n:,}", f"{seconds(row['predicted_s'])} ({seconds(row['published_s'])})", *cells))
    return f"""## What if top switches of a fat tree were removed

256 synthetic nodes in a fat tree `{WHOLE}`, 16 × 16 ranks, NB 512; broadcast, depth and swap are not published and
taken as in the study of variability. One run of each, {len(frame)} in all. Mean difference to the published emulation
{signed(frame["error_percent"].mean())}, mean absolute {frame["error_percent"].abs().mean():.1f} % (no goal).

{{goals}}

Time with four top switches in s, and the effect of another topology on it: ours (published).

{markdown(("N", NAMES[WHOLE], *(NAMES[topo] for topo in shown)), rows)}
"""
