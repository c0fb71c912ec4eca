"""What was recorded comes back as it was, coefficients of cores and days, and archives that cannot be."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from long_tests import long_but
from mutants.archives import mutate_archives
from support_factors import calibration, dgemm_rows, experiment, machine, metadata, samples
from support_fit import GAMMA, MACHINE, RATES, kernels_of_two_nodes, write_calibration

from lepaute.errors import LepauteError
from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.measure.archive.reader import table_of
from lepaute.measure.fit.population.coefficients import coefficients_of_archives
from lepaute.measure.raw_files import Table, Value, table_blocks
from lepaute.simulate.platform import load_platform
from lepaute.watch.factors import factors_of, strata_of


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


def test_numbers_too_large_for_a_column_and_names_of_nodes_are_texts(tmp_path: Path) -> None:
    assert written(tmp_path / "raw.csv", [2**63, 1]) == ["9223372036854775808", "1"]
    table = Table(tmp_path / "nodes.csv", {})
    table.add({"node": "17"})
    table.close()
    assert read_table(tmp_path / "nodes.csv")["node"].tolist() == ["17"]


def test_a_csv_member_of_an_archive_keeps_what_follows_a_hash_sign() -> None:
    frame = table_of("raw/x.csv", b"#@seed=1\n# more\nsaid,n\na # b,1\n#,2\n")
    assert frame["said"].tolist() == ["a # b", "#"]
    assert frame["n"].tolist() == [1, 2]


def archive(path: Path, table: pandas.DataFrame) -> Archive:
    return Archive.open(write_calibration(path, table, host="n1,n2", machines={"n1": MACHINE, "n2": MACHINE}))


def test_several_calibrations_are_as_many_days(tmp_path: Path) -> None:
    given = [
        archive(tmp_path / f"{number}.zip", kernels_of_two_nodes(day, blocks=1))
        for number, day in enumerate((1.0, 1.1, 0.9))
    ]
    data = coefficients_of_archives(given)
    assert (data.nodes, data.units, data.days) == (2, 4, 3)
    alpha = data.values[:, 0].reshape(4, 3)
    expected = np.array(list(RATES.values()))[:, None] * np.array([1.0, 1.1, 0.9])
    assert alpha == pytest.approx(expected, rel=0.02)  # 1000 calls of 5 % noise, 0.2 % and a tail
    assert data.values[:, 2] == pytest.approx(GAMMA * data.values[:, 0], rel=0.2)


def test_the_blocks_of_one_calibration_are_its_days(tmp_path: Path) -> None:
    data = coefficients_of_archives(archive(tmp_path / "one.zip", kernels_of_two_nodes(slower_a_block=0.01)))
    assert data.days == 5
    alpha = data.values[:, 0].reshape(4, 5).mean(axis=0)
    assert alpha / alpha[0] == pytest.approx(1 + 0.01 * np.arange(5), rel=0.01)


def test_the_command_makes_a_population_of_calibrations(tmp_path, output_of):
    days = enumerate((1.0, 1.1, 0.9, 1.05))
    names = [str(archive(tmp_path / f"{number}.zip", kernels_of_two_nodes(day, blocks=1)).path) for number, day in days]
    assert "2 nodes, 1 group" in output_of("platform", "population", *names, "--of", "dahu", "-o", tmp_path / "p.yaml")
    population = load_platform(tmp_path / "p.yaml").population
    # all cores are slower and faster together: 1.0, 1.1, 0.9, 1.05 of a mean rate of 2.6e-11
    alpha_sd = (population.covariance_common[0][0]) ** 0.5
    assert alpha_sd == pytest.approx(2.6e-11 * np.std([1.0, 1.1, 0.9, 1.05], ddof=1), rel=0.1)


OWN = pandas.DataFrame({"m": 64, "n": 64, "k": [64, 128], "duration_s": 1e-3, "node": "n1", "cpu": 0})
MEMORY = pandas.DataFrame(
    {"size_bytes": [1024, 2048], "stride": 1, "element_bytes": 8, "unroll": 1, "read_bytes": 1e6, "duration_s": 1e-3}
)


def refused(path: Path) -> str:
    with pytest.raises(LepauteError) as problem:
        factors_of(Archive.open(path))
    message = str(problem.value)
    assert "\n" not in message
    assert len(message) < 600
    assert path.name in message
    return message


def outcome(path: Path) -> tuple[str, pandas.DataFrame]:
    """What was said where it was refused, or nothing and the table."""
    try:
        archive = Archive.open(path)
        table, strata = factors_of(archive, "c"), strata_of(archive)
    except LepauteError as problem:
        return str(problem), pandas.DataFrame()
    assert set(table["stratum"]) - {""} <= set(strata)
    return "", table


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"duration_s": np.nan}, "duration_s is nan, not finite"),
        ({"duration_s": -1.0}, "duration_s is -1, below 0"),
        ({"duration_s": 1e300}, "duration_s is 1e+300, more than a week"),
        ({"m": "large"}, "column m holds texts such as 'large', not numbers"),
        ({"k": np.inf}, "k is inf, not finite"),
        ({"host": None}, "host is missing"),
        ({"host": "n9"}, "name the node 'n9', which the archive does not describe"),
        ({"host": "n\x1b[31m9"}, "which the archive does not describe"),
        ({"kernel": None}, "kernel is missing"),
        ({"cpu": -2}, "cpu is -2, below"),
        ({"threads": "many"}, "column threads holds texts"),
        pytest.param({"start_s": lambda rows: -rows["start_s"]}, "the clock went backwards", id="backwards"),
        ({"design_row": 0, "m": 64, "n": 64, "k": 64, "start_s": 1.0, "duration_s": 1.0}, "is an exact copy"),
    ],
    ids=str,
)
def test_a_table_of_kernels_that_cannot_be_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    assert said in refused(calibration(tmp_path / "a.zip", dgemm_rows(["n1"]).assign(**change), ["n1"]))


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("dgemm", OWN.assign(duration_s="soon")),
        ("dgemm", OWN.assign(k=-1)),
        ("dgemm", OWN.assign(node="elsewhere")),
        ("observations", MEMORY.assign(stride="wide")),
        ("observations", MEMORY.assign(duration_s=np.nan)),
        ("disk", pandas.DataFrame({"operation": ["write"], "size_bytes": [-1], "duration_s": [1.0]})),
        ("disk", pandas.DataFrame({"operation": ["x" * 200], "size_bytes": [1], "duration_s": [1.0]})),
    ],
)
def test_a_table_of_an_experiment_that_cannot_be_is_refused(tmp_path: Path, name: str, table: pandas.DataFrame) -> None:
    if name == "disk" and len(table["operation"][0]) > 100:
        with pytest.raises(LepauteError, match="is not a name of a factor"):
            factors_of(Archive.open(experiment(tmp_path / "a.zip", {name: table})))
        return
    refused(experiment(tmp_path / "a.zip", {name: table}))


@pytest.mark.parametrize(
    "columns",
    [
        {"power_package0_watt": "hot"},
        {"power_package0_watt": np.inf},
        {"frequency_core99999_hz": 1e9},
        {"frequency_core0_hz": None, "temperature_coretemp_package_id_0_celsius": "NaN"},
        {"time_s": "now"},
    ],
    ids=str,
)
def test_samples_that_are_no_numbers_are_no_values(tmp_path: Path, columns: dict[str, Any]) -> None:
    table = factors_of(Archive.open(experiment(tmp_path / "a.zip", monitoring={"n1": samples().assign(**columns)})))
    done = table[table["state"] == "done"]
    assert len(table) <= 2
    assert len(done) == ("frequency_core99999_hz" in columns)


@pytest.mark.parametrize(
    "changed",
    [
        {"nodes": [], "host": ""},
        {"nodes": ["n1"] * 3},
        {"scheduler": {"job": {"a": [1]}, "submitted": True}},
        {"scheduler": {"job": True, "submitted": True}},
        {"scheduler": {"job": -1, "submitted": True}},
        {"parameters": {"x\n\x1b[2J": [[["deep"] * 50] * 50]}},
        {"settings": [1, 2]},
        {"settings": {"monitor_period_s": "often", "control": [1]}},
        {"machines": {"n1": {"layout": {"pu": ["a"], "socket": None}, "blas": 3}}},
        {"machines": {"n1": {"layout": {"pu": [0, 1], "socket": [-7]}, "cores": [0]}}},
        {"phases": [{"name": "run", "start": "2026-11-21T09:14:33+00:00", "duration_s": 1e308}]},
        {"phases": [{"name": "run", "start": "yesterday", "duration_s": -5.0}], "created": "2026-11-21"},
        {"status": "complete", "failure": {"node": "n1"}, "lost_nodes": [{"node": ""}, {"node": "n2"}]},
    ],
    ids=str,
)
def test_metadata_of_any_content_end_in_values_or_one_line(tmp_path: Path, changed: dict[str, Any]) -> None:
    about = metadata("calibration", ["n1"], machines={"n1": machine()}) | changed
    with ArchiveWriter(tmp_path / "a.zip", about) as archive:
        archive.add_table("observations/kernels.parquet", dgemm_rows(["n1"]))
        archive.add_table("monitoring/n1.parquet", samples(load1=1.0))
    said, table = outcome(tmp_path / "a.zip")
    assert "\n" not in said
    assert said or ((table["cpu"] >= -1).all() and not table["stratum"].str.contains(r"\W").any())


def test_an_archive_that_says_nowhere_when_it_was_measured_is_refused(tmp_path: Path) -> None:
    path = calibration(tmp_path / "a.zip", dgemm_rows(["n1"]), ["n1"], phases=[], created="")
    assert "says nowhere when it was measured" in refused(path)


def test_documents_that_are_none_are_refused(tmp_path: Path) -> None:
    with ArchiveWriter(tmp_path / "a.zip", {"kind": "experiment", "nodes": ["n1"], "created": "2026-11-21"}) as archive:
        archive.add_bytes("clock.json", b"[{")
        archive.add_bytes("repositories.json", b'{"a": 1')
        archive.add_table("observations/dgemm.parquet", OWN)
    assert "repositories.json" in refused(tmp_path / "a.zip")


@pytest.mark.slow
@pytest.mark.parametrize("mutants", long_but([40, 150], 40))
def test_every_mutant_gives_values_or_one_line(mutants: int, tmp_path: Path) -> None:
    monitoring = {"n1": samples(power_package0_watt=100.0, frequency_core0_hz=2e9)}
    originals = [
        calibration(tmp_path / "a.zip", dgemm_rows(["n1"]), ["n1"], monitoring=monitoring),
        experiment(tmp_path / "b.zip", {"dgemm": OWN}, monitoring=monitoring, design="m,n,k,kind\n64,64,64,dgemm\n"),
    ]
    ends: Counter[bool] = Counter()
    for number, way in enumerate(mutate_archives(originals, tmp_path / "mutant.zip", mutants, seed=20261123)):
        try:
            said, _ = outcome(tmp_path / "mutant.zip")
        except Exception as problem:
            raise AssertionError(f"mutant {number} ({way}): {type(problem).__name__}: {problem}") from problem
        assert "\n" not in said, (number, way)
        ends[bool(said)] += 1
    assert min(ends[True], ends[False]) > mutants // 10, ends
