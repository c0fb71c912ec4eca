"""Three to eight machines: how soon a change of one is named, and how rarely one is named that did not change."""

import numpy as np
import pandas as pd
import pytest
from long_tests import long_but
from scipy import stats
from support.fleets import BEGIN_S, DAY_S, fleet_values
from support.null_streams import autoregressive, evidence, null_streams

from lepaute.stats.multiple_tests import LEVEL
from lepaute.watch.alarms.procedure import judge_days
from lepaute.watch.notices.notice import UNLIKE_PEERS, notices

pytestmark = pytest.mark.slow
#: Scatter of a machine, and what a night does to all; nights before the change; in the next so many it is to be named.
NOISE, OF_NIGHT, BEFORE = 0.008, 0.6, 30


def fleet(machines: int, nights: int, size: float, seed: int, before: int = BEFORE, rho: float = 0.0) -> pd.DataFrame:
    """The first machine is changed by `size` from night `before` on."""
    rng = np.random.default_rng((20261129, machines, seed))
    z = autoregressive(rng.normal(size=(machines, nights)), rho) + OF_NIGHT * rng.normal(size=nights)
    z[0, before:] += size / NOISE
    return fleet_values(z, noise=NOISE, seed=seed)


def named(values: pd.DataFrame) -> set[tuple[str, int]]:
    """The machines of alarms and of unconfirmed changes."""
    judged = judge_days(values)
    return {key for rows in (judged.alarms, judged.unconfirmed) for key in zip(rows["node"], rows["cpu"], strict=True)}


@pytest.mark.parametrize(
    ("before", "size", "nights", "share"),
    long_but(
        [
            *((40, *each) for each in ((-0.06, 3, 0.95), (-0.03, 10, 0.95), (-0.02, 30, 0.8))),
            *((20, *each) for each in ((-0.06, 3, 0.9), (-0.06, 10, 0.95), (-0.03, 10, 0.7), (-0.03, 30, 0.85))),
        ],
        (20, -0.06, 10, 0.95),
        (40, -0.06, 3, 0.95),
    ),
)
@pytest.mark.parametrize("machines", [3, 4, 5, 8])
def test_a_machine_that_became_slower_is_named(
    machines: int, before: int, size: float, nights: int, share: float
) -> None:
    # its slow nights pass neither for noise nor for correlation, however few good ones there were
    fleets = 40
    found = sum(("1", 0) in named(fleet(machines, before + nights, size, seed, before)) for seed in range(fleets))
    assert found >= stats.binom.ppf(0.001, fleets, share)


def test_an_unconfirmed_change_stays_until_it_is_confirmed_and_goes_when_the_machine_is_back() -> None:
    kept, ever = 0, 0
    for seed in range(12):
        values = fleet(4, 34, -0.06, seed, 20)
        night = (values["started_s"] - BEGIN_S) // DAY_S
        found = [("1", 0) in named(values[night < last]) for last in range(22, 31)]
        ever += any(found)
        assert found == sorted(found), "named once, it stays named"
        good = fleet(4, 34, 0.0, seed, 20)["value"]  # of the same noise
        judged = judge_days(values.assign(value=values["value"].where(night < 23, good)))
        kept += len(judged.unconfirmed)
    assert ever >= 11
    assert kept == 0


@pytest.mark.parametrize(("kind", "machines"), [("AR(1) 0.6", 3), ("AR(1) 0.6 of t, 4 df", 4)])
def test_few_machines_have_as_few_false_alarms_as_many(kind: str, machines: int) -> None:
    # of three, the middle one is what all share, and its days tell nothing of its scatter
    fleets = 600
    found = evidence(null_streams(kind, fleets * machines, seed=20261130), machines, pooled=True, least=0.25).machines
    largest = found.reshape(fleets, machines, -1).max(axis=(1, 2))
    assert (largest >= 2 * machines / LEVEL).sum() <= stats.binom.ppf(1 - 1e-3, fleets, LEVEL)


@pytest.mark.parametrize(("machines", "rho"), [(3, 0.6), (4, 0.0), (8, 0.6)])
def test_a_machine_is_named_once_a_year_at_most_where_nothing_changes(machines: int, rho: float) -> None:
    fleets, nights = 10, 180
    false = sum(len(named(fleet(machines, nights, 0.0, seed, rho=rho))) for seed in range(fleets))
    assert false <= stats.poisson.ppf(0.999, fleets * nights / 365)


@pytest.mark.parametrize("machines", [4, 7])
@pytest.mark.parametrize("jobs", [1, 5])
def test_a_machine_that_was_slow_from_its_first_day_is_unlike_its_peers_and_no_other_is(machines, jobs) -> None:
    rng = np.random.default_rng((20261129, machines, jobs))
    unlike, false, fleets = 0, 0, 40
    for seed in range(fleets):
        values = fleet_values(rng.normal(size=(2 * machines, jobs)), noise=NOISE, seed=seed)
        false += any(notice.kind == UNLIKE_PEERS for notice in notices(values))
        values.loc[(values["node"] == "2") & (values["cpu"] == 0), "value"] *= 0.57
        found = {(notice.node, notice.cpu) for notice in notices(values) if notice.kind == UNLIKE_PEERS}
        unlike += ("2", 0) in found
    assert unlike == fleets
    assert false <= stats.binom.ppf(0.999, fleets, 0.05)
