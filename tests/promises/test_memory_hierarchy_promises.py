"""Plateaus on simulated hierarchies: how often every cache is found where it is, and none where there is none."""

import numpy as np
import pandas
from scipy import stats

from lepaute.measure.archive.setups.topology import Cache
from lepaute.measure.design.memory import hierarchy_sizes
from lepaute.measure.fit.memory import TOLERANCE, memory_hierarchy

SIZES = np.array(hierarchy_sizes(1 << 10, 256 << 20))
CURVES = ((8, 1), (8, 8), (16, 1), (16, 8))


def simulated(rng: np.random.Generator, caches: tuple[int, ...], noise: float = 0.03) -> pandas.DataFrame:
    """Twelve measurements of each size and curve.

    caches: sizes in bytes, each 1.3 to 4 times as fast as what is behind it, drawn for every curve. Beyond its size a
    cache still holds a part of the buffer, more so the wider the transition (0 to one octave). Beyond the second cache
    the noise is up to eight times as large, as where others share what is used. Every twentieth measurement is slower
    by a half to three times: somebody else had the core.
    """
    base = np.exp(rng.uniform(3.0, 4.5)) * 1e9
    widths = rng.uniform(0.02, 1.0, len(caches))
    spread = np.full(len(SIZES), noise)
    if len(caches) > 1:
        spread[caches[1] < SIZES] *= rng.uniform(1.0, 8.0)
    rows = []
    for element, stride in CURVES:
        ratios = rng.uniform(1.3, 4.0, len(caches))
        slowness = np.ones(len(SIZES))
        for size, ratio, width in zip(caches, ratios, widths, strict=True):
            missing = np.clip(np.log2(SIZES / size) / width, 0, 1)
            slowness *= 1 + (ratio - 1) * missing
        bandwidth = base / slowness * (element / 16) / (1 + 40 / SIZES)  # a pass has a beginning, too
        for _ in range(12):
            factor = np.exp(spread * rng.normal(size=len(SIZES)))
            factor *= np.where(rng.random(len(SIZES)) < 0.05, 1 / rng.uniform(1.5, 4.0, len(SIZES)), 1.0)
            read = np.maximum(1 << 20, SIZES)
            rows.append(
                pandas.DataFrame(
                    {
                        "size_bytes": SIZES, "stride": stride, "element_bytes": element, "unroll": 8,
                        "read_bytes": read, "duration_s": read / (bandwidth * factor),
                    }
                )
            )  # fmt: skip
    return pandas.concat(rows, ignore_index=True)


def drawn_caches(rng: np.random.Generator) -> tuple[int, ...]:
    """Sizes as processors have them, each eight times the one before at least."""
    first = int(rng.choice([32, 48, 64])) << 10
    second = int(rng.choice([512, 1024, 2048])) << 10
    third = int(rng.choice([16, 24, 32, 36])) << 20
    return (first, second, third)


def found_all(found: list[tuple[int, int]], caches: tuple[int, ...]) -> bool:
    return len(found) == len(caches) and all(
        low / TOLERANCE <= size <= high * TOLERANCE for (low, high), size in zip(found, caches, strict=True)
    )


def test_every_cache_is_found_and_none_besides_in_nine_of_ten_hierarchies() -> None:
    rng = np.random.default_rng(20261121)
    n, right = 100, 0
    for _ in range(n):
        caches = drawn_caches(rng)
        result = memory_hierarchy(simulated(rng, caches))
        right += found_all([(level.low_bytes, level.high_bytes) for level in result.levels], caches)
    assert right >= 0.9 * n, right


def test_memory_without_caches_has_no_levels() -> None:
    rng = np.random.default_rng(5)
    n = 50
    alarms = sum(bool(memory_hierarchy(simulated(rng, ())).levels) for _ in range(n))
    assert alarms <= stats.binom.ppf(1 - 1e-6, n, 0.05)


def test_agreement_is_told_by_level_and_a_size_that_is_wrong_is_refused() -> None:
    rng = np.random.default_rng(3)
    caches = (32 << 10, 1 << 20, 32 << 20)
    table = simulated(rng, caches)
    known = tuple(Cache(level, size, 1) for level, size in enumerate(caches, start=1))
    assert [level.agrees for level in memory_hierarchy(table, known).levels] == [True, True, True]
    wrong = (known[0], Cache(2, 128 << 10, 1), known[2])
    result = memory_hierarchy(table, wrong)
    assert [level.agrees for level in result.levels] == [True, False, True]
    assert any("L2 of 128 KiB was not seen" in note for note in result.notes)
    unknown = memory_hierarchy(table, virtual=True)
    assert [level.agrees for level in unknown.levels] == [None, None, None]
    assert any("virtual machine" in note for note in unknown.notes)
