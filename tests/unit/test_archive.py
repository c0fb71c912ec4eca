"""Archives: what goes in comes out, and no damage passes unseen. Damage is real: bytes of files are changed."""

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


def test_reading_a_member_that_is_not_there_names_the_command_that_lists_them(archive_file: Path) -> None:
    archive = Archive.open(archive_file)
    with pytest.raises(ArchiveError, match=r"has no member nothing.csv; `lepaute archive show`"):
        archive.read_bytes("nothing.csv")
    with pytest.raises(ArchiveError, match=r"only \.parquet and \.csv are"):
        archive.table("metadata.json")


def test_a_file_that_changed_after_it_was_opened_is_noticed(archive_file: Path) -> None:
    archive = Archive.open(archive_file)
    with ArchiveWriter(archive_file, dict(METADATA)) as writer:
        writer.add_bytes("raw/block0/p2p.csv", RAW.replace(b"17", b"18"))
    with pytest.raises(ArchiveError, match="changed since the archive was opened"):
        archive.read_bytes("raw/block0/p2p.csv")
