"""Documents of strangers are read or refused in one line, with their place, and without a hang."""

import json
import re
from pathlib import Path
from typing import Any

import numpy
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from support_limits import within_cpu

from lepaute.errors import InputError, LepauteError, PlatformError
from lepaute.kit.documents import MAX_BYTES, MAX_DEPTH, read_json, read_text, read_yaml
from lepaute.simulate.platform import load_platform, override
from lepaute.simulate.platform.io import SHIPPED_FOLDER
from lepaute.simulate.platform.simgrid import export_xml, import_xml
from lepaute.simulate.trace import read_trace

DATA = Path(__file__).parents[1] / "data"
PLATFORMS = [*SHIPPED_FOLDER.rglob("*.yaml"), *(DATA / "platforms").glob("*.yaml")]
SMALL = DATA / "platforms/small.yaml"

#: Each name stands for ten of the one before: 10^9 values in a kilobyte.
ALIAS_BOMB = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGE_BOMB = "a: &a {k: 1, l: 2}\n" + "".join(
    f"{name}: &{name} {{<<: [{', '.join([f'*{before}'] * 10)}]}}\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
ALIAS_CHAIN = "a0: &a0 []\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 200))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("- " * 1_000_000, f"doc:1:{2 * MAX_DEPTH + 1}: is nested deeper than {MAX_DEPTH} levels"),
        ("[" * 1_000_000, "nest"),  # from PyYAML 6.0.4 on, its scanner says first that 1000 are too many
        ("{a: " * 1_000_000, "is nested deeper than"),
        (ALIAS_BOMB, "aliases count as their expansions"),
        (MERGE_BOMB, "aliases count as their expansions"),
        (ALIAS_CHAIN, "is nested deeper than"),
        ("a: &a [*a]", "doc:1:8: stands for 'a', which contains it"),
        ("a: *b", "'b', which is not defined"),
        ("a: &a 1\nb: &a 2", "defines the anchor 'a' again"),
        ("? [a, b]\n: 1", "doc:1:3: a key is a collection"),
        ("? {a: b}\n: 1", "a key is a collection"),
        ("a: &a [1]\n*a : 2", "a key is a collection"),
        ("a: 0b_", "doc:1:4: '0b_' looks like an integer but is not"),
        ("a: 0x_", "looks like an integer"),
        ("a: !!bool x", "looks like true or false"),
        ("a: !!int x", "looks like an integer"),
        ("a: !!python/object/apply:os.system [x]", "has the tag"),
        ("a: !!binary eA==", "has the tag"),
        ("a: !!set {x}", "has the tag"),
        ("a: !!map [x]", "has the tag"),
        ("a: 1\nb: 2\na: 3", "doc:3:1: key a occurs twice"),
        ("1: a\n0x1: b", "occurs twice"),
        ("<<: 1", "is merged by << but is not a mapping"),
        ("a\n---\nb", "begins a second document"),
        ("a: [1", "is not YAML"),
        ("a: \t- b", "is not YAML"),
        ("a: \x07", "doc:1:4: is not YAML"),
        ("a: \udc80", "is not YAML"),
        ("%TAG !a! !b\n" * 20 + "--- x", "declares tags"),
        ("x" * (MAX_BYTES + 1), "has more than"),
        ("[" + "0," * 500_001 + "]", "is value 500001 of the document"),
    ],
    ids=lambda value: value[:20],
)
def test_a_hostile_yaml_is_refused_in_one_line(text: str, complaint: str) -> None:
    with within_cpu("reading it"), pytest.raises(InputError) as caught:
        read_yaml(text, "doc")
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("source: 2023-02-30", {"source": "2023-02-30"}),  # no such day: dates stay text
        ("a: 2023-02-03", {"a": "2023-02-03"}),
        ("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}", {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}}),
        ("a: =", {"a": "="}),
        ("!!str 1", "1"),
        ("!!float 1", 1.0),
        ("", None),
        ("~: 1", {None: 1}),
        (f"a: {'9' * 5000}", {"a": "9" * 5000}),
        ("[yes, No, on, 0x1F, 017, 0b11, 1_000, 1:30, -.inf, 1e3, 1.5e+3, -1e-9, '1e-9', -0, +7]",
         [True, False, True, 31, 15, 3, 1000, 90, float("-inf"), "1e3", 1500.0, -1e-9, "1e-9", 0, 7]),
    ],
)  # fmt: skip
def test_what_is_unusual_is_read_all_the_same(text: str, value: object) -> None:
    assert read_yaml(text, "doc") == value


@pytest.mark.parametrize("path", PLATFORMS, ids=lambda path: path.stem)
def test_platforms_are_what_the_safe_loader_of_pyyaml_reads(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    # But for 1e-9, which YAML 1.1 wants to have a dot.
    assert read_yaml(text, path.name) == yaml.safe_load(re.sub(r"(?<![\w.])(\d+)(e[-+]\d+)\b", r"\1.\2", text))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[" * 100_000, "json: cannot be parsed as JSON"),
        ("[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2), "is nested deeper than"),
        ("9" * 5000, "cannot be parsed as JSON"),
        ('{"a": }', "json:1:7: is not JSON"),
        ("[" * 4_000_001, "is too large"),
        (b"\xff", "cannot be parsed as JSON"),
    ],
    ids=["deep", "deeper than allowed", "digits", "damaged", "marks", "bytes"],
)
def test_a_hostile_json_is_refused_in_one_line(text: str | bytes, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        read_json(text, "json")


def test_a_large_file_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_bytes(b"a: [\n" * (MAX_BYTES // 5 + 1))  # no YAML, which nobody finds
    with pytest.raises(PlatformError, match="has more than 8388608 bytes; a platform file must be smaller"):
        load_platform(path)
    with pytest.raises(InputError, match="is a pipe, a device or a socket"):
        read_text("/dev/zero", "a text")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("nodes.count", "99999999999"),
        ("nodes.cores", "99999999999"),
        ("nodes.cpus", "9999999999999999999999"),
        ("nodes.first_number", "9999999999999999999999"),
        ("topology", "{kind: torus, parameters: '999999999'}"),
        ("topology", "{kind: torus, parameters: '" + "9,9," * 40_000 + "9'}"),
        ("topology", "{kind: fat-tree, parameters: '2;2,2;999999999,1;1,1'}"),
        ("topology", "{kind: fat-tree, parameters: '2;2,2;1,1;1,999999999'}"),
        ("topology", "{kind: dragonfly, parameters: '2,1;1,1;30000,1;1'}"),
        ("topology", "{kind: graph, switches: [{name: s, nodes: 1-999999999}]}"),
        ("topology", "{kind: graph, switches: [{name: s, nodes: \u00b2}]}"),
        ("name", "? [a, b]"),
        ("name", "!!bool x"),
        ("name", "- " * 5000),
        ("source", "0b_"),
    ],
)
def test_a_hostile_setting_is_refused_in_one_line_before_it_is_spelt_out(field: str, value: str) -> None:
    small = load_platform(SMALL)
    with within_cpu("the setting"), pytest.raises(LepauteError) as caught:
        override(small, {field: value})
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000


CLUSTER = (
    '<platform version="4.1"><zone id="z" routing="Full"><cluster id="c" prefix="n" suffix="" radical="{radical}" '
    'speed="1Gf" core="{core}" bw="{bw}" lat="1us" topology="{topology}" topo_parameters="{parameters}"/>'
    "</zone></platform>"
)
SOUND = {"radical": "0-3", "core": "1", "bw": "1GBps", "topology": "FLAT", "parameters": ""}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b'<?xml version="1.0" encoding="shift_jis"?><platform/>', "declares the encoding 'shift_jis'"),
        (b'<?xml version="1.0" encoding="bogus"?><platform/>', "declares the encoding 'bogus'"),
        (b'<?xml version="1.0" encoding="utf-7"?><platform/>', "declares the encoding 'utf-7'"),
        ('<?xml version="1.0"?><platform/>'.encode("utf-16"), "is in UTF-16"),
        ("<platform/>".encode("utf-32-le"), "is in UTF-16 or UTF-32"),
        (b'<platform><host id="' + b"9" * 5000 + b'"/></platform>', "a name has more than 200 characters"),
        (
            CLUSTER.format(**SOUND | {"topology": "TORUS", "parameters": "999999999"})
            .replace("<zone", '<config><prop id="smpi/lat-factor" value="1"/></config><zone', 1)
            .encode(),
            "a torus of more than",
        ),
        (CLUSTER.format(**SOUND | {"core": "\u00b2"}).encode(), "core of cluster"),
        (CLUSTER.format(**SOUND | {"core": "9" * 5000}).encode(), "core of cluster"),
        (CLUSTER.format(**SOUND | {"bw": "1e-390Bps"}).encode(), "is not a valid platform"),
        (CLUSTER.format(**SOUND | {"bw": "9" * 5000}).encode(), "bw of cluster"),
    ],
)
def test_a_hostile_xml_is_refused_in_one_line(text: bytes, complaint: str) -> None:
    with pytest.raises(LepauteError) as caught:
        import_xml(text, "p.xml")
    assert str(caught.value).startswith("p.xml:")
    assert complaint in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_a_bandwidth_that_ends_up_as_zero_is_refused_by_the_platform_and_divides_nothing() -> None:
    """Of a file of ours, whose latencies hold the time of 16 bytes, the factor may lead to a bandwidth of 0."""
    text = export_xml(load_platform(SMALL)).text
    name = 'prop id="smpi/bw-factor" value="'
    before, _, after = text.partition(name)
    assert after
    with pytest.raises(PlatformError, match="is not a valid platform"):
        import_xml(f'{before}{name}0:1e-390"{after.partition(chr(34))[2]}')


ROW: dict[str, Any] = {"rank": [0], "start_s": [0.0], "duration_s": [1.0], "kind": ["kernel"], "name": ["dgemm"]}


def written(path: Path, columns: dict[str, Any], **metadata: object) -> Path:
    """A trace file with these columns."""
    stored = json.dumps({"format": "lepaute-trace/1"} | metadata)
    pq.write_table(pa.table(columns).replace_schema_metadata({"lepaute-trace": stored}), path, compression="zstd")
    return path


@pytest.mark.parametrize(
    ("name", "value"),
    [("ranks", "two"), ("ranks", -1), ("ranks", 2**80), ("nodes", ["a"]), ("nodes", [-5]), ("hosts", 3), ("hosts", [1]),
     ("warnings", 7), ("warnings", "w"), ("unsized", [None]), ("resolution_s", "1"), ("whole", 3), ("engine", [])],
)  # fmt: skip
def test_metadata_of_the_wrong_type_are_refused_in_one_line(tmp_path: Path, name: str, value: object) -> None:
    path = written(tmp_path / "t.parquet", ROW, **{name: value})
    with pytest.raises(InputError) as caught:
        read_trace(path)
    assert str(caught.value).startswith(f"{path}: its metadata 'lepaute-trace': ")
    assert name in str(caught.value)


def test_a_trace_that_would_not_fit_its_budget_is_refused_before_it_is_read(tmp_path, monkeypatch):
    rows = 12_000_000  # 114 bytes each; the file has a few kilobytes
    same = {name: pa.array(numpy.zeros(rows, dtype)) for name, dtype in (("rank", "int32"), ("start_s", "float64"))}
    texts = pa.DictionaryArray.from_arrays(pa.array(numpy.zeros(rows, "int32")), pa.array(["kernel"]))
    path = written(tmp_path / "t.parquet", {**same, "duration_s": same["start_s"], "kind": texts, "name": texts})
    del same, texts
    assert path.stat().st_size < 1_000_000
    monkeypatch.setattr(pq.ParquetFile, "read", lambda *_, **__: pytest.fail("it is read"))
    with pytest.raises(InputError, match="would take 1368000000 bytes as a table; at most 1073741824 are read"):
        read_trace(path)


def test_one_long_text_in_every_row_costs_nothing(tmp_path: Path) -> None:
    rows = 100_000
    texts = pa.DictionaryArray.from_arrays(pa.array(numpy.zeros(rows, "int32")), pa.array(["x" * 100_000]))  # 10 GB
    columns = {name: numpy.zeros(rows) for name in ("start_s", "duration_s")} | {"rank": numpy.zeros(rows, "int32")}
    kinds = pa.DictionaryArray.from_arrays(pa.array(numpy.zeros(rows, "int32")), pa.array(["kernel"]))
    trace = read_trace(written(tmp_path / "t.parquet", {**columns, "kind": kinds, "name": texts}))
    assert len(trace) == rows
    assert [len(name) for name in trace.names] == [100_000]


@pytest.mark.parametrize(
    ("column", "value"), [("start_s", 1e300), ("duration_s", 1e300), ("m", float("nan")), ("k", 1e300)]
)
def test_numbers_of_a_trace_have_bounds(tmp_path: Path, column: str, value: float) -> None:
    with pytest.raises(InputError, match=f"{column} of row 0 is"):
        read_trace(written(tmp_path / "t.parquet", {**ROW, column: [value]}))


def test_a_name_of_a_trace_that_is_no_utf_8_is_refused_in_one_line(tmp_path: Path) -> None:
    path = written(tmp_path / "t.parquet", {**ROW, "name": ["dgemmdgemm"]})
    data = path.read_bytes()
    assert b"dgemmdgemm" in data
    path.write_bytes(data.replace(b"dgemmdgemm", b"dgemm\xed\xa0mm!"))
    with pytest.raises(InputError, match="is not a readable table"):
        read_trace(path)
