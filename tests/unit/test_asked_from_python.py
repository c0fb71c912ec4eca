"""What is asked for from Python is done, or refused in one line; never silently something else."""

import numpy as np
import pytest

from lepaute.errors import InputError
from lepaute.simulate import Hpl, Layers, Stencil, predict


@pytest.mark.parametrize("names", [("nois",), ("noise", "day")])
def test_layers_of_other_names_are_refused_not_switched_off(names: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="there is no layer"):
        Layers.only(*names)
    with pytest.raises(InputError, match="there is no layer"):
        Layers.without(names)
    with pytest.raises(InputError, match="one text; give a list of them"):
        Layers.without("noise")
    assert Layers.only("noise").off == (
        "coefficients", "days", "discrepancy", "network", "overheads", "collectives", "extrapolation", "own_code",
    )  # fmt: skip


def test_numbers_of_numpy_are_numbers() -> None:
    ours = Hpl(n=1000, nb=64, p=1, q=2)
    theirs = Hpl(n=np.int64(1000), nb=np.int32(64), p=np.uint8(1), q=np.int16(2))  # type: ignore[arg-type]
    assert theirs == ours
    assert type(theirs.n) is int
    assert Stencil(cells=np.array([8, 8, 8]), cell_time_s=1e-9).cells == (8, 8, 8)  # type: ignore[arg-type]
    assert Stencil(cells=(8, 8, 8), cell_time_s=np.float32(0.5)).cell_time_s == 0.5  # type: ignore[arg-type]
    found = predict(theirs, "dahu", runs=np.int64(2), seed=np.uint32(3))  # type: ignore[arg-type]
    assert found.to_dict()["time_s"] == predict(ours, "dahu", runs=2, seed=3).to_dict()["time_s"]
    assert found.seed == 3
