"""What a prediction warns of: models outside their ranges, messages of other sizes, durations below zero."""

from dataclasses import replace

import numpy as np
import pytest

from lepaute.kit.text import significant
from lepaute.simulate import Hpl, Mapping, Stencil, predict
from lepaute.simulate.engine import KernelUse
from lepaute.simulate.machine.mapping import Slot
from lepaute.simulate.platform import load_platform, override
from lepaute.simulate.prediction.warnings import kernel_warnings
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


def warnings_of(clipped: int) -> list[str]:
    return kernel_warnings({"dcopy": KernelUse(4000, 0.1, clipped_means=clipped)}, load_platform("dahu"))


@pytest.mark.parametrize(
    ("clipped", "costs", "percent"),
    [(4000, "next to nothing", "100 %"), (2500, "next to nothing", "62.5 %"), (401, "too little", "10.0 %")],
)
def test_a_kernel_that_is_mostly_taken_as_zero_says_so_and_one_that_seldom_is_is_counted(clipped, costs, percent):
    (warning,) = warnings_of(clipped)
    assert warning.startswith(f"dcopy costs {costs} in this prediction")
    assert f"{clipped} of 4000" in warning
    assert f"{percent} of its calls" in warning
    assert warnings_of(400) == ["400 of 4000 durations of dcopy were below zero and taken as zero"]
    assert warnings_of(40) == []


NEAR_HPL = Hpl(n=2000, nb=128, p=2, q=2)
#: The rows of the grid on a node each: pivots cross nodes, panels do not.
ACROSS = Mapping(slots=tuple(Slot(rank // 2, rank % 2) for rank in range(4)), source="the test")


def dahu(**settings: str):
    # the sizes of messages to busy receivers are not known: those would not be counted
    quiet = {"network.loopback.busy": "null", "network.remote.busy": "null"}
    return override(load_platform("dahu"), quiet | {name.replace("__", "."): value for name, value in settings.items()})


BOTH_UP_TO_A_GIGABYTE = {
    "network__remote__range_bytes": "[1, 1000000000]",
    "network__loopback__range_bytes": "[1, 1000000000]",
}


def messages_told(prediction) -> list[str]:
    return [told for told in prediction.warnings if "of messages" in told]


def test_messages_are_counted_and_those_above_the_fitted_sizes_told_with_their_share_of_the_time():
    prediction = predict(NEAR_HPL, dahu(**BOTH_UP_TO_A_GIGABYTE), runs=1, mapping=ACROSS)
    by_link = {use.link: use for use in prediction.message_use}
    assert (by_link["remote"].outside_messages, by_link["remote"].fitted_bytes) == (0, (1, 1000000000))
    assert sum(use.messages for use in prediction.message_use) == prediction.simulation.messages
    assert messages_told(prediction) == []
    prediction = predict(NEAR_HPL, dahu(network__remote__range_bytes="[1, 65536]"), runs=1, mapping=ACROSS)
    remote = next(use for use in prediction.message_use if use.link == "remote")
    assert 0 < remote.outside_messages < remote.messages
    assert remote.outside_from_bytes > 65536
    assert remote.outside_to_bytes < remote.outside_bytes < remote.bytes
    share = 100 * remote.outside_time_s / remote.time_s
    (told, *_) = [text for text in messages_told(prediction) if "between nodes is" in text]
    assert told.startswith(f"{significant(share, 2)} % of the time of messages between nodes")
    assert told.endswith("fitted from 1 B to 64 KiB")


def test_the_pivot_exchanges_are_counted_with_the_others():
    """They are no events of the engine, and most of HPL's messages."""
    prediction = predict(
        NEAR_HPL, dahu(**BOTH_UP_TO_A_GIGABYTE | {"network__remote__range_bytes": "[1, 10]"}), runs=1, mapping=ACROSS
    )
    remote = next(use for use in prediction.message_use if use.link == "remote")
    assert remote.outside_messages == remote.messages
    assert sum(use.messages for use in prediction.message_use) == prediction.simulation.messages


def test_a_sampled_run_tells_nearly_what_the_whole_run_tells():
    platform = dahu(network__remote__range_bytes="[1, 65536]", network__loopback__range_bytes="[1, 65536]")
    big = Hpl(n=60000, nb=128, p=2, q=2)
    uses = [
        {use.link: use for use in predict(big, platform, runs=1, mapping=ACROSS, fidelity=fidelity).message_use}
        for fidelity in ("full", "sampled")
    ]
    for link, whole in uses[0].items():
        part = uses[1][link]
        assert part.time_s == pytest.approx(whole.time_s, rel=0.05)
        assert part.outside_time_s == pytest.approx(whole.outside_time_s, rel=0.05)
