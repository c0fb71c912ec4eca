"""Noise of several modes in a platform, of messages and of kernels: what is refused, and what the engine draws."""

import numpy as np
import pytest
from pydantic import ValidationError

from lepaute.simulate import Hpl, Layers, Mapping, predict
from lepaute.simulate.machine.core import machine_of
from lepaute.simulate.machine.mapping import Slot
from lepaute.simulate.platform import dump_platform, load_platform, override
from lepaute.simulate.platform.kernel_model import Noise
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.platform.values import core_modes

HPL = Hpl(n=2000, nb=128, p=2, q=2)
ACROSS = Mapping(slots=tuple(Slot(rank, 0) for rank in range(4)), source="the test")
MESSAGE_MODES = "{modes: [{weight: 0.7, mean: 0, sd: 0.05}, {weight: 0.3, mean: 1.1, sd: 0.1}]}"


def with_modes(modes: str = MESSAGE_MODES) -> Platform:
    dahu = load_platform("dahu")
    return override(
        dahu, {f"network.remote.segments[{i}].noise": modes for i in range(len(dahu.network.remote.segments))}
    )


def test_modes_are_drawn_the_same_for_a_seed_and_otherwise_for_another():
    runs = [run.time_s for run in predict(HPL, with_modes(), runs=3, mapping=ACROSS).run_list]
    assert runs == [run.time_s for run in predict(HPL, with_modes(), runs=3, mapping=ACROSS).run_list]
    assert runs != [run.time_s for run in predict(HPL, load_platform("dahu"), runs=3, mapping=ACROSS).run_list]


def test_modes_survive_a_file_and_the_text_for_the_emulation(tmp_path):
    dump_platform(with_modes(), tmp_path / "noisy.yaml")
    again = load_platform(tmp_path / "noisy.yaml")
    assert again.sha256 == with_modes().sha256
    assert machine_of(again).text() == machine_of(with_modes()).text()
    assert machine_of(again).text() != machine_of(load_platform("dahu")).text()


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
