"""What was recorded comes back as it was; coefficients of each core and day from calibrations."""

from pathlib import Path

import numpy as np
import pandas
import pytest

from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.measure.archive.reader import table_of
from lepaute.measure.fit.population.coefficients import coefficients_of_archives
from lepaute.measure.raw_files import Table, Value, table_blocks
from lepaute.simulate.platform import load_platform


def read_table(path: Path) -> pandas.DataFrame:
    """In one block, and equal to what it is in blocks of two rows, of the same types."""
    (whole,) = table_blocks(path)
    pandas.testing.assert_frame_equal(whole, pandas.concat(table_blocks(path, rows=2), ignore_index=True))
    return whole


def written(path: Path, column: list[Value]) -> list[object]:
    table = Table(path, {"generator": "test"})
    for value in column:
        table.add({"x": value, "after": 1})
    table.close()
    frame = read_table(path)
    assert frame["after"].tolist() == [1] * len(column)
    return [None if pandas.isna(value) else value for value in frame["x"].tolist()]


@pytest.mark.parametrize(
    "column",
    [
        ["a # b", "#", "#@head=1"], ["#@head=1", "x"], ["007", "1"], ["NA", "null", "None", "nan", ""],
        ["1e5", "1_000", " 1", "٣"], ["inf", "0.5"], ['a,"b"', "c;d", "'"], ["True", "true"], [True, False],
        [True, None, False], [1, 2, -3], [2**63 - 1, None, 1], [0.1, 1e-300, -0.0, 1e22], [1, 0.5], [0.5, None],
        [None, None],
    ],
)  # fmt: skip
def test_every_value_comes_back_as_it_was_recorded(tmp_path: Path, column: list[Value]) -> None:
    got = written(tmp_path / "raw.csv", column)
    assert got == column
    assert [type(value) for value in got] == [type(value) for value in column] or column == [1, 0.5]


def test_a_number_too_large_for_a_column_of_numbers_stays_a_text(tmp_path: Path) -> None:
    assert written(tmp_path / "raw.csv", [2**63, 1]) == ["9223372036854775808", "1"]


def test_names_of_nodes_are_texts_also_where_they_are_numbers(tmp_path: Path) -> None:
    table = Table(tmp_path / "raw.csv", {})
    table.add({"node": "17"})
    table.close()
    assert read_table(tmp_path / "raw.csv")["node"].tolist() == ["17"]


def test_a_csv_member_of_an_archive_keeps_what_follows_a_hash_sign() -> None:
    frame = table_of("raw/x.csv", b"#@seed=1\n# more\nsaid,n\na # b,1\n#,2\n")
    assert frame["said"].tolist() == ["a # b", "#"]
    assert frame["n"].tolist() == [1, 2]


RATES = {("n1", 0): 2.0e-11, ("n1", 1): 2.2e-11, ("n2", 0): 3.0e-11, ("n2", 1): 3.3e-11}
INTERCEPT_S, GAMMA = 1e-6, 0.05  # the noise's sd over the mean


def kernels(day: float, rows: int = 4000, blocks: int = 5) -> pandas.DataFrame:
    """dgemm of all cores on a day that makes all slower by that factor; block b is slower by b % more."""
    rng = np.random.default_rng(7)
    m, n = np.floor(10 ** rng.uniform(1.5, 3.0, (2, rows))).astype(int)
    host, cpu, block = rng.choice(["n1", "n2"], rows), rng.integers(0, 2, rows), rng.integers(0, blocks, rows)
    rate = np.array([RATES[name, number] for name, number in zip(host, cpu, strict=True)])
    noise = (np.abs(rng.normal(size=rows)) - np.sqrt(2 / np.pi)) / np.sqrt(1 - 2 / np.pi)
    duration = rate * day * (1 + 0.01 * block) * m * n * 128 * (1 + GAMMA * noise) + INTERCEPT_S
    columns = {"design_row": 0, "kind": "hpl_step", "position": 1, "kernel": "dgemm", "m": m, "n": n, "k": 128}
    columns |= {"start_s": np.cumsum(duration), "duration_s": duration, "rank": 0, "cpu": cpu, "host": host}
    columns |= {"block": block, "attempt": 0, "disturbed": False, "probe": "hpl_steps_1x1"}
    return pandas.DataFrame({**columns, "clock_cost_s": 0.0})


def archive(path: Path, table: pandas.DataFrame) -> Archive:
    machine = {"cpu_model": "made up", "node_cores": 2, "cores": [0, 1], "blas": {"core": "Haswell"}}
    metadata = {"kind": "calibration", "created": "2026-11-21T00:00:00+00:00", "lepaute_version": "0", "host": "n1,n2"}
    metadata |= {"machines": {"n1": machine, "n2": machine}, **machine, "warnings": [], "mpi": {}}
    with ArchiveWriter(path, metadata) as written:
        written.add_table("observations/kernels.parquet", table)
    return Archive.open(path)


def test_several_calibrations_are_as_many_days(tmp_path: Path) -> None:
    given = [archive(tmp_path / f"{number}.zip", kernels(day, blocks=1)) for number, day in enumerate((1.0, 1.1, 0.9))]
    data = coefficients_of_archives(given)
    assert (data.nodes, data.units, data.days) == (2, 4, 3)
    alpha = data.values[:, 0].reshape(4, 3)
    expected = np.array(list(RATES.values()))[:, None] * np.array([1.0, 1.1, 0.9])
    assert alpha == pytest.approx(expected, rel=0.02)  # 1000 calls of 5 % noise, 0.2 % and a tail
    assert data.values[:, 2] == pytest.approx(GAMMA * data.values[:, 0], rel=0.2)


def test_the_blocks_of_one_calibration_are_its_days(tmp_path: Path) -> None:
    data = coefficients_of_archives(archive(tmp_path / "one.zip", kernels(1.0)))
    assert data.days == 5
    alpha = data.values[:, 0].reshape(4, 5).mean(axis=0)
    assert alpha / alpha[0] == pytest.approx(1 + 0.01 * np.arange(5), rel=0.01)


def test_the_command_makes_a_population_of_calibrations(tmp_path, output_of):
    days = enumerate((1.0, 1.1, 0.9, 1.05))
    names = [str(archive(tmp_path / f"{number}.zip", kernels(day, blocks=1)).path) for number, day in days]
    assert "2 nodes, 1 group" in output_of("platform", "population", *names, "--of", "dahu", "-o", tmp_path / "p.yaml")
    population = load_platform(tmp_path / "p.yaml").population
    # all cores are slower and faster together: 1.0, 1.1, 0.9, 1.05 of a mean rate of 2.6e-11
    alpha_sd = (population.covariance_common[0][0]) ** 0.5
    assert alpha_sd == pytest.approx(2.6e-11 * np.std([1.0, 1.1, 0.9, 1.05], ddof=1), rel=0.1)
