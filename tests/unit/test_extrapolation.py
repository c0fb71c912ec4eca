"""Where a model extrapolates, and predictions from windows of the steps: what is said, and how near they are."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from lepaute import _core
from lepaute.measure.fit.kernels.kernel_fit import FittedKernel, fit_kernel
from lepaute.measure.fit.kernels.platform_kernel import kernel_model
from lepaute.measure.fit.kernels.regions import Region
from lepaute.measure.fit.observations.calls import Calls
from lepaute.simulate import Hpl, predict
from lepaute.simulate.apps.hpl.kernel_calls import kernel_calls
from lepaute.simulate.apps.hpl.work import FULL_BELOW
from lepaute.simulate.machine.core import bounds, core_piece
from lepaute.simulate.platform import load_platform, override

N = 3000
Ranges = Mapping[str, tuple[float, float]]


def model_of(*pieces: tuple[Ranges | None, Ranges | None], parts: Sequence[Ranges] = ()) -> _core.KernelModel:
    """A model of pieces (where, fitted); parts: of what was fitted, in all pieces."""
    made = []
    for where, fitted in pieces:
        piece = _core.KernelPiece()
        piece.where, piece.fitted = bounds(where), bounds(fitted)
        piece.fitted_parts = [bounds(box) for box in parts]
        made.append(piece)
    return _core.KernelModel(made)


PANEL, UPDATE = "dgemm", "dgemm_nn"


def calls_of(kernel: str, *block_sizes: int) -> Calls:
    """Calls of a kernel in runs of HPL with these block sizes, at 10 Gflop/s with a microsecond for each."""
    sizes = np.array(
        [row[:3] for nb in block_sizes for row in kernel_calls(Hpl(n=N, nb=nb)).sizes_of((kernel,))], dtype=float
    )
    m, n, k = sizes.T
    zeros, inside = np.zeros(len(m), dtype=np.int64), np.ones(len(m), dtype=bool)
    return Calls(kernel, m, n, k, 1e-6 + 2e-10 * m * n * k, zeros, zeros, zeros, inside, ~inside, ("hpl_steps_1x1",))


def core_of(kernel: FittedKernel) -> _core.KernelModel:
    """The model as a platform would have it."""
    fitted = kernel_model(kernel, 0.0, ((), 0.0), {0: (1, 0)})
    return _core.KernelModel([core_piece(piece, piece.mean, piece.noise.sd) for piece in fitted.pieces])


def share_outside(model: _core.KernelModel, calls: Calls) -> float:
    """Of the time of the calls."""
    outside = [any(model.distance(_core.Size(*size)).log) for size in zip(calls.m, calls.n, calls.k, strict=True)]
    return float(calls.duration_s[outside].sum() / calls.duration_s.sum())


@pytest.mark.slow
def test_block_sizes_between_those_that_were_measured_are_inside_and_others_outside() -> None:
    for kernel in (PANEL, UPDATE):
        model = core_of(fit_kernel(calls_of(kernel, 64, 128, 256)))
        for between in (64, 96, 128, 192, 256):  # the recursion of 96 columns has 48, 24, 12, 6 and 3
            assert share_outside(model, calls_of(kernel, between)) < 0.01
        assert share_outside(model, calls_of(kernel, 512)) > 0.4
    assert share_outside(model, calls_of(UPDATE, 16)) > 0.95
    assert share_outside(core_of(fit_kernel(calls_of(PANEL, 64, 128, 256))), calls_of(PANEL, 16)) < 0.01  # part of 64


def test_calls_between_two_pieces_are_inside_and_calls_beyond_one_of_them_outside() -> None:
    panel = ({"n": (0, 64), "k": (0, 64)}, {"m": (64, 8000), "n": (2, 64), "k": (2, 64)})
    model = model_of(panel, (None, {"m": (64, 8000), "n": (128, 8000), "k": (128, 256)}))
    assert not any(model.distance(_core.Size(3000, 96, 96)).log)  # the recursion of a panel of 192 columns
    assert any(model.distance(_core.Size(3000, 3000, 16)).log)  # NB = 16: the panel is not as wide
    # between the pieces in n and k, and too tall for both: the rows alone are extrapolated
    assert model.distance(_core.Size(16000, 96, 96)).log == pytest.approx([math.log(2), 0.0, 0.0])


def test_updates_are_outside_though_the_recursion_of_panels_has_calls_as_shallow() -> None:
    # One piece for all calls, as after a quick calibration: its box holds everything up to k = 256.
    calls = calls_of(PANEL, 64, 128, 256)
    wide = calls_of(UPDATE, 64, 128, 256)
    both = np.concatenate([np.stack([one.m, one.n, one.k]) for one in (calls, wide)], axis=1)
    zeros, inside = np.zeros(both.shape[1], dtype=np.int64), np.ones(both.shape[1], dtype=bool)
    joined = Calls(
        UPDATE, *both, 1e-6 + 2e-10 * both.prod(axis=0), zeros, zeros, zeros, inside, ~inside, ("hpl_steps_1x1",)
    )
    model = core_of(fit_kernel(joined, (Region(None),)))
    assert share_outside(model, calls_of(UPDATE, 16)) > 0.95
    assert share_outside(model, calls_of(UPDATE, 512)) > 0.95
    for between in (96, 192):
        assert share_outside(model, calls_of(UPDATE, between)) < 0.01
        assert share_outside(model, calls_of(PANEL, between)) < 0.01


def test_a_call_is_inside_or_outside_of_parts_and_empty_ones_absent_parameters_and_unfitted_pieces_inside() -> None:
    panel, update = {"n": (2, 64), "k": (2, 64)}, {"n": (64, 8000), "k": (64, 256)}
    model = model_of((None, {"n": (2, 8000), "k": (2, 256)}), parts=(panel, update))
    assert not any(model.distance(_core.Size(100, 32, 32)).log)
    assert not any(model.distance(_core.Size(100, 4000, 100)).log)
    assert model.distance(_core.Size(100, 4000, 16)).log == pytest.approx([0.0, 0.0, -math.log(4)])
    assert model.distance(_core.Size(100, 4000, 16)).varied[2]
    model = model_of((None, {"m": (1, 8000), "n": (1, 8000), "k": (2, 256)}))
    assert not any(model.distance(_core.Size(0, 100, 128)).log)
    model = model_of((None, {"n": (64, 256), "k": (64, 256)}))
    assert not any(model.distance(_core.Size(0, 100, 0)).log)
    assert model.distance(_core.Size(0, 32, 0)).log == pytest.approx([0.0, -math.log(2), 0.0])
    model = model_of(({"k": (0, 16)}, None), (None, {"m": (1, 8000), "k": (64, 512)}))
    assert model.distance(_core.Size(100, 100, 32)).log == pytest.approx([0.0, 0.0, -math.log(2)])
    assert not any(model.distance(_core.Size(100, 100, 8)).log)


STEPS = 547
HPL = Hpl(n=70000, nb=128, p=4, q=4)


@pytest.fixture(scope="module")
def dahu():
    power = "{idle_W: 100, computing_W: 300, communicating_W: 200}"
    return override(load_platform("dahu"), {"power": power})


@pytest.fixture(scope="module")
def full(dahu):
    return predict(HPL, dahu, runs=2, fidelity="full")


@pytest.fixture(scope="module")
def sampled(dahu):
    return predict(HPL, dahu, runs=2, fidelity="sampled")


def test_a_sampled_prediction_is_near_the_full_one(full, sampled):
    assert sampled.time_s.mean == pytest.approx(full.time_s.mean, rel=0.005)
    assert [run.time_s for run in sampled.run_list] == pytest.approx([run.time_s for run in full.run_list], rel=0.01)
    assert sampled.simulation.messages == pytest.approx(full.simulation.messages, rel=0.01)
    assert sampled.energy_j.mean == pytest.approx(full.energy_j.mean, rel=0.01)
    assert sampled.kernel_time_s["dgemm"] == pytest.approx(full.kernel_time_s["dgemm"], rel=0.01)
    assert sampled.kernel_time_s.keys() == full.kernel_time_s.keys()
    assert sampled.run_list != full.run_list


def test_a_sampled_prediction_says_that_it_is_one(full, sampled):
    assert json.loads(json.dumps(sampled.to_dict()))["fidelity"] == "sampled"
    (told,) = [warning for warning in sampled.warnings if warning.startswith("sampled: ")]
    assert f" of {STEPS} steps were simulated" in told
    assert "with an error of 0." in told
    assert "which the interval includes" in told
    assert full.to_dict()["fidelity"] == "full"
    assert not any("sampled" in warning for warning in full.warnings)


def test_the_error_of_sampling_is_part_of_the_interval_and_of_its_parts(full, sampled):
    assert full.sampling_sd == 0.0
    assert 0.001 <= sampled.sampling_sd < 0.01
    spread = sampled.time_s
    alone = replace(sampled, sampling_sd=0.0).time_s
    assert spread.mean == alone.mean
    for wide, narrow in ((spread.low, alone.low), (spread.high, alone.high)):
        logs = [math.log(run.time_s) for run in sampled.run_list]
        centre = sum(logs) / len(logs)
        assert abs(math.log(wide) - centre) == pytest.approx(
            math.hypot(math.log(narrow) - centre, 1.959964 * sampled.sampling_sd)
        )
    assert sampled.to_dict()["sampling_relative_sd"] == sampled.sampling_sd
    assert "sampling_relative_sd" not in full.to_dict()
    parts = predict(HPL, "dahu", runs=2, fidelity="sampled", parts=True)
    assert parts.parts.relative_sd["sampling"] == parts.sampling_sd
    assert "sampling" not in predict(Hpl(n=2000), "dahu", runs=2, parts=True).parts.relative_sd


def test_few_steps_are_simulated_in_full_whatever_is_asked_for(dahu):
    few = Hpl(n=5000, nb=128, p=2, q=2)
    asked = predict(few, dahu, runs=2, fidelity="sampled")
    assert asked.fidelity == "full"
    assert asked.run_list == predict(few, dahu, runs=2, fidelity="full").run_list
    assert not any("sampled" in warning for warning in asked.warnings)


def test_auto_simulates_in_full_up_to_a_number_of_steps_times_ranks():
    ranks, nb = 1000, 100
    steps = FULL_BELOW // ranks
    largest = Hpl(n=steps * nb, nb=nb, p=20, q=50).on()
    larger = Hpl(n=steps * nb + 1, nb=nb, p=20, q=50).on()
    assert not largest.is_sampled("auto")
    assert larger.is_sampled("auto")
    assert not larger.is_sampled("auto", traced=True)  # a trace has gaps only where one asks for them
    assert larger.is_sampled("sampled", traced=True)
    assert not larger.is_sampled("full")
    assert largest.simulated_share("auto") == 1.0
    assert 0.0 < larger.simulated_share("auto") < 0.05
