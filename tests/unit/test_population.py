"""The population of a platform: what is refused, what a run draws from it, and its picture."""

from math import exp, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from lepaute import _core
from lepaute.cli.main import main
from lepaute.errors import PlatformError
from lepaute.kit.picture import SERIES, foot_of
from lepaute.measure.fit.population.coefficients import Coefficients, coefficients_of_table
from lepaute.measure.fit.population.generative import generative
from lepaute.measure.fit.population.plot import plot_population
from lepaute.simulate import Hpl, Layers, predict
from lepaute.simulate.machine.population import drawn_alike, drawn_day, drawn_nodes, drawn_scales, on_its_day, scaled
from lepaute.simulate.platform.io import load_platform, override, parse_platform, with_population
from lepaute.simulate.platform.population import POPULATION_OF, population_of
from lepaute.simulate.platform.schema import Platform, platform_text
from lepaute.simulate.smpi.request import Files, Folding, request_text

SMALL = load_platform(Path(__file__).parent.parent / "data" / "platforms" / "small.yaml")
HPL = Hpl(n=1000, nb=128, p=2, q=2)
ALIKE = [[1.0, 1.0]] * 4  # the days of all four CPUs have the same standard deviation


def content(**changed: Any) -> dict[str, Any]:
    """A population of the alpha and beta of small.yaml: two groups, sd 1 % between CPUs and 2 % between days."""
    groups = [
        {"weight": 0.75, "mean": [1e-10, 2e-6], "covariance_spatial": [[1e-24, 0.0], [0.0, 4e-16]]},
        {"weight": 0.25, "mean": [2e-10, 2e-6], "covariance_spatial": [[1e-24, 0.0], [0.0, 4e-16]]},
    ]
    days = [[4e-24, 0.0], [0.0, 1e-16]]
    return {"terms": ["mnk", 1], "groups": groups, "covariance_temporal": days} | changed


def test_a_population_survives_writing_and_reading() -> None:
    platform = with_population(SMALL, content(group_of_node=[0, 1], covariance_common=[[1e-24, 0], [0, 0]]))
    assert parse_platform(platform_text(platform)) == platform
    assert platform.sha256 != SMALL.sha256


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"terms": ["mnk", "mnk"]}, "population.terms has the same term twice"),
        ({"terms": ["sd:mnk"]}, "population.terms has no terms of the mean"),
        ({"terms": ["mnk", "xy"]}, "population.terms[1] is not a term: it has the unknown letters x, y"),
        ({"kernel": "dgetf2"}, "population.kernel is for dgetf2 with 1 threads, which the platform does not model"),
        ({"draw": "weeks"}, "population.draw is 'weeks'; it must be 'none', 'days' or 'nodes-and-days'"),
        ({"covariance_temporal": [[1e-24]]}, "population.covariance_temporal must be square, 2 x 2"),
        ({"covariance_temporal": [[1e-24, 0], [1e-20, 1e-16]]}, "population.covariance_temporal[1][0] is 1e-20"),
        ({"covariance_common": [[-1e-24, 0], [0, 1e-16]]}, "population.covariance_common[0][0] is -1e-24"),
        ({"groups": [content()["groups"][0]]}, "population.groups have weights that sum to 0.75"),
        ({"groups": [content()["groups"][0] | {"weight": 1, "mean": [1e-10]}]}, "groups[0].mean has 1 values for 2"),
        ({"group_of_node": [0, 2]}, "population.group_of_node[1] is 2; groups are 0 to 1"),
        ({"covariance_log_scale": [[0.1]]}, "population.covariance_log_scale must be square, 2 x 2"),
        ({"covariance_log_scale": [[400.0, 0], [0, 0]]}, "population.covariance_log_scale has a variance of 400; "),
        ({"scale_of_cpu": [[1.0, 1.0]] * 3 + [[1.0]]}, "population.scale_of_cpu[3] has 1 values for 2 terms"),
        ({"scale_of_cpu": [[1.0, 1.0]] * 3 + [[1.0, 0.0]]}, "population.scale_of_cpu[3][1] is 0"),
        ({"terms": ["mnk", "sd:mnk"]}, "population.terms has terms sd:, but dgemm has no noise"),
    ],
)
def test_a_bad_population_is_refused_in_one_line(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(PlatformError) as caught:
        with_population(SMALL, content(**changed))
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_groups_of_other_nodes_and_factors_of_other_cpus_are_dropped() -> None:
    platform = with_population(SMALL, content(group_of_node=[0, 1, 0], scale_of_cpu=[[1.0, 2.0]] * 6))
    assert platform.population.group_of_node is None
    assert platform.population.scale_of_cpu is None


def population(**changed: Any) -> Any:
    found = with_population(SMALL, content(**changed)).population
    assert found is not None
    return found


def test_a_day_moves_each_cpu_by_the_stated_draws_and_a_smaller_cluster_begins_a_larger_one() -> None:
    days = drawn_day(population(covariance_common=[[9e-24, 0], [0, 0]]), None, ALIKE, seed=5)
    own = _core.normals(5, 0x504F5003, 4, 2)
    common = _core.normals(5, 0x504F5002, 1, 2)[0] * sqrt(9e-24)
    # cpu 3 is the second of the second node: draws 6 and 7
    assert days[3] == [common + sqrt(4e-24) * own[6], 0.0 + sqrt(1e-16) * own[7]]
    small, large = (drawn_nodes(population(), nodes, 2, seed=3) for nodes in (3, 8))
    assert (small[0], small[1]) == (large[0][:3], large[1][:6])


def test_drawing_days_adds_to_the_coefficients_and_drawing_nodes_replaces_the_kernel_by_one_piece() -> None:
    platform = with_population(SMALL, content(draw="days"))
    today = on_its_day(platform, 4)
    days = drawn_day(platform.population, None, ALIKE, 4)  # type: ignore[arg-type]
    assert (today.days, today.population) == (None, None)
    first, last = today.kernels[0].pieces
    # node 2, cpu 0 has no row of its own in the file: 1e-10 mnk and 2e-6
    row = dict(zip(last.per_cpu.columns, last.per_cpu.rows[2], strict=True))
    assert (row["mnk"], row["1"], row["mn"]) == (1e-10 + days[2][0], 2e-6 + days[2][1], -1e-10)
    # node 2, cpu 1 has one, without mn
    row = dict(zip(last.per_cpu.columns, last.per_cpu.rows[3], strict=True))
    assert (row["mnk"], row["mn"], row["sd:mnk"]) == (9e-11 + days[3][0], 0.0, 2e-12)
    assert first.per_cpu.rows[0][2] == 2e-10 + days[0][0]
    noisy = SMALL.model_copy(
        update={"kernels": (SMALL.kernels[0].model_copy(update={"pieces": SMALL.kernels[0].pieces[1:]}),)}
    )
    platform = with_population(noisy, content(draw="nodes-and-days"))
    (piece,) = on_its_day(platform, 4).kernels[0].pieces
    _, centres = drawn_nodes(platform.population, 2, 2, 4)  # type: ignore[arg-type]
    days = drawn_day(platform.population, drawn_nodes(platform.population, 2, 2, 4)[0], ALIKE, 4)  # type: ignore[arg-type]
    assert piece.per_cpu.columns == ("node", "cpu", "mnk", "1", "sd:mnk")
    assert piece.per_cpu.rows[1] == (1.0, 1.0, centres[1][0] + days[1][0], centres[1][1] + days[1][1], 1e-12)
    assert (piece.range, piece.noise.kind) == (None, "half-normal")


def test_the_days_of_a_cpu_are_multiplied_by_its_factors_and_the_common_part_is_not() -> None:
    found = population(covariance_common=[[9e-24, 0], [0, 0]])
    alike, apart = (drawn_day(found, None, scales, 7) for scales in (ALIKE, [*ALIKE[:3], [2.0, 3.0]]))
    assert apart[:3] == alike[:3]
    common = _core.normals(7, 0x504F5002, 1, 2)[0] * sqrt(9e-24)
    assert apart[3] == pytest.approx([common + 2.0 * (alike[3][0] - common), 3.0 * alike[3][1]])


def test_factors_are_drawn_log_normal_by_group_and_are_those_of_the_platform_where_it_knows_them() -> None:
    groups = content()["groups"]
    groups[1]["covariance_log_scale"] = [[0.0, 0.0], [0.0, 0.0]]
    drawing = population(groups=groups, covariance_log_scale=[[0.25, 0.0], [0.0, 0.0]])
    scales = drawn_scales(drawing, [0, 1], 2, 2, 9)
    assert scales[1] == pytest.approx([exp(0.5 * _core.normals(9, 0x504F5004, 4, 2)[2]), 1.0])
    assert scales[2:] == [[1.0, 1.0], [1.0, 1.0]]
    assert drawn_scales(drawing, [0], 1, 2, 9) == scales[:2]
    known = with_population(SMALL, content(draw="days", scale_of_cpu=[[1.0, 1.0]] * 3 + [[0.5, 2.0]]))
    day = drawn_day(known.population, None, known.population.scale_of_cpu, 4)  # type: ignore[arg-type,union-attr]
    table = on_its_day(known, 4).kernels[0].pieces[0].per_cpu
    assert table.rows[3][2] == SMALL.kernels[0].pieces[0].mean["mnk"] + day[3][0]


@pytest.mark.parametrize("factors", [(1.0, 1.0), (2.0, 1.0), (0.0, 0.5), (0.3, 0.0)])
def test_deviations_of_scaled_populations_differ_in_size_alone(factors: tuple[float, float]) -> None:
    before = population_of(load_platform("dahu"))
    after = scaled(before, *factors)
    assert drawn_alike(before, after)
    (groups, centres), (same_groups, moved) = drawn_nodes(before, 4, 2, 3), drawn_nodes(after, 4, 2, 3)
    assert groups == same_groups
    at = 0  # of the coefficients
    for group, centre, other in zip(groups, centres[::2], moved[::2], strict=True):
        deviation = centre[at] - before.groups[group].mean[at]
        assert other[at] - after.groups[group].mean[at] == pytest.approx(factors[0] * deviation, abs=1e-18)


def test_runs_differ_by_their_day_which_the_warning_knows_of_and_repeat_by_their_seed() -> None:
    platform = with_population(SMALL, content(draw="days"))
    quiet = Layers(coefficients=False, discrepancy=False, noise=False)
    times_s = [run.time_s for run in predict(HPL, platform, runs=3, seed=7, layers=quiet).run_list]
    assert len(set(times_s)) == 3
    assert [run.time_s for run in predict(HPL, platform, runs=1, seed=9, layers=quiet).run_list] == times_s[2:]
    bare = override(SMALL, {"days": "null"})
    told = "the interval covers call noise only"
    assert any(told in warning for warning in predict(HPL, bare, runs=1).warnings)
    drawing = with_population(bare, content(draw="days"))
    assert not any(told in warning for warning in predict(HPL, drawing, runs=1).warnings)


def test_every_shipped_population_fits_its_platform_and_slow_nodes_and_is_drawn_from_on_demand() -> None:
    for name in POPULATION_OF:
        platform = override(load_platform(name), {"population.draw": "nodes-and-days"})
        assert platform.population.group_of_node is not None
        alphas = [group.mean[0] for group in platform.population.groups]
        assert all(7e-11 < alpha < 9e-11 for alpha in alphas)
        assert len(on_its_day(platform, 1).kernels[0].pieces[0].per_cpu.rows) == 64  # type: ignore[union-attr]
    groups = population_of(load_platform("dahu-2019-04")).group_of_node
    assert groups is not None
    assert [number + 1 for number, group in enumerate(groups) if group == 1] == [13, 14, 15, 16]


def test_an_emulated_run_gets_the_day_of_its_seed() -> None:
    def machine(platform: Platform, seed: int) -> str:
        files = Files(Path("/r"), Path("/p"))
        text = request_text(platform, [0], seed=seed, layers=Layers(), folding=Folding(), files=files)
        return text.partition("\nmachine\n")[2]

    drawing = with_population(SMALL, content(draw="days"))
    assert machine(drawing, 1) == machine(on_its_day(drawing, 1), 5) != machine(drawing, 2)
    assert machine(SMALL, 1) == machine(SMALL, 2)


def table(nodes: int = 12, slow: int = 3, days: int = 8, **columns: Any) -> pandas.DataFrame:
    """Two CPUs a node: the first `slow` nodes take a fifth more per mnk; sd 1 % between CPUs, 0.5 % between days."""
    rng = np.random.default_rng(7)
    cpu = np.array([[1.2 if node < slow else 1.0] * 2 for node in range(nodes)]) * (
        1 + 0.01 * rng.normal(size=(nodes, 2))
    )
    day = cpu[..., None] * (1 + 0.005 * rng.normal(size=(nodes, 2, days)))
    node, unit, number = np.indices(day.shape).reshape(3, -1)
    noise = rng.normal(size=(2, day.size))
    frame = {
        "node": node, "cpu": unit, "day": number, "alpha": 7e-11 * day.ravel(), "beta": 2e-6 * (1 + 0.03 * noise[0]),
    }  # fmt: skip
    return pandas.DataFrame(frame | {"gamma": 2e-12 * (1 + 0.1 * noise[1])}).assign(**columns)


def coefficients(**changed: Any) -> Coefficients:
    return coefficients_of_table(table(**changed))


def test_a_picture_has_each_pair_of_coefficients_with_the_groups_in_colours_of_their_own() -> None:
    data = coefficients()
    figure = plot_population(data, generative(data), "dgemm", source="daily.csv")
    figure.draw_without_rendering()
    assert len(figure.axes) == 9
    below = figure.axes[3]  # beta against alpha
    assert below.get_ylabel() == "beta, time per call"
    assert {line.get_color() for line in below.lines} == set(SERIES[:2])
    # Of each group days, means, and two ellipses, of which that of days is dashed and larger.
    assert [line.get_linestyle() for line in below.lines] == ["None", "None", "-", "--"] * 2
    means, days = (np.ptp(below.lines[at].get_xdata()) for at in (2, 3))
    assert days > means > 0
    assert [text.get_text() for text in figure.legends[0].texts] == [
        "group 0: 9 nodes, 18 CPUs",
        "group 1: 3 nodes, 6 CPUs",
    ]
    assert figure.get_suptitle().replace("\n", " ").startswith("Time of dgemm differs by")
    assert foot_of(figure).startswith("daily.csv: 192 days of 24 CPUs")


def test_the_command_draws_it_and_keeps_what_is_there(tmp_path, capsys, refusal_of):
    table().to_csv(tmp_path / "daily.csv", index=False)
    words = ["platform", "population", str(tmp_path / "daily.csv"), "--of", "dahu", "-o", str(tmp_path / "p.yaml")]
    assert main([*words, "--plot", str(tmp_path / "pairs")]) == 0
    assert "pairs.png and" in capsys.readouterr().err
    before = (tmp_path / "pairs.png").read_bytes()
    assert main([*words[:-1], str(tmp_path / "q.yaml"), "--plot", str(tmp_path / "pairs")]) == 2
    assert "a picture's name ends in .png, .svg or .pdf" in refusal_of(
        *words[:-1], tmp_path / "q.yaml", "--plot", tmp_path / "pairs.gif"
    )
    assert (tmp_path / "pairs.png").read_bytes() == before
    assert not (tmp_path / "q.yaml").exists()
