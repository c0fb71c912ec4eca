"""`lepaute platform`: sizes, ping-pongs of other benchmarks, clusters and populations that are made up."""

from pathlib import Path

import numpy as np
import pandas
import pytest
import yaml
from population.simulated import dahu_like, simulated

from lepaute.cli.main import main
from lepaute.errors import InputError
from lepaute.measure.fit import segment
from lepaute.measure.fit.ping_pongs import eager_bytes_of, with_ping_pong
from lepaute.simulate.machine.population import on_its_day
from lepaute.simulate.machine.synthesis import synthesize
from lepaute.simulate.platform import load_platform, override, shipped_names
from lepaute.simulate.platform.components import topology_for
from lepaute.simulate.platform.io import with_population
from lepaute.simulate.platform.network_model import Segment
from lepaute.simulate.platform.population import population_of
from lepaute.simulate.platform.topology import Topology

DATA = Path(__file__).parent.parent / "data" / "platforms"


def test_list_names_each_platform_with_its_size_and_show_what_is_modelled_and_where_it_comes_from(output_of):
    lines = output_of("platform", "list").splitlines()
    assert lines[0].startswith("7 platforms, for -p NAME; ")
    assert lines[2].split()[:6] == ["dahu-2019-04", "32", "32", "Dahu", "in", "April"]
    assert lines[5].split()[:4] == ["dahu-2020-01", "(dahu)", "32", "32"]
    assert len(lines) == 9
    shown = output_of("platform", "show", DATA / "small.yaml", "--details")
    assert "1.000e-10 mnk - 1.000e-10 mn + 0.000002000; sd 1.000e-12 mnk, half-normal; 2 CPUs have their own" in shown
    assert "1 <= k <= 16" in shown
    assert "nodes     2 (numbers 1 to 2), 2 cores on 2 CPUs (modulo), 8.000 GiB each" in shown
    assert "sd 1.00 % common, 0.50 % a cpu (20 degrees of freedom)" in shown


def test_show_yaml_prints_a_file_that_check_accepts(capsys, output_of, tmp_path):
    assert main(["platform", "show", "dahu", "--yaml"]) == 0
    file = tmp_path / "copy.yaml"
    file.write_text(capsys.readouterr().out, encoding="utf-8")
    assert ": valid, platform dahu-2020-01: 32 nodes" in output_of("platform", "check", file)


DAHU = load_platform("dahu")


@pytest.mark.parametrize("name", shipped_names())
@pytest.mark.parametrize("count", [1, 5, 33, 100])
def test_any_shipped_platform_has_any_number_of_nodes(name: str, count: int) -> None:
    assert override(load_platform(name), {"nodes.count": str(count)}).nodes.count == count


def rows(platform: object) -> dict[tuple[float, float], tuple[float, ...]]:
    table = platform.kernels[0].pieces[-1].per_cpu  # type: ignore[attr-defined]
    return {(row[0], row[1]): row[2:] for row in table.rows}


def test_nodes_beyond_the_measured_ones_are_as_these_in_turn_or_all_alike_and_groups_are_kept() -> None:
    larger = override(DAHU, {"nodes.count": "40"})
    measured, continued = rows(DAHU), rows(larger)
    assert (continued[33, 0], continued[40, 1]) == (measured[1, 0], measured[8, 1])
    assert larger.assumed is not None
    assert [each.text for each in larger.assumed] == ["nodes 33 to 40: as nodes 1 to 32, in turn"]
    huge = override(DAHU, {"nodes.count": "200000"})
    assert len(rows(huge)) == 64
    assert huge.assumed[0].what == "nodes 33 to 200000: all alike, as the typical cpu"
    like = load_platform("dahu-2019-04")
    cluster = synthesize(like, population_of(like), nodes=8)
    groups = cluster.population.group_of_node
    assert override(cluster, {"nodes.count": "4"}).population.group_of_node == groups[:4]


def test_a_fat_tree_grows_with_its_nodes_or_is_replaced() -> None:
    tree = override(DAHU, {"topology": "{kind: fat-tree, parameters: '2;8,4;1,4;1,1'}"})
    assert override(tree, {"nodes.count": "64"}).topology.parameters == "2;8,8;1,4;1,1"
    with pytest.raises(InputError, match=r"take a multiple of 8, or one switch: topology=\{kind: switch\}"):
        override(tree, {"nodes.count": "33"})
    assert override(tree, {"nodes.count": "33", "topology": "{kind: switch}"}).topology.kind == "switch"


TABLES = Path(__file__).parents[1] / "data" / "duration_tables"
SIZES = 2.0 ** np.arange(23)


def half_round_trips(sizes: np.ndarray) -> np.ndarray:
    """1.2 µs and 3 GB/s up to 8 KiB, then 4 µs and 12 GB/s."""
    return np.where(sizes <= 8192, 1.2e-6 + sizes / 3e9, 4e-6 + sizes / 12e9)


def of_ping_pong(segments: tuple[Segment, ...], size: float) -> float:
    """Half a round trip: MPI_Send, the route, the transfer, MPI_Recv."""
    one = next(s for s in reversed(segments) if s.above_bytes < size or s.above_bytes == 0)
    overheads = sum(base + each * size for base, each in (one.send, one.receive))
    return overheads + one.latency_s + size / one.bandwidth_Bps


@pytest.mark.parametrize("eager_bytes", [None, 0, 100, 8192, 1 << 30])
@pytest.mark.parametrize("within", [False, True])
def test_half_a_round_trip_takes_what_was_measured_whatever_is_eager(eager_bytes, within):
    line = segment(SIZES, half_round_trips(SIZES))
    platform = with_ping_pong(load_platform("dahu"), line, source="mine", within=within, eager_bytes=eager_bytes)
    links = platform.network.loopback if within else platform.network.remote
    assert [of_ping_pong(links.segments, size) for size in SIZES] == pytest.approx(half_round_trips(SIZES), rel=1e-6)
    assert links.range_bytes == (1, 4194304)
    eager = [s.above_bytes for s in links.segments if s.protocol == "eager"]
    assert bool(eager) == (eager_bytes != 0)


def test_the_largest_jump_is_taken_as_the_end_of_eager_messages():
    assert eager_bytes_of(segment(SIZES, half_round_trips(SIZES)), load_platform("dahu")) == 8192
    # The largest jump of all: messages of up to 128 bytes go along with their request to the adapter.
    inline = half_round_trips(SIZES) - np.where(SIZES <= 128, 0.9e-6, 0.0)
    assert segment(SIZES, inline).breakpoints == (128.0, 8192.0)
    assert eager_bytes_of(segment(SIZES, inline), load_platform("dahu")) == 8192
    flat = segment(SIZES, 1e-6 + SIZES / 1e9)
    dahu = load_platform("dahu")
    above = next(s.above_bytes for s in dahu.network.remote.segments if s.protocol == "rendezvous")
    assert eager_bytes_of(flat, dahu) == above


def test_the_scatter_of_the_sizes_widens_what_runs_draw():
    scattered = half_round_trips(SIZES) * np.exp(np.random.default_rng(3).normal(0, 0.3, len(SIZES)))
    sds = [
        with_ping_pong(load_platform("dahu"), segment(SIZES, y), source="mine").network.remote.discrepancy_relative_sd
        for y in (half_round_trips(SIZES), scattered)
    ]
    assert sds[0] == pytest.approx(0.1)
    assert 0.2 < sds[1] < 0.6


def test_the_command_writes_a_platform_that_names_what_was_guessed(tmp_path, output_of):
    sheet, made = tmp_path / "mine.yaml", tmp_path / "measured.yaml"
    words = ["--nodes", "4", "--cores", "8", "--dgemm", "40G", "--link", "100Gb"]
    assert main(["platform", "new", *words, "-o", str(sheet)]) == 0
    given = ["--between", str(TABLES / "osu_three_protocols.txt"), "--within", str(TABLES / "imb_mpi1.txt")]
    assert "3 breakpoints, after 512 B, 16 KiB and 256 KiB" in output_of(
        "platform", "messages", sheet, *given, "--eager", "16K", "-o", made
    )
    platform = load_platform(made)
    assert [(s.above_bytes, s.protocol) for s in platform.network.remote.segments] == [
        (0, "eager"), (512, "eager"), (16384, "rendezvous"), (262144, "rendezvous"),
    ]  # fmt: skip
    assumed = [each.what for each in platform.assumed]
    assert assumed.count("messages between nodes of other pairs and times") == 1
    assert "messages between nodes" not in assumed
    assert "messages inside nodes" not in assumed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# OSU MPI Bandwidth Test v7.4\n# Size  Bandwidth (MB/s)\n1 2\n", "holds no ping-pong"),
        ("# OSU MPI Allreduce Latency Test v7.4\n# Size  Avg Latency(us)\n1 2\n", "holds no ping-pong"),
        ("# Benchmarking Allreduce\n# #processes = 2\n#bytes #repetitions t_avg[usec]\n1 9 2\n", "holds no ping-pong"),
        ("m,time_us\n1,2\n2,3\n", "the sizes, 'm', are not known to be bytes; call the column size_bytes"),
    ],
)
def test_what_is_no_ping_pong_is_refused(tmp_path, refusal_of, text, message):
    (tmp_path / "t.txt").write_text(text)
    words = ["platform", "messages", "dahu", "--between", str(tmp_path / "t.txt"), "-o", str(tmp_path / "p.yaml")]
    assert message in refusal_of(*words)
    assert not (tmp_path / "p.yaml").exists()


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
    assert len({row[2:] for row in cluster.kernels[0].pieces[0].per_cpu.rows}) == 1


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
        values = np.array([row[2] for row in platform.kernels[0].pieces[-1].per_cpu.rows])
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
