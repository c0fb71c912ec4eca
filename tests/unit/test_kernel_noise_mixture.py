"""Noise of several modes in a platform: what is refused, and what the engine draws of it."""

import numpy as np
import pytest
from pydantic import ValidationError

from lepaute.simulate import Hpl, Layers, predict
from lepaute.simulate.platform.kernel_model import KernelModel, Noise
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.platform.values import core_modes

#: Two modes, four deviations apart; mean 0 and variance 1.
MODES = (
    {"weight": 0.8, "mean": -0.4, "sd": 0.4},
    {"weight": 0.2, "mean": 1.6, "sd": (0.5 - 0.8 * 0.4**2 + 0.0) ** 0.5},
)


def standardised(modes: tuple[dict[str, float], ...]) -> list[dict[str, float]]:
    mean = sum(mode["weight"] * mode["mean"] for mode in modes)
    variance = sum(mode["weight"] * (mode["mean"] ** 2 + mode["sd"] ** 2) for mode in modes) - mean**2
    return [
        {"weight": mode["weight"], "mean": (mode["mean"] - mean) / variance**0.5, "sd": mode["sd"] / variance**0.5}
        for mode in modes
    ]


def platform(noise: dict[str, object]) -> Platform:
    segment = {"above_bytes": 0, "protocol": "eager", "latency_s": 1e-9, "bandwidth_Bps": 1e15}
    return Platform.model_validate(
        {
            "name": "one",
            "nodes": {"count": 1, "cores": 1, "cpus": 1},
            "kernels": [{"kernel": "pdfact_glue", "pieces": [{"mean": {"1": 1.0}, "noise": noise}]}],
            "network": {
                "node_link": {"bandwidth_Bps": 1e15},
                "loopback": {"bandwidth_Bps": 1e15},
                "remote": {"segments": [segment]},
            },
        }
    )


ONE = {"weight": 1.0, "mean": 0.0, "sd": 1.0}


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        ({"kind": "mixture", "modes": [ONE | {"sd": 2.0}]}, "variance"),
        ({"kind": "mixture", "modes": [ONE | {"weight": 0.5}]}, "add up to"),
        ({"kind": "mixture"}, "no modes"),
        ({"kind": "normal", "modes": [ONE]}, "there are modes"),
    ],
)
def test_modes_are_standardised_and_of_mixtures_alone(noise: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Noise.model_validate({"sd": {"1": 1.0}, **noise})


def test_a_form_that_the_family_has_not_is_refused() -> None:
    with pytest.raises(ValidationError):
        KernelModel.model_validate({"kernel": "dgemm", "pieces": [{"mean": {"1": 1.0}}], "form": "M-3/N-1"})


def test_cumulative_weights_go_to_the_engine() -> None:
    noise = Noise.model_validate({"kind": "mixture", "sd": {"1": 1.0}, "modes": standardised(MODES)})
    rows = core_modes(noise.modes)
    assert [row[0] for row in rows] == pytest.approx([0.8, 1.0])
    assert core_modes(None) == []


def test_a_prediction_draws_the_modes_in_their_shares_and_repeats_bit_for_bit() -> None:
    sd = 0.05
    modes = standardised(MODES)
    there = platform({"kind": "mixture", "sd": {"1": sd}, "modes": modes})
    hpl = Hpl(n=1, nb=1, p=1, q=1, equil=False)  # one panel, whose factorisation alone costs: one draw a run
    only_noise = Layers.only("noise")
    first = predict(hpl, there, runs=400, seed=3, layers=only_noise)
    again = predict(hpl, there, runs=400, seed=3, layers=only_noise)
    times = np.array([run.time_s for run in first.run_list])
    assert [run.time_s for run in again.run_list] == times.tolist()
    low, high = (1.0 + sd * mode["mean"] for mode in modes)
    in_high_mode = times > (low + high) / 2
    # 400 draws with a share of 0.2: five standard errors
    assert abs(in_high_mode.mean() - 0.2) < 5 * (0.2 * 0.8 / 400) ** 0.5
    assert abs(times.mean() - 1.0) < 5 * sd / 400**0.5
    assert abs(times[~in_high_mode].mean() - low) < 0.2 * sd
