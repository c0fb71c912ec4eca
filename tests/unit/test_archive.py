"""Archives are written whole or not at all; what goes in comes out, and no damage passes unseen."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pandas
import pytest
from support_archive import refused, sealed

from lepaute.errors import ArchiveError
from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.measure.archive.container import seal
from lepaute.measure.archive.documents import archive_id

METADATA = {"kind": "calibration", "created": "2026-11-21T06:00:00+00:00", "host": "node-1", "lepaute_version": "0"}
RAW = b"#@seed=3\ndesign_row,size_bytes\n0,17\n1,4\n"


@pytest.fixture
def archive_file(tmp_path: Path) -> Path:
    path = tmp_path / "calibration.zip"
    with ArchiveWriter(path, dict(METADATA)) as writer:
        writer.add_bytes("raw/block0/p2p.csv", RAW)
        writer.add_table("observations/p2p.parquet", pandas.DataFrame({"size_bytes": [17, 4], "host": ["a", "a"]}))
        writer.add_command(["probe", "--seed", "3"], 0, "out", "err", "2026-11-21T06:00:01+00:00", 1.5)
    return path


def test_members_metadata_commands_and_tables_come_back_as_they_went_in(archive_file: Path) -> None:
    archive = Archive.open(archive_file)
    assert archive.metadata == METADATA
    assert archive.read_bytes("raw/block0/p2p.csv") == RAW
    assert archive.table("observations/p2p.parquet")["size_bytes"].tolist() == [17, 4]
    assert archive.table("raw/block0/p2p.csv")["size_bytes"].tolist() == [17, 4]  # provenance lines left out
    command = json.loads(archive.read_bytes("commands.json"))[0]
    assert (command["argv"], command["returncode"], command["duration_s"]) == (["probe", "--seed", "3"], 0, 1.5)
    assert list(archive.members()) == sorted(archive.members())


def test_the_id_is_the_sha256_of_the_manifest_and_depends_on_content_alone(archive_file: Path) -> None:
    archive = Archive.open(archive_file)
    with zipfile.ZipFile(archive_file) as packed:
        assert archive.id == archive_id(packed.read("manifest.json"))
    again = archive_file.with_name("again.zip")
    with ArchiveWriter(again, dict(METADATA)) as writer:
        writer.add_bytes("raw/block0/p2p.csv", RAW)
    other = archive_file.with_name("other.zip")
    with ArchiveWriter(other, dict(METADATA)) as writer:
        writer.add_bytes("raw/block0/p2p.csv", RAW + b"2,5\n")
    first = again.read_bytes()
    with ArchiveWriter(again, dict(METADATA)) as writer:
        writer.add_bytes("raw/block0/p2p.csv", RAW)
    assert again.read_bytes() == first
    assert Archive.open(again).id != Archive.open(other).id


def test_an_archive_of_more_than_two_gib_is_read(archive_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 100)  # from here on its zip has wide fields
    with ArchiveWriter(archive_file, dict(METADATA)) as writer:
        writer.add_bytes("raw.csv", RAW * 9)
    assert Archive.open(archive_file).read_bytes("raw.csv") == RAW * 9


def test_every_changed_byte_of_the_file_is_detected(tmp_path: Path) -> None:
    """Not a sample of bytes: all of them, headers, time stamps and the seal included."""
    small, damaged = tmp_path / "small.zip", tmp_path / "damaged.zip"
    with ArchiveWriter(small, dict(METADATA)) as writer:
        writer.add_bytes("raw.csv", RAW)
    good = small.read_bytes()
    undetected = []
    for position in range(len(good)):
        changed = bytearray(good)
        changed[position] ^= 1 << (position % 8)
        damaged.write_bytes(changed)
        try:
            Archive.open(damaged)
        except ArchiveError:
            continue
        undetected.append(position)
    assert undetected == []


def test_an_archive_that_is_shorter_or_longer_is_refused(archive_file: Path) -> None:
    good = archive_file.read_bytes()
    cut = archive_file.with_name("cut.zip")
    for size in [0, 1, 3, 21, 22, 100, len(good) // 2, len(good) - 80, len(good) - 1]:
        cut.write_bytes(good[:size])
        refused(cut)
    cut.write_bytes(good + b"\0")
    refused(cut)
    cut.write_bytes(good[: len(good) // 2])
    assert "cut short" in refused(cut)


def test_a_foreign_zip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "foreign.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("letter.txt", "dear reader, " * 40)
    assert "another program's zip" in refused(path)
    seal(path)  # somebody went further and sealed it: it still has no manifest
    assert "has no member manifest.json" in refused(path)


META = {"metadata.json": json.dumps(METADATA).encode()}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: sealed(p, META, listed={**META, "raw.csv": RAW}), "member raw.csv is missing"),
        (lambda p: sealed(p, {**META, "extra.csv": RAW}, listed=META), "extra.csv is not in the manifest"),
        (lambda p: sealed(p, {**META, "r.csv": RAW}, listed={**META, "r.csv": RAW + b"!"}), "differs from its SHA-256"),
        (lambda p: sealed(p, {"raw.csv": RAW}), "has no member metadata.json"),
        (lambda p: sealed(p, {"metadata.json": b"[1]"}), "metadata.json is not an object with a kind"),
        (lambda p: sealed(p, {"metadata.json": b"{"}), "metadata.json is not an object with a kind"),
        (lambda p: sealed(p, META, manifest=b'{"format": "lepaute-archive/9", "members": {}}'), "lepaute-archive/9'"),
        (lambda p: p, "no such file"),
        (lambda p: p.write_text("not a zip, but long enough for the record of its end\n" * 9) and p, "not an archive"),
    ],
)
def test_what_is_no_archive_or_a_dishonest_one_is_refused(tmp_path, make: Callable[[Path], Path], message: str) -> None:
    assert message in refused(make(tmp_path / "forged.zip"))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_given_twice_is_refused(tmp_path: Path) -> None:
    path = sealed(tmp_path / "twice.zip", {**META, zipfile.ZipInfo("metadata.json"): b"two"})
    assert "metadata.json is there twice" in refused(path)


def write_and_raise(path: Path, error: type[BaseException]) -> None:
    with ArchiveWriter(path, dict(METADATA)) as writer:
        writer.add_bytes("new.csv", b"a\n2\n")
        raise error


def test_an_exception_or_an_interrupt_leaves_the_older_archive_and_no_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "calibration.zip"
    with ArchiveWriter(path, dict(METADATA)) as writer:
        writer.add_bytes("old.csv", b"a\n1\n")
    before = path.read_bytes()
    for error in (RuntimeError, KeyboardInterrupt):
        with pytest.raises(error):
            write_and_raise(path, error)
        assert path.read_bytes() == before
        assert [entry.name for entry in tmp_path.iterdir()] == ["calibration.zip"]


@pytest.mark.parametrize("name", ["../a", "/a", "a//b", "", ".", "a/./b", "a\\b", "c:a", "a\nb", "a/"])
def test_names_that_lead_elsewhere_cannot_be_written(tmp_path: Path, name: str) -> None:
    with (
        pytest.raises(ArchiveError, match="not a plain relative path"),
        ArchiveWriter(tmp_path / "a.zip", METADATA) as w,
    ):
        w.add_bytes(name, b"")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["manifest.json", "metadata.json", "commands.json", "ro-crate-metadata.json"])
def test_the_archives_own_members_cannot_be_overwritten(tmp_path: Path, name: str) -> None:
    with pytest.raises(ArchiveError, match="writes member"), ArchiveWriter(tmp_path / "a.zip", METADATA) as writer:
        writer.add_bytes(name, b"")


def test_a_name_can_be_used_once_only(tmp_path: Path) -> None:
    with ArchiveWriter(tmp_path / "a.zip", METADATA) as writer:
        writer.add_bytes("a", b"")
        with pytest.raises(ArchiveError, match="exists already"):
            writer.add_bytes("a", b"")


def test_what_a_reader_would_refuse_for_its_size_is_refused_while_it_is_written(tmp_path, monkeypatch):
    """The rest of the archive is kept: the one member that is too much is named when it is added."""
    monkeypatch.setattr("lepaute.measure.archive.writer.MAX_BYTES", (1 << 30) + 3_000_000)
    (tmp_path / "big").write_bytes(bytes(range(256)) * 8000)
    with ArchiveWriter(tmp_path / "a.zip", dict(METADATA)) as writer:
        writer.add_file("first", tmp_path / "big")
        with pytest.raises(ArchiveError, match="with member second the archive would be larger"):
            writer.add_file("second", tmp_path / "big")
        with pytest.raises(ArchiveError, match="cannot be read into the archive"):
            writer.add_file("third", tmp_path / "none")
        writer.add_bytes("small", b"1")
    assert set(Archive.open(tmp_path / "a.zip").members()) >= {"first", "small"}


def test_the_rocrate_package_opens_what_we_write(tmp_path: Path) -> None:
    """The maintained RO-Crate library is the judge of our JSON-LD."""
    from rocrate.rocrate import ROCrate

    path = tmp_path / "calibration.zip"
    with ArchiveWriter(path, dict(METADATA)) as writer:
        writer.add_bytes("raw/block0/p2p.csv", b"a\n1\n")
    with zipfile.ZipFile(path) as packed:
        packed.extractall(tmp_path / "crate")
    crate = ROCrate(tmp_path / "crate")
    root = crate.root_dataset
    assert root["name"] == "Lepaute calibration of node-1"
    assert root["datePublished"] == METADATA["created"]
    assert root["license"]
    parts = {part.id for part in root["hasPart"]}
    assert root["mentions"]["actionStatus"] == "http://schema.org/CompletedActionStatus"
    assert parts == {"raw/block0/p2p.csv", "metadata.json", "commands.json", "manifest.json"}
    for part in parts:
        assert (tmp_path / "crate" / part).is_file()
        assert crate.get(part).type == "File"
    assert crate.get("raw/block0/p2p.csv")["encodingFormat"] == "text/csv"
    assert crate.metadata["conformsTo"] == "https://w3id.org/ro/crate/1.1"


def test_a_table_in_blocks_and_a_list_entry_by_entry_are_what_they_are_in_one_piece(tmp_path: Path) -> None:
    frame = pandas.DataFrame(
        {
            "whole": pandas.array([1, None, 3, 4, 5], dtype="Int64"),
            "number": [0.1, None, 0.3, 0.4, 0.5],
            "text": ["", "b", "", "", "e"],
            "none": [None] * 5,
        }
    ).astype({"none": "float64"})
    entries: list[object] = [{}, {"b": [1, {"c": "x\ny"}], "a": None}, [], "text"]
    command = {"argv": ["a"], "returncode": 0, "stdout": "x\ny", "stderr": "", "start": "", "duration_s": 0.1}
    with ArchiveWriter(tmp_path / "a.zip", dict(METADATA)) as writer:
        writer.add_blocks("blocks.parquet", iter([frame[:2], frame[2:4], frame[4:]]))
        writer.add_blocks("block.parquet", iter([frame]))
        writer.add_table("whole.parquet", frame)
        for count in (0, 1, 4):
            writer.add_list(f"{count}.json", iter(entries[:count]))
        writer.add_command(**command)
    archive = Archive.open(tmp_path / "a.zip")
    assert archive.read_bytes("block.parquet") == archive.read_bytes("whole.parquet")
    pandas.testing.assert_frame_equal(archive.table("blocks.parquet"), archive.table("whole.parquet"))
    for count in (0, 1, 4):
        assert (
            archive.read_bytes(f"{count}.json").decode() == json.dumps(entries[:count], indent=1, sort_keys=True) + "\n"
        )
    assert archive.read_bytes("commands.json").decode() == json.dumps([command], indent=1, sort_keys=True) + "\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.zip"]
