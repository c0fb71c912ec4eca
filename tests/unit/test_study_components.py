"""Knobs of a study: a machine with other components."""

import pytest

import lepaute as lp
from lepaute.errors import InputError
from lepaute.simulate.platform.components import with_components
from lepaute.simulate.platform.io import with_values
from lepaute.simulate.prediction.comparing import share_errors
from lepaute.study.components import slowest_nodes, with_population_knobs
from lepaute.study.configuration import Configurations
from lepaute.study.evaluation import Point
from lepaute.study.schema import study_of

DAHU = lp.load_platform("dahu")
HPL = lp.Hpl(n=3000, nb=128, p=4, q=16)


def time_s(platform: lp.Platform) -> float:
    return lp.predict(HPL, platform, runs=1, layers=lp.Layers.only("noise")).time_s.mean


def test_a_machine_whose_components_are_all_ten_times_as_fast_takes_a_tenth_of_the_time() -> None:
    free = {"iprobe_s": 0.0, "test_s": 0.0, "wtime_s": 0.0, "iprobe_looks_first": False}
    segments = [
        {**segment.model_dump(), "send": (0.0, 0.0), "isend": (0.0, 0.0), "receive": (0.0, 0.0)}
        for segment in DAHU.network.remote.segments
    ]
    pieces = lambda model: tuple(piece.model_copy(update={"per_cpu": None}) for piece in model.pieces)  # noqa: E731
    alike = DAHU.model_copy(update={"kernels": tuple(m.model_copy(update={"pieces": pieces(m)}) for m in DAHU.kernels)})
    nodes = {"nodes.cores": 1, "nodes.cpus": 1, "nodes.count": 64, "nodes.sockets": None}
    plain = with_values(
        alike, {"network.costs": free, "network.remote.segments": segments, "network.loopback.segments": None} | nodes
    )
    tenth = {"scale.computing": 10, "scale.bandwidth": 10, "scale.latency": 0.1}
    assert time_s(with_components(plain, tenth)) == pytest.approx(time_s(plain) / 10.0, rel=1e-9)


def test_noise_is_of_the_leading_term_and_can_be_taken_away() -> None:
    noisy = with_components(DAHU, {"noise.dgemm": 0.1}).kernel("dgemm")
    table = noisy.pieces[-1].per_cpu
    mnk, sd = table.columns.index("mnk"), table.columns.index("sd:mnk")
    assert all(row[sd] == 0.1 * row[mnk] for row in table.rows)
    quiet = with_components(DAHU, {"noise.dgemm": 0}).kernel("dgemm")
    assert quiet.pieces[-1].noise.kind == "none"


def test_the_slowest_nodes_are_those_of_the_slowest_cpus() -> None:
    slow = lp.load_platform("dahu-2019-04")  # nodes 13 to 16 were slow
    assert {slow.nodes.first_number + place for place in slowest_nodes(slow, 4)} == {13, 14, 15, 16}
    with pytest.raises(InputError, match="do not differ in dgemm"):
        slowest_nodes(lp.load_platform("stampede-like"), 1)
    with pytest.raises(InputError, match="cannot be left out of 32"):
        slowest_nodes(slow, 32)


def test_ranks_leave_out_the_slowest_nodes_and_the_machine_stays_the_same() -> None:
    study = study_of(
        {
            "question": "whatif",
            "base": {"application": {"name": "hpl", "n": 2000, "grid": "28x32"}, "platform": "dahu-2019-04"},
            "factors": {"without": {"path": "mapping.without_slowest", "levels": [0, 4]}},
            "whatif": {"factor": "without"},
        }
    )
    configurations = Configurations(study)
    whole, part = (configurations.at(Point({"without": count})) for count in (0, 4))
    cores = part.conditions.mapping.cores(part.conditions.platform, 28 * 32)
    assert {core // 32 + 1 for core in cores} == set(range(1, 33)) - {13, 14, 15, 16}
    assert share_errors(part.conditions.platform, whole.conditions.platform, part.application)
    assert part.digest != whole.digest


def test_machines_whose_cpus_differ_more_are_compared_with_the_same_draws() -> None:
    """Else a comparison would hold the luck of two machines, and could tell nothing apart."""
    study = study_of(
        {
            "question": "whatif",
            "base": {"application": {"name": "hpl", "n": 2000, "grid": "28x32"}, "platform": "dahu-2019-04"},
            "factors": {"spatial": {"path": "population.spatial", "levels": [0, 1, 2]}},
            "whatif": {"factor": "spatial"},
        }
    )
    none, once, twice = (Configurations(study).at(Point({"spatial": level})).conditions.platform for level in (0, 1, 2))
    assert share_errors(twice, once)
    assert share_errors(none, once)


def test_population_knobs_draw_nodes_or_days() -> None:
    spatial = with_population_knobs(DAHU, {"population.spatial": 2}).population
    assert spatial.draw == "nodes-and-days"
    temporal = with_population_knobs(DAHU, {"population.temporal": 0}).population
    assert temporal.draw == "days"
    assert not any(value for row in temporal.covariance_temporal for value in row)
    slow = with_population_knobs(lp.load_platform("dahu-2019-04"), {"population.weight[0]": 0.9}).population
    assert slow.groups[0].weight == 0.9
    assert sum(group.weight for group in slow.groups) == pytest.approx(1.0)
    for knobs in ({"population.weight[9]": 0.5}, {"population.size": 1}, {"population.spatial": -1}):
        with pytest.raises(InputError):
            with_population_knobs(DAHU, knobs)
