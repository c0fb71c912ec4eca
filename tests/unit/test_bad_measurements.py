"""Measurements that cannot be or are poor, and the fit of a calibration of several nodes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from support_fit import MACHINE, RATES, kernel_rows, kernels_of_two_nodes, message_rows, write_calibration

from lepaute.cli.main import main
from lepaute.measure.archive import Archive
from lepaute.measure.fit import platform_and_models
from lepaute.measure.fit.messages.links import node_link_Bps, over_link
from lepaute.measure.fit.messages.network import FittedNetwork
from lepaute.measure.fit.messages.segment import FittedSegment
from lepaute.simulate.platform import Platform


def put(column, value, *, row=7, rows=1):
    """A defect: `value` in a column, in `rows` rows from number `row` (from 0) on."""

    def change(frame):
        frame = frame.copy()
        values = frame[column].astype(object if isinstance(value, str) or value is None else np.float64)
        values.iloc[row : row + rows] = value
        frame[column] = values
        return frame

    return change


def backwards(frame):
    """The clock is set back by 3 ms, in the middle of a process."""
    frame = frame.copy()
    frame.loc[150:299, "start_s"] -= 0.003
    frame.loc[0:299, "start_s"] = frame.loc[0:299, "start_s"].clip(lower=frame["start_s"].iloc[0] - 0.003)
    return frame


def copied(frame):
    return pandas.concat([frame, frame.iloc[20:30]], ignore_index=True)


#: What is wrong with the kernels' table -> what the error says of it, besides the table's name.
BAD_KERNELS = {
    "empty": (lambda frame: frame.iloc[:0], "no kernel observations"),
    "a column is absent": (lambda frame: frame.drop(columns="duration_s"), "lacks the column duration_s"),
    "a duration is NaN": (put("duration_s", np.nan), "row 8 (dgemm): duration_s is nan"),
    "durations are infinite": (put("duration_s", np.inf, rows=3), "row 8 (dgemm) and 2 more: duration_s is inf"),
    "a duration is negative": (put("duration_s", -1e-6), "duration_s is -1e-06, below 0; a clock that went backwards"),
    "a duration of a month": (put("duration_s", 2.6e6), "more than a week"),
    "durations in milliseconds": (lambda f: f.assign(duration_s=f["duration_s"] * 1e3), "durations are in seconds"),
    "a date is NaN": (put("start_s", np.nan), "start_s is nan"),
    "the clock goes backwards": (backwards, "the clock went backwards"),
    "rows appear twice": (copied, "row 3001 (dgemm) and 9 more: is an exact copy"),
    "durations are texts": (put("duration_s", "slow", row=0, rows=10**6), "holds texts such as 'slow'"),
    "durations are yes and no": (lambda f: f.assign(duration_s=f["duration_s"] > 1e-5), "duration_s holds bool"),
    "a size is NaN": (put("m", np.nan), "m is nan"),
    "a size is negative": (put("n", -3), "n is -3, below 0"),
    "a kernel has no name": (put("kernel", None), "kernel is missing"),
    "kernels are numbers": (lambda frame: frame.assign(kernel=1), "column kernel holds int64, not names"),
    "kernels are bytes": (lambda frame: frame.assign(kernel=[b"\xff"] * len(frame)), "column kernel holds object, not"),
    "a core of no node": (put("cpu", 2**40), "cpu is 1.09951e+12, above 1048575"),
    "a size that no real knows": (put("m", 1e300), "m is 1e+300, above"),
    "all durations are zero": (lambda frame: frame.assign(duration_s=0.0), "no kernel could be fitted"),
    "less than the clock's cost": (lambda frame: frame.assign(clock_cost_s=9.0), "no kernel could be fitted"),
}  # fmt: skip
BAD_MESSAGES = {
    "empty": (lambda frame: frame.iloc[:0], "fewer than 10 measurements of pingpong"),
    "a column is absent": (lambda frame: frame.drop(columns="size_bytes"), "lacks the column size_bytes"),
    "a duration is NaN": (put("duration_s", np.nan), "row 8"),
    "a duration is negative": (put("duration_s", -1e-6), "below 0"),
    "a size is negative": (put("size_bytes", -8), "size_bytes is -8, below 0"),
    "sizes are texts": (put("size_bytes", "8 KiB", row=0, rows=10**6), "column size_bytes holds texts such as '8 KiB'"),
    "rows appear twice": (copied, "row 1201"),
    "the clock goes backwards": (lambda f: f.assign(start_s=f["start_s"].to_numpy()[::-1]), "the clock went backwards"),
    "no ping-pong": (lambda frame: frame[frame["operation"] != "pingpong"], "fewer than 10 measurements of pingpong"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("table", "defect"), [("kernels", defect) for defect in BAD_KERNELS] + [("messages", bad) for bad in BAD_MESSAGES]
)
def test_observations_that_cannot_be_are_refused_in_one_line_that_says_where(table, defect, tmp_path, refusal_of):
    rows, defects = {"kernels": (kernel_rows, BAD_KERNELS), "messages": (message_rows, BAD_MESSAGES)}[table]
    change, said = defects[defect]
    path = write_calibration(tmp_path / "bad.zip", **{table: change(rows())})
    assert said in refusal_of("fit", path, "-o", tmp_path / "p.yaml")
    assert not (tmp_path / "p.yaml").exists()


def constant(frame):
    return frame.assign(duration_s=1e-3, start_s=np.arange(len(frame)) * 2e-3)


def half_are_zero(frame):
    """A second kernel, whose durations are all zero."""
    zero = frame["kernel"] == "dtrsm"
    return frame.assign(duration_s=frame["duration_s"].where(~zero, 0.0))


#: What is poor about kernels -> kind of the flag, and what a person reads of it.
POOR = {
    "durations are constant": (constant, "constant", "All 3000 durations are exactly 1.00 ms"),
    "one size only": (lambda frame: frame.assign(m=100, n=100), "sizes", "Calls of only 1 size were measured"),
    "one kernel takes no time": (half_are_zero, "no model", "and has no model: simulations assume"),
    "few calls": (lambda frame: frame.groupby("block").head(3), "calls", "Only 15 calls were measured"),
}


@pytest.mark.slow
@pytest.mark.parametrize("defect", POOR)
def test_poor_observations_are_fitted_and_flagged_and_the_serious_are_printed(defect, tmp_path, capsys, json_of):
    change, kind, said = POOR[defect]
    kernels = change(kernel_rows(kernels=("dgemm", "dtrsm") if defect == "one kernel takes no time" else ("dgemm",)))
    path = write_calibration(tmp_path / "poor.zip", kernels=kernels)
    fit = ["fit", str(path), "-o", str(tmp_path / "p.yaml"), "--force"]
    flags = [flag for flag in json_of(*fit, "--json")["flags"] if flag["kind"] == kind]
    assert len(flags) == 1
    assert said in flags[0]["sentence"]
    assert main([*fit, "--details"]) == 0
    printed = capsys.readouterr()
    assert (flags[0]["severity"] == "serious") == (said in printed.err)
    assert printed.out.startswith("This calibration is not good") == (flags[0]["severity"] == "serious")


def test_messages_of_one_size_are_refused_or_flagged(tmp_path, capsys):
    path = write_calibration(tmp_path / "poor.zip", messages=message_rows().assign(size_bytes=64))
    status = main(["fit", str(path), "-o", str(tmp_path / "p.yaml"), "--json"])
    told = capsys.readouterr()
    if status == 2:
        assert len(told.err.splitlines()) == 1
    else:
        kinds = {(flag["subject"], flag["kind"]) for flag in json.loads(told.out)["flags"]}
        assert ("message pingpong", "sizes") in kinds


#: Affine costs of messages: latency, bytes per second.
LINKS = {"local": (1e-6, 8e9), "remote": (2e-5, 1.2e9)}


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


def write(
    path: Path, *, messages: pandas.DataFrame | None = None, kernels: pandas.DataFrame | None = None, **n2: Any
) -> Path:
    calls = kernels_of_two_nodes() if kernels is None else kernels
    ways = message_table() if messages is None else messages
    return write_calibration(path, calls, ways, host="n1,n2", machines={"n1": MACHINE, "n2": MACHINE | n2})


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
    assert found == {core: pytest.approx(rate, rel=0.02) for core, rate in RATES.items()}
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
def test_a_node_that_was_lost_before_it_had_rows_is_no_node_of_the_platform(tmp_path: Path) -> None:
    kernels = kernels_of_two_nodes()
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
