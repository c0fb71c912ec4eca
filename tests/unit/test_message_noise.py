"""Noise of several modes in a platform: what it changes in a prediction, and what it leaves alone."""

import numpy as np

from lepaute.simulate import Hpl, Layers, Mapping, predict
from lepaute.simulate.machine.core import machine_of
from lepaute.simulate.machine.mapping import Slot
from lepaute.simulate.platform import dump_platform, load_platform, override
from lepaute.simulate.platform.schema import Platform

HPL = Hpl(n=2000, nb=128, p=2, q=2)
ACROSS = Mapping(slots=tuple(Slot(rank, 0) for rank in range(4)), source="the test")
MODES = "{modes: [{weight: 0.7, mean: 0, sd: 0.05}, {weight: 0.3, mean: 1.1, sd: 0.1}]}"


def with_modes(modes: str = MODES) -> Platform:
    dahu = load_platform("dahu")
    return override(
        dahu, {f"network.remote.segments[{i}].noise": modes for i in range(len(dahu.network.remote.segments))}
    )


def test_modes_are_drawn_the_same_for_a_seed_and_otherwise_for_another():
    runs = [run.time_s for run in predict(HPL, with_modes(), runs=3, mapping=ACROSS).run_list]
    assert runs == [run.time_s for run in predict(HPL, with_modes(), runs=3, mapping=ACROSS).run_list]
    assert runs != [run.time_s for run in predict(HPL, load_platform("dahu"), runs=3, mapping=ACROSS).run_list]


def test_without_the_layer_of_noise_modes_change_nothing():
    quiet = Layers(noise=False)
    times = [
        predict(HPL, platform, runs=1, layers=quiet, mapping=ACROSS).time_s.mean
        for platform in (with_modes(), load_platform("dahu"))
    ]
    assert times[0] == times[1]


def test_modes_survive_a_file_and_the_text_for_the_emulation(tmp_path):
    dump_platform(with_modes(), tmp_path / "noisy.yaml")
    again = load_platform(tmp_path / "noisy.yaml")
    assert again.sha256 == with_modes().sha256
    assert machine_of(again).text() == machine_of(with_modes()).text()
    assert machine_of(again).text() != machine_of(load_platform("dahu")).text()


def test_a_common_shift_of_all_modes_means_nothing():
    shifted = "{modes: [{weight: 0.7, mean: 2, sd: 0.05}, {weight: 0.3, mean: 3.1, sd: 0.1}]}"
    times = [
        [run.time_s for run in predict(HPL, with_modes(modes), runs=2, mapping=ACROSS).run_list]
        for modes in (MODES, shifted)
    ]
    assert np.allclose(times[0], times[1], rtol=1e-12)
