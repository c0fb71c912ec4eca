"""The fit of a calibration of several nodes, made up from a platform that is known."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.measure.fit import platform_and_models
from lepaute.measure.fit.messages.links import node_link_Bps, over_link
from lepaute.measure.fit.messages.network import FittedNetwork
from lepaute.measure.fit.messages.segment import FittedSegment
from lepaute.simulate.platform import Platform

#: Seconds per flop-pair of each core of each node, and affine costs of messages: latency, bytes per second.
RATES = {("n1", 0): 2.0e-11, ("n1", 1): 2.2e-11, ("n2", 0): 3.0e-11, ("n2", 1): 3.3e-11}
LINKS = {"local": (1e-6, 8e9), "remote": (2e-5, 1.2e9)}
NOISE = 1 + 0.05 * np.sqrt(2 / np.pi)  # mean of the factor 1 + 0.05 |N(0, 1)|


def kernel_table(rows: int = 6000) -> pandas.DataFrame:
    rng = np.random.default_rng(1)
    m, n = np.floor(10 ** rng.uniform(1, 3.5, (2, rows))).astype(int)
    host, cpu = rng.choice(["n1", "n2"], rows), rng.integers(0, 2, rows)
    rate = np.array([RATES[name, number] for name, number in zip(host, cpu, strict=True)])
    duration = (rate * m * n * 128 + 1e-6) * (1 + 0.05 * np.abs(rng.normal(size=rows)))
    columns = {"design_row": 0, "kind": "hpl_step", "position": 1, "kernel": "dgemm", "m": m, "n": n, "k": 128}
    columns |= {"start_s": np.cumsum(duration), "duration_s": duration, "rank": 0, "cpu": cpu, "host": host}
    columns |= {"block": rng.integers(0, 5, rows), "attempt": 0, "disturbed": False, "probe": "hpl_steps_1x1"}
    return pandas.DataFrame({**columns, "clock_cost_s": 0.0})


def message_table(links: tuple[str, ...] = ("local", "remote"), exchange_factor: float = 1.0) -> pandas.DataFrame:
    rng = np.random.default_rng(2)
    frames = []
    for link in links:
        latency_s, rate = LINKS[link]
        # Eager up to 4 KiB: a send ends at once, and the receive takes a tenth of the way.
        for operation in ("pingpong", "recv", "isend", "exchange"):
            size = np.floor(10 ** rng.uniform(0, 7, 300))
            way_s = latency_s + size / rate
            share = {"pingpong": 2.0, "exchange": exchange_factor, "recv": 0.1, "isend": 0.1}[operation]
            waits = (size > 4096) & (operation in ("recv", "isend"))
            seconds = np.where(waits, 1.0, share) * way_s * (1 + 0.02 * rng.normal(size=300))
            part = pandas.DataFrame({"operation": operation, "size_bytes": size.astype(int), "duration_s": seconds})
            frames.append(part.assign(link=link, host="n1", peer="n2" if link == "remote" else "n1"))
    common = {"design_row": 0, "start_s": 0.0, "rank": 0, "cpu": 0, "block": 0, "attempt": 0, "disturbed": False}
    return pandas.concat(frames, ignore_index=True).assign(clock_cost_s=0.0, **common)


def machine(**more: Any) -> dict[str, Any]:
    return {"cpu_model": "made up", "node_cores": 2, "cores": [0, 1], "blas": {"core": "Haswell"}, **more}


def write(
    path: Path, *, messages: pandas.DataFrame | None = None, kernels: pandas.DataFrame | None = None, **n2: Any
) -> Path:
    metadata = {
        "kind": "calibration", "created": "2026-11-21T00:00:00+00:00", "lepaute_version": "0", "host": "n1,n2",
        "machines": {"n1": machine(), "n2": machine(**n2)}, **machine(), "memory_bytes": 8 << 30, "warnings": [],
        "mpi": {},
    }  # fmt: skip
    with ArchiveWriter(path, metadata) as archive:
        archive.add_table("observations/kernels.parquet", kernel_table() if kernels is None else kernels)
        archive.add_table("observations/p2p.parquet", message_table() if messages is None else messages)
    return path


def fitted(path: Path) -> tuple[Platform, list[str]]:
    platform, models = platform_and_models(Archive.open(path), "two")
    return platform, models.warnings


@pytest.mark.slow
def test_the_speed_of_each_core_of_each_node_comes_back(tmp_path: Path) -> None:
    platform, warnings = fitted(write(tmp_path / "c.zip"))
    assert (platform.nodes.count, platform.nodes.first_number, platform.nodes.cores) == (2, 1, 2)
    dgemm = platform.kernel("dgemm")
    table = dgemm.pieces[-1].per_cpu
    column = table.columns.index("mnk")
    found = {(f"n{row[0]:g}", int(row[1])): row[column] for row in table.rows}
    assert found == {core: pytest.approx(rate * NOISE, rel=0.02) for core, rate in RATES.items()}
    assert warnings == []


def one_way_s(segments: Any, size: float) -> float:
    part = [segment for segment in segments if segment.above_bytes < size][-1]
    calls_s = part.send[0] + part.receive[0] + size * (part.send[1] + part.receive[1])
    return float(part.latency_s + size / part.bandwidth_Bps + calls_s)


@pytest.mark.slow
def test_the_links_inside_and_between_nodes_come_back_each_for_itself(tmp_path: Path) -> None:
    network = fitted(write(tmp_path / "c.zip"))[0].network
    for link, segments in (("local", network.loopback_segments), ("remote", network.remote.segments)):
        latency_s, rate = LINKS[link]
        for size in (8.0, 2000.0, 1e5, 5e6):
            assert one_way_s(segments, size) == pytest.approx(latency_s + size / rate, rel=0.1), (link, size)
    assert network.node_link.bandwidth_Bps == pytest.approx(1.2e9, rel=0.1)


def test_every_byte_takes_its_time_on_the_link_and_the_time_of_a_message_alone_stays() -> None:
    eager = FittedSegment(0, "eager", 1e-5, 1e12, (1e-6, 4e-10), (1e-6, 4e-10), (2e-6, 6e-10), 0.1)
    tiny = FittedSegment(0, "eager", 1e-5, 1e12, (1e-6, 0.0), (1e-6, 0.0), (2e-6, 0.0), 0.1)
    large = FittedSegment(65536, "rendezvous", 3e-5, 1.25e9, (0.0, 0.0), (1e-6, 0.0), (0.0, 0.0), 0.1)
    link = node_link_Bps(FittedNetwork((eager, large), None, False, 1e12, 1.0, 0.0, 0.0, 0.0))
    assert link == 1.25e9
    same, unchanged = over_link((eager, large), link)
    assert unchanged is large
    assert same.bandwidth_Bps == pytest.approx(link)
    sizes = np.array([0.0, 100.0, 60_000.0])
    assert same.one_way_s(sizes) == pytest.approx(eager.one_way_s(sizes))
    assert over_link((tiny,), link)[0].one_way_s(sizes) == pytest.approx(tiny.one_way_s(sizes))


@pytest.mark.slow
def test_opposite_messages_that_slow_each_other_are_told_since_a_platform_cannot_hold_them(tmp_path: Path) -> None:
    assert "Two opposite messages" not in fitted(write(tmp_path / "a.zip"))[0].description
    platform, _ = fitted(write(tmp_path / "b.zip", messages=message_table(exchange_factor=1.5)))
    assert "Two opposite messages between nodes take 1.5" in platform.description


@pytest.mark.slow
def test_where_no_messages_between_nodes_were_measured_the_platform_says_so(tmp_path: Path) -> None:
    platform, _ = fitted(write(tmp_path / "c.zip", messages=message_table(("local",))))
    assert platform.nodes.count == 2
    assert "2 nodes: messages between nodes were not measured" in platform.description
    assert platform.network.loopback.segments is None


@pytest.mark.slow
def test_a_node_that_was_lost_before_it_had_rows_is_no_node_of_the_platform(tmp_path: Path) -> None:
    kernels = kernel_table()
    platform, warnings = fitted(write(tmp_path / "c.zip", kernels=kernels[kernels["host"] == "n1"]))
    assert platform.nodes.count == 1
    assert warnings == ["n2 was not measured, and is no node of the platform"]


@pytest.mark.parametrize(
    ("n2", "told"),
    [
        ({"cpu_model": "other"}, "cpu_model of n2 is other, that of n1 is made up"),
        ({"blas": {"core": "Zen"}}, "blas of n2 is Zen, that of n1 is Haswell"),
        ({"node_cores": 4}, "node_cores of n2 is 4, that of n1 is 2"),
    ],
)
def test_nodes_of_two_kinds_are_refused_in_one_line(tmp_path, refusal_of, n2, told):
    assert told in refusal_of("fit", write(tmp_path / "c.zip", **n2), "-o", tmp_path / "p.yaml")
