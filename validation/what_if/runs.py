"""The simulations of the what-if studies: one run for each published row, by the ready studies of the package."""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
from support.options import Options

from lepaute.simulate.platform import dump_platform
from lepaute.study.configuration import Configurations
from lepaute.study.evaluation import Point, trials_of
from lepaute.study.ready import Subject
from lepaute.study.schema import Study
from lepaute.study.session import Session
from what_if.synthetic import NODES, THREADS, synthetic_platform

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
            dump_platform(platform, path)
            sizes = tuple(sorted({int(n) for n in rows["matrix_size"]}))
            subject = Subject(str(path), platform, HPL | application, 1, int(platform_id), sizes, "full")
            study = study_of(subject, rows)
            points = [point_of(row).with_(n=row["matrix_size"]) for row in rows.to_dict("records")]
            with Session(Configurations(study), progress=told_of(f"platform {platform_id}")) as session:
                outcomes = session(trials_of(points, study.runs, study.seed))
            for place, outcome in zip(rows.index, outcomes, strict=True):
                frame.loc[place, "predicted_s"] = outcome.responses.get("time_s", float("nan"))
                frame.loc[place, "refusal"] = outcome.refusal or ""
    frame["error_percent"] = 100.0 * (frame["predicted_s"] / frame["published_s"] - 1.0)
    return frame


def told_of(what: str) -> Callable[[str, float], None]:
    """Progress as lines on standard error."""
    return lambda sentence, share: print(f"{what}: {sentence} ({100.0 * share:.0f} %)", file=sys.stderr, flush=True)
