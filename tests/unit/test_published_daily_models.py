"""The generative model by moments: exact cases, groups, what is refused; the published daily models."""

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pytest
from oracles.two_way import own_and_total
from population.simulated import dahu_like, simulated
from support.watch_data import MODEL_FACTORS, published_daily_models

from lepaute.errors import FitError
from lepaute.measure.fit.population.coefficients import coefficients_of_table, read_coefficients
from lepaute.measure.fit.population.generative import generative
from lepaute.stats.covariances import between_days, between_units
from lepaute.watch.judging.judge import judge
from lepaute.watch.values import check_values

HEADER = (
    "node,cpu,date,start_time_unix_s,jobid,intercept,mnk,intercept_residual,mnk_residual,tvalue_mnk,"
    "tvalue_mnk_residual,avg_gflops,expfile_hash\n"
)


def daily_file(path: Path, first_day: int, days: int) -> Path:
    rows = [
        f"13,{cpu},2019-11-{first_day + day:02d},{1.5731e9 + 86_400 * (first_day + day)},{1_890_000 + first_day + day},"
        f"2.4e-06,{7.6e-11 + 1e-13 * (day % 3)},4e-07,2e-12,400,13,25.5,{first_day + day}abc\n"
        for day in range(days)
        for cpu in (0, 1)
    ]
    with gzip.open(path, "wt") as file:
        file.write(HEADER + "".join(rows))
    return path


def test_two_files_become_one_table_in_si_units_and_one_stratum(tmp_path: Path) -> None:
    slow, good = daily_file(tmp_path / "a.csv.gz", 1, 4), daily_file(tmp_path / "b.csv.gz", 5, 2)
    table = check_values(published_daily_models(slow, good))
    assert len(table) == 6 * 2 * len(MODEL_FACTORS)  # jobs, processors
    assert set(table["stratum"]) == {""}  # though each day has another hash of its file of sizes
    assert set(table["cluster"]) == {"dahu"}
    assert set(table.loc[table["factor"] == "dgemm_rate_flops", "value"]) == {25.5e9}  # 25.5 Gflop/s
    # the five days before a job are its reference, though they are in the other file
    assert judge(table, factors=["dgemm_mnk_s"], windows=(1,))["n"].max() == 5


def table(rows: list[tuple[object, ...]]) -> pandas.DataFrame:
    return pandas.DataFrame(rows, columns=["node", "cpu", "day", "mnk", "intercept", "mnk_residual"])


def some_rows() -> list[tuple[object, ...]]:
    rng = np.random.default_rng(3)
    return [
        (node, cpu, day, 7e-11 + 1e-12 * rng.normal(), 2e-6 + 1e-7 * rng.normal(), 2e-12 + 1e-13 * rng.normal())
        for node in range(1, 5)
        for cpu in (0, 1)
        for day in ("2019-12-01", "2019-12-02", "2019-12-04")
    ]


def test_a_table_with_the_published_names_is_read_as_alpha_beta_gamma_whatever_its_kind(tmp_path: Path) -> None:
    data = coefficients_of_table(table(some_rows()))
    assert data.terms == ("mnk", "1", "sd:mnk")
    assert (data.nodes, data.units, data.days, len(data.values)) == (4, 8, 3, 24)
    assert data.values[0] == pytest.approx(some_rows()[0][3:])
    assert list(data.node_of_unit) == [0, 0, 1, 1, 2, 2, 3, 3]
    frame = table(some_rows())
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    one, other = read_coefficients(tmp_path / "t.csv.gz"), read_coefficients(str(tmp_path / "t.parquet"))
    assert np.array_equal(one.values, other.values)
    assert np.array_equal(one.day, other.day)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda frame: frame.drop(columns="mnk"), "there is no column mnk; required are node, cpu, day and mnk, 1"),
        (lambda frame: frame.drop(columns="day"), "there is no column day"),
        (lambda frame: frame.assign(mnk=frame["mnk"].where(frame.index != 5)), "mnk of row 6 is nan, not a finite"),
        (lambda frame: frame.assign(intercept="fast"), "intercept of row 1 is 'fast', not a finite number"),
        (lambda frame: frame.assign(node=frame["node"].where(frame.index > 0)), "node of row 1 is empty"),
        (lambda frame: frame.assign(mnk=1e300), "mnk of row 1 is 1e+300, not a duration in seconds"),
        (lambda frame: frame.iloc[:0], "has no rows"),
    ],
)
def test_a_bad_table_is_refused_in_one_line(change, told) -> None:
    with pytest.raises(FitError) as caught:
        coefficients_of_table(change(table(some_rows())), source="daily.csv")
    assert str(caught.value).startswith("daily.csv: ")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_fast_split_of_days_is_that_of_the_slow_twin_on_unbalanced_data() -> None:
    data = simulated(dahu_like(), np.random.default_rng(8), nodes=5, days=25, missing=0.4, common_share=0.6)
    own, total = own_and_total(data.unit, data.day, data.values)
    found = between_days(data.unit, data.day, data.values)
    assert found.total == pytest.approx(total, rel=1e-9)
    # where nothing is projected away, the fast one is the difference of the two
    root = np.sqrt(np.diag(total))
    assert np.linalg.eigvalsh((total - own) / np.outer(root, root)).min() > 0
    assert found.common == pytest.approx(total - own, rel=1e-6)


def test_sigma_s_is_what_is_left_of_the_means_without_their_days() -> None:
    # two CPUs, two days: means 0 and 4, variance 8 between them; days -1, +1 in each: variance 2, of a mean 1
    values = np.array([[-1.0], [1.0], [3.0], [5.0]])
    unit, day = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    days = replace(between_days(unit, day, values), common=None)
    assert days.individual == pytest.approx(np.array([[2.0]]))
    assert between_units(unit, day, values, days) == pytest.approx(np.array([[8.0 - 1.0]]))


def test_nodes_that_are_much_slower_are_a_group_of_which_a_single_one_takes_the_covariance_of_all() -> None:
    fitted = generative(simulated(dahu_like(), np.random.default_rng(1), slow_nodes=4, slow_by_sd=6.0))
    assert [group.nodes for group in fitted.groups] == [28, 4]
    assert list(fitted.group_of_node) == [1] * 4 + [0] * 28
    assert fitted.groups[1].theta[0] > fitted.groups[0].theta[0]
    assert sum(group.weight for group in fitted.groups) == 1.0
    fitted = generative(simulated(dahu_like(), np.random.default_rng(1), slow_nodes=1, slow_by_sd=15.0))
    assert [group.nodes for group in fitted.groups] == [31, 1]
    assert any("group 1 has too few CPUs" in note for note in fitted.notes)
    assert np.all(np.linalg.eigvalsh(fitted.groups[1].covariance_spatial) >= -1e-30)


def test_one_day_coefficients_that_never_vary_and_days_that_are_far_off_are_told() -> None:
    data = simulated(dahu_like(), np.random.default_rng(2), days=1, missing=0.0)
    fitted = generative(data)
    assert not np.any(fitted.covariance_temporal)
    assert any("one day" in note for note in fitted.notes)
    assert fitted.population().covariance_common is None
    data = simulated(dahu_like(), np.random.default_rng(2))
    data.values[:, 2] = 2e-12
    fitted = generative(data)
    assert "sd:mnk is the same everywhere." in fitted.notes
    population = fitted.population()
    assert population.covariance_temporal[2] == (0.0, 0.0, 0.0)
    assert population.groups[0].mean[2] == pytest.approx(2e-12)
    data = simulated(dahu_like(), np.random.default_rng(6), nodes=8)
    assert not any("outliers" in note for note in generative(data).notes)
    data.values[[17, 90], 2] *= 4.0
    (told,) = [note for note in generative(data).notes if "outliers" in note]
    assert told.startswith(f"2 of {len(data.values)} days of single CPUs are outliers in sd:mnk: ")
