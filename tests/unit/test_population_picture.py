"""The picture of a population: what its title says, what is drawn, and coefficients with which little can be drawn."""

from typing import Any

import numpy as np
import pandas

from lepaute.cli.main import main
from lepaute.kit.picture import SERIES, foot_of
from lepaute.measure.fit.population.coefficients import Coefficients, coefficients_of_table
from lepaute.measure.fit.population.generative import generative
from lepaute.measure.fit.population.plot import plot_population


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
    fitted = generative(data)
    figure = plot_population(data, fitted, "dgemm", source="daily.csv")
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
