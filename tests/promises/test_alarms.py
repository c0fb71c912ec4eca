"""The promises of alarms: at most 5 % of them are false, whatever the noise, and changes are found within days."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from lepaute.errors import InputError
from lepaute.stats.change_evidence import CLIP, FEWEST, THETAS, ChangeEvidence, log_mean_factors
from lepaute.stats.online_fdr import LEVEL, OnlineFdr

sys.path.insert(0, str(Path(__file__).parents[2] / "validation"))
from support.null_streams import CPUS, FLEETS, KINDS, evidence, null_streams, raw_p_values

STREAMS = 2000
#: A watch of one stream: half of the level is that of its first hypothesis.
ALONE = 2 / LEVEL


def most(chance: float, count: int) -> int:
    """More of `count` than this, each with that chance, happen to one seed in a million."""
    return int(stats.binom.ppf(1 - 1e-6, count, chance))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
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
            watch.judge(str(days[day]), today)
        alarms += bool(watch.alarms)
    assert alarms <= most(LEVEL, len(found.common))


def test_the_raw_test_cannot_hold_its_level_where_tails_are_heavy() -> None:
    p = raw_p_values(null_streams("Student t, 4 df", STREAMS))[:, FEWEST:]
    assert (p < 1e-4).mean() > 20e-4


@pytest.mark.slow
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
            watch.judge(
                str(np.datetime64("2026-01-01") + day), {f"{i:02d}": float(e) for i, e in enumerate(found[:, day])}
            )
        false = [a for a in watch.alarms if int(a) >= CPUS // 4]
        shares.append(len(false) / max(1, len(watch.alarms)))
        assert len(watch.alarms) >= 0.9 * len(begins)
    assert np.mean(shares) <= LEVEL


def test_the_mean_of_a_factor_is_at_most_one_under_normal_and_heavy_tailed_noise() -> None:
    rng = np.random.default_rng(11)
    kappa = log_mean_factors(64)[-1][: len(THETAS)]
    for z in (rng.normal(size=400_000), rng.standard_t(4, 400_000) / 1.2):
        factors = np.exp(np.clip(z, -CLIP, CLIP)[:, None] * THETAS - kappa)
        assert (factors.mean(axis=0) <= 1 + 5 * factors.std(axis=0) / np.sqrt(len(z))).all()


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


def test_a_state_read_back_gives_the_same_evidence_bit_by_bit() -> None:
    values = np.random.default_rng(5).normal(100, 1, (10, 40))
    values[3, 5:9] = np.nan
    state = ChangeEvidence.start(10)
    for day in range(20):
        state.update(values[:, day])
    again = ChangeEvidence.from_json(json.loads(json.dumps(state.as_json())))
    for day in range(20, 40):
        assert (state.update(values[:, day]) == again.update(values[:, day])).all()
    with pytest.raises(InputError, match="no stored evidence"):
        ChangeEvidence.from_json({"memory": 3})


def test_a_day_judged_again_changes_nothing_and_a_verdict_stays() -> None:
    watch = OnlineFdr()
    first = watch.judge("2026-01-01", {"a": 1.0, "b": 1e6})
    assert [alarm.stream for alarm in first] == ["b"]
    stored = json.dumps(watch.as_json())
    assert watch.judge("2026-01-01", {"a": 1e9, "b": 0.0}) == first
    again = OnlineFdr.from_json(json.loads(stored))
    assert json.dumps(again.as_json()) == stored
    # b's evidence fell; its alarm stands and is not given twice
    assert again.judge("2026-01-02", {"a": 1.0, "b": 0.1}) == []
    assert list(again.alarms) == ["b"]


def test_many_streams_at_once_need_less_evidence_than_one() -> None:
    names = [f"{i:03d}" for i in range(100)]
    quiet = dict.fromkeys(names, 1.0)
    # alone: 2 * 100 / 0.05 = 4000; ten together: 400 each
    assert OnlineFdr().judge("2026-01-01", quiet | {"007": 3999.0}) == []
    assert len(OnlineFdr().judge("2026-01-01", quiet | {"007": 4000.1})) == 1
    assert len(OnlineFdr().judge("2026-01-01", quiet | dict.fromkeys(names[:10], 400.1))) == 10
    assert OnlineFdr().judge("2026-01-01", quiet | dict.fromkeys(names[:9], 400.1)) == []


def test_shares_of_all_hypotheses_sum_to_no_more_than_the_level() -> None:
    watch = OnlineFdr()
    watch.judge("2026-01-01", dict.fromkeys("abc", 1.0))
    watch.judge("2026-01-02", {f"later {i}": 1.0 for i in range(1000)})
    total = sum(watch.share(name) for name in watch.order)
    assert 0.99 * LEVEL < total <= LEVEL


@pytest.mark.parametrize(("day", "evidence_of_a"), [("yesterday", 1.0), ("2026-01-01", float("nan"))])
def test_what_is_no_day_or_no_evidence_is_refused(day: str, evidence_of_a: float) -> None:
    with pytest.raises(InputError, match=r"yesterday|nan"):
        OnlineFdr().judge(day, {"a": evidence_of_a})
