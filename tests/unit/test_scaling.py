"""Several grids in one prediction: time, speed-up and efficiency, as a table, as JSON and as a picture."""

import math

import pytest

from lepaute.simulate import Hpl, PredictionRequest, difference, predict_all
from lepaute.simulate.prediction.sweep import scaling
from lepaute.simulate.prediction.wording import scaling_answer, span_of
from lepaute.stats.intervals import median_of_runs

GRIDS = ((1, 1), (1, 2), (2, 2), (4, 1))
WORDS = ("predict", "hpl", "-p", "dahu", "--n", "3000", "--runs", "3", "--grid")


@pytest.fixture(scope="module")
def predictions():
    return predict_all([Hpl(n=3000, p=p, q=q) for p, q in GRIDS], "dahu", PredictionRequest(runs=3))


def test_speed_up_and_efficiency_are_relative_to_the_fewest_ranks_run_by_run(predictions):
    points = scaling(predictions[::-1])
    assert [point.ranks for point in points] == [1, 2, 4, 4]
    first, two = points[:2]
    assert (first.speed_up.mean, first.speed_up.low, first.efficiency.mean) == (1.0, 1.0, 1.0)
    ratios = [a.time_s / b.time_s for a, b in zip(predictions[0].run_list, predictions[1].run_list, strict=True)]
    assert two.speed_up.mean == pytest.approx(median_of_runs(ratios))
    assert 1.0 / two.speed_up.mean == pytest.approx(difference(predictions[0], predictions[1]).ratio)
    assert two.efficiency.mean == pytest.approx(two.speed_up.mean / 2)
    # What both grids share cancels: the ratio is known better than either time.
    assert two.speed_up.half_width_percent < predictions[1].time_s.half_width_percent


def test_the_command_prints_a_table_with_a_line_for_each_grid(output_of):
    lines = output_of(*WORDS, "1x1,1x2,2x2").splitlines()
    assert lines[0].startswith("HPL on 4 ranks takes ")
    assert lines[0].endswith(" as fast as on 1 rank")
    at = next(at for at, line in enumerate(lines) if line.split()[:4] == ["ranks", "run", "time", "s"])
    assert [line.split()[0] for line in lines[at + 1 : at + 4]] == ["1", "2", "4"]  # a row is a line
    assert lines[at + 1].endswith("100 %")
    assert output_of(*WORDS, "1x1,1x1").startswith("HPL takes ")


def test_a_speed_up_between_times_that_are_not_comparable_says_so(output_of):
    assert (
        output_of(*WORDS, "1x1,1x2", "--nb", "3")
        .splitlines()[0]
        .endswith(" as fast as on 1 rank, which is not comparable")
    )


def test_grids_of_equal_ranks_are_a_choice_and_no_scaling(json_of, output_of):
    assert output_of(*WORDS, "2x2,4x1").startswith("Fastest")
    assert "scaling" not in json_of(*WORDS, "2x2,4x1", "--json")


def test_of_several_grids_with_the_most_ranks_the_fastest_is_the_answer(predictions):
    last = min(predictions[2:], key=lambda each: each.time_s.mean)
    for order in ([0, 2, 3], [0, 3, 2]):
        assert span_of(last.time_s) in scaling_answer(scaling([predictions[at] for at in order]))


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("1x1,1x2", "--against", "nb=256"), "--against compares one combination with others, and there are 2"),
        (("1x1,1x2", "--trace", "t.parquet"), "a trace is of one combination, and there are 2"),
    ],
)
def test_what_takes_one_grid_refuses_several(words, complaint, refusal_of):
    assert complaint in refusal_of(*WORDS, *words)


def test_a_stencil_takes_several_grids_too(json_of):
    words = ["predict", "stencil", "-p", "dahu", "--cells", "64x64x64", "--cell-time", "1e-8", "--runs", "12", "--json"]
    speed_up = json_of(*words, "--grid", "1x1x1,2x1x1")["scaling"][1]["speed_up"]
    low, high = speed_up["low"], speed_up["high"]
    assert 1.0 < low <= high < 2.0
    assert math.isfinite(high)
