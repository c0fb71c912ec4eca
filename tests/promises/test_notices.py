"""The promises of notices: rarely any where nothing is wrong."""

import numpy as np
import pytest
from scipy import stats
from support.fleets import fleet_values
from support.null_streams import autoregressive

from lepaute.watch.notices.notice import notices
from lepaute.watch.proposals.change_points import LEVEL


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("machines", [16, 64])
def test_levels_that_are_normal_and_nodes_that_come_and_go_rarely_give_a_notice(machines: int) -> None:
    fleets, days = 60, 40
    count = 0
    for number in range(fleets):
        rng = np.random.default_rng((20261128, machines, number))
        z = autoregressive(rng.normal(size=(machines, days)), 0.6)
        z[np.repeat(rng.uniform(size=(machines // 2, days)) < 0.15, 2, axis=0)] = np.nan
        count += bool(notices(fleet_values(z, seed=1000 + number), least_change=0.0))
    assert count <= stats.binom.ppf(1 - 1e-6, fleets, LEVEL)


@pytest.mark.slow
def test_a_level_six_deviations_from_the_others_is_found() -> None:
    found = 0
    for number in range(30):
        z = np.random.default_rng((20261129, number)).normal(size=(64, 30))
        values = fleet_values(z, seed=number)
        middle = values.groupby(["node", "cpu"])["value"].median().median()
        bad = (values["node"] == "7") & (values["cpu"] == 0)
        values.loc[bad, "value"] *= 0.82 * middle / values.loc[bad, "value"].median()
        found += any((notice.node, notice.cpu) == ("7", 0) for notice in notices(values))
    assert found >= 27
