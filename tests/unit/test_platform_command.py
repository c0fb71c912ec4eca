"""`lepaute platform`, platforms of other sizes, and ping-pongs of other benchmarks as messages."""

from pathlib import Path

import numpy as np
import pytest

from lepaute.cli.main import main
from lepaute.errors import InputError
from lepaute.measure.fit import segment
from lepaute.measure.fit.ping_pongs import eager_bytes_of, with_ping_pong
from lepaute.simulate.machine.synthesis import synthesize
from lepaute.simulate.platform import load_platform, override, shipped_names
from lepaute.simulate.platform.network_model import Segment
from lepaute.simulate.platform.population import population_of

DATA = Path(__file__).parent.parent / "data" / "platforms"


def test_list_names_each_platform_once_with_its_size(output_of):
    lines = output_of("platform", "list").splitlines()
    assert lines[0].startswith("7 platforms, for -p NAME; ")
    assert lines[2].split() == ["dahu", "-", "-", "another", "name", "of", "dahu-2020-01"]
    assert lines[3].startswith("dahu-2019-04  32  32  Dahu in April 2019: the cooling of nodes 13 to 16 was failing")
    assert len(lines) == 10


def test_show_says_what_is_modelled_and_where_it_comes_from(output_of):
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


def test_check_of_a_bad_file_is_status_2_and_one_line_without_a_traceback(refusal_of):
    assert "latency_with_unit.yaml:27: network.remote.segments[0].latency_s is '1.2us'" in refusal_of(
        "platform", "check", DATA / "bad" / "latency_with_unit.yaml"
    )


DAHU = load_platform("dahu")


@pytest.mark.parametrize("name", shipped_names())
@pytest.mark.parametrize("count", [1, 5, 33, 100])
def test_any_shipped_platform_has_any_number_of_nodes(name: str, count: int) -> None:
    assert override(load_platform(name), {"nodes.count": str(count)}).nodes.count == count


def rows(platform: object) -> dict[tuple[float, float], tuple[float, ...]]:
    table = platform.kernels[0].pieces[-1].per_cpu  # type: ignore[attr-defined]
    return {(row[0], row[1]): row[2:] for row in table.rows}


def test_nodes_beyond_the_measured_ones_are_as_these_in_turn_and_the_platform_says_so() -> None:
    larger = override(DAHU, {"nodes.count": "40"})
    measured, continued = rows(DAHU), rows(larger)
    assert (continued[33, 0], continued[40, 1]) == (measured[1, 0], measured[8, 1])
    assert larger.assumed is not None
    assert [each.text for each in larger.assumed] == ["nodes 33 to 40: as nodes 1 to 32, in turn"]


def test_the_machine_may_be_so_large_that_its_table_would_not_be_read() -> None:
    huge = override(DAHU, {"nodes.count": "200000"})
    assert len(rows(huge)) == 64
    assert huge.assumed[0].what == "nodes 33 to 200000: all alike, as the typical cpu"


def test_a_fat_tree_grows_with_its_nodes_or_is_replaced() -> None:
    tree = override(DAHU, {"topology": "{kind: fat-tree, parameters: '2;8,4;1,4;1,1'}"})
    assert override(tree, {"nodes.count": "64"}).topology.parameters == "2;8,8;1,4;1,1"
    with pytest.raises(InputError, match=r"take a multiple of 8, or one switch: topology=\{kind: switch\}"):
        override(tree, {"nodes.count": "33"})
    assert override(tree, {"nodes.count": "33", "topology": "{kind: switch}"}).topology.kind == "switch"


def test_a_cluster_with_groups_of_nodes_keeps_them() -> None:
    like = load_platform("dahu-2019-04")
    cluster = synthesize(like, population_of(like), nodes=8)
    groups = cluster.population.group_of_node
    assert override(cluster, {"nodes.count": "4"}).population.group_of_node == groups[:4]


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
