"""Writing archives: whole or not at all, and an RO-Crate that other programs understand."""

import json
import zipfile
from pathlib import Path

import pandas
import pytest

from lepaute.errors import ArchiveError
from lepaute.measure.archive import Archive, ArchiveWriter

METADATA = {"kind": "calibration", "created": "2026-11-21T06:00:00+00:00", "host": "node-1", "lepaute_version": "0"}


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
