"""Noise of several modes in a platform: what it changes in a prediction, and what it leaves alone."""

from lepaute.simulate import Hpl, Mapping, predict
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


def test_modes_survive_a_file_and_the_text_for_the_emulation(tmp_path):
    dump_platform(with_modes(), tmp_path / "noisy.yaml")
    again = load_platform(tmp_path / "noisy.yaml")
    assert again.sha256 == with_modes().sha256
    assert machine_of(again).text() == machine_of(with_modes()).text()
    assert machine_of(again).text() != machine_of(load_platform("dahu")).text()
