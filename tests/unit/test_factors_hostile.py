"""Archives that cannot be: one line that says what is wrong and where, never a traceback and never a wrong value."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from long_tests import long_but
from mutants.archives import mutate_archives
from support_factors import calibration, dgemm_rows, experiment, machine, metadata, samples

from lepaute.errors import LepauteError
from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.watch.factors import factors_of, strata_of

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
