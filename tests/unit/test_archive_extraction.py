"""Extraction writes inside its folder, nothing over anything, and nothing at all where something is wrong."""

import errno
import os
from pathlib import Path

import pytest
from support_archive import experiment_archive

from lepaute.cli.main import main
from lepaute.errors import ArchiveError, InputError
from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.measure.archive.extraction import extract

METADATA = {"kind": "experiment", "created": "2026-11-21T06:00:00+00:00"}


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive.open(experiment_archive(tmp_path / "a.zip"))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_all_members_and_the_manifest_come_out_as_they_went_in(archive: Archive, tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    written = extract(archive, out)
    expected = {name: archive.read_bytes(name) for name in archive.members()} | {"manifest.json": archive.manifest}
    assert contents(out) == expected
    assert sorted(written) == sorted(expected)
    assert all(path.stat().st_mode & 0o777 == 0o644 for path in out.rglob("*") if path.is_file())  # nothing can be run


def test_members_and_folders_are_chosen_by_name(archive: Archive, tmp_path: Path) -> None:
    out = tmp_path / "out"
    extract(archive, out, ["raw/bench.csv", "environment/node2/"])
    names = set(contents(out))
    assert "raw/bench.csv" in names
    assert {name.rpartition("/")[0] for name in names} == {"raw", "environment/node2"}
    with pytest.raises(InputError, match=r"has no member raw/bench\.cvs; did you mean raw/bench\.csv\?"):
        extract(archive, tmp_path / "none", ["log.txt", "raw/bench.cvs"])
    assert not (tmp_path / "none").exists()


def test_a_file_that_is_there_is_kept_and_nothing_is_written_unless_forced(archive: Archive, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "raw").mkdir(parents=True)
    (out / "raw" / "bench.csv").write_text("mine")
    with pytest.raises(InputError, match="--force to replace"):
        extract(archive, out)
    assert contents(out) == {"raw/bench.csv": b"mine"}
    extract(archive, out, force=True)
    assert contents(out)["raw/bench.csv"] == archive.read_bytes("raw/bench.csv")


@pytest.mark.parametrize("force", [False, True])
def test_links_and_files_where_folders_must_be_stay(archive: Archive, tmp_path, force: bool) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "log.txt").write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    (out / "environment").write_text("mine")
    with pytest.raises(InputError, match="environment: is a link or no folder"):
        extract(archive, out, force=force)
    (out / "environment").unlink()
    (out / "raw").symlink_to(outside, target_is_directory=True)
    with pytest.raises(InputError, match="is a link or no folder"):
        extract(archive, out, force=force)
    (out / "raw").unlink()
    for target in (outside / "log.txt", outside / "dangling"):
        (out / "log.txt").symlink_to(target)
        with pytest.raises(InputError, match=r"log\.txt: (exists already|is a link or no file)"):
            extract(archive, out, force=force)
        (out / "log.txt").unlink()
    assert contents(outside) == {"log.txt": b"mine"}
    assert contents(out) == {}


def test_names_that_some_file_systems_take_for_one_are_not_written(tmp_path: Path) -> None:
    for first, second in (("files/Makefile", "files/makefile"), ("é", "e\u0301"), ("A/x", "a/y")):
        with ArchiveWriter(tmp_path / "a.zip", dict(METADATA)) as writer:
            writer.add_bytes(first, b"1")
            writer.add_bytes(second, b"2")
        archive = Archive.open(tmp_path / "a.zip")
        with pytest.raises(ArchiveError, match="extract them one by one"):
            extract(archive, tmp_path / "out")
        assert not (tmp_path / "out").exists()
        extract(archive, tmp_path / "one", [first])
        extract(archive, tmp_path / "other", [second])


def test_an_archive_that_changes_meanwhile_leaves_no_wrong_file(archive: Archive, tmp_path: Path) -> None:
    experiment_archive(archive.path, design_csv="node,size\nnode1,1\n", seed=9)
    with pytest.raises(ArchiveError, match="changed since"):
        extract(archive, tmp_path / "out", ["design.csv"])
    assert list((tmp_path / "out").iterdir()) == []


def test_the_command_says_how_many_files_and_refuses_in_one_line(archive, tmp_path, refusal_of, output_of):
    arguments = ["archive", "extract", str(archive.path), "raw", "log.txt", "-o", str(tmp_path / "out")]
    assert output_of(*arguments) == f"{tmp_path / 'out'}: 2 files of {archive.path}, 61 B\n"
    refusal_of(*arguments)
    assert main([*arguments, "--force"]) == 0


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP])
def test_a_file_system_without_hard_links_gets_the_files_and_keeps_what_appears_meanwhile(
    code: int, archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(_source: str, target: str, **_: object) -> None:
        if target == appearing:
            (tmp_path / "out" / target).write_text("precious")
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", link)
    appearing = ""
    extract(archive, tmp_path / "out", ["log.txt"])
    with archive.open_member("log.txt") as member:
        assert (tmp_path / "out" / "log.txt").read_bytes() == member.read()
    (tmp_path / "out" / "log.txt").unlink()
    appearing = "log.txt"
    with pytest.raises(InputError, match="File exists"):
        extract(archive, tmp_path / "out", ["log.txt"])
    assert [path.read_text() for path in (tmp_path / "out").iterdir()] == ["precious"]
