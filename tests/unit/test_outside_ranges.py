"""The share of simulated time that rests on models outside the ranges in which they were fitted."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from oracles.emulated import tiny

from lepaute.cli.prediction_text import readable, summary
from lepaute.kit.text import significant
from lepaute.simulate import Hpl, Stencil, predict
from lepaute.simulate.engine import KernelUse, Sizes
from lepaute.simulate.platform import load_platform, override
from lepaute.simulate.prediction.trust import outside_ranges
from lepaute.simulate.tracing import TraceRequest

HPL = Hpl(n=1500, nb=64, p=2, q=2)


@dataclass(frozen=True)
class Sent:
    link: str
    fitted_bytes: tuple[int, int]
    time_s: float
    outside_time_s: float
    outside_from_bytes: float | None
    outside_to_bytes: float | None


def narrowed(low: int, high: int):
    """The shipped platform, whose dgemm was fitted for `low` to `high` rows only."""
    platform = load_platform("dahu")
    kernels = [
        kernel.model_copy(
            update={"pieces": tuple(piece.model_copy(update={"range": {"m": (low, high)}}) for piece in kernel.pieces)}
        )
        if kernel.kernel == "dgemm"
        else kernel.model_copy(
            update={"pieces": tuple(piece.model_copy(update={"range": {"m": (0, 10**9)}}) for piece in kernel.pieces)}
        )
        for kernel in platform.kernels
    ]
    return platform.model_copy(update={"kernels": tuple(kernels)})


def test_the_share_is_that_of_the_calls_of_the_trace_over_all_computing():
    low, high = 100, 400
    prediction = predict(HPL, narrowed(low, high), runs=1, trace=TraceRequest())
    trace = prediction.trace
    dgemm = (trace.kind == 0) & np.array([trace.names[name] == "dgemm" for name in trace.name])
    outside = dgemm & ((trace.m < low / 1.1) | (trace.m > 1.1 * high))  # within 10 % is as good as fitted
    expected = trace.duration_s[outside].sum() / prediction.first.computing_s
    told = prediction.to_dict()["outside_ranges"]
    assert 0.05 < expected < 0.9  # or the test would show nothing
    assert told["share"] == pytest.approx(expected, rel=1e-6)
    assert list(told["kernels"]) == ["dgemm"]
    own = trace.duration_s[outside].sum() / trace.duration_s[dgemm].sum()
    assert told["kernels"]["dgemm"]["share_of_own"] == pytest.approx(own, rel=1e-6)
    assert "fitted in 100..400" in told["kernels"]["dgemm"]["sizes"]
    assert told["unknown_share"] == 0.0


def test_nothing_is_outside_where_the_ranges_hold_every_call():
    prediction = predict(HPL, narrowed(0, 10**6), runs=1)
    assert prediction.outside.share == 0.0
    assert "no computing was outside the fitted ranges" in readable(prediction, narrowed(0, 10**6))


def test_the_text_tells_the_share_of_computing():
    machine = narrowed(100, 400)
    prediction = predict(HPL, machine, runs=1)
    (line,) = [line for line in readable(prediction, machine).splitlines() if line.startswith("  ranges")]
    share = 100 * prediction.outside.share
    text = f"{significant(share, 2)} %"
    assert line == f"  ranges  {text} of computing (dgemm {text}) was outside the fitted ranges"
    assert "  ranges  0 to" in summary([prediction, predict(HPL, narrowed(0, 10**6), runs=1)])


def test_kernels_whose_ranges_the_platform_does_not_say_are_counted_apart():
    machine = narrowed(0, 10**6)
    kernels = tuple(
        kernel.model_copy(update={"pieces": tuple(p.model_copy(update={"range": None}) for p in kernel.pieces)})
        if kernel.kernel == "dtrsm"
        else kernel
        for kernel in machine.kernels
    )
    prediction = predict(HPL, machine.model_copy(update={"kernels": kernels}), runs=1)
    expected = prediction.kernel_time_s["dtrsm"] / prediction.first.computing_s
    assert prediction.outside.unknown_share == pytest.approx(expected)
    assert "has no fitted ranges in the platform" in prediction.outside.text()
    nothing_known = replace(prediction.outside, unknown_share=1.0)
    assert nothing_known.text() == "not known: the platform does not say which sizes its kernel models were fitted to"


def test_an_emulated_program_has_the_same():
    use = KernelUse(10, 2.0, 0, 0, 0.5, Sizes(1, 1, 9000), Sizes(1, 1, 9500))
    found = outside_ranges({"dgemm": use}, tiny(), 4.0)
    assert found.share == 0.125  # half a second of four in all kernels
    assert found.kernels[0].share_of_own == 0.25
    assert found.messages is None  # not told by that engine
    assert found.to_dict()["messages"] is None


def test_messages_of_sizes_that_were_not_fitted_are_counted_in_hpl_and_in_the_stencil():
    platform = narrowed(0, 10**9)
    network = platform.network
    known = {"range_bytes": (0, 1000), "busy": None}  # of messages to busy receivers the sizes are not known
    loopback = network.loopback.model_copy(update=known)
    remote = network.remote.model_copy(update=known)
    small = platform.model_copy(update={"network": network.model_copy(update={"loopback": loopback, "remote": remote})})
    prediction = predict(HPL, small, runs=1)
    parts = {part.name: part.share for part in prediction.outside.messages or ()}
    assert list(parts) == ["loopback", "loopback_noncontiguous"]  # four ranks, one node
    all_s = sum(use.time_s for use in prediction.message_use)
    for use in prediction.message_use:
        assert parts[use.link] == pytest.approx(use.outside_time_s / all_s)
    shares = prediction.breakdown.shares
    moving = shares["overhead"] + shares["transfer"] + shares["contention"]
    assert prediction.outside.messages_of_work == pytest.approx(
        sum(parts.values()) * moving / (moving + shares["compute"])
    )
    assert prediction.outside.share == 0.0  # of computing
    stencil = predict(Stencil(cells=(64, 64, 64), grid=(2, 1, 1), iterations=3, cell_time_s=1e-9), small, runs=1)
    told = stencil.to_dict()["outside_ranges"]
    assert 0 < told["messages_share"] < 1
    assert list(told["messages"]) == ["loopback"]
    assert "messages inside nodes" in stencil.outside.text()


def test_messages_have_the_part_of_the_moving_time_that_their_sizes_have_of_all_messages():
    sent = [Sent("remote", (1, 1000), 3.0, 1.5, 2000.0, 9000.0), Sent("loopback", (1, 1000), 1.0, 0.0, None, None)]
    known = tiny().network.model_copy(
        update={"remote": tiny().network.remote.model_copy(update={"range_bytes": (1, 9)})}
    )
    found = outside_ranges({}, tiny().model_copy(update={"network": known}), 10.0, messages=sent, moving_s=2.5)
    assert outside_ranges({}, tiny(), 10.0, messages=[]).messages is None  # a platform that does not say the sizes
    # 1.5 s of 4 s of messages, which take 2.5 s beside 10 s of computing
    assert found.messages_share == pytest.approx(1.5 / 4.0)
    assert (found.messages_of_work, found.share) == (pytest.approx(0.2 * 1.5 / 4.0), 0.0)
    assert [part.name for part in found.messages or ()] == ["remote"]
    assert found.to_dict()["messages"]["remote"]["sizes"] == "2000 to 9000 bytes, fitted in 1 to 1000"
    assert "38 % of moving messages (messages between nodes 38 %)" in found.text()
    assert replace(found, messages=()).share == 0.0


def test_nodes_that_are_drawn_anew_have_no_ranges():
    dahu = override(load_platform("dahu"), {"population.draw": "nodes-and-days"})
    prediction = predict(replace(HPL, nb=100), dahu, runs=1)
    dgemm_share = prediction.kernel_time_s["dgemm"] / (HPL.ranks * prediction.run_list[0].time_s)
    assert prediction.outside.unknown_share >= 0.999 * dgemm_share


def test_messages_of_a_class_of_unknown_ranges_keep_their_part_of_the_moving_time():
    hpl = replace(HPL, p=8, q=8)  # on two nodes
    beyond = {"network.remote.range_bytes": "[0, 10]"}
    alone = predict(hpl, override(load_platform("dahu"), beyond), runs=1)
    segments = load_platform("dahu").network.loopback.segments
    assert segments is not None  # of its own, whose range is not known
    both = predict(
        hpl, override(load_platform("dahu"), beyond | {"network.loopback.range_bytes": "[0, 100000000]"}), runs=1
    )
    assert alone.outside.messages is not None
    assert alone.outside.messages == both.outside.messages
