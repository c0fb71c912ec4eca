"""The simulations of the what-if studies: one run for each published row, by the ready studies of the package, on a
hypothetical cluster of 256 synthetic nodes on the network of Dahu."""

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas
from support.report import Goal, Options, at_most, say

from lepaute import Platform, load_platform
from lepaute.study.configuration import Configurations
from lepaute.study.evaluation import Point, trials_of
from lepaute.study.ready import Subject
from lepaute.study.schema import Study
from lepaute.study.session import Session

NODES = "dahu/kernels/dgemm_synthetic_1-10.csv.gz"
THREADS = 32  # one rank of 32 threads a node
#: What the published simulations let cost nothing.
FREE = ("dlacpy", "dlatcpy", "dlaswp01T", "dlaswp02N", "dlaswp03T", "dlaswp04T")
NOTHING = {"1": 0.0}
#: What all what-if studies share: NB 512, 2ring, depth 1, binary exchange.
HPL = {"nb": 512, "depth": 1, "bcast": "2ring", "swap": "binary-exchange", "threads_per_rank": THREADS}


def nodes_of(options: Options) -> dict[int, pandas.DataFrame]:
    """The synthetic nodes by platform_id."""
    return dict(iter(pandas.read_csv(options.data(NODES)).groupby("platform_id")))


def simulate(
    frame: pandas.DataFrame,
    nodes: dict[int, pandas.DataFrame],
    study_of: Callable[[Subject, pandas.DataFrame], Study],
    point_of: Callable[[dict[str, Any]], Point],
    **application: Any,
) -> pandas.DataFrame:
    """`frame` (with time_s, renamed published_s) with predicted_s, error_percent and, where refused, why.

    study_of : the study of the rows of a platform;  point_of : where a row is in it, but for n
    application : fields that all rows have
    Every row is one run with the seed of its platform_id, so that platforms differ in their noise as well.
    """
    frame = frame.rename(columns={"time_s": "published_s"}).reset_index(drop=True)
    frame["predicted_s"], frame["refusal"] = float("nan"), ""
    with tempfile.TemporaryDirectory() as folder:
        for platform_id, rows in frame.groupby("platform_id"):
            platform, path = synthetic_platform(nodes[int(platform_id)]), Path(folder) / f"{platform_id}.yaml"
            platform.to_yaml(path)
            sizes = tuple(sorted({int(n) for n in rows["matrix_size"]}))
            subject = Subject(str(path), platform, HPL | application, 1, int(platform_id), sizes, "full")
            study = study_of(subject, rows)
            points = [point_of(row).with_(n=row["matrix_size"]) for row in rows.to_dict("records")]
            with Session(Configurations(study), progress=partial(tell, what=f"platform {platform_id}")) as session:
                outcomes = session(trials_of(points, study.runs, study.seed))
            for place, outcome in zip(rows.index, outcomes, strict=True):
                frame.loc[place, "predicted_s"] = outcome.responses.get("time_s", float("nan"))
                frame.loc[place, "refusal"] = outcome.refusal or ""
    frame["error_percent"] = 100.0 * (frame["predicted_s"] / frame["published_s"] - 1.0)
    return frame


def tell(sentence: str, share: float, what: str) -> None:
    say(f"{what}: {sentence} ({100.0 * share:.0f} %)")


def synthetic_platform(nodes: pandas.DataFrame) -> Platform:
    """The platform of the synthetic nodes of one platform_id: rows of the table NODES, row i being node i.

    dgemm is mean intercept + mnk M N K with half-normal noise of sd mnk_residual M N K. The other kernels are those of
    Dahu without noise, copies and row swaps free, as in the published simulations; they know no threads. The network
    is dahu_optimistic_2019: that of the shipped dahu-2019-04 without its second state of messages, to ranks that
    compute between probes, which the published simulations do not have.
    """
    kept = nodes.sort_values("node")
    spread = kept["mnk_residual"]
    noisy = bool((spread > 0.0).any())
    rows = [
        [place, 0, mnk, intercept, *([sd] if noisy else [])]
        for place, (mnk, intercept, sd) in enumerate(zip(kept["mnk"], kept["intercept"], spread, strict=True))
    ]
    dgemm = {
        "mean": {"mnk": kept["mnk"].mean(), "1": kept["intercept"].mean()},
        "noise": {"kind": "half-normal", "sd": {"mnk": spread.mean()}} if noisy else {"kind": "none"},
        "per_cpu": {"columns": ["node", "cpu", "mnk", "1", *(["sd:mnk"] if noisy else [])], "rows": rows},
    }
    dahu = load_platform("dahu-2019-04")
    network = dahu.network.model_dump()
    for place in ("loopback", "remote"):
        network[place]["busy"] = None
    others = [
        {
            "kernel": model.kernel,
            "threads": THREADS,
            "pieces": [{"mean": NOTHING if model.kernel in FREE else piece.mean}],
        }
        for model in dahu.kernels
        if model.kernel != "dgemm"
        for piece in model.pieces
    ]
    content = {
        "name": f"synthetic-{len(kept)}-nodes",
        "nodes": {"count": len(kept), "cores": THREADS, "cpus": 1},
        "kernels": [{"kernel": "dgemm", "threads": THREADS, "pieces": [dgemm]}, *others],
        "network": network,
    }
    return Platform.model_validate(content)


#: Below this, two published times count as equal: block sizes of shared allocations and huge pages alone shift such an
#: emulation by up to 1 % each way, and ours draws other noise.
RESOLUTION_PERCENT = 2.0
EFFECT_LIMIT_POINTS = 5.0


def relative_effects(frame: pandas.DataFrame, column: str, baseline: str, by: Sequence[str]) -> pandas.Series:
    """Mean over the platforms of 100 * (column / baseline - 1), for each combination of `by`."""
    percent = 100.0 * (frame[column] / frame[baseline] - 1.0)
    return percent.groupby([frame[key] for key in by]).mean()


def effect_goals(ours: pandas.Series, published: pandas.Series, what: str) -> list[Goal]:
    """Effects in per cent, with the same index: same sign where there is one to speak of, and near each other."""
    marked = published[published.abs() >= RESOLUTION_PERCENT].index
    same = int((ours[marked] * published[marked] > 0.0).sum())
    direction = f"{what}: same direction where the published effect is at least {RESOLUTION_PERCENT:g} %"
    met = same == len(marked) if len(marked) else None
    farthest = (ours - published).abs().max()
    return [
        Goal(direction, "all", f"{same} of {len(marked)}", met),
        at_most(f"{what}: largest difference of the effects", EFFECT_LIMIT_POINTS, farthest, "points"),
    ]


def same_order(ours: pandas.Series, published: pandas.Series) -> tuple[int, int]:
    """(pairs in the same order, pairs), over the pairs whose published times differ by RESOLUTION_PERCENT or more."""
    same = pairs = 0
    for one, other in combinations(published.index, 2):
        low, high = sorted((published[one], published[other]))
        if 100.0 * (high / low - 1.0) < RESOLUTION_PERCENT:
            continue
        pairs += 1
        same += bool((ours[one] - ours[other]) * (published[one] - published[other]) > 0.0)
    return same, pairs
