"""Designs of version 0.1, strata of fixed archives, and the published what-if studies: what seeds give."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support_factors import SIZES, calibration, experiment, samples
from support_fit import message_rows

from lepaute.measure import design as designs
from lepaute.measure.archive import Archive
from lepaute.simulate.platform import load_platform
from lepaute.study.configuration import Configurations
from lepaute.study.evaluation import Point, trials_of
from lepaute.study.ready import Subject, slowest_nodes, temporal_variability, top_switches
from lepaute.study.schema import Study
from lepaute.study.session import Session
from lepaute.watch.factors import factors_of

FACTORS = {
    "size_bytes": designs.log_uniform(1, 1 << 30),
    "ratio": designs.uniform(0.0, 1.0),
    "operation": ["send", "recv", 'a "third", one'],
    ("m", "n", "k"): designs.log_uniform_product(1e3, 1e9, most=(8000, 8000, 2048)),
}
LEVELS = {"size_bytes": [1, 1024, 1 << 20], "operation": ["send", "recv"], "x": [0.1, 1e-300]}


def digest(design: designs.Design) -> str:
    """Of the file without the line that names the version."""
    lines = [line for line in design.to_csv().splitlines() if "version=" not in line]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda: designs.full_factorial(LEVELS, replications=3, seed=1), "8010cecc6f82a2df"),
        (lambda: designs.full_factorial(LEVELS, replications=2, blocks=3, seed=2**64 - 1), "542ad287c34d02c4"),
        (lambda: designs.sample(FACTORS, count=50, seed=1), "4af065d650fadf8e"),
        (lambda: designs.latin_hypercube(FACTORS, count=50, seed=1), "ec2667238f712358"),
        (lambda: designs.fractional({name: [0, 1] for name in "abcdef"}, count=16, seed=1), "2a5bca4fd7fd7a59"),
        (lambda: designs.fractional({name: [0, 1, 2] for name in "abcd"}, count=12, seed=1), "7cdc659be786cbd3"),
        (
            lambda: designs.blocks(
                designs.mix(designs.full_factorial(LEVELS, seed=1), designs.p2p_design(1), seed=1), count=2, seed=1
            ),
            "26bc8bc463fee365",
        ),
        (lambda: designs.memory_design(1), "548c4831b52a5fe5"),
        (lambda: designs.collective_design(1), "e08c0c6c2183c39e"),
        (lambda: designs.dgemm_design(1), "951bf7a7f81af35f"),
        (lambda: designs.hpl_step_design(1), "de1f929ce3bab3d6"),
        (lambda: designs.p2p_design(1), "aed25c72986ff9ad"),
        (lambda: designs.ring_design(1, ranks=4), "b86c47d06e027c0e"),
    ],
)
def test_a_seed_gives_the_table_that_it_always_gave(made: Callable[[], designs.Design], expected: str) -> None:
    assert digest(made()) == expected


DESIGN = "#@columns=kind:text,m:int,n:int,k:int\ndesign_row,kind,m,n,k\n" + "".join(
    f"{row},dgemm,{m},{n},{k}\n" for row, (m, n, k) in enumerate(SIZES)
)
PINNED = {
    "dgemm_rate_flops": "8986c1c6b13103bb",
    "loopback_latency_s": "9ee7dd80a9f79b55",
    "cpu_power_W": "f2af9e998e62bf56",
}


def test_strata_of_fixed_archives_stay_as_they_are(tmp_path: Path) -> None:
    messages = message_rows().assign(operation="pingpong", host="n1", peer="n1", distance="same-l3")
    messages["size_bytes"] = [1 << number % 24 for number in range(len(messages))]
    one = calibration(tmp_path / "a.zip", tables={"p2p": messages}, variables={"OMP_PROC_BIND": "true"})
    monitoring = {"n1": samples(power_package0_watt=100.0)}
    other = experiment(tmp_path / "b.zip", design=DESIGN, monitoring=monitoring, parameters={"repetitions": 3})
    found = {}
    for path in (one, other):
        table = factors_of(Archive.open(path), "c")
        found |= dict(table[["factor", "stratum"]].drop_duplicates("factor").itertuples(index=False, name=None))
    assert {factor: found[factor] for factor in PINNED} == PINNED


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
