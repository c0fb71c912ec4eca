"""An option of HPL is declared in `Hpl` and in the core: whatever was forgotten of it is named here."""

from dataclasses import fields, replace
from functools import cache
from typing import get_args

import pytest
from support_hpl_options import other_values

from lepaute import _core
from lepaute.simulate import Hpl
from lepaute.simulate.apps.hpl.parameters import Swap
from lepaute.simulate.behaviour import OF_THE_MACHINE
from lepaute.simulate.machine.core import machine_of
from lepaute.simulate.platform.io import load_platform

#: Some options have an effect with one swap only.
BASES = [Hpl(n=300, nb=16, p=3, q=5, nbmin=4, ndiv=3, swap=swap) for swap in get_args(Swap)]
NOT_SIMULATED = set.intersection(*(set(base.unused) for base in BASES))
#: Fields of the core that are no parameters of HPL: how much is simulated, and the pivots of a recorded run.
OF_THE_ENGINE = {"sampled", "trial_steps", "pivot_rows"}


@cache
def time_s(hpl: Hpl) -> float:
    """On four cores of each node."""
    machine = machine_of(load_platform("dahu"))
    cores = [rank // 4 * machine.cores_per_node + rank % 4 for rank in range(hpl.ranks)]
    return _core.simulate_hpl(hpl.on().core_parameters(), machine, _core.Layers(), cores, 1).time_s


def test_the_core_has_no_parameter_that_hpl_lacks() -> None:
    in_core = {name for name, value in vars(_core.HplParameters).items() if isinstance(value, property)}
    unknown = in_core - {field.name for field in fields(Hpl)} - OF_THE_ENGINE
    assert not unknown, f"add {unknown} to Hpl in src/lepaute/simulate/apps/hpl/parameters.py"


@pytest.mark.parametrize("name", sorted(other_values().keys() - OF_THE_MACHINE - NOT_SIMULATED))
def test_every_value_is_simulated_in_its_own_way(name: str) -> None:
    values = other_values()[name]
    times = {value: [time_s(replace(base, **{name: value})) for base in BASES] for value in values}
    alike = [(a, b) for a in values for b in values if str(a) < str(b) and times[a] == times[b]]
    assert not alike, f"use parameters_.{name} in core/apps/hpl, where these values do the same: {alike}"
