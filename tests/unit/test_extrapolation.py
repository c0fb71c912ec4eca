"""Where a kernel's model extrapolates: outside of the fitted sizes, not between the block sizes that were measured."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from lepaute import _core
from lepaute.measure.fit.kernels.kernel_fit import FittedKernel, fit_kernel
from lepaute.measure.fit.kernels.platform_kernel import kernel_model
from lepaute.measure.fit.kernels.regions import Region
from lepaute.measure.fit.observations.calls import Calls
from lepaute.simulate import Hpl
from lepaute.simulate.apps.hpl.kernel_calls import kernel_calls
from lepaute.simulate.machine.core import bounds, core_piece

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


def test_a_distance_is_the_logarithm_of_how_many_times_the_nearest_fitted_size_it_is() -> None:
    model = model_of((None, {"m": (100, 8000), "n": (100, 8000), "k": (64, 256)}))
    assert model.distance(_core.Size(100, 8000, 64)).log == [0.0, 0.0, 0.0]
    assert model.distance(_core.Size(4000, 4000, 16)).log == pytest.approx([0.0, 0.0, -math.log(4)])
    assert model.distance(_core.Size(16000, 50, 512)).log == pytest.approx([math.log(2), -math.log(2), math.log(2)])


def test_a_parameter_is_varied_where_the_fitted_sizes_differ_by_a_factor_of_two() -> None:
    far = _core.Size(10, 10, 10)
    assert model_of((None, {"m": (100, 200), "n": (100, 199), "k": (64, 64)})).distance(far).varied == [
        *(True, False, False)
    ]


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


def test_a_call_is_inside_or_outside_of_parts_and_not_of_the_box_around_them() -> None:
    panel, update = {"n": (2, 64), "k": (2, 64)}, {"n": (64, 8000), "k": (64, 256)}
    model = model_of((None, {"n": (2, 8000), "k": (2, 256)}), parts=(panel, update))
    assert not any(model.distance(_core.Size(100, 32, 32)).log)
    assert not any(model.distance(_core.Size(100, 4000, 100)).log)
    assert model.distance(_core.Size(100, 4000, 16)).log == pytest.approx([0.0, 0.0, -math.log(4)])
    assert model.distance(_core.Size(100, 4000, 16)).varied[2]


def test_empty_calls_absent_parameters_and_pieces_fitted_nowhere_are_not_outside() -> None:
    model = model_of((None, {"m": (1, 8000), "n": (1, 8000), "k": (2, 256)}))
    assert not any(model.distance(_core.Size(0, 100, 128)).log)
    model = model_of((None, {"n": (64, 256), "k": (64, 256)}))
    assert not any(model.distance(_core.Size(0, 100, 0)).log)
    assert model.distance(_core.Size(0, 32, 0)).log == pytest.approx([0.0, -math.log(2), 0.0])
    model = model_of(({"k": (0, 16)}, None), (None, {"m": (1, 8000), "k": (64, 512)}))
    assert model.distance(_core.Size(100, 100, 32)).log == pytest.approx([0.0, 0.0, -math.log(2)])
    assert not any(model.distance(_core.Size(100, 100, 8)).log)
