"""Writing archives: whole or not at all, and an RO-Crate that other programs understand."""

from pathlib import Path

import pytest

from lepaute.archive import Archive, ArchiveWriter
from lepaute.errors import ArchiveError

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


def test_metadata_may_grow_while_the_archive_is_open(tmp_path: Path) -> None:
    with ArchiveWriter(tmp_path / "a.zip", dict(METADATA)) as writer:
        writer.metadata["partial"] = True
    assert Archive.open(tmp_path / "a.zip").metadata["partial"] is True


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
        with pytest.raises(ArchiveError, match="is there already"):
            writer.add_bytes("a", b"")


def test_metadata_without_kind_or_date_are_refused(tmp_path: Path) -> None:
    for key in ("kind", "created"):
        with pytest.raises(ArchiveError, match=f"lack {key}"):
            ArchiveWriter(tmp_path / "a.zip", {k: v for k, v in METADATA.items() if k != key})


def test_a_folder_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="cannot be written"), ArchiveWriter(tmp_path / "no" / "a.zip", METADATA):
        pass


def test_the_rocrate_package_opens_what_we_write(tmp_path: Path) -> None:
    """The maintained RO-Crate library is the judge of our JSON-LD."""
    import zipfile

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
    assert parts == {"raw/block0/p2p.csv", "metadata.json", "commands.json", "manifest.json"}
    for part in parts:
        assert (tmp_path / "crate" / part).is_file()
        assert crate.get(part).type == "File"
    assert crate.get("raw/block0/p2p.csv")["encodingFormat"] == "text/csv"
    assert crate.metadata["conformsTo"] == "https://w3id.org/ro/crate/1.1"
