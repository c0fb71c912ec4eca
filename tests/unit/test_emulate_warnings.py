"""What a reader of an emulation is told: what SMPI does otherwise, and what was charged without a model."""

from dataclasses import replace

import pytest
from oracles.emulated import tiny, tiny_text

from lepaute.simulate.engine import KernelUse, Sizes
from lepaute.simulate.platform import override
from lepaute.simulate.platform.io import parse_platform
from lepaute.simulate.smpi.emulate import Options
from lepaute.simulate.smpi.emulated_run import EmulatedRun, OwnTimes, Slowdowns
from lepaute.simulate.smpi.warnings import network_warnings, program_warnings

RUN = EmulatedRun(
    seed=1,
    time_s=1.0,
    program_s=1.0,
    region_s=None,
    value_s=None,
    computing_s=2.0,
    own=OwnTimes(),
    wtime_s=0.0,
    kernels={"dgemm": KernelUse(10, 2.0)},
    fallback={},
    messages=0,
    put_off=(0, 0.0, 0.0),
    probes=0,
    folded=0,
    folded_bytes=0.0,
    wall_s=1.0,
    cpu_s=1.0,
    peak_rss_bytes=1,
    stdout=(),
)


@pytest.mark.parametrize("run", [RUN, replace(RUN, gapped=(480, 25e6, 0.01))])  # packing: a hundredth of the computing
def test_a_run_whose_platform_says_what_smpi_does_has_nothing_to_tell(run):
    assert program_warnings(run, tiny(), Options()) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"fallback": {"dsymv": KernelUse(3, 0.5)}}, "no model of dsymv (3 calls): 25 % of the computing"),
        ({"fallback": {"dcopy": KernelUse(3, 0.0, unmodelled_calls=3)}}, "dcopy (3 calls); taken to cost nothing"),
        (
            {"kernels": {"dgemm": KernelUse(10, 2.0, 0, 0, 0.5, Sizes(1, 1, 9000), Sizes(1, 1, 9500))}},
            "25 % of dgemm time is outside the fitted ranges: ",
        ),
        ({"wtime_s": 0.1}, "5.0 % of the computing is calls of MPI_Wtime"),
        ({"put_off": (12, 65536.0, 16e6)}, "12 receives of 64 KiB to 15.3 MiB, posted before their rank computed"),
        ({"threads": 3}, "the ranks started 3 threads of their own, whose computing takes no simulated time"),
        ({"gapped": (480, 25e6, 0.3)}, "packing alone takes some 0.30 s of CPU time here, over all ranks, 15 % of the"),
        ({"put_off": (12, 65536.0, 65536.0)}, "12 receives of 64 KiB, posted"),
        ({"warnings": ("the program has dscal of its own",)}, "dscal of its own"),
    ],
)
def test_what_had_no_model_is_told_with_its_share(changed: dict[str, object], said: str) -> None:
    (warning,) = program_warnings(replace(RUN, **changed), tiny(), Options())  # type: ignore[arg-type]
    assert said in warning


def test_computing_that_was_timed_here_is_told() -> None:
    (warning,) = program_warnings(replace(RUN, own=OwnTimes(1.5, 1.5)), tiny(), Options())
    assert warning.startswith("75 % of the computing is the program's own, timed on this machine")


def test_computing_that_was_not_charged_is_told_with_its_share() -> None:
    options = Options(computing="none")
    (warning,) = program_warnings(replace(RUN, computing_s=0.5, own=OwnTimes(9.5)), tiny(), options)
    assert warning.startswith("95 % of the computing was not charged: 9.50 s of CPU time here")
    assert program_warnings(replace(RUN, own=OwnTimes(0.01)), tiny(), options) == []


@pytest.mark.parametrize(
    ("share", "bandwidth", "said"),
    [
        (0.8, "null", "whose bandwidth for all cores is not known: the 80 % of the program's own computing"),
        (0.8, "1e11", None),
        (None, "null", "was not seen with 2 busy cores here"),
        (0.0, "null", None),
    ],
)
def test_a_node_with_more_ranks_than_cores_here_needs_the_bandwidth_of_all_its_cores(share, bandwidth, said):
    platform = tiny(cores=f"cores: 4, memory_bandwidth_Bps: {bandwidth}")
    of_run = {"slowdowns": Slowdowns(memory_share=share), "cores_timed": 2, "ranks_on_node": 48}
    warnings = program_warnings(replace(RUN, own=OwnTimes(1.5, 1.5), **of_run), platform, Options())  # type: ignore[arg-type]
    assert ["timed on this machine" in warnings[0], *(said in text for text in warnings[1:] if said)] == (
        [True, True] if said else [True]
    )
    assert len(warnings) == (2 if said else 1)


def test_a_rank_alone_on_its_node_shares_no_memory() -> None:
    alone = replace(RUN, own=OwnTimes(1.5, 1.5), ranks_on_node=1)
    (warning,) = program_warnings(alone, tiny(cores="cores: 4, memory_bandwidth_Bps: 1e11"), Options())
    assert "timed on this machine" in warning


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("network.flow_factor", "bound", "--set network.flow_factor=scale"),
        ("network.loopback.shared", "true", "do not slow each other under SMPI"),
        ("network.costs.iprobe_looks_first", "true", "MPI_Iprobe finds what has come by its end"),
    ],
)
def test_what_smpi_does_otherwise_than_the_platform_says_is_told(setting: str, value: str, said: str) -> None:
    (warning,) = network_warnings(override(tiny(), {setting: value}))
    assert said in warning


def test_noise_of_messages_is_told_not_to_be_drawn() -> None:
    noisy = tiny_text().replace("latency_s: 5e-6,", "latency_s: 5e-6, noise_relative_sd: 0.1,")
    (warning,) = network_warnings(parse_platform(noisy))
    assert "noise of messages" in warning
