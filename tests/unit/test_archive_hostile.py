"""Archives made to harm: each is refused with one line, before anything of it is written, run or held in memory."""

import io
import pickle
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pandas
import pyarrow
import pyarrow.parquet
import pytest
from support_archive import experiment_archive, refused, sealed

from lepaute.errors import ArchiveError
from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.measure.archive.container import MAX_RATIO, seal
from lepaute.measure.archive.documents import MAX_MEMBERS, Member
from lepaute.measure.archive.reader import MAX_TABLE_BYTES
from lepaute.measure.archive.ro_crate import check_crate
from lepaute.measure.archive.setups.facts import Fact, file_facts, lstopo

METADATA = {"kind": "experiment", "created": "2026-11-21T06:00:00+00:00"}
META = {"metadata.json": b'{"kind": "experiment", "created": "2026-11-21"}'}
LOCAL, CENTRAL, END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
ESCAPES = "../evil a/../../evil /etc/evil C:evil C:\\evil \\\\host\\share a//b a/./b evil/ ."


@pytest.mark.parametrize("name", [*ESCAPES.split(), "x\x1b[2J", "x\ny", "a\u202egpj.exe", "n" * 256, "d/" * 39 + "d"])
def test_a_name_that_climbs_escapes_or_is_no_path_is_refused(tmp_path, name: str) -> None:
    assert "refuse such an archive" in refused(sealed(tmp_path / "a.zip", {**META, name: b"x"}))


def test_a_member_that_is_the_folder_of_another_is_refused_and_cannot_be_written(tmp_path: Path) -> None:
    assert "is also the folder of" in refused(sealed(tmp_path / "a.zip", {**META, "a": b"1", "a/b": b"2"}))
    for first, second in (("a", "a/b"), ("a/b", "a")):
        with ArchiveWriter(tmp_path / "b.zip", dict(METADATA)) as writer:
            writer.add_bytes(first, b"")
            with pytest.raises(ArchiveError, match="both a file and a folder"):
                writer.add_bytes(second, b"")


def put(mark: bytes, offset: int, form: str, *values: int) -> Callable[[bytearray], None]:
    """Sets fields of the first record with this mark."""
    return lambda data: struct.pack_into(form, data, data.index(mark) + offset, *values)


def prefix(data: bytearray) -> None:
    """A program that unpacks itself."""
    data[:0] = hidden = b"PK, not for you"
    put(END, 16, "<L", data.index(CENTRAL))(data)
    for at in [entry.start() + 42 for entry in re.finditer(CENTRAL, data)]:
        struct.pack_into("<L", data, at, struct.unpack_from("<L", data, at)[0] + len(hidden))


def gap(data: bytearray) -> None:
    start = data.index(CENTRAL)
    data[start:start] = b"hidden"
    put(END, 16, "<L", start + 6)(data)


def overlap(data: bytearray) -> None:
    """The bomb of overlapping entries: one stream of bytes, unpacked again for each of many names."""
    second = data.index(CENTRAL, data.index(CENTRAL) + 1)
    struct.pack_into("<L", data, second + 42, 0)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (prefix, "does not begin where"),
        (gap, "6 bytes that belong to no member"),
        (overlap, "does not begin where"),
        (put(CENTRAL, 10, "<H", zipfile.ZIP_LZMA), "packed in a way that Lepaute never writes"),
        (put(CENTRAL, 24, "<L", 10), "unpacks to more than it declares"),
        (put(END, 12, "<L", 10), "its directory cannot be read"),
    ],
)
def test_a_zip_that_is_not_as_written_is_refused(tmp_path, edit: Callable[[bytearray], None], message: str) -> None:
    """What hides, is told twice or does not fit is read by other programs, or by nobody."""
    path = sealed(tmp_path / "a.zip", {**META, "raw/a": b"0" * 5000})
    data = path.read_bytes()
    data = bytearray(data[: data.rindex(END) + 20] + b"\0\0")
    edit(data)
    path.write_bytes(data)
    seal(path)
    assert message in refused(path)


def test_a_directory_of_too_many_entries_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as packed:
        for number in range(MAX_MEMBERS + 1):
            packed.writestr(zipfile.ZipInfo(str(number)), b"")
    seal(path)
    assert f"has {MAX_MEMBERS + 1} members" in refused(path)


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    assert "no measurement compresses so well" in refused(sealed(tmp_path / "a.zip", {**META, "x": bytes(64 << 20)}))


def test_what_compresses_like_a_bomb_is_stored_so_that_our_own_archive_opens(tmp_path: Path) -> None:
    zeros = bytes(5 << 20)
    assert len(zeros) > MAX_RATIO * len(zlib.compress(zeros)) * 0.9
    (tmp_path / "zeros").write_bytes(zeros)
    with ArchiveWriter(tmp_path / "a.zip", dict(METADATA)) as writer:
        writer.add_bytes("files/a", zeros)
        writer.add_file("files/b", tmp_path / "zeros")
        writer.add_file("files/c", __file__)
    archive = Archive.open(tmp_path / "a.zip")
    assert archive.read_bytes("files/a") == archive.read_bytes("files/b") == zeros
    assert archive.read_bytes("files/c") == Path(__file__).read_bytes()


def test_a_member_is_streamed_and_its_end_is_reached_only_when_its_hash_is_right(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    content = bytes(range(256)) * 9000
    with ArchiveWriter(path, dict(METADATA)) as writer:
        writer.add_bytes("big", content)
    archive = Archive.open(path)
    # zlib takes the last packed byte of this one before it gives the last 185 bytes
    lines = (b"0.125,17,node-3\n" * 70_000)[: (1 << 20) + 185]
    assert Archive.open(sealed(tmp_path / "b.zip", {**META, "x": lines})).read_bytes("x") == lines
    with archive.open_member("big") as stream:
        assert stream.read(300) == content[:300]
        assert stream.read() == content[300:]
    with ArchiveWriter(path, dict(METADATA)) as writer:
        writer.add_bytes("big", content[:-1] + b"!")
    with archive.open_member("big") as stream, pytest.raises(ArchiveError, match="changed since"):
        stream.read()


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"kind": ' + "9" * 10_000 + "}",
        '{"kind": "x", "a": [' + "[]," * 5_000_000 + "0]}",
    ],
)
def test_deep_long_and_swollen_json_is_refused(tmp_path: Path, text: str) -> None:
    path = sealed(tmp_path / "a.zip", {"metadata.json": text.encode()}, zipfile.ZIP_STORED)
    assert "is not an object with a kind" in refused(path)


class Bang:
    """Its pickle writes a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.write_text, (self.path, "it ran")


def table_archive(path: Path, name: str, data: bytes) -> Archive:
    with ArchiveWriter(path, dict(METADATA)) as writer:
        writer.add_bytes(name, data)
    return Archive.open(path)


# PyArrow before 21 says that it does not load the pickle, and gives a type that is refused; later ones know none.
@pytest.mark.filterwarnings(
    "ignore:pickle-based deserialization:RuntimeWarning", "ignore:pyarrow.PyExtensionType:FutureWarning"
)
def test_a_pickle_in_a_table_is_never_loaded(tmp_path: Path) -> None:
    """In the places where pandas and pyarrow have loaded pickles: extension types, and pandas' own formats."""
    witness = tmp_path / "witness"
    bang = pickle.dumps(Bang(witness))
    extension = {"ARROW:extension:name": "arrow.py_extension_type", "ARROW:extension:metadata": bang}
    field = pyarrow.field("a", pyarrow.int64(), metadata=extension)
    schema = pyarrow.schema([field], metadata={"pandas": bang, "lepaute": bang})
    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}, schema=schema), out)
    archive = table_archive(tmp_path / "a.zip", "t.parquet", out.getvalue())
    if hasattr(pyarrow, "PyExtensionType"):
        with pytest.raises(ArchiveError, match="only plain types are read"):
            archive.table("t.parquet")
    else:
        assert archive.table("t.parquet")["a"].tolist() == [1]
    for name in ("t.pkl", "t.parquet", "t.csv"):
        archive = table_archive(tmp_path / "a.zip", name, bang)
        if name != "t.csv":
            with pytest.raises(ArchiveError, match=r"is not a (readable )?table"):
                archive.table(name)
    assert not witness.exists()
    pickle.loads(bang)
    assert witness.exists()  # it would have been seen


def test_a_parquet_that_spells_one_long_text_out_in_every_row_is_refused(tmp_path: Path) -> None:
    """A dictionary of one entry and a run-length: a megabyte that is terabytes."""
    indices = pyarrow.array([0] * 3000, type=pyarrow.int32())
    column = pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array(["x" * (1 << 20)]))
    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"a": column}), out, store_schema=False)
    assert len(out.getvalue()) < 4 << 20 < MAX_TABLE_BYTES < 3000 << 20
    archive = table_archive(tmp_path / "a.zip", "t.parquet", out.getvalue())
    with pytest.raises(ArchiveError, match=r"would take \d+ bytes as a table"):
        archive.table("t.parquet")


def test_tables_too_wide_or_nested_are_refused(tmp_path: Path) -> None:
    wide = ",".join(["1"] * 20_000).encode()
    archive = table_archive(tmp_path / "a.zip", "t.csv", b"# a comment\na,b\n" + wide + b"\n")
    with pytest.raises(ArchiveError, match="more than 10000 columns"):
        archive.table("t.csv")
    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"a": [[1, 2], [3]]}), out)
    archive = table_archive(tmp_path / "a.zip", "t.parquet", out.getvalue())
    with pytest.raises(ArchiveError, match="only plain types are read"):
        archive.table("t.parquet")


def test_tables_come_back_as_pandas_itself_would_read_them(tmp_path: Path) -> None:
    frame = pandas.DataFrame(
        {
            "whole": [1, 2, 3],
            "real": [0.5, None, 2.0],
            "text": ["a", None, "c"],
            "flag": [True, False, True],
            "when": pandas.to_datetime(["2026-11-21", "2026-11-22", None], utc=True),
            "kind": pandas.Categorical(["x", "y", "x"]),
        }
    )
    out = io.BytesIO()
    frame.to_parquet(out, index=False)
    archive = table_archive(tmp_path / "a.zip", "t.parquet", out.getvalue())
    pandas.testing.assert_frame_equal(archive.table("t.parquet"), pandas.read_parquet(io.BytesIO(out.getvalue())))


def test_entities_of_a_topology_are_not_expanded() -> None:
    """A billion laughs, and the file of another: both are declared, so the document is not read."""
    laughs = "".join(f'<!ENTITY l{n} "{"&l" + str(n - 1) + ";" if n else "ha"}' + "x" * 10 + '">' for n in range(20))
    for declared in (laughs, '<!ENTITY l19 SYSTEM "file:///etc/passwd">'):
        text = f'<!DOCTYPE topology [{declared}]><topology><object type="PU" os_index="&l19;"/></topology>'
        assert lstopo(text) == []
    assert lstopo("<a>" * 100_000) == []
    one = Fact("hardware", "topology", frozenset({"1 PU"}))
    for encoding in ("UTF-8", "U", "utf-7", "idna", "no such thing"):  # found by the fuzzer: a codec was looked up
        found = lstopo(
            f'<?xml version="1.0" encoding="{encoding}"?><topology><object type="PU" os_index="0"/></topology>'
        )
        assert found[:1] in ([one], [])
    assert lstopo('<?xml version="1.0" encoding="U"?><topology><object type="PU"/></topology>')[0] == one


@pytest.mark.slow
def test_work_on_a_file_grows_no_faster_than_the_file() -> None:
    """Two megabytes that would take hours where the work grows with the square; the answer matters less."""
    for name, piece in (
        ("governor.txt", "["),
        ("dmesg.txt", "clocksource"),
        ("cmdline.txt", "'"),
        ("dmidecode.txt", "\n "),
        ("cpuinfo.txt", "processor\n"),
        ("packages.txt", "a-1-1\n"),
    ):
        file_facts(name, (piece * (2_000_000 // len(piece))).encode())


def test_a_description_that_was_not_written_with_the_archive_is_noticed(tmp_path: Path) -> None:
    path = experiment_archive(tmp_path / "a.zip")
    check_crate(Archive.open(path))
    with zipfile.ZipFile(path) as packed:
        members = {name: packed.read(name) for name in packed.namelist() if name != "manifest.json"}
    crate = members["ro-crate-metadata.json"]
    digest = Member.of(members["design.csv"]).sha256.encode()
    for change, message in (
        (crate.replace(digest, b"0" * 64), "member design.csv has another size or SHA-256"),
        (crate.replace(b'"design.csv"', b'"other.csv"'), "it describes other.csv, which the archive lacks"),
        (crate.replace(b"crate/1.1", b"crate/9.9"), "does not say that ./ conforms to"),
        (crate.replace(b'"Dataset"', b'"Thing"'), "the root lacks its type Dataset"),
        (b"{", "is not JSON"),
    ):
        archive = Archive.open(sealed(path, {**members, "ro-crate-metadata.json": change}))
        with pytest.raises(ArchiveError, match=message):
            check_crate(archive)
    archive = Archive.open(sealed(path, {**members, "added.csv": b"1"}))
    with pytest.raises(ArchiveError, match=r"member added\.csv is not described"):
        check_crate(archive)
