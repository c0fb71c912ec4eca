"""The ready studies give the bits of the scripts that repeated the published what-if studies before.

what_if.json holds times of these scripts (validation/what_if at 2377a22) for platform 2 of the synthetic nodes and
N = 20,000, seed 2; tests/data/study/synthetic-2.yaml is that platform, without an error of overheads, which they did
not draw. Those with top switches are anew since pivot messages meet other flows as all do (at most 0.5 % longer).
"""

import json
from pathlib import Path
from typing import Any

import pytest

from lepaute.simulate.platform import load_platform
from lepaute.study.configuration import Configurations
from lepaute.study.evaluation import Point, trials_of
from lepaute.study.ready import Subject, slowest_nodes, temporal_variability, top_switches
from lepaute.study.schema import Study
from lepaute.study.session import Session

PLATFORM = str(Path(__file__).parents[1] / "data" / "study" / "synthetic-2.yaml")
GOLDEN: dict[str, list[dict[str, Any]]] = json.loads((Path(__file__).parent / "what_if.json").read_text())
HPL = {"n": 20_000, "nb": 512, "depth": 1, "bcast": "2ring", "swap": "binary-exchange", "threads_per_rank": 32}
SWITCHES = {"cluster": "one switch", "2;32,8;1,1;1,8": "1 top switch"} | {
    f"2;32,8;1,{top};1,8": f"{top} top switches" for top in (2, 3, 4)
}


def subject(**fields: str) -> Subject:
    return Subject(PLATFORM, load_platform(PLATFORM), HPL | fields, runs=1, seed=2)


def times_s(study: Study, points: list[Point]) -> list[float]:
    with Session(Configurations(study)) as session:
        return [outcome["time_s"] for outcome in session(trials_of(points, study.runs, study.seed))]


CASES: dict[str, tuple[Study, list[Point]]] = {
    "temporal": (
        temporal_variability(subject(grid="8x32")),
        [Point({"variation": row["variation_coefficient"]}) for row in GOLDEN["temporal"]],
    ),
    "nodes": (
        slowest_nodes(subject()),
        [
            Point({"left_out": row["nb_removed_nodes"], "grid": f"{row['proc_p']}x{row['proc_q']}"})
            for row in GOLDEN["nodes"]
        ],
    ),
    "switches": (
        top_switches(subject(grid="16x16"), "2;32,8;1,4;1,8", "first"),
        [Point({"scenario": SWITCHES[row["topo"]]}) for row in GOLDEN["switches"]],
    ),
}


@pytest.mark.parametrize("name", list(CASES))
def test_a_ready_study_gives_the_bits_of_the_script(name: str) -> None:
    study, points = CASES[name]
    assert times_s(study, points) == [row["time_s"] for row in GOLDEN[name]]
