"""`lepaute platform synthesize` and `population`: what they write, and what they refuse."""

from pathlib import Path

import numpy as np
import pandas
import pytest
import yaml
from population.simulated import dahu_like, simulated

from lepaute.cli.main import main
from lepaute.errors import InputError
from lepaute.simulate.machine.population import on_its_day
from lepaute.simulate.machine.synthesis import synthesize
from lepaute.simulate.platform import load_platform
from lepaute.simulate.platform.components import topology_for
from lepaute.simulate.platform.io import with_population
from lepaute.simulate.platform.population import population_of
from lepaute.simulate.platform.topology import Topology

DAHU = load_platform("dahu")


def test_a_cluster_has_what_was_asked_for_and_says_what_is_assumed(tmp_path, output_of):
    file = tmp_path / "c.yaml"
    arguments = ["--nodes", "256", "--like", "dahu-2019-04", "--spatial", "2x", "--temporal", "0.5", "--seed", "3"]
    assert "256 nodes of 32 cores, " in (printed := output_of("platform", "synthesize", *arguments, "-o", file))
    assert "of the population of dahu-2019-04, spatial 2x, temporal 0.5, seed 3" in printed
    cluster = load_platform(file)
    assert (cluster.nodes.count, cluster.nodes.cores, cluster.days) == (256, 32, None)
    assert cluster.network == load_platform("dahu-2019-04").network
    for told in ("hypothetical", "no such machine", "seed 3", "times 2", "times 0.5", "Assumed:", "Cornebize"):
        assert told in cluster.description
    assert main(["platform", "check", str(file)]) == 0


def test_without_variability_all_cpus_and_all_days_are_alike() -> None:
    cluster = synthesize(DAHU, population_of(DAHU), nodes=6, spatial=0.0, temporal=0.0)
    table = cluster.kernels[0].pieces[0].per_cpu
    assert len({row[2:] for row in table.rows}) == 1


@pytest.mark.parametrize(
    ("topology", "nodes", "told"),
    [
        ({"kind": "fat-tree", "parameters": "2;32,8;1,4;1,8"}, 100, "take a multiple of 32"),
        ({"kind": "torus", "parameters": "4,4"}, 20, "torus for 16 nodes, which 20 nodes do not fill"),
        ({"kind": "graph", "switches": [{"name": "s", "nodes": "0-3"}]}, 5, "graph for the nodes that its links name"),
    ],
)
def test_a_topology_without_such_a_form_is_refused(topology: dict[str, object], nodes: int, told: str) -> None:
    with pytest.raises(InputError, match=told):
        topology_for(Topology.model_validate(topology), nodes, "x")


def daily(path: Path, days: int = 6) -> Path:
    """Eight nodes of two CPUs, the first much slower; in the names of the published tables."""
    data = simulated(dahu_like(), np.random.default_rng(5), nodes=8, days=days, slow_nodes=1, slow_by_sd=15.0)
    keys = {"node": data.node_of_unit[data.unit], "cpu": data.unit % 2, "date": data.day}
    columns = zip(("mnk", "intercept", "mnk_residual"), data.values.T, strict=True)
    pandas.DataFrame(keys | dict(columns)).to_csv(path, index=False)
    return path


def test_a_population_is_fitted_to_a_table_and_put_into_a_platform(tmp_path, output_of):
    table, file = daily(tmp_path / "daily.csv"), tmp_path / "mine.yaml"
    shown = output_of("platform", "population", table, "--of", "dahu", "-o", file)
    assert "8 nodes, 2 groups" in shown
    assert "group 1 1 node, 2 CPUs" in shown
    assert yaml.safe_load(file.read_text())["population"]["terms"] == ["mnk", "1", "sd:mnk"]
    assert main(["platform", "synthesize", "--nodes", "3", "--like", str(file), "-o", str(tmp_path / "s.yaml")]) == 0
    assert load_platform(tmp_path / "s.yaml").nodes.count == 3


@pytest.mark.parametrize(
    ("change", "words", "told"),
    [
        (lambda f: f.assign(mnk=float("nan")), [], "mnk of row 1 is nan"),
        (lambda f: f[f["node"] == 1], [], "holds 1 node and 2 CPUs"),
        (lambda f: f.drop(columns="node"), [], "there is no column node"),
        (lambda f: f, ["a second.csv"], "give one table, or archives (.zip) alone"),
        (lambda f: f, ["--draw", "hours"], "population.draw is 'hours'"),
    ],
)
def test_a_table_that_determines_no_population_is_refused(change, words, told, tmp_path, refusal_of):
    table = daily(tmp_path / "daily.csv")
    change(pandas.read_csv(table)).to_csv(table, index=False)
    assert told in refusal_of("platform", "population", table, *words, "--of", "dahu", "-o", tmp_path / "p.yaml")


@pytest.mark.parametrize("name", ["stampede-like", "exascale-like"])
def test_a_cluster_like_a_platform_without_a_population_has_cpus_that_differ(name: str, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    assert main(["platform", "synthesize", "--nodes", "500", "--like", name, "--spatial", "2x", "-o", str(file)]) == 0
    cluster, like = load_platform(file), load_platform(name)
    table, typical = cluster.kernels[0].pieces[0].per_cpu, like.kernels[0].pieces[0].mean
    ratios = np.array([row[2] for row in table.rows]) / typical["mnk"]
    assert len(ratios) == 500 * like.nodes.cpus
    # assumed: 3 %, here twice that; the standard error of a mean of 500 is 0.27 %, of a standard deviation 0.19 %
    assert ratios.mean() == pytest.approx(1.0, abs=0.012)
    assert ratios.std() == pytest.approx(0.06, abs=0.009)
    assert "differences between the CPUs of 500 nodes" in cluster.assumed[-1].what
    few = synthesize(like, None, nodes=2, spatial=2.0).kernels[0].pieces[0].per_cpu
    assert few.rows == table.rows[: len(few.rows)]


def test_nodes_like_a_calibrated_cluster_differ_as_its_own_do() -> None:
    like = DAHU.model_copy(update={"name": "calibrated"})  # for which no population is shipped
    cluster = synthesize(like, None, nodes=400, temporal=3.0)
    spread = []
    for platform in (like, cluster):
        table = platform.kernels[0].pieces[-1].per_cpu
        values = np.array([row[2] for row in table.rows])
        spread.append(values.std(ddof=1) / values.mean())
    assert spread[1] == pytest.approx(spread[0], rel=0.15)  # 64 CPUs: the standard error of theirs is 9 %
    assert len(cluster.kernels[0].pieces) == len(like.kernels[0].pieces)
    assert cluster.days.common_relative_sd == pytest.approx(3.0 * like.days.common_relative_sd)


@pytest.mark.parametrize("draw", ["none", "nodes-and-days"])
def test_nodes_drawn_like_a_platform_whose_noise_is_a_mixture_keep_its_modes(draw: str) -> None:
    dahu = load_platform("dahu")
    content = dahu.model_dump()
    half = {"weight": 0.5, "sd": 0.5**0.5}
    for kernel in content["kernels"]:
        if kernel["kernel"] == "dgemm":
            kernel["form"] = "M'-H/N'"
            for piece in kernel["pieces"]:
                modes = [half | {"mean": -(0.5**0.5)}, half | {"mean": 0.5**0.5}]
                piece["noise"] = {"kind": "mixture", "sd": piece["noise"]["sd"], "modes": modes}
    like = dahu.model_validate(content)
    if draw == "none":
        drawn = synthesize(like, population_of(dahu), nodes=2).kernel("dgemm")
    else:
        own = with_population(like, population_of(dahu).model_dump() | {"draw": draw})
        drawn = on_its_day(own, seed=1).kernel("dgemm")
    assert drawn.pieces[0].noise.kind == "mixture"
    assert drawn.pieces[0].noise.modes == like.kernel("dgemm").pieces[0].noise.modes  # type: ignore[union-attr]
    assert drawn.form is None
