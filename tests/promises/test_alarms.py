"""The promises of alarms: at most 5 % of them are false, whatever the noise, and changes are found within days."""

import numpy as np
import pytest
from long_tests import long_but
from support.null_streams import CPUS, FLEETS, KINDS, autoregressive, evidence, null_streams, raw_p_values
from support_limits import most

from lepaute.errors import InputError
from lepaute.stats.change_evidence import FEWEST, HEAVY_SCALE, SHIFTS, factors, moderated
from lepaute.stats.multiple_tests import LEVEL, OnlineFdr
from lepaute.watch.alarms.sizes import largest_level_change

STREAMS = 2000
#: A watch of one stream: half of the level is that of its first hypothesis.
ALONE = 2 / LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("kind", long_but(KINDS, "season", "AR(1) 0.6 of t, 4 df"))
def test_a_year_without_a_change_gives_an_alarm_in_at_most_one_watch_of_twenty(kind: str) -> None:
    # where nothing changes every alarm is false, and the false-discovery rate is the chance of any alarm
    fleet = CPUS if kind in FLEETS else 0
    found = evidence(null_streams(kind, STREAMS // CPUS * CPUS if fleet else STREAMS), fleet)
    if not fleet:
        assert (found.machines.max(axis=1) >= ALONE).sum() <= most(LEVEL, STREAMS)
        return
    # 31 watches of 64 machines and of what they have in common, 65 hypotheses each
    alarms = 0
    for machines, common in zip(np.split(found.machines, len(found.common)), found.common, strict=True):
        watch = OnlineFdr()
        days = np.datetime64("2026-01-01") + np.arange(len(common))
        for day in range(FEWEST, len(common)):
            today = {f"cpu {i}": float(e) for i, e in enumerate(machines[:, day])} | {"common": float(common[day])}
            watch.alarms_of_day(str(days[day]), today)
        alarms += bool(watch.alarms)
    assert alarms <= most(LEVEL, len(found.common))


def test_the_raw_test_cannot_hold_its_level_where_tails_are_heavy() -> None:
    p = raw_p_values(null_streams("Student t, 4 df", STREAMS))[:, FEWEST:]
    assert (p < 1e-4).mean() > 20e-4


@pytest.mark.slow
@pytest.mark.long
def test_the_share_of_false_alarms_is_small_where_a_quarter_of_the_machines_change() -> None:
    rng = np.random.default_rng(7)
    shares = []
    for fleet in range(20):
        values = null_streams("AR(1) 0.6", CPUS, 200, seed=fleet)
        begins = rng.integers(50, 150, CPUS // 4)
        for machine, begin in enumerate(begins):
            values[machine, begin:] += 8
        found = evidence(values, CPUS, pooled=True).machines
        watch = OnlineFdr()
        for day in range(200):
            watch.alarms_of_day(
                str(np.datetime64("2026-01-01") + day), {f"{i:02d}": float(e) for i, e in enumerate(found[:, day])}
            )
        false = [a for a in watch.alarms if int(a) >= CPUS // 4]
        shares.append(len(false) / max(1, len(watch.alarms)))
        assert len(watch.alarms) >= 0.9 * len(begins)
    assert np.mean(shares) <= LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("kind", long_but(["AR(1) 0.6", *FLEETS], "season"))
def test_pooled_fleets_hold_the_level_too(kind: str) -> None:
    found = evidence(null_streams(kind, 30 * CPUS, seed=20261125), CPUS, pooled=True)
    machines = found.machines.reshape(30, CPUS, -1).max(axis=(1, 2))
    # the first alarm of 65 hypotheses; two at half the evidence are rarer
    assert (np.maximum(machines, found.common.max(axis=1)) >= (CPUS + 1) * ALONE).sum() <= most(LEVEL, 30)


def test_a_change_up_to_the_least_one_is_no_alarm() -> None:
    rng = np.random.default_rng(12)
    values = rng.normal(100, 1, (640, 150))
    values[:, 60:] += np.where(np.arange(640) % 2, 1.0, -1.0)[:, None]
    nothing = evidence(values, pooled=True, least=1.0).machines.max(axis=1) >= ALONE
    assert nothing.sum() <= most(LEVEL, 640)
    # the same changes are found where they count, and larger ones despite it
    assert (evidence(values, pooled=True).machines.max(axis=1) >= ALONE).mean() > 0.2
    values[:, 60:] += np.where(np.arange(640) % 2, 4.0, -4.0)[:, None]
    assert (evidence(values, pooled=True, least=1.0).machines.max(axis=1) >= ALONE).mean() > 0.9


@pytest.mark.parametrize("degrees", [2, 5, 40])
def test_the_mean_of_a_factor_is_at_most_one_under_normal_and_heavy_tailed_noise(degrees: int) -> None:
    rng = np.random.default_rng(11)
    count = 400_000
    scale = np.sqrt(rng.chisquare(degrees, count) / degrees)
    for noise in (rng.normal(size=count), rng.standard_t(4, count) / HEAVY_SCALE):
        for lower in (0.0, 0.7, 3.0):  # reduced by the least change, or changed the other way
            ratios = factors(noise / scale - lower, np.full(count, degrees))
            assert ratios.shape == (count, len(SHIFTS))
            assert (ratios.mean(axis=0) <= 1.01 + 5 * ratios.std(axis=0) / np.sqrt(count)).all()


def test_an_event_leaves_scale_and_correlation_and_a_change_after_it_is_found_sooner() -> None:
    values = np.random.default_rng(14).normal(100, 1, (128, 150))
    changed = np.arange(128) % 8 == 0
    values[changed, 110:] += 6
    before, young = evidence(values, CPUS, restart=100), evidence(values[:, 100:], CPUS)
    quick = (before.machines[changed, 119] >= ALONE).mean()
    assert quick >= 0.9
    assert (young.machines[changed, 19] >= ALONE).mean() < quick
    assert (before.machines[~changed, -1] >= ALONE).sum() <= most(LEVEL, 112)
    assert (before.machines[:, 100:103] == 1).all()


def test_machines_that_are_alike_share_their_variance_and_others_keep_theirs() -> None:
    rng = np.random.default_rng(15)
    degrees, groups = np.full(128, 20.0), np.arange(128) // 64
    variance = rng.chisquare(20, 128) / 20 * 9.0
    variance[64:] *= rng.lognormal(0, 2, 64)
    prior, worth = moderated(variance, degrees, groups)
    assert prior[0] == pytest.approx(9.0, rel=0.15)
    assert worth[0] > 20
    assert worth[-1] < 3
    assert moderated(variance[:2], degrees[:2], groups[:2])[1].tolist() == [0.0] * 2


@pytest.mark.parametrize("earlier", [FEWEST, 10, 50])
def test_one_spike_is_no_change_and_none_is_found_at_the_start(earlier: int) -> None:
    values = np.random.default_rng(3).normal(100, 1, (200, 100))
    values[:, earlier] += 1000
    found = evidence(values).machines
    assert (found[:, :FEWEST] == 1).all()
    assert (found.max(axis=1) >= ALONE).sum() <= most(LEVEL, 200)


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_change_of_four_standard_deviations_is_found_within_ten_days(sign: int) -> None:
    values = np.random.default_rng(4).normal(100, 1, (200, 80))
    changed = np.arange(200) % 10 == 0
    values[changed, 50:] += 4 * sign
    found = evidence(values, pooled=True).machines
    assert (found[~changed, -1] >= ALONE).sum() <= most(LEVEL, 180)
    assert (found[changed, 59] >= ALONE).mean() >= 0.95


def test_a_day_judged_again_changes_nothing_and_a_verdict_stays() -> None:
    watch = OnlineFdr()
    first = watch.alarms_of_day("2026-01-01", {"a": 1.0, "b": 1e6})
    assert [alarm.stream for alarm in first] == ["b"]
    assert watch.alarms_of_day("2026-01-01", {"a": 1e9, "b": 0.0}) == first
    # b's evidence fell; its alarm stands and is not given twice
    assert watch.alarms_of_day("2026-01-02", {"a": 1.0, "b": 0.1}) == []
    assert list(watch.alarms) == ["b"]


def test_many_streams_at_once_need_less_evidence_and_shares_of_all_sum_to_no_more_than_the_level() -> None:
    names = [f"{i:03d}" for i in range(100)]
    quiet = dict.fromkeys(names, 1.0)
    # alone: 2 * 100 / 0.05 = 4000; ten together: 400 each
    assert OnlineFdr().alarms_of_day("2026-01-01", quiet | {"007": 3999.0}) == []
    assert len(OnlineFdr().alarms_of_day("2026-01-01", quiet | {"007": 4000.1})) == 1
    assert len(OnlineFdr().alarms_of_day("2026-01-01", quiet | dict.fromkeys(names[:10], 400.1))) == 10
    assert OnlineFdr().alarms_of_day("2026-01-01", quiet | dict.fromkeys(names[:9], 400.1)) == []
    watch = OnlineFdr()
    watch.alarms_of_day("2026-01-01", dict.fromkeys("abc", 1.0))
    watch.alarms_of_day("2026-01-02", {f"later {i}": 1.0 for i in range(1000)})
    total = sum(watch.share(name) for name in watch.order)
    assert 0.99 * LEVEL < total <= LEVEL


@pytest.mark.parametrize(("day", "evidence_of_a"), [("yesterday", 1.0), ("2026-01-01", float("nan"))])
def test_what_is_no_day_or_no_evidence_is_refused(day: str, evidence_of_a: float) -> None:
    with pytest.raises(InputError, match=r"yesterday|nan"):
        OnlineFdr().alarms_of_day(day, {"a": evidence_of_a})


@pytest.mark.parametrize(
    ("rho", "before", "after", "size"), [(0.0, 10, 6, 0.02), (0.6, 50, 6, 0.02), (0.0, 50, 3, 0.05)]
)
def test_the_interval_of_a_size_holds_the_true_change(rho: float, before: int, after: int, size: float) -> None:
    rng = np.random.default_rng(16)
    values = 100 + 0.5 * autoregressive(rng.normal(size=(400, before + after)), rho)
    values[:, before:] *= 1 - size
    changes = [largest_level_change(stream, -1) for stream in values]
    missed = sum(not change.low <= -size <= change.high for change in changes)
    assert missed <= most(0.05, 400)
    assert np.median([change.high - change.low for change in changes]) < 1.2 * size
    assert np.mean([abs(change.first - before) <= 1 for change in changes]) > 0.9
