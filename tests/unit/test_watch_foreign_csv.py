"""CSV files with a mapping: exactly the values that they hold, in SI units; what is wrong is named with its line."""

import os
import re
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lepaute.errors import InputError
from lepaute.simulate.trace import read_trace
from lepaute.watch.foreign import read_foreign, rows
from lepaute.watch.foreign.units import date_reader, unit_of
from lepaute.watch.values import check_values

DATA = Path(__file__).parents[1] / "data" / "watch"
GRID5000 = Path(__file__).parents[2] / "examples" / "watch" / "grid5000.yaml"
SMALL = "node: node\ndate: {column: start, form: epoch_s}\nfactors: {rate_flops: {column: rate, unit: Gflop/s}}\n"


def write(folder: Path, text: str, mapping: str = SMALL) -> tuple[Path, Path]:
    (folder / "m.yaml").write_text(mapping)
    (folder / "t.csv").write_text(text)
    return folder / "t.csv", folder / "m.yaml"


def read(folder: Path, text: str, mapping: str = SMALL, **more: str) -> pd.DataFrame:
    path, columns = write(folder, text, mapping)
    return read_foreign(path, mapping=columns, **more)


def refusal(folder: Path, text: str, mapping: str = SMALL, **more: str) -> str:
    with pytest.raises(InputError) as error:
        read(folder, text, mapping, **more)
    message = str(error.value)
    assert "\n" not in message
    assert message.isprintable()
    return message.replace(str(folder), "")


def test_the_published_monitoring_is_read_with_the_mapping_of_the_examples() -> None:
    raw = pd.read_csv(DATA / "three_nodes.csv")
    columns = {
        "mean_frequency_Hz": raw["mean_frequency"] * 1e9,
        "mean_temperature_degC": raw["mean_temperature"],
        "cpu_power_W": raw["mean_power_cpu"],
        "dram_power_W": raw["mean_power_dram"],
    }
    expected = pd.concat(
        [
            pd.DataFrame(
                {
                    "cluster": raw["cluster"], "node": raw["node"].astype(str), "cpu": raw["cpu"],
                    "job": raw["jobid"].astype(str), "started_s": raw["start_time_unix_s"].astype(float),
                    "stratum": "", "factor": factor, "value": values, "state": "done", "archive": "",
                }
            )
            for factor, values in columns.items()
        ]
    ).dropna(subset="value")  # fmt: skip
    values = read_foreign(DATA / "three_nodes.csv", mapping=GRID5000)
    pd.testing.assert_frame_equal(values, check_values(expected), check_exact=True)
    assert len(values) == 4 * len(raw)
    assert len(GRID5000.read_text().splitlines()) <= 12


def test_a_large_table_is_read_line_by_line_to_the_same_rows_and_refusals(tmp_path: Path, monkeypatch) -> None:
    whole = read_foreign(DATA / "three_nodes.csv", mapping=GRID5000)
    path, mapping = write(tmp_path, "node,start,rate\nn1,1,2\n" + 40 * "# 0123456789\n" + "n2,1,x\n")
    said = refusal(tmp_path, path.read_text())
    monkeypatch.setattr(rows, "MAX_BYTES", 512)
    pd.testing.assert_frame_equal(read_foreign(DATA / "three_nodes.csv", mapping=GRID5000), whole)
    assert refusal(tmp_path, path.read_text()) == said
    path.write_bytes(path.read_bytes().replace(b"n2", b"n\xff"))
    with pytest.raises(InputError, match=re.escape(f"{path}:43: is not UTF-8 text")):
        read_foreign(path, mapping=mapping)
    with pytest.raises(InputError, match="more than 512 bytes"):  # of another format, it is read whole
        read_foreign(DATA / "three_nodes.csv", "hpl")


def test_a_pipe_that_is_open_is_read_as_a_file_is_and_another_one_refused(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as stream:
        stream.write((DATA / "three_nodes.csv").read_bytes())
    values = read_foreign(f"/dev/fd/{reading}", mapping=GRID5000)
    os.close(reading)
    os.mkfifo(tmp_path / "pipe")
    for hangs in (partial(read_foreign, mapping=GRID5000), read_trace):
        with pytest.raises(InputError, match="is a pipe, a device or a socket"):
            hangs(tmp_path / "pipe")
    pd.testing.assert_frame_equal(values, read_foreign(DATA / "three_nodes.csv", mapping=GRID5000))


def test_a_table_with_a_row_a_value_names_factors_with_their_units(tmp_path: Path) -> None:
    text = (
        "when;host;what;how_much;in\n2026-01-02T00:00:00+01:00;n1;clock;2,5;GHz\n"
        "2026-01-02T00:00:00+01:00;n1;heat;300,15;K\n# a comment\n\n2026-01-02T00:00:00+01:00;n1;images;7;images/s\n"
    )
    mapping = 'node: host\ndate: when\nfactor: what\nvalue: how_much\nunit: in\ndecimal: ","\ncluster: {value: dahu}\n'
    values = read(tmp_path, text, mapping)
    assert dict(zip(values["factor"], values["value"], strict=True)) == {
        "clock_Hz": 2.5e9,
        "heat_degC": pytest.approx(27.0),
        "images_images_per_s": 7.0,
    }
    assert set(values["started_s"]) == {1767308400.0}  # 2026-01-01T23:00:00Z
    assert values["job"].nunique() == 1  # one machine, one date: one job
    assert set(values["cluster"]) == {"dahu"}
    assert set(values["cpu"]) == {-1}


def test_a_job_that_failed_has_its_rows_and_one_that_was_not_measured_has_none(tmp_path: Path) -> None:
    mapping = SMALL + "job: id\nstate: {column: end, done: [0], failed: [1, crash], missing: ['']}\n"
    text = "start,node,rate,id,end\n10,n,1.5,a,0\n20,n,2.5,b,crash\n30,n,,c,0\n40,n,NaN,d,\n50,n,n/a,e,1\n"
    values = read(tmp_path, text, mapping)
    assert list(values["job"]) == ["a", "b", "d", "e"]
    assert list(values["state"]) == ["done", "failed", "missing", "failed"]
    assert np.array_equal(values["value"], [1.5e9, np.nan, np.nan, np.nan], equal_nan=True)


def test_columns_of_the_stratum_keep_apart_what_is_not_comparable(tmp_path: Path) -> None:
    text = "start,node,rate,blas,size\n10,n,1,open,1\n20,n,1,open,1\n30,n,1,mkl,1\n40,n,1,open,2\n"
    strata = list(read(tmp_path, text, SMALL + "stratum: [blas, size]\n")["stratum"])
    assert strata[0] == strata[1]
    assert len(set(strata)) == 3
    assert set(read(tmp_path, text)["stratum"]) == {""}


def test_a_growing_file_keeps_the_ids_of_its_jobs(tmp_path: Path) -> None:
    first = read(tmp_path, "start,node,rate\n10,n,1\n")
    both = read(tmp_path, "start,node,rate\n10,n,1\n20,n,2\n")
    pd.testing.assert_frame_equal(both[:1], first)
    assert both["job"].nunique() == 2


def test_rows_that_are_there_twice_count_once_and_contradictions_are_refused(tmp_path: Path) -> None:
    assert len(read(tmp_path, "start,node,rate\n10,n,1\n10,n,1\n")) == 1
    message = refusal(tmp_path, "start,node,rate\n10,n,1\n10,n,2\n")
    assert message.startswith("/t.csv: rate_flops of node 'n' has two values in job ")


def test_the_arguments_fill_what_the_mapping_leaves_out(tmp_path: Path) -> None:
    mapping = SMALL.replace("node: node\n", "")
    values = read(tmp_path, "start,rate\n10,1\n", mapping, cluster="c", node="n7")
    assert (values.loc[0, "cluster"], values.loc[0, "node"]) == ("c", "n7")
    assert "give the node" in refusal(tmp_path, "start,rate\n10,1\n", mapping)
    assert "the node is given, 'n7', and the mapping says it, too" in refusal(
        tmp_path, "start,node,rate\n10,n,1\n", node="n7"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "/t.csv:1: no column 'node', which the mapping names; there are none"),
        ("start,node\n", "/t.csv:1: no column 'rate', which the mapping names; there are start, node"),
        ("start,node,rate,rate\n", "more than one column 'rate'"),
        ("start,node,rate\n", "/t.csv: has no value of any factor"),
        ("start,node,rate\n10,n,1\n10,n\n", "/t.csv:3: has 2 cells, and the heading 3"),
        ("start,node,rate\n10,n,fast\n", "/t.csv:2: rate_flops is 'fast'; it must be a finite number, or empty"),
        ("start,node,rate\n10,n,inf\n", "rate_flops is 'inf'; it must be a finite number"),
        ("start,node,rate\n10,n,1e308\n", "rate_flops is '1e308'; it must be a finite number"),
        ("start,node,rate\n10,n,1_0\n", "rate_flops is '1_0'"),
        ('start,node,rate\n10,n,"1,5"\n', "decimal: ',' in the mapping reads decimal commas"),
        ("start,node,rate\n10,,1\n", "/t.csv:2: the node is empty"),
        ("start,node,rate\nnan,n,1\n", "the date is 'nan', which is not of the years 1970 to 2199"),
        ("start,node,rate\n1601622205000,n,1\n", "(milliseconds are epoch_ms)"),
        ("start,node,rate\nyesterday,n,1\n", "the date is 'yesterday'; it must be a number (epoch_s)"),
        ('start,node,rate\n10,"n,1\n', "/t.csv:2: is no row of CSV"),
        ('start,node,"rate\n', "/t.csv:1: is no heading of CSV"),
    ],
)
def test_a_table_that_is_not_what_its_mapping_says_is_refused_in_one_line(text, words, tmp_path):
    assert words in refusal(tmp_path, text)


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ("", "/m.yaml: is empty; a mapping says which columns"),
        ("[1]", "/m.yaml: is a list"),
        ("{", "/m.yaml:2:1: is not YAML"),
        (SMALL.replace("date:", "dates:"), "/m.yaml:2: dates is no field of a mapping (did you mean date?)"),
        (
            SMALL.replace("unit:", "units:"),
            "/m.yaml:3: factors.rate_flops.units is no field of a mapping (did you mean",
        ),
        (
            SMALL.replace("column: start", "value: 1e99"),
            "/m.yaml:2: date is wrong: the date is '1e99', which is not of",
        ),
        (SMALL.replace("Gflop/s", "Gfoo"), "/m.yaml:3: factors.rate_flops.unit is wrong: the unit 'Gfoo' is not known"),
        (SMALL.replace("rate_flops", "rate_Gflops"), "factors.rate_Gflops has its values in Gflop/s, which become"),
        (SMALL.replace("epoch_s", "epoch"), "/m.yaml:2: date is wrong: the form of the date is 'epoch'; give iso"),
        (SMALL.replace("epoch_s", "iso, timezone: Mars"), "date is wrong: the time zone 'Mars' is not known"),
        (SMALL.replace("epoch_s", "'%Q'"), "date is wrong: the form of the date is '%Q'"),
        ("node: n\ndate: d\n", "the file has no factors: add factors"),
        ("node: n\ndate: d\nfactor: f\nvalue: v\n", "the file has no unit"),
        ("date: d\nfactors: {}\n", "/m.yaml:2: factors is empty"),
        (SMALL + "factor: f\n", "has factors, and factor, value or unit as well"),
        (SMALL + "cpu: {}\n", "/m.yaml:4: cpu needs either a column or a value"),
        (SMALL + "cpu: 3\n", "/m.yaml:4: cpu is 3; fields in braces are expected"),
        (SMALL + "state: {column: s}\n", "/m.yaml:4: state does not say which texts mean that a job is done"),
        (SMALL + "state: {column: s, done: [a], failed: [a]}\n", "state has 'a' for two states"),
        (SMALL + "state: {column: s, done: [yes]}\n", "state.done[0] is True; a text is expected"),
        (SMALL + "delimiter: x\n", "/m.yaml:4: delimiter is 'x'; it must be ',', ';'"),
        (SMALL + "stratum: a\n", "/m.yaml:4: stratum is 'a'; a list in brackets is expected"),
    ],
)
def test_a_faulty_mapping_is_refused_with_file_and_line(mapping: str, words: str, tmp_path: Path) -> None:
    assert words in refusal(tmp_path, "start,node,rate\n10,n,1\n", mapping)


def test_cells_beside_the_values_are_checked(tmp_path: Path) -> None:
    text = "start,node,rate,id,cpu,end\n10,n,1,a,{cpu},{end}\n"
    mapping = SMALL + "job: id\ncpu: cpu\nstate: {column: end, done: [ok]}\n"
    assert list(read(tmp_path, text.format(cpu="3", end="ok"), mapping)["cpu"]) == [3]
    for cpu in ("-2", "1.5", "x", "", "9" * 30, "1_0", "1000000"):
        assert f"/t.csv:2: the cpu is '{cpu}'" in refusal(tmp_path, text.format(cpu=cpu, end="ok"), mapping)
    assert "the state is 'no'; the mapping has 'ok': add it there" in refusal(
        tmp_path, text.format(cpu="1", end="no"), mapping
    )
    assert "the job is empty" in refusal(tmp_path, "start,node,rate,id,cpu,end\n10,n,1,,0,ok\n", mapping)


def test_files_that_are_no_text_are_refused_with_what_to_do(tmp_path: Path) -> None:
    good = b"start,node,rate\n10,n\xe9,1\n"
    (tmp_path / "m.yaml").write_text(SMALL)
    for content, words in (
        (good, "/t.csv:2: is not UTF-8 text; convert the file"),
        (b"\xff\xfes\0t\0", "/t.csv:1: is not UTF-8 text"),
    ):
        (tmp_path / "t.csv").write_bytes(content)
        with pytest.raises(InputError) as error:
            read_foreign(tmp_path / "t.csv", mapping=tmp_path / "m.yaml")
        assert words in str(error.value).replace(str(tmp_path), "")
    for path in (tmp_path, tmp_path / "none.csv"):
        with pytest.raises(InputError, match="cannot be read"):
            read_foreign(path, mapping=tmp_path / "m.yaml")


@pytest.mark.parametrize(
    ("text", "form", "zone", "seconds"),
    [
        ("1767312000", "epoch_s", "UTC", 1767312000.0),
        ("1767312000.25", "epoch_s", "UTC", 1767312000.25),
        ("1767312000250", "epoch_ms", "UTC", 1767312000.25),
        ("1767312000250000000", "epoch_ns", "UTC", 1767312000.25),
        ("2026-01-02", "iso", "UTC", 1767312000.0),
        ("2026-01-02T00:00:00", "iso", "Europe/Paris", 1767308400.0),
        ("2026-01-02T00:00:00Z", "iso", "Europe/Paris", 1767312000.0),
        ("2026-01-01 19:00:00-05:00", "iso", "UTC", 1767312000.0),
        ("02/01/2026 00:00", "%d/%m/%Y %H:%M", "UTC", 1767312000.0),
        ("2025-10-26T02:30:00", "iso", "Europe/Paris", 1761438600.0),  # occurs twice; the first is in summer time
    ],
)
def test_dates_are_seconds_since_the_epoch(text: str, form: str, zone: str, seconds: float) -> None:
    assert date_reader(form, zone)(text) == seconds


@pytest.mark.parametrize(
    ("text", "suffix", "scale"),
    [
        ("GHz", "Hz", 1e9), ("kHz", "Hz", 1e3), ("s", "s", 1.0), ("us", "s", 1e-6), ("µs", "s", 1e-6),
        ("ms", "s", 1e-3), ("h", "s", 3600.0),
        ("min", "s", 60.0), ("MB/s", "B_per_s", 1e6), ("MiB/s", "B_per_s", 2.0**20), ("Gbit/s", "B_per_s", 1.25e8),
        ("Gbps", "B_per_s", 1.25e8), ("MBytes/sec", "B_per_s", 1e6), ("Gflop/s", "flops", 1e9),
        ("GFLOPS", "flops", 1e9),
        ("Tflops", "flops", 1e12), ("GFlop/s", "flops", 1e9), ("mW", "W", 1e-3), ("MW", "W", 1e6),
        ("degC", "degC", 1.0),
        ("°C", "degC", 1.0), ("%", "", 0.01), ("1", "", 1.0), ("images/s", "images_per_s", 1.0), ("1/s", "per_s", 1.0),
        ("KiB", "B", 1024.0), ("J", "J", 1.0),
    ],
)  # fmt: skip
def test_units_become_those_of_the_si(text: str, suffix: str, scale: float) -> None:
    unit = unit_of(text)
    assert (unit.suffix, unit.scale) == (suffix, pytest.approx(scale, rel=1e-15))


@pytest.mark.parametrize(
    ("heading", "row", "read_as", "value"),
    [
        ("date,node,rate", "2026-01-02,n1,3.5", "node: node; date: date; rate_per_s: rate in 1/s", 3.5),
        ("Host;Start;GFlop/s", "n1;2026-01-02;3,5", "node: Host; date: Start; rate_flops: GFlop/s in GFlop/s", 3.5e9),
        ("node,date,gflops", "n1,2026-01-02,3.5", "node: node; date: date; rate_flops: gflops in gflops", 3.5e9),
        ("node,day,copy [MB/s]", "n1,1767312000,2", "node: node; date: day; copy_B_per_s: copy [MB/s] in MB/s", 2e6),
        ("node,date,power_W,note", "n1,2026-01-02,90,fine", "node: node; date: date; power_W: power_W in W", 90.0),
        ("node,time", "n1,0.25", "node: node; time_s: time in s", 0.25),
    ],
)  # fmt: skip
def test_the_columns_of_a_csv_file_without_a_mapping_are_told_by_its_heading(heading, row, read_as, value, tmp_path):
    (tmp_path / "t.csv").write_text(f"{heading}\n{row}\n")
    date_s = None if "date" in read_as else 1_767_312_000.0  # 2026-01-02
    found = read_foreign(tmp_path / "t.csv", date_s=date_s)
    assert found.attrs["read_as"] == read_as
    assert found["node"].tolist() == ["n1"]
    assert found["started_s"].tolist() == [1_767_312_000.0]
    assert found["value"].tolist() == pytest.approx([value])


def test_a_table_that_names_no_node_or_no_number_is_not_guessed_at(tmp_path: Path) -> None:
    for text, said in {
        "date,rate\n2026-01-02,3\n": "names no node",
        "node,date\nn1,2026-01-02\n": "no column has a number in the first row",
        "node,rate\nn1,abc\nn1,4\n": "no column has a number in the first row",
        "hello\n": "csv with a mapping",
        "# nightly\nnode;rate\n": "no rows",
    }.items():
        (tmp_path / "t.csv").write_text(text)
        with pytest.raises(InputError, match=said):
            read_foreign(tmp_path / "t.csv")
