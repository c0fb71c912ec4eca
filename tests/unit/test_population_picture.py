"""The picture of a population: what its title says, what is drawn, and coefficients with which little can be drawn."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from lepaute.cli.main import main
from lepaute.kit.picture import SERIES, foot_of
from lepaute.kit.text import percent, signed_percent
from lepaute.measure.fit.population.coefficients import Coefficients, coefficients_of_table
from lepaute.measure.fit.population.generative import generative
from lepaute.measure.fit.population.plot import finding, plot_population


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


def test_the_title_says_how_much_cpus_and_days_and_groups_differ() -> None:
    fitted = generative(coefficients())
    first, second = finding(fitted, "dgemm").split("\n")
    group = fitted.groups[0]
    between = percent(group.covariance_spatial[0, 0] ** 0.5 / group.theta[0])
    assert first.startswith(f"Time of dgemm differs by {between} (sd) between CPUs, and from day to day by ")
    assert "on one CPU" in first
    slower = 100 * (fitted.groups[1].theta[0] / group.theta[0] - 1)
    assert 18 < slower < 22  # planted: 20 %, of six CPUs that differ by 1 %
    assert second.startswith("12 nodes, 2 groups (BIC ")
    assert second.endswith(f" below that of one): against group 0, group 1 (3 nodes) {signed_percent(slower / 100)}")
    assert finding(generative(coefficients(slow=0), most_groups=1), "dgemm").endswith("\n12 nodes, 1 group")


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


@pytest.mark.parametrize(
    "data",
    [
        coefficients(gamma=0.0),  # the same everywhere
        coefficients(alpha=0.0),
        coefficients(days=1),
        coefficients(nodes=2, slow=1),
        coefficients_of_table(table(), terms=["mnk"]),
        replace(coefficients(), terms=("mnk", "m", "n")),
    ],
    ids=["constant", "nothing", "one day", "two nodes", "one term", "other terms"],
)
def test_there_is_a_picture_of_whatever_can_be_fitted(data: Coefficients, tmp_path: Path) -> None:
    plot_population(data, generative(data), "dgemm", tmp_path / "pairs.svg")
    assert "between CPUs, and from day to day" in (tmp_path / "pairs.svg").read_text()


def test_the_command_draws_it_and_keeps_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table().to_csv(tmp_path / "daily.csv", index=False)
    words = ["platform", "population", str(tmp_path / "daily.csv"), "--of", "dahu", "-o", str(tmp_path / "p.yaml")]
    assert main([*words, "--plot", str(tmp_path / "pairs")]) == 0
    assert "pairs.png and" in capsys.readouterr().err
    before = (tmp_path / "pairs.png").read_bytes()
    assert main([*words[:-1], str(tmp_path / "q.yaml"), "--plot", str(tmp_path / "pairs")]) == 2
    assert main([*words[:-1], str(tmp_path / "q.yaml"), "--plot", str(tmp_path / "pairs.gif")]) == 2
    assert "a picture's name ends in .png, .svg or .pdf" in capsys.readouterr().err
    assert (tmp_path / "pairs.png").read_bytes() == before
    assert not (tmp_path / "q.yaml").exists()
