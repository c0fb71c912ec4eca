"""A sudden change of what all machines have in common is found soon after it, where ranks would wait for weeks."""

import numpy as np
import pytest
from support.fleets import BEGIN_S, DAY_S, fleet_values
from support.null_streams import autoregressive

from lepaute.watch.proposals.platform_events import propose
from lepaute.watch.proposals.watched_series import sudden_changes, sudden_evidence, sudden_p_value


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_large_change_a_dozen_values_before_the_end_is_found_at_its_place(sign: int) -> None:
    values = np.random.default_rng(1).normal(size=70)
    values[58:] += 20 * sign
    (evidence,) = sudden_evidence(values[None])
    assert sudden_p_value(evidence) < 1e-5
    assert sudden_changes(values, evidence, 1e-3) == [58]


def test_a_spike_a_season_and_equal_values_are_none() -> None:
    rng = np.random.default_rng(3)
    spike = rng.normal(size=80)
    spike[40] += 1000
    season = 4 * np.sin(2 * np.pi * np.arange(365) / 365) + 2 * autoregressive(rng.normal(size=(1, 365)), 0.6)[0]
    for values in (spike, season, np.ones(50)):
        (evidence,) = sudden_evidence(values[None])
        assert sudden_p_value(evidence) > 1e-3
        assert sudden_changes(values, evidence, 1e-3) == []


@pytest.mark.slow
def test_an_upgrade_of_all_nodes_ten_days_ago_is_one_event() -> None:
    z = np.random.default_rng(4).normal(size=(32, 70))
    z += 2 * autoregressive(np.random.default_rng(5).normal(size=(1, 70)), 0.6)  # warm days, for all
    z[:, 60:] -= 40  # 20 %
    (event,) = propose(fleet_values(z))
    assert len(event.machines) == 32
    assert BEGIN_S + 59 * DAY_S <= event.after_s < BEGIN_S + 60 * DAY_S <= event.before_s < BEGIN_S + 61 * DAY_S
