"""Google Benchmark's JSON: real files of versions 1.7.1 and 1.9.5 (tests/data/watch/foreign), and damaged ones."""

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from lepaute.errors import InputError
from lepaute.watch.foreign import read_foreign

DATA = Path(__file__).parents[1] / "data" / "watch" / "foreign"


def written(folder: Path, document: object) -> Path:
    path = folder / "b.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def document(name: str = "plain") -> Any:
    return json.loads((DATA / f"google_benchmark_{name}.json").read_text())


def by_factor(values: pd.DataFrame) -> dict[str, float]:
    return dict(zip(values["factor"], values["value"], strict=True))


def test_each_benchmark_has_its_times_rates_and_counters_in_si_units() -> None:
    values = read_foreign(DATA / "google_benchmark_plain.json", cluster="c")
    (copied, *_), found = document()["benchmarks"], by_factor(values)
    assert copied["time_unit"] == "us"
    assert found["copy/4096_real_time_s"] == copied["real_time"] * 1e-6
    assert found["copy/4096_cpu_time_s"] == copied["cpu_time"] * 1e-6
    assert found["copy/4096_B_per_s"] == copied["bytes_per_second"]
    dot = document()["benchmarks"][2]
    assert dot["time_unit"] == "ns"
    assert found["dot<double>/real_time/threads:2_real_time_s"] == dot["real_time"] * 1e-9
    assert found["dot<double>/real_time/threads:2_flops"] == dot["flops"]
    assert found["dot<double>/real_time/threads:2_items_per_s"] == dot["items_per_second"]
    assert set(values["node"]) == {document()["context"]["host_name"]}
    assert set(values["started_s"]) == {pd.Timestamp(document()["context"]["date"]).timestamp()}
    assert not [factor for factor in found if "BigO" in factor or "RMS" in factor]


def test_a_benchmark_that_ended_in_an_error_failed() -> None:
    values = read_foreign(DATA / "google_benchmark_plain.json")
    failed = values[values["state"] == "failed"]
    assert list(failed["factor"]) == ["broken_cpu_time_s", "broken_real_time_s"]
    assert failed["value"].isna().all()
    assert (values["state"] == "done").sum() == len(values) - 2


def test_the_value_is_the_mean_of_the_repetitions_and_so_it_is_where_only_aggregates_are_there(tmp_path: Path) -> None:
    values = read_foreign(DATA / "google_benchmark_repeated.json")
    content = document("repeated")
    repeated = [each["real_time"] for each in content["benchmarks"] if each["name"] == "copy/4096"]
    assert len(repeated) == 3
    assert by_factor(values)["copy/4096_real_time_s"] == pytest.approx(sum(repeated) / 3 * 1e-6, rel=1e-14)
    content["benchmarks"] = [each for each in content["benchmarks"] if each["run_type"] == "aggregate"]
    aggregates = by_factor(read_foreign(written(tmp_path, content)))
    done = {factor: value for factor, value in by_factor(values).items() if not factor.startswith("broken")}
    assert aggregates == {factor: pytest.approx(value, rel=1e-12) for factor, value in done.items()}


def test_a_file_gives_the_same_rows_however_it_is_laid_out(tmp_path: Path) -> None:
    values = read_foreign(DATA / "google_benchmark_plain.json")
    assert values["job"].nunique() == 1
    pd.testing.assert_frame_equal(read_foreign(written(tmp_path, document())), values)
    packed = tmp_path / "b.json.gz"
    packed.write_bytes(gzip.compress((DATA / "google_benchmark_plain.json").read_bytes()))
    pd.testing.assert_frame_equal(read_foreign(packed, "google-benchmark"), values)
    again = document() | {"context": document()["context"] | {"load_avg": [9, 9, 9]}}
    assert set(read_foreign(written(tmp_path, again))["job"]) != set(values["job"])  # another run


@pytest.mark.parametrize(
    ("change", "comparable"),
    [
        ({"load_avg": [0.0]}, True),
        ({"date": "2026-12-01T00:00:00+00:00"}, True),
        ({"mhz_per_cpu": 1200}, True),  # of the machine: a change is to be found, not to be kept apart
        ({"executable": "/other/folder/small"}, True),
        ({"executable": "./large"}, False),
        ({"library_build_type": "release"}, False),
        ({"library_version": "v1.9.0"}, False),
        ({"compiler": "clang 19"}, False),
    ],
)
def test_what_was_built_in_another_way_is_another_stratum(change, comparable, tmp_path):
    plain = read_foreign(DATA / "google_benchmark_plain.json")
    content = document()
    other = read_foreign(written(tmp_path, content | {"context": content["context"] | change}))
    assert (set(other["stratum"]) == set(plain["stratum"])) is comparable


def test_versions_that_do_not_name_aggregates_are_read(tmp_path: Path) -> None:
    row = {"name": "f/8", "iterations": 10, "real_time": 2.0, "cpu_time": 1.0, "time_unit": "ms"}
    rows = [row, row | {"real_time": 4.0}, row | {"name": "f/8_mean", "real_time": 3.0}, row | {"name": "f/8_stddev"}]
    content = {"context": {"date": "2017-05-04 12:34:56", "num_cpus": 4}, "benchmarks": rows}
    values = read_foreign(written(tmp_path, content), node="n1")
    assert by_factor(values) == {"f/8_real_time_s": 0.003, "f/8_cpu_time_s": 0.001}
    assert set(values["started_s"]) == {pd.Timestamp("2017-05-04 12:34:56", tz="UTC").timestamp()}
    with pytest.raises(InputError, match=r"does not say on which node it ran; give the node"):
        read_foreign(written(tmp_path, content))


def test_a_file_of_version_1_9_is_read() -> None:
    values = read_foreign(DATA / "google_benchmark_1.9.json")
    rows = [each for each in document("1.9")["benchmarks"] if each["run_type"] == "iteration"]
    times = [row["real_time"] for row in rows if row["run_name"] == "total/1000"]
    assert len(times) == 2
    found = by_factor(values)
    assert found["total/1000_real_time_s"] == pytest.approx(sum(times) / 2 * 1e-9, rel=1e-14)
    assert set(values[values["state"] == "failed"]["factor"]) == {"skipped_real_time_s", "skipped_cpu_time_s"}


def test_a_benchmark_that_was_skipped_has_no_rows_and_a_counter_that_is_no_number_none(tmp_path: Path) -> None:
    content = document()
    content["benchmarks"][0]["skipped"] = True
    content["benchmarks"][1]["bytes_per_second"] = float("nan")
    factors = by_factor(read_foreign(written(tmp_path, content)))
    assert not [factor for factor in factors if factor.startswith("copy/4096")]
    assert [factor for factor in factors if factor.startswith("copy")] == [
        "copy/1048576_cpu_time_s",
        "copy/1048576_real_time_s",
    ]


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("context",), 3, "b.json: context is 3; an object is expected"),
        (("context", "date"), "soon", "b.json: context: the date is 'soon'; it must be written as 2026-11-23T07:24:05"),
        (("context", "date"), None, "b.json: context: date is None; a text is expected"),
        (("context", "date"), "1969-01-01", "which is not of the years 1970 to 2199"),
        (("context", "host_name"), 3, "does not say on which node it ran"),
        (("context", "host_name"), "a\u001b[2J", "cannot be printed"),
        (("context", "host_name"), "\ud800", "cannot be printed"),
        (("benchmarks",), {}, "benchmarks is {}; a list is expected"),
        (("benchmarks",), [], "has no value of any factor"),
        (("benchmarks", 0), 3, "benchmarks[0] is no object"),
        (("benchmarks", 0, "name"), 3, "benchmarks[0]: name is 3; a text is expected"),
        (("benchmarks", 0, "run_name"), [], "benchmarks[0]: run_name is []; a name is expected"),
        (("benchmarks", 1, "real_time"), "fast", "benchmarks[1] (copy/1048576): real_time is 'fast'; a time is"),
        (("benchmarks", 1, "real_time"), True, "real_time is True"),
        (("benchmarks", 1, "real_time"), -1.0, "real_time is -1.0"),
        (("benchmarks", 1, "cpu_time"), float("nan"), "cpu_time is nan"),
        (("benchmarks", 1, "cpu_time"), 10**400, "cpu_time is 1000"),
        (("benchmarks", 1, "time_unit"), "h", "time_unit is 'h'; it must be ns, us, ms, s"),
        (("benchmarks", 1, "time_unit"), [], "time_unit is []"),
        (("benchmarks", 1, "run_name"), "copy/4096", "repetition 0 is there twice"),
    ],
)
def test_what_google_benchmark_would_not_write_is_refused_with_its_place(place, value, words, tmp_path):
    content = copy.deepcopy(document())
    inside = content
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    with pytest.raises(InputError) as error:
        read_foreign(written(tmp_path, content), "google-benchmark")
    message = str(error.value)
    assert words in message
    assert message.isprintable()


def test_a_file_that_ends_early_is_refused_with_its_line(tmp_path: Path) -> None:
    text = (DATA / "google_benchmark_plain.json").read_text()
    with pytest.raises(InputError, match=r"b\.json:\d+:\d+: is not JSON"):
        read_foreign(written(tmp_path, text[: len(text) // 2]))


def test_a_file_of_no_known_format_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    for content, words in (
        (b"", "is empty; give one of google-benchmark"),
        (b"\0\1\2", "is of no format that is recognised; give one of google-benchmark"),
        (b"{}", "is of no format that is recognised"),
        (b"PK\x03\x04rest", "is a zip file; an archive of Lepaute is ingested as such"),
        (b"a,b\n1,2\n", "or csv with a mapping of its columns"),
    ):
        (tmp_path / "x").write_bytes(content)
        with pytest.raises(InputError) as error:
            read_foreign(tmp_path / "x")
        assert words in str(error.value)
    with pytest.raises(InputError, match="the format is 'yaml'; it must be one of google-benchmark"):
        read_foreign(tmp_path / "x", "yaml")
    with pytest.raises(InputError, match="a CSV file needs a mapping"):
        read_foreign(tmp_path / "x", "csv")
    with pytest.raises(InputError, match="a mapping is for CSV files, and the format is google-benchmark"):
        read_foreign(tmp_path / "x", "google-benchmark", mapping="m.yaml")
