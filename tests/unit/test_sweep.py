"""Several predictions side by side: no best among those whose time extrapolation decides, and what is ahead of it."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from lepaute.cli.prediction_text import summary
from lepaute.simulate import Difference, Hpl, Layers, Prediction, PredictionRequest, difference, predict, predict_all
from lepaute.simulate.platform import load_platform
from lepaute.simulate.platform.data_sheet import DataSheet, platform_from
from lepaute.simulate.prediction.sweep import Sweep, speed
from lepaute.simulate.prediction.wording import fastest

#: dgemm of `dahu` was fitted for k = 128, 256 and 512.
BLOCK_SIZES = (16, 32, 64, 128, 256, 512)
DAT = Path(__file__).parents[1].joinpath("data", "texts", "sweep.dat").read_text()


@pytest.fixture(scope="module")
def sweep() -> list[Prediction]:
    return predict_all([Hpl(n=6000, nb=nb, p=4, q=4) for nb in BLOCK_SIZES], "dahu", PredictionRequest(runs=6))


def test_block_sizes_that_dahu_was_not_measured_at_are_not_comparable(sweep: list[Prediction]) -> None:
    assert [one.comparable for one in sweep] == [False, False, False, True, True, True]
    assert all((one.trust.time_relative_sd or 0.0) > 0.05 for one in sweep[:3])
    told = sweep[0].to_dict()
    assert told["extrapolated_share"] == told["outside_ranges"]["share"] == told["trust"]["extrapolated_share"]
    assert told["comparable"] is told["trust"]["comparable"] is False
    assert f"not comparable with other predictions: {told['trust']['reasons'][0]}" in told["warnings"]


def test_validity_is_judged_by_the_predicted_time_and_not_by_a_share_of_it() -> None:
    # Waiting dilutes: 9 % of the time of all ranks was "outside" at 2 x 128, 19 % at 16 x 16, which was not comparable.
    flat, square = predict_all(
        [Hpl(n=10_000, nb=128, p=p, q=256 // p) for p in (2, 16)], "dahu", PredictionRequest(runs=4)
    )
    assert (flat.trust.time_relative_sd or 0.0) > 0.05 > (square.trust.time_relative_sd or 1.0)
    assert (square.extrapolated_share or 0.0) > 0.2  # of computing; next to nothing of the time hangs on it
    sweep = Sweep((flat, square))
    assert sweep.best is square
    assert sweep.ahead == sweep.rivals == ()
    alone = predict(flat.application, "dahu", runs=10, seed=77)  # other seeds, and nothing beside it
    assert alone.trust.time_relative_sd == flat.trust.time_relative_sd


def test_a_hundredth_of_the_computing_decides_the_time_where_all_wait_for_it() -> None:
    panels = predict(Hpl(n=6000, nb=192, p=2, q=64), "dahu", runs=2)
    assert (panels.extrapolated_share or 1.0) < 0.2
    assert not panels.comparable


def test_what_is_certainly_faster_is_named_first_though_it_is_not_comparable(sweep: list[Prediction]) -> None:
    runs = tuple(replace(run, time_s=5.0 * run.time_s, rate=0.2 * (run.rate or 0.0)) for run in sweep[3].run_list)
    slow = replace(sweep[3], run_list=runs, request=None)  # it is itself with other noise
    told = Sweep((slow, *sweep[:3]))
    assert told.best is slow
    assert told.ahead
    assert {id(one) for one in told.ahead} <= {id(one) for one in sweep[:3]}
    assert list(told.ahead) == sorted(told.ahead, key=speed, reverse=True)
    lines = summary(told).splitlines()
    assert lines[1].startswith(f"  first   {told.ahead[0].application.label}: ")
    at = lines.index("          certainly faster than all that are comparable; how much faster is not known:")
    assert lines[at + 1].strip() == told.ahead[0].trust.reasons[0]
    assert lines[at + 2].startswith("  best ")
    assert lines[at + 2].endswith(", of those that are comparable")
    (problem,) = told.to_dict()["problems"]
    assert problem["ahead"] == [told.predictions.index(one) for one in told.ahead]
    may_be = Sweep((sweep[3], sweep[2]))
    assert may_be.rivals == (sweep[2],)
    assert "          1 that is not comparable may be as fast" in summary(may_be).splitlines()


def test_the_best_is_one_of_those_that_are_comparable(sweep: list[Prediction]) -> None:
    best = Sweep(tuple(sweep)).best
    assert best.comparable
    assert min(one.time_s.mean for one in sweep[:3]) < best.time_s.mean  # as it was: an extrapolated one named best
    assert fastest(Sweep(tuple(sweep))).startswith("Fastest of 3 comparable (of 6): N = 6000")
    assert fastest(Sweep(tuple(sweep[:4]))).startswith("Only one of 4 is comparable: N = 6000  NB = 128")
    lines = summary(Sweep(tuple(sweep))).splitlines()
    (named,) = [line for line in lines if line.startswith("  best")]
    assert f"NB = {getattr(best.application, 'nb')}  " in named  # noqa: B009
    assert "  not comparable  3 of 6: too much depends on what is outside the fitted ranges" in lines
    assert [line.split()[5] for line in lines if line.startswith("    N = ")] == ["16", "32", "64"]
    assert "    to compare them: lepaute calibrate --nb 16,32,64,128,256,512" in lines


def test_all_that_cannot_be_told_from_the_best_are_named() -> None:
    alike = [Hpl(n=6000, nb=128, p=4, q=4, bcast=bcast) for bcast in ("1ring", "1ring-modified", "2ring")]
    predictions = predict_all([*alike, Hpl(n=6000, nb=128, p=16, q=1)], "dahu", PredictionRequest(runs=3))
    bests = Sweep(tuple(predictions)).bests
    assert bests[0] is Sweep(tuple(predictions)).best
    assert set(map(id, bests)) == set(map(id, predictions[:3]))  # one of them was "best" alone
    lines = summary(Sweep(tuple(predictions))).splitlines()
    at = lines.index("  best    one of these 3, which cannot be told apart:")
    assert [line.split(":")[0].strip() for line in lines[at + 1 : at + 4]] == [one.application.label for one in bests]
    assert lines[at + 4].startswith("  worst   N = 6000  NB = 128  WR12R2C2  16 x 1")
    single = predict_all(alike[:2], "dahu", PredictionRequest(runs=1))
    lines = summary(Sweep(tuple(single))).splitlines()
    assert "  best    one of these 2, one run of each tells nothing apart; give --runs 10:" in lines
    assert not any(line.startswith("  worst") for line in lines)  # it may be the best


def test_block_sizes_that_nobody_measured_are_not_ranked_without_a_warning(sweep: list[Prediction]) -> None:
    # dgemm of a data sheet has the form of another core: what NB does to it is a guess that no interval holds
    platform = platform_from(DataSheet(2, 2, 4, dgemm_flops=45e9, link_Bps=12.5e9), load_platform("dahu"))
    applications = [Hpl(n=2000, nb=nb, p=2, q=2) for nb in (64, 128)]
    text = summary(Sweep(tuple(predict_all(applications, platform, PredictionRequest(runs=2)))))
    assert "warning: block sizes are compared by a model of dgemm without fitted ranges" in text
    line = next(line for line in text.splitlines() if line.startswith("  ranges"))
    assert re.search("none of computing was outside the fitted ranges; another 100 % of computing has", line)
    assert "block sizes are compared" not in summary(Sweep(tuple(sweep)))  # fitted: those outside are apart


def test_the_error_of_sampling_counts_where_predictions_are_told_apart(sweep: list[Prediction]) -> None:
    best, other = Sweep(tuple(sweep[3:])).best, sweep[5]
    assert best is not None
    assert difference(best, other).is_told_apart
    assert not difference(best, replace(other, sampling_sd=0.5)).is_told_apart


def test_no_best_is_named_where_none_is_comparable(sweep: list[Prediction]) -> None:
    text = summary(Sweep(tuple(sweep[:3])))
    assert "  best    none: none is comparable" in text
    assert "worst" not in text
    assert "near" not in text
    assert "lepaute calibrate --nb 16,32,64" in text
    assert Sweep(tuple(sweep[:3])).best is None


def test_the_command_says_not_comparable_in_text_json_and_picture(tmp_path, json_of, output_of):
    file, picture = tmp_path / "HPL.dat", tmp_path / "sweep.png"
    file.write_text(DAT.format(count=2, sizes="32 128"))
    command = ["predict", "hpl", "-p", "dahu", "--dat", str(file), "--runs", "2"]
    text = output_of(*command, "--plot", picture)
    assert text.startswith("Only one of 2 is comparable: N = 6000  NB = 128  ")
    assert any(line.startswith("  apart   1 of 2 not comparable: ") for line in text.splitlines())
    text = output_of(*command, "--details")
    assert text.startswith("Only one of 2 is comparable: N = 6000  NB = 128  ")
    (line,) = [line for line in text.splitlines() if line.startswith("WR") and line.endswith("not comparable")]
    assert line.split()[2] == "32"
    assert "best    N = 6000  NB = 128" in text
    assert picture.read_bytes().startswith(b"\x89PNG")
    told = json_of(*command, "--json")["predictions"]
    assert [one["comparable"] for one in told] == [False, True]


def test_a_difference_from_an_extrapolated_block_size_is_not_cancelled() -> None:
    dahu, layers = load_platform("dahu"), Layers.only("extrapolation")
    one, two, far = (Hpl(n=6000, nb=nb, p=4, q=4) for nb in (128, 256, 32))
    reference, inside, outside = (predict(each, dahu, runs=20, layers=layers) for each in (one, two, far))
    near, wide = difference(reference, inside), difference(reference, outside)
    assert width(near) < 1.05  # a little of the panel is extrapolated in both
    assert width(wide) > 2.0


def width(found: Difference) -> float:
    """How many times the lower end of an interval the upper end is."""
    return found.high / found.low
