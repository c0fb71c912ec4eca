"""Episodes in which a machine is slow on all cores at once: seen, left out of the fit, and a layer of the platform."""

from pathlib import Path

import numpy as np
import pandas
import pytest
from support_fit import sentinel_rows, write_calibration

from lepaute.measure.archive import Archive
from lepaute.measure.fit import platform_and_models
from lepaute.measure.fit.variability.episodes import Parts, episodes_of_parts
from lepaute.simulate.platform.schema import Platform
from lepaute.stats.disturbance import slow_levels
from lepaute.stats.slow_state import fit_slow_state

BLOCKS, STEPS, CALLS, SECONDS_PER_PRODUCT = 5, 15, 30, 2.5e-11


def steps_of_two_cores(
    slow: dict[int, tuple[float, float]], factor: float, cores: tuple[int, ...] = (0, 1)
) -> pandas.DataFrame:
    """Steps of 0.1 to 0.3 s on both cores side by side in each block; `cores` take `factor` times as long between the
    dates (after the beginning of the block) that `slow` has for it."""
    rng, frames = np.random.default_rng(3), []
    for block in range(BLOCKS):
        for cpu in (0, 1):
            m, n = rng.integers(400, 1600, (2, STEPS * CALLS))
            usual_s = (SECONDS_PER_PRODUCT * m * n * 128 + 1e-6) * (1 + 0.05 * np.abs(rng.normal(size=len(m))))
            start_s, duration_s = np.zeros(len(m)), np.zeros(len(m))
            now_s, (low_s, high_s) = 20.0 * block, slow.get(block, (-1.0, -1.0))
            for call, each_s in enumerate(usual_s):
                is_slow = cpu in cores and low_s <= now_s - 20.0 * block < high_s
                start_s[call], duration_s[call] = now_s, each_s * (factor if is_slow else 1.0)
                now_s += duration_s[call] + 1e-6
            frames.append(
                pandas.DataFrame(
                    {
                        "design_row": np.repeat(np.arange(STEPS), CALLS), "kind": "hpl_step", "position": 1,
                        "kernel": "dgemm", "m": m, "n": n, "k": 128, "start_s": 100.0 + start_s,
                        "duration_s": duration_s, "rank": cpu, "cpu": cpu, "block": block, "attempt": 0,
                        "disturbed": False, "host": "here", "probe": "hpl_steps_1x1", "clock_cost_s": 0.0,
                        "active_cores": 2, "active_socket_cores": 2, "threads": 1,
                    }
                )
            )  # fmt: skip
    return pandas.concat(frames, ignore_index=True)


def fitted(
    folder: Path, kernels: pandas.DataFrame, sentinels: pandas.DataFrame | None = None
) -> tuple[Platform, list[str]]:
    platform, models = platform_and_models(
        Archive.open(write_calibration(folder, kernels, sentinels=sentinels)), "here"
    )
    return platform, models.warnings


def seconds(platform: Platform) -> float:
    """Of a large product by the model."""
    (dgemm,) = (model for model in platform.kernels if model.kernel == "dgemm")
    values = {"mnk": 1000**2 * 128, "mn": 1000**2, "mk": 128_000, "nk": 128_000, "m": 1000, "n": 1000, "k": 128, "1": 1}
    return sum(coefficient * values[term] for term, coefficient in dgemm.pieces[-1].mean.items())


def test_an_episode_on_all_cores_is_left_out_and_becomes_a_layer(tmp_path: Path) -> None:
    quiet, none = fitted(tmp_path / "quiet.zip", steps_of_two_cores({}, 1.0))
    platform, warnings = fitted(tmp_path / "episode.zip", steps_of_two_cores({2: (0.5, 2.0)}, 1.7))
    assert quiet.slow_state is None
    assert not any("slow for a while" in text for text in none)
    assert any("slow for a while" in text for text in warnings)
    # 1.5 s of 5 blocks of about 2.9 s on both cores: a tenth of the time, at 1.7 times the duration.
    state = platform.slow_state
    assert state.factor == pytest.approx(1.7, rel=0.08)
    assert state.share * np.exp(-2 * state.share_error) < 0.1 < state.share * np.exp(2 * state.share_error)
    assert state.least_busy_cores is None
    # The step at the edge of the episode may stay: without it, 1.5 s at 1.7 would make the model 5 % longer.
    assert seconds(platform) == pytest.approx(seconds(quiet), rel=0.015)


def test_one_slow_core_is_no_state_of_the_machine(tmp_path: Path) -> None:
    platform, warnings = fitted(tmp_path / "a.zip", steps_of_two_cores({2: (0.5, 2.0)}, 1.7, cores=(0,)))
    assert platform.slow_state is None
    assert not any("slow for a while" in text for text in warnings)


def test_slow_sentinels_alone_make_a_layer_and_one_does_not(tmp_path: Path) -> None:
    level = np.zeros(30)
    level[7] = 0.8
    one, _ = fitted(tmp_path / "one.zip", steps_of_two_cores({}, 1.0), sentinel_rows(level))
    level[[8, 21]] = 0.8
    three, warnings = fitted(tmp_path / "three.zip", steps_of_two_cores({}, 1.0), sentinel_rows(level))
    assert one.slow_state is None
    assert three.slow_state.factor == pytest.approx(1.8, rel=0.02)
    assert three.sentinel.duration_s == pytest.approx(one.sentinel.duration_s, rel=0.03)  # of the usual state
    assert any("3 of 30 sentinels" in text for text in warnings)


def test_a_repetition_counts_for_the_models_and_not_for_the_state(tmp_path: Path) -> None:
    first, second = steps_of_two_cores({2: (0.5, 2.0)}, 1.7), steps_of_two_cores({2: (0.2, 2.9)}, 1.7)
    again = second[second["block"] == 2].assign(attempt=1, start_s=lambda rows: rows["start_s"] + 300.0)
    alone, _ = fitted(tmp_path / "first.zip", first)
    both, _ = fitted(tmp_path / "both.zip", pandas.concat([first, again], ignore_index=True))
    assert both.slow_state.source == alone.slow_state.source
    for name in ("share", "length_s", "factor"):
        assert getattr(both.slow_state, name) == pytest.approx(getattr(alone.slow_state, name), rel=0.1)


def test_an_episode_is_seen_though_the_first_core_had_ended() -> None:
    start_s = np.concatenate([np.arange(0.0, 1.0, 0.1), *[np.arange(0.0, 4.0, 0.1)] * 4])
    core, launch = np.repeat(np.arange(5), [10, 40, 40, 40, 40]), np.zeros(170, dtype=np.int64)
    slow, usual_s = (start_s >= 1.6) & (start_s < 3.2), np.full(170, 0.06)
    none, ones = np.zeros(170, dtype=np.int64), np.ones(170, dtype=np.bool_)
    duration_s = np.where(slow, 0.095, usual_s + 0.001 * (np.arange(170) % 2))
    parts = Parts(
        start_s,
        start_s + duration_s,
        duration_s,
        usual_s,
        launch,
        core,
        core,
        none,
        ones,
        none + 5,
        none,
        np.arange(170),
    )
    episodes = episodes_of_parts(parts, [], ["here"])
    assert (episodes.rows >= slow).all()
    assert episodes.estimate.factor == pytest.approx(0.095 / 0.0605, rel=0.02)


def test_slow_steps_need_all_cores_and_more_than_chance() -> None:
    start_s = np.tile(np.arange(20.0), 2)
    core, launch = np.repeat([0, 1], 20), np.zeros(40, dtype=np.int64)
    logs = np.tile(np.array([0.01, -0.01] * 10), 2)
    both = np.isin(start_s, [4, 5, 6])
    assert ((slow_levels(start_s, np.ones(40), logs + 0.5 * both, launch, core) > 0.0) == both).all()
    assert not slow_levels(start_s, np.ones(40), logs + 0.5 * (both & (core == 0)), launch, core).any()
    # 14 % is below the least, whatever the scatter.
    assert not slow_levels(start_s, np.ones(40), logs + 0.12 * both, launch, core).any()


def test_the_estimated_state_is_the_true_one_within_its_errors() -> None:
    """Twenty machines of 10 minutes with a look each half second: 2.5 standard errors hold 98.8 % of normal errors; at
    least 17 of 20 inside (binomial, below one in a thousand by chance)."""
    inside = {"share": 0, "length": 0}
    for seed in range(20):
        rng, date_s, slow = np.random.default_rng(seed), np.arange(0.0, 600.0, 0.5), np.zeros(1200, dtype=np.bool_)
        now_s = rng.exponential(40.0)
        while now_s < 600.0:
            length_s = rng.exponential(4.0)
            slow |= (date_s >= now_s) & (date_s < now_s + length_s)
            now_s += length_s + rng.exponential(36.0)
        if not slow.any():
            continue
        seen = fit_slow_state([(date_s, slow)], np.full(3, 1.5))
        odds = np.log(seen.share / (1.0 - seen.share)) - np.log(0.1 / 0.9)
        inside["share"] += abs(odds) < 2.5 * seen.odds_error
        inside["length"] += abs(np.log(seen.length_s / 4.0)) < 2.5 * seen.length_error
    assert min(inside.values()) >= 17
