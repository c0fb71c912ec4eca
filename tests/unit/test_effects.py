"""What each parameter of a sweep changes: from predictions that differ in it alone, for each problem by itself."""

from collections.abc import Callable
from dataclasses import replace
from math import exp

import pytest

from lepaute.cli.prediction_answer import answered_sweep
from lepaute.cli.prediction_text import effect_lines, summary
from lepaute.simulate import Hpl, Prediction, predict
from lepaute.simulate.prediction.sweep import Sweep, effects
from lepaute.simulate.prediction.trust import Trust

#: Of each run, what the machine of its seed does to all times.
DAYS = (0.9, 1.0, 1.1, 1.05, 0.95)


@pytest.fixture(scope="module")
def one() -> Prediction:
    return predict(Hpl(n=600, nb=128, p=1, q=1), "dahu", runs=len(DAYS))


@pytest.fixture(scope="module")
def of(one: Prediction) -> Callable[..., Prediction]:
    """A prediction of that time, on machines that differ from run to run by far more than the parameters do."""

    def made(hpl: Hpl, time_s: float, noise: float = 0.0, extrapolated: bool = False) -> Prediction:
        wobble = (1.0, -1.0, 0.5, -0.5, 0.0)
        times_s = [time_s * day * exp(noise * off) for day, off in zip(DAYS, wobble, strict=True)]
        runs = tuple(
            replace(run, time_s=each, rate=hpl.rate_gflops(each))
            for run, each in zip(one.run_list, times_s, strict=True)
        )
        trust = Trust(1.0, time_relative_sd=0.2 if extrapolated else 0.01)
        # Without a request, it is itself where it is simulated with other noise.
        return replace(one, application=hpl, run_list=runs, trust=trust, request=None)

    return made


def hpl(nb: int, bcast: str, n: int = 20_000, swap_threshold: int | None = None, p: int = 2) -> Hpl:
    return Hpl(n=n, nb=nb, p=p, q=4 // p, bcast=bcast, swap_threshold=swap_threshold)


def test_an_effect_is_found_whatever_the_machine_of_a_run(of: Callable[..., Prediction]) -> None:
    of_block, of_broadcast = {128: 10.0, 192: 10.16}, {"1ring": 1.0, "long": 1.3}
    sweep = [
        of(hpl(nb, bcast), time_s * factor, nb / 1e5)
        for nb, time_s in of_block.items()
        for bcast, factor in of_broadcast.items()
    ]
    block, broadcast = effects(sweep)
    assert (block.name, block.reference, broadcast.name, broadcast.reference) == ("NB", 128, "BCAST", "1ring")
    (wider,) = block.others
    # days of +-10 % are the same in both and cancel: 1.6 % is told apart
    assert wider.value == 192
    assert wider.change.ratio == pytest.approx(1.016, abs=1e-4)
    assert wider.change.is_told_apart
    assert (wider.pairs, wider.all_pairs, wider.faster_in) == (2, 2, 0)
    (slow,) = broadcast.others
    assert slow.change.ratio == pytest.approx(1.3)
    lines = effect_lines(sweep)
    assert lines[1].startswith("    NB     128; 192: 1.60 % slower (")
    assert lines[2].startswith("    BCAST  1ring; long: 30 % slower in all runs")


def test_values_that_the_noise_hides_cannot_be_told_apart_and_a_direction_that_differs_is_told(
    of: Callable[..., Prediction],
) -> None:
    sweep = [of(hpl(128, "1ring"), 10.0), of(hpl(192, "1ring"), 10.01, 0.05)]
    (line,) = effect_lines(sweep)[1:]
    assert line.startswith("    NB  128; 192: cannot be told apart (95 %: ")
    times = {(128, "1ring"): 10.0, (192, "1ring"): 12.0, (128, "long"): 10.0, (192, "long"): 9.5}
    sweep = [of(hpl(nb, bcast), time_s, 0.0001 * nb) for (nb, bcast), time_s in times.items()]
    block = effects(sweep)[0]
    assert (block.reference, block.others[0].faster_in, block.others[0].pairs) == (128, 1, 2)
    assert effect_lines(sweep)[1].endswith(", faster in 1 of 2")


def test_extrapolated_values_are_not_comparable_and_a_threshold_that_follows_the_block_size_is_one_choice(
    of: Callable[..., Prediction],
) -> None:
    sweep = [of(hpl(nb, bcast), 10.0 + nb / 1000.0, extrapolated=nb == 32 or (nb == 256 and bcast == "long"))
             for nb in (32, 128, 256) for bcast in ("1ring", "long")]  # fmt: skip
    assert sweep[0].comparable is False  # or the test shows nothing
    block = effects(sweep)[0]
    assert block.reference == 128
    assert [(each.value, each.pairs, each.all_pairs) for each in block.others] == [(256, 1, 2), (32, 0, 2)]
    assert block.others[1].change is None
    text = effect_lines(sweep)[1]
    assert text.endswith("32 not comparable")
    assert "1 of 2 pairs not comparable" in text
    sweep = [of(hpl(nb, "1ring"), 10.0 + nb / 1000.0, 0.00001 * nb) for nb in (128, 192)]
    assert {one.application.parameters()["swap_threshold"] for one in sweep} == {128, 192}
    assert [parameter.name for parameter in effects(sweep)] == ["NB"]


def test_each_n_has_a_best_of_its_own(of: Callable[..., Prediction]) -> None:
    times = {(1000, 128): 0.010, (1000, 192): 0.012, (4000, 128): 0.6, (4000, 192): 0.5}
    sweep = [of(hpl(nb, "1ring", n), time_s) for (n, nb), time_s in times.items()]
    joint = Sweep(tuple(sweep))
    assert joint.best_places == [0, 3]
    told = joint.to_dict()["problems"]
    assert [(each["problem"], each["best"]) for each in told] == [("N = 1000", [0]), ("N = 4000", [3])]
    assert [each["parameters"][0]["reference"] for each in told] == [128, 192]
    alone = answered_sweep(Sweep((sweep[0], sweep[2])), 80).splitlines()
    assert alone[0] == "HPL takes 0.0100 s (N = 1000) to 0.60 s (N = 4000)"
    assert [line.split()[0] for line in alone[-3:]] == ["N", "1000", "4000"]
    lines = summary(joint).splitlines()
    assert [line for line in lines if line.startswith("  N = ")] == [
        "  N = 1000, 2 combinations",
        "  N = 4000, 2 combinations",
    ]
    assert [line.split("WR")[0].strip() for line in lines if line.startswith("  best")] == [
        "best    N = 1000  NB = 128",
        "best    N = 4000  NB = 192",
    ]


def test_a_list_is_refused_by_the_option_that_takes_one_value(refusal_of):
    run = ("predict", "hpl", "-p", "dahu", "--n", "2000")
    assert refusal_of(*run, "--n=3000") == "lepaute: --n is given twice; give it once: --n 2000,3000\n"
    assert refusal_of(*run, "--nb", "128,0") == "lepaute: --nb is 0; it must be a whole number >= 1\n"
    assert refusal_of(*run, "--nb", "128,x") == "lepaute: --nb is 'x'; it must be a whole number\n"
    assert refusal_of(*run, "--threads-per-rank", "1,2").endswith("'1,2'; it takes one whole number\n")
    assert refusal_of(*run, "--runs", "1,2") == "lepaute: --runs is '1,2'; it takes one whole number\n"
