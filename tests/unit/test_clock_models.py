"""Models of clocks, of probes and their tables, and the answer of a comparison, against clocks that are known."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.clock_shrinkage import shrunk
from support_clocks import Exchange, Model, line_through, offset_of, shrink
from support_run import run_here

from lepaute.errors import ArchiveError, InputError
from lepaute.kit.json_values import to_json
from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.measure.clocks.comparison import Found, compared
from lepaute.measure.clocks.report import fact_lines, open_lines
from lepaute.measure.clocks.request import KIND, SYNCHRONISATIONS, ClockFacts, ClockRequest
from lepaute.stats.clock_models import ClockModels, exit_skew, quantile, spread

SECOND = 1_000_000_000
times = st.integers(-20 * 365 * 86400 * SECOND, 20 * 365 * 86400 * SECOND)
spans = st.integers(-3600 * SECOND, 3600 * SECOND)
drifts = st.floats(-2e-4, 2e-4)


def truth(model: Model, x_ns: Fraction) -> Fraction:
    """The affine map, exactly."""
    return model.y0_ns + (1 + Fraction(model.drift)) * (x_ns - model.x0_ns)


@given(x0=times, y0=times, drift=drifts, span=spans)
def test_a_model_gives_the_reference_s_time_to_the_nanosecond(clock_code, x0, y0, drift, span):
    model = Model(x0, y0, drift)
    assert abs(clock_code.lep_clock_at(model, x0 + span) - truth(model, Fraction(x0 + span))) <= 1


def test_three_clocks_joined_tell_the_first_one_s_time(clock_code: Any) -> None:
    """The case in which equation 1 and algorithm 4 of the paper disagree: both models have slopes and intercepts."""
    # Clocks by true time t: c1 = t, c2 = 1.0001 t + 5 s, c3 = 0.9999 t - 3 s. By hand: t = (c2 - 5 s) / 1.0001, and
    # c2 = 1.0001 (c3 + 3 s) / 0.9999 + 5 s.
    of_2 = Model(5 * SECOND, 0, 1 / 1.0001 - 1)
    of_3 = Model(-3 * SECOND, 5 * SECOND, 1.0001 / 0.9999 - 1)
    joined = clock_code.lep_clock_joined(of_3, of_2)
    for t in (0, 1, 1000):
        c3 = round(0.9999 * t * SECOND) - 3 * SECOND
        assert abs(clock_code.lep_clock_at(joined, c3) - t * SECOND) <= 2


def test_errors_of_a_joined_model_are_those_of_its_parts(clock_code: Any) -> None:
    """Errors drawn for both models, their composition against the variance that the joined model states."""
    generator = np.random.default_rng(1)
    inner = Model(0, SECOND, 3e-5, 100.0**2, 1e-7**2, 0.3 * 100 * 1e-7, 500.0)
    outer = Model(4 * SECOND, 4 * SECOND, -2e-5, 300.0**2, 2e-7**2, -0.5 * 300 * 2e-7, 700.0)
    joined = clock_code.lep_clock_joined(inner, outer)
    errors = []
    for model in (inner, outer):
        covariance = [[model.variance_ns2, model.covariance_ns], [model.covariance_ns, model.drift_variance]]
        errors.append(generator.multivariate_normal((0, 0), covariance, 20000).T)
    for x in (0, 5 * SECOND, -20 * SECOND):
        seen = errors[0][0] + errors[0][1] * x
        seen = seen + errors[1][0] + errors[1][1] * (SECOND + x - 4 * SECOND)
        assert clock_code.lep_clock_deviation_ns(joined, x) == pytest.approx(seen.std(), rel=0.02)
    assert joined.bound_ns == 1200.0


def test_a_line_through_points_of_a_clock_is_that_clock(clock_code: Any) -> None:
    points = 20
    x = [7 * 10**17 + i * 20_000_000 for i in range(points)]
    offsets = [123_456_789 + 4e-5 * (value - x[0]) for value in x]
    model = line_through(clock_code, x, offsets, [0.0] * points)
    assert model.drift == pytest.approx(4e-5, rel=1e-6)
    later = x[0] + 3600 * SECOND
    assert abs(clock_code.lep_clock_at(model, later) - (later + 123_456_789 + 4e-5 * 3600 * SECOND)) < 200


def test_a_point_of_a_moment_when_nobody_answered_moves_the_line_little(clock_code: Any) -> None:
    x = [i * 20_000_000 for i in range(20)]
    offsets = [1000.0 + 4e-5 * value for value in x]
    offsets[-1] += 5e6
    deviations = [100.0] * 19 + [5e6]
    assert line_through(clock_code, x, offsets, deviations).drift == pytest.approx(4e-5, rel=1e-3)


def test_points_whose_messages_all_waited_in_one_direction_move_the_line_little(clock_code: Any) -> None:
    """Alike exchanges, so that their scatter shows nothing: their round trips are longer than those of the others."""
    x = [i * 20_000_000 for i in range(20)]
    offsets = [1000.0 + 4e-5 * value for value in x]
    bounds = [700.0] * 20
    for late in (0, 1, 2):
        offsets[late] += 1e6
        bounds[late] += 1e6
    model = line_through(clock_code, x, offsets, [100.0] * 20, bounds)
    assert (model.drift, model.bound_ns) == (pytest.approx(4e-5, rel=1e-3), 700.0)
    # Without the round trips the three points would turn it by far: 1 ms at one end of 0.4 s.
    assert abs(line_through(clock_code, x, offsets, [100.0] * 20).drift - 4e-5) > 1e-3


def test_one_point_is_an_offset_with_the_drift_known_before(clock_code: Any) -> None:
    model = line_through(clock_code, [1000], [-500.0], [10.0], [30.0], drift_variance_before=1e-10)
    assert (model.x0_ns, model.y0_ns, model.drift) == (1000, 500, 0.0)
    assert (model.variance_ns2, model.drift_variance, model.bound_ns) == (100.0, 1e-10, 30.0)


@pytest.mark.parametrize("method", ["bounds", "shortest", "median"])
def test_asymmetric_latencies_stay_within_the_bound_and_not_within_the_deviation(clock_code: Any, method: str) -> None:
    generator = np.random.default_rng(2)
    exchanges = []
    for i in range(100):
        there, back = 700 + generator.exponential(50), 2700 + generator.exponential(50)
        exchanges.append(Exchange(i * 10_000, round(i * 10_000 + there), round(i * 10_000 + there + back)))
    offset = offset_of(clock_code, method, (Exchange * 100)(*exchanges))
    # Half of the difference of 2000 ns is what nobody can see.
    assert offset.offset_ns == pytest.approx(-1000, abs=60)
    assert offset.bound_ns > 1000
    assert offset.deviation_ns < 60


def perfect(offsets_ns: Any, drifts: Any, *, variance_ns2: Any = 0.0, bound_ns: Any = 0.0) -> ClockModels:
    """Models of clocks that are offset, and gain, when rank 0's shows 0."""
    offsets = np.asarray(offsets_ns, dtype=np.int64)
    zero = np.zeros(offsets.shape)
    return ClockModels(offsets, np.zeros_like(offsets), np.asarray(drifts), variance_ns2 + zero, zero, zero, bound_ns)


def test_times_and_deviations_are_those_of_the_probe(clock_code: Any) -> None:
    """A machine that has run for a year: 3e16 ns, which a double does not hold."""
    generator = np.random.default_rng(1)
    for _ in range(200):
        x0, y0 = (int(value) for value in generator.integers(-(3 * 10**16), 3 * 10**16, 2))
        drift, deviation, drift_deviation = generator.uniform(-1e-4, 1e-4), 10.0, 1e-8
        covariance = generator.uniform(-1, 1) * deviation * drift_deviation
        numbers = (x0, y0, drift, deviation**2, drift_deviation**2, covariance, 7.0)
        x = x0 + int(generator.integers(-(10**11), 10**11))
        in_c, here = Model(*numbers), ClockModels(*numbers)
        assert abs(int(here.at(x)) - clock_code.lep_clock_at(in_c, x)) <= 1  # halves are rounded otherwise
        assert float(here.deviation_ns(x)) == pytest.approx(clock_code.lep_clock_deviation_ns(in_c, x), rel=1e-9)


def test_the_skew_of_perfect_clocks_is_exact() -> None:
    """Starts at 0, 40 and 15 us by true time on clocks apart by seconds and drifting: 40 us, and no doubt."""
    truth = 10**9 + np.array([0, 40_000, 15_000])
    offsets, drifts = np.array([0, 5 * 10**9, -3 * 10**9]), np.array([0.0, 1e-4, -1e-4])
    readings = offsets + np.rint(truth / (1 + drifts)).astype(np.int64)
    seen = exit_skew(readings[None, :], perfect(offsets, drifts))
    assert seen.spread_ns == pytest.approx([40_000], abs=2)
    assert seen.low_ns == pytest.approx(seen.spread_ns)
    assert seen.high_ns == pytest.approx(seen.spread_ns)


def test_the_interval_of_a_spread_is_what_the_errors_allow() -> None:
    """Against every corner and many inner points of the box of true times: none outside, and both ends reached."""
    generator = np.random.default_rng(2)
    for _ in range(100):
        count = int(generator.integers(2, 5))
        times, half = generator.integers(-50, 50, count), generator.integers(0, 40, count).astype(float)
        seen = spread(times, half)
        steps = np.meshgrid(*([np.linspace(-1, 1, 9)] * count))
        box = times + np.stack([axis.ravel() for axis in steps], axis=-1) * half
        spreads = box.max(axis=-1) - box.min(axis=-1)
        assert seen.low_ns <= seen.spread_ns <= seen.high_ns
        assert seen.low_ns <= spreads.min() + 1e-9
        assert seen.high_ns == pytest.approx(spreads.max())
        assert spreads.min() - seen.low_ns <= half.max() / 4 + 1e-9  # the grid's step


@pytest.mark.parametrize("ranks", [2, 4, 16])
def test_skew_intervals_hold_the_truth_in_at_least_95_of_100(ranks: int) -> None:
    """Clock errors drawn anew for each synchronisation; one error for all its calls. Bonferroni may hold more."""
    generator = np.random.default_rng(3)
    trials, held = 2000, 0
    deviations = np.where(np.arange(ranks) == 0, 0.0, 200.0)
    for _ in range(trials):
        truth = generator.integers(0, 500, ranks)
        errors = np.rint(generator.normal(0, 1, ranks) * deviations).astype(np.int64)
        models = perfect(np.zeros(ranks, dtype=np.int64), np.zeros(ranks), variance_ns2=deviations**2)
        seen = exit_skew((truth + errors)[None, :], models)
        held += int(seen.low_ns[0] <= truth.max() - truth.min() <= seen.high_ns[0])
    assert held / trials >= 0.95 - 0.015


def test_the_bound_widens_and_more_ranks_need_more_deviations() -> None:
    models = perfect(np.array([0, 0]), np.zeros(2), bound_ns=np.array([0.0, 300.0]))
    seen = exit_skew(np.array([[0, 1000]]), models)
    assert (seen.low_ns[0], seen.spread_ns[0], seen.high_ns[0]) == (700, 1000, 1300)
    assert quantile(2) == pytest.approx(1.96, abs=1e-3)
    assert quantile(16) > quantile(4) > quantile(2)


def lines_of(drifts: Any, variances: Any, offsets_ns2: Any) -> list[Model]:
    rows = zip(drifts, variances, offsets_ns2, strict=True)
    return [Model(10**16, 10**16 + 5, drift, offset, variance, 0.0, 700.0) for drift, variance, offset in rows]


@pytest.mark.parametrize("clocks", [1, 2, 3, 15, 200])
@pytest.mark.parametrize("freedom", [1, 2, 3, 28, 1000])
@pytest.mark.parametrize("spread", [0.0, 1e-7, 1e-6, 1e-4])
def test_the_probe_and_python_shrink_to_the_same_numbers(clock_code: Any, clocks: int, freedom: int, spread: float):
    """Errors of clocks that are as unlike each other as chance makes them, and a hundred times as unlike."""
    generator = np.random.default_rng(clocks * 10_000 + freedom)
    for unlike in (0.0, 2.0):
        errors = 4e-7 * np.exp(unlike * generator.normal(size=clocks))
        drifts = generator.normal(0, np.hypot(spread, errors))
        variances = errors**2 * generator.chisquare(freedom, clocks) / freedom
        offsets = 5000.0 * generator.chisquare(5, clocks)
        lines = lines_of(drifts, variances, offsets)
        shrink(clock_code, lines, freedom)
        expected = shrunk(drifts, variances, offsets, freedom)
        assert [line.drift for line in lines] == pytest.approx(expected.drift, rel=1e-7, abs=1e-22)
        assert [line.drift_variance for line in lines] == pytest.approx(expected.drift_variance, rel=1e-7)
        for line, offset in zip(lines, offsets, strict=True):
            unchanged = (line.x0_ns, line.y0_ns, line.variance_ns2, line.covariance_ns, line.bound_ns)
            assert unchanged == (10**16, 10**16 + 5, offset, 0.0, 700.0)


def test_clocks_that_drift_as_little_as_lines_err_are_taken_not_to_drift_and_no_better_known_alone(
    clock_code: Any,
) -> None:
    lines = lines_of(np.random.default_rng(2).normal(0, 4e-7, 63), [1.6e-13] * 63, [5000.0] * 63)
    shrink(clock_code, lines, 28)
    # 20 s later less than a nanosecond, beside 8 us of the lines.
    assert max(abs(line.drift) for line in lines) < 5e-11
    # Drifts of half the error of a line would show in sixty-three.
    assert max(line.drift_variance for line in lines) < 1.6e-13 / 4
    lines = lines_of([3e-7], [1.6e-13], [5000.0])
    shrink(clock_code, lines, 28)
    assert abs(lines[0].drift) < 5e-11
    assert lines[0].drift_variance > 0.9 * 1.6e-13


@pytest.mark.parametrize("clocks", [1, 3, 63])
def test_drifts_far_beyond_the_errors_of_lines_are_kept(clock_code: Any, clocks: int) -> None:
    drifts = [1e-4 * (-1) ** clock for clock in range(clocks)]
    lines = lines_of(drifts, [1.6e-13] * clocks, [5000.0] * clocks)
    shrink(clock_code, lines, 28)
    assert [line.drift for line in lines] == pytest.approx(drifts, rel=1e-4)
    assert [line.drift_variance for line in lines] == pytest.approx([1.6e-13] * clocks, rel=0.2)


def test_a_slope_that_one_clock_cannot_tell_from_none_is_kept_if_all_others_have_the_like(clock_code: Any) -> None:
    """Two standard errors: taken for chance of one clock, for drift of sixty-three."""
    alone, many = lines_of([8e-7], [1.6e-13], [5000.0]), lines_of([8e-7] * 63, [1.6e-13] * 63, [5000.0] * 63)
    shrink(clock_code, alone, 28)
    shrink(clock_code, many, 28)
    assert abs(alone[0].drift) < 1e-9
    assert min(line.drift for line in many) > 5e-7


#: Of each method, what a synchronisation takes, and the errors of its worst rank at 0 and 5 s, ns.
SOME = {"SKaMPI": (0.002, 200, 4000), "HCA3": (1.2, 300, 500), "JK": (0.6, 1500, 900)}


def rows_of(mpiruns: int, methods: dict[str, tuple[float, float, float]] = SOME, **more: Any) -> pandas.DataFrame:
    """Two ranks beside rank 0, the second with half the error; in mpirun k all errors are 1 % larger than in k - 1."""
    return pandas.DataFrame(
        [
            {
                "mpirun": mpirun, "method": method, "rank": rank, "after_s": after_s, "checked_s": after_s + 0.001,
                "duration_s": took_s * (1 + 0.001 * mpirun), "shortest_error_ns": -error_ns * 1.01**mpirun / rank + 40,
                "half_round_trip_ns": 100.0, "true_error_ns": -error_ns * 1.01**mpirun / rank,
            }
            | more
            for mpirun in range(mpiruns)
            for method, (took_s, *errors_ns) in methods.items()
            for rank in (1, 2)
            for after_s, error_ns in zip((0.0, 5.0), errors_ns, strict=True)
        ]
    )  # fmt: skip


def archived(path: Path, rows: pandas.DataFrame, **facts: Any) -> Archive:
    about = ClockFacts(asked=ClockRequest(methods=tuple(SOME), after_s=(0.0, 5.0)), ranks=3, nodes=("here",), **facts)
    with ArchiveWriter(path, {"kind": KIND, "created": "2026-11-27T00:00:00Z", KIND: to_json(about)}) as archive:
        archive.add_table(SYNCHRONISATIONS, rows)
    return Archive.open(path)


@pytest.fixture
def found(tmp_path: Path) -> Found:
    return compared(archived(tmp_path / "c.zip", rows_of(11)))


def test_each_length_has_the_cheapest_method_of_the_best_ones(found: Found) -> None:
    now, later = found.choices
    assert (now.method, now.least, now.worse, now.open) == ("SKaMPI", "SKaMPI", ("JK", "HCA3"), ())
    # HCA3 has 500 ns after 5 s, JK 900 then but 1500 at the beginning of such a measurement, SKaMPI 4000.
    assert (later.method, later.least, later.worse) == ("HCA3", "HCA3", ("SKaMPI", "JK"))
    assert found.error("JK", 5.0).error_s == pytest.approx(1500e-9 * 1.01**5)  # the median is mpirun 5 of 0 to 10
    assert found.cost("JK").duration_s == pytest.approx(0.603)
    assert now.front == ("SKaMPI",)  # the best and the cheapest
    assert later.front == ("SKaMPI", "JK", "HCA3")
    (pair,) = [one for one in found.pairs if {one.method, one.other} == {"SKaMPI", "HCA3"} and one.length_s == 5.0]
    assert pair.ratio == pytest.approx(8.0)  # in every mpirun
    assert (pair.low, pair.high) == (pytest.approx(8.0), pytest.approx(8.0))


def test_a_margin_or_an_error_that_is_enough_lets_a_cheaper_method_be_taken(found: Found, tmp_path: Path) -> None:
    archive = Archive.open(tmp_path / "c.zip")
    assert compared(archive, margin=2.1).choices[1].method == "JK"  # 1500 of 500 ns
    assert compared(archive, enough_s=1e-5).choices[1].method == "SKaMPI"  # 4 µs
    with pytest.raises(InputError, match="--margin"):
        compared(archive, margin=-0.1)


def test_without_a_true_error_that_of_the_shortest_round_trip_counts(tmp_path: Path) -> None:
    found = compared(archived(tmp_path / "c.zip", rows_of(11, true_error_ns=float("nan"))))
    assert not found.known
    assert found.reference is None
    assert found.error("SKaMPI", 0.0).error_s == pytest.approx(1e-9 * (200 * 1.01**5 - 40))
    assert dict(fact_lines(found))["error"] == "by messages, which tell it to within 100 ns (half a round trip)"


def test_an_mpirun_that_lacks_a_look_does_not_count(tmp_path: Path) -> None:
    rows = rows_of(7)
    rows = rows[(rows["mpirun"] != 3) | (rows["method"] != "JK") | (rows["after_s"] == 0)]
    assert compared(archived(tmp_path / "c.zip", rows)).mpiruns == 6


def test_few_mpiruns_and_late_looks_are_caveats(tmp_path: Path) -> None:
    found = compared(archived(tmp_path / "c.zip", rows_of(3, checked_s=9.0)))
    assert found.errors[0].low_s is None
    assert any("3 mpiruns give no interval" in line for line in found.caveats)
    assert any("came late, by up to 9.00 s" in line for line in found.caveats)
    assert open_lines(found)[0].startswith("at once: JK, HCA3 not told apart from SKaMPI")


@pytest.mark.parametrize("damage", ["no rows", "no column", "texts"])
def test_a_table_that_is_none_of_clocks_is_refused_in_one_line(damage: str, tmp_path: Path) -> None:
    rows = {
        "no rows": lambda: rows_of(1).head(0),
        "no column": lambda: rows_of(1).drop(columns="duration_s"),
        "texts": lambda: rows_of(1, after_s="soon"),
    }[damage]()
    archive = archived(tmp_path / "c.zip", rows)
    with pytest.raises(ArchiveError):
        compared(archive)
    done = run_here("clocks", "c.zip", folder=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_every_block_has_an_order_of_its_own_that_the_seed_gives() -> None:
    asked = ClockRequest()
    orders = [tuple(asked.order(block, 1)) for block in range(20)]
    assert len(set(orders)) > 15
    assert all(sorted(order) == sorted(asked.methods) for order in orders)
    assert orders == [tuple(asked.order(block, 1)) for block in range(20)]
    assert orders != [tuple(asked.order(block, 2)) for block in range(20)]
