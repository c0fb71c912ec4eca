"""The promise of a raw test, and of tests and intervals of coefficients of days."""

import datetime as dt
from math import lgamma

import numpy as np
import pandas
import pandas as pd
import pytest
from long_tests import long_but
from scipy import stats

from lepaute.stats.expanding import expanding_moments
from lepaute.stats.prediction_region import RegionTests, region_tests
from lepaute.watch.changelog import Changelog, Event, NodeSet
from lepaute.watch.factors.dgemm import MODEL_FACTORS, PRODUCT_FACTORS, TERMS, coefficient_name, regression
from lepaute.watch.judging.judge import judge
from lepaute.watch.values import COLUMNS

STREAMS = 2000
SEED = 20261123
#: A test of uniformity below this: another seed fails once in a million.
RARE = 1e-6
LONGEST = 200


def null_tests(p: int, r: int, sizes: list[int]) -> dict[int, RegionTests]:
    """n -> the tests of STREAMS streams, each of its own mean and covariance, at that size of the reference set."""
    rng = np.random.default_rng((SEED, p, r))
    rows = LONGEST + r
    found: dict[int, list[RegionTests]] = {n: [] for n in sizes}
    for begin in range(0, STREAMS, 250):
        streams = min(250, STREAMS - begin)
        mixing = rng.normal(size=(streams, p, p)) * 10.0 ** rng.integers(-6, 7, size=(streams, 1, p))
        x = np.einsum("std,sdp->stp", rng.normal(size=(streams, rows, p)), mixing)
        x += 100.0 * np.abs(mixing).sum(axis=1)[:, None, :]
        series = np.repeat(np.arange(streams), rows)
        moments = expanding_moments(x.reshape(-1, p), series, np.ones(len(series), np.bool_), r)
        for n in sizes:
            at = moments.n == n
            found[n].append(
                region_tests(
                    moments.window_mean[at], moments.mean[at], moments.scatter[at], moments.n[at], moments.n[at] - 1, r,
                    0.99,
                )
            )  # fmt: skip
    joined = {}
    for n, parts in found.items():
        fields = {name: np.concatenate([getattr(part, name) for part in parts]) for name in RegionTests.__slots__}
        joined[n] = RegionTests(**fields)
    return joined


@pytest.mark.slow
@pytest.mark.parametrize("r", [1, 5])
@pytest.mark.parametrize("p", [1, 3, 8])
def test_p_values_are_uniform_under_independent_normal_observations(p: int, r: int) -> None:
    for n, tests in null_tests(p, r, sorted({*range(p + 2, p + 12), 25, 50, 100, 150, LONGEST})).items():
        assert len(tests.p_value) == STREAMS
        assert (tests.missing == 0).all(), n
        assert stats.kstest(tests.p_value, "uniform").pvalue > RARE, n
        # the tail, where alarms are: 1 % of 2000
        low, high = stats.binom.ppf([RARE, 1 - RARE], STREAMS, 0.01)
        assert low <= (tests.p_value < 0.01).sum() <= high, n
        if p == 1:
            mean = (tests.low + tests.high) / 2
            assert (mean > 0).all()
            up = int((tests.direction > 0).sum())
            low, high = stats.binom.ppf([RARE, 1 - RARE], STREAMS, 0.5)
            assert low <= up <= high, n


@pytest.mark.slow
@pytest.mark.parametrize("day_sd", long_but([0.0, 3.0], 3.0))
@pytest.mark.parametrize(("p", "r"), [(1, 1), (1, 5), (3, 1), (8, 5)])
def test_pooled_p_values_are_uniform_whatever_a_day_does_to_all_machines(p: int, r: int, day_sd: float) -> None:
    """200 clusters of ten machines, of one covariance; with day_sd, each day and a slow wave move all of a cluster."""
    rng = np.random.default_rng((SEED, p, r, int(day_sd)))
    groups, machines, jobs = 200, 10, 18
    # node 3 is another one from its eighth job on, node 0 from the fourth
    levels = 1e3 * rng.normal(size=(groups, machines, 1, p))
    mixing = rng.normal(size=(p, p))
    common = day_sd * (rng.normal(size=(groups, 1, jobs, p)) + 4 * np.sin(np.arange(jobs) / 3)[:, None])
    x = levels + (rng.normal(size=(groups, machines, jobs, p)) + common) @ mixing
    x[:, 3, 8:] += 500.0
    x[:, 0, 4:] -= 300.0
    where = np.indices((groups, machines, jobs)).reshape(3, -1)
    parts = [
        pd.DataFrame(
            {
                "cluster": np.char.add("c", where[0].astype(str)), "node": where[1].astype(str), "cpu": 0,
                "job": where[2].astype(str), "started_s": 86400.0 * where[2] + where[1], "stratum": "",
                "factor": f"f{column}", "value": x[..., column].reshape(-1), "state": "done", "archive": "",
            }
        )[list(COLUMNS)]
        for column in range(p)
    ]  # fmt: skip
    log = Changelog(
        (
            Event(dt.date(1970, 1, 9), NodeSet("all", "3"), "platform", "new board"),
            Event(dt.date(1970, 1, 5), NodeSet("all", "0"), "platform", "new board"),
        )
    )
    factors = [[f"f{column}" for column in range(p)]]
    found = judge(pd.concat(parts), log, factors=factors, windows=[r], pooled=True)
    made = found[found.missing == 0]
    # a job after the event, one machine of the group each: independent between groups
    for node, since, n in (("3", 8, 1), ("3", 8, 2), ("0", 4, 1), ("7", 0, 4), ("7", 0, jobs - r)):
        chosen = made[(made.node == node) & (made.n == n) & (made.started_s >= 86400.0 * since)].p_value
        assert len(chosen) == groups
        assert stats.kstest(chosen, "uniform").pvalue > RARE, (node, n)
    # machines of a day are compared with each other, hence not quite independent; that averages out here
    for level in (0.05, 0.001):
        share = float((made.p_value < level).mean())
        low, high = stats.binom.ppf([RARE, 1 - RARE], len(made) // machines, level) / (len(made) // machines)
        assert low <= share <= high, (level, share)


#: Of a call: s per unit of the term; noise in proportion to the duration, as of a real dgemm.
TRUE = {"mnk": 7.3e-11, "mn": 1e-10, "mk": 2e-10, "nk": 4e-10, "1": 2.4e-6, "m": 1e-8, "n": 2e-8, "k": 1e-8}
NOISE, CORES = 0.03, 16
MACHINES, JOBS = 400, 16


def daily_coefficients() -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and those of the deviation, shape (machines, jobs, terms), of independent days."""
    rng = np.random.default_rng(20261123)
    m, n, k = np.floor(2048 ** rng.uniform(0.3, 1.0, (3, 80)))
    term = {"mnk": m * n * k, "mn": m * n, "mk": m * k, "nk": n * k, "1": 1.0 + 0 * m, "m": m, "n": n, "k": k}
    mean = sum(TRUE[name] * term[name] for name in TERMS)
    sizes = [np.tile(letter, CORES) for letter in (m, n, k)]
    found = np.empty((2, MACHINES, JOBS, len(TERMS)))
    for machine in range(MACHINES):
        for job in range(JOBS):
            duration = np.tile(mean, CORES) * (1 + NOISE * rng.normal(size=CORES * len(mean)))
            one = regression(*sizes, duration)
            found[:, machine, job] = [[part[name] for name in TERMS] for part in (one.mean, one.residual)]
    return found[0], found[1]


@pytest.fixture(scope="module")
def days() -> tuple[np.ndarray, np.ndarray]:
    return daily_coefficients()


def binomial(n: int, share: float) -> tuple[float, float]:
    low, high = stats.binom.ppf([1e-6, 1 - 1e-6], n, share)
    return float(low), float(high)


@pytest.mark.slow
@pytest.mark.long
def test_the_interval_of_the_mean_of_days_holds_each_coefficient_as_often_as_it_promises(days):
    mean = days[0].mean(axis=1)
    half = stats.t.ppf(0.975, JOBS - 1) * days[0].std(axis=1, ddof=1) / np.sqrt(JOBS)
    low, high = binomial(MACHINES, 0.95)
    for number, name in enumerate(TERMS):
        covered = int((np.abs(mean[:, number] - TRUE[name]) <= half[:, number]).sum())
        assert low <= covered <= high, name


@pytest.mark.slow
def test_the_fit_of_the_residuals_finds_how_much_calls_scatter(days: tuple[np.ndarray, np.ndarray]) -> None:
    # sd = NOISE * mean, so each of its coefficients is NOISE times that of the mean; the root of a sample variance
    # of 16 calls is 1.7 % too small in the mean: sqrt(2/15) Gamma(8) / Gamma(7.5)
    shrunk = np.sqrt(2 / 15) * np.exp(lgamma(8.0) - lgamma(7.5))
    mnk = days[1][:, :, 0].ravel()
    error = mnk.std(ddof=1) / np.sqrt(mnk.size)
    assert abs(mnk.mean() - shrunk * NOISE * TRUE["mnk"]) < 5 * error
    assert error < 0.01 * NOISE * TRUE["mnk"]


@pytest.mark.slow
@pytest.mark.parametrize("factors", [PRODUCT_FACTORS, MODEL_FACTORS], ids=["p = 3", "p = 8"])
def test_p_values_of_vectors_of_coefficients_are_uniform(days, factors):
    """Though eight coefficients of one fit are of very different sizes (1e-6 to 1e-11), and correlated."""
    values = days[0].reshape(-1)
    machine, job, term = (axis.ravel() for axis in np.indices(days[0].shape))
    table = pandas.DataFrame(
        {
            "cluster": "c", "node": machine.astype(str), "cpu": 0, "job": job.astype(str),
            "started_s": 1.6e9 + 86_400.0 * job, "stratum": "s", "value": values, "state": "done", "archive": "",
            "factor": np.array([coefficient_name(name) for name in TERMS])[term],
        }
    )  # fmt: skip
    tests = judge(table, factors=[factors], windows=(1,))
    last = tests[tests["started_s"] == tests["started_s"].max()]
    assert (last["missing"] == 0).all()
    assert len(last) == MACHINES
    for level in (0.01, 0.1, 0.5):
        low, high = binomial(MACHINES, level)
        assert low <= int((last["p_value"] < level).sum()) <= high, level
