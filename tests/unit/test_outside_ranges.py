"""The share of simulated time that rests on models outside the ranges in which they were fitted."""

from dataclasses import replace

import numpy as np
import pytest

from lepaute.simulate import Hpl, Stencil, predict
from lepaute.simulate.platform import load_platform, override
from lepaute.simulate.tracing import TraceRequest

HPL = Hpl(n=1500, nb=64, p=2, q=2)


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


def test_nodes_that_are_drawn_anew_have_no_ranges():
    dahu = override(load_platform("dahu"), {"population.draw": "nodes-and-days"})
    prediction = predict(replace(HPL, nb=100), dahu, runs=1)
    dgemm_share = prediction.kernel_time_s["dgemm"] / (HPL.ranks * prediction.run_list[0].time_s)
    assert prediction.outside.unknown_share >= 0.999 * dgemm_share
