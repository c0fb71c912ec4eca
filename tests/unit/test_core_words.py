"""Python and the C++ core choose by the same words."""

from typing import get_args

import pytest

from lepaute import _core
from lepaute.simulate.machine.core import machine_of
from lepaute.simulate.platform import load_platform
from lepaute.simulate.platform.kernel_model import Noise
from lepaute.simulate.platform.network_model import Network, Segment


@pytest.mark.parametrize(
    ("model", "field", "core", "attribute"),
    [
        (Noise, "kind", _core.KernelPiece, "noise"),
        (Segment, "protocol", _core.Segment, "protocol"),
        (Network, "flow_factor", _core.Network, "flow_factor"),
    ],
)
def test_what_a_platform_may_say_is_what_the_engine_takes(model, field, core, attribute):
    words = get_args(model.__dataclass_fields__[field].type)
    assert set(core.choices()[attribute]) == set(words)
    value = core()
    for word in words:
        setattr(value, attribute, word)
        assert getattr(value, attribute) == word


def test_a_threshold_of_none_is_the_block_size() -> None:
    machine = machine_of(load_platform("dahu"))

    def time_s(threshold: int | None) -> float:
        parameters = _core.HplParameters()
        parameters.n, parameters.nb, parameters.p, parameters.q = 1000, 64, 3, 2
        parameters.swap = "mix"
        parameters.swap_threshold = threshold
        return _core.simulate_hpl(parameters, machine, _core.Layers(), list(range(6)), 1).time_s

    assert time_s(None) == time_s(64) != time_s(400)
