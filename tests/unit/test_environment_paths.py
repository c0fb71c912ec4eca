"""Folders that the environment names: of any name they work, and where they cannot, one line says so at once."""

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from support_rights import obeying_permissions

from lepaute.errors import EnvironmentProblem
from lepaute.kit.builds import built_once, cache_folder
from lepaute.kit.temporary import is_plain, plain_name, temporary_folder, temporary_parent

#: What the dynamic linker, a shell or SimGrid cut into pieces.
ODD = "a b:c'd\"e;$f,ü"


def test_a_library_gets_a_plain_name(tmp_path: Path) -> None:
    library = tmp_path / ODD / "lib.so"
    library.parent.mkdir()
    library.write_text("content")
    for within in (None, tmp_path, library.parent):
        with plain_name(library, within) as name:
            assert is_plain(name)
            assert name.read_text() == "content"
        if within is None:
            assert not name.exists()
    plain = tmp_path / "lib.so"
    with plain_name(plain) as name:
        assert name == plain


def test_a_folder_with_a_plain_name_is_found_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = tmp_path / ODD
    odd.mkdir()
    monkeypatch.setenv("TMPDIR", str(odd))
    with temporary_folder("x-") as folder, temporary_folder("x-", plain=True) as other:
        assert folder.parent == odd
        assert is_plain(other)
        assert other.is_dir()
    assert not folder.exists()
    assert not other.exists()


def test_a_relative_folder_is_the_same_for_programs_in_other_folders(tmp_path, monkeypatch):
    (tmp_path / "t").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", "t")
    monkeypatch.setenv("LEPAUTE_HOME", "home")
    assert temporary_parent() == tmp_path / "t"
    assert subprocess.check_output(["sh", "-c", "echo $TMPDIR"], cwd="/", text=True).strip() == str(tmp_path / "t")
    assert cache_folder() == tmp_path / "home"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        *(("TMPDIR", f"{{here}}/{name}") for name in ("missing", "file", "file/below", "x" * 300)),
        *(
            ("LEPAUTE_HOME", value)
            for value in ("~nobody-of-this-name/x", "/tmp/a\udcff", "/tmp/a\x1b[2J", "/tmp/a\nb")
        ),
    ],
)
def test_a_folder_that_cannot_be_used_is_told_with_its_variable(variable, value, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv(variable, value.replace("{here}", str(tmp_path)))
    with pytest.raises(EnvironmentProblem, match=variable):
        temporary_folder("x-").__enter__() if variable == "TMPDIR" else cache_folder()


def test_no_folder_with_a_plain_name_is_one_line(tmp_path, monkeypatch) -> None:
    (tmp_path / ODD).mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / ODD))
    monkeypatch.setattr("lepaute.kit.temporary._PLACES", ())
    with pytest.raises(EnvironmentProblem, match="set TMPDIR"), temporary_folder("x-", plain=True):
        pass


@obeying_permissions
def test_a_temporary_folder_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o500)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match="which is not writable"), temporary_folder("x-"):
        pass


@pytest.mark.parametrize("full", [{"f_bavail": 10}, {"f_favail": 0}])
def test_a_full_disk_is_told_before_anything_is_built(full, tmp_path, monkeypatch):
    disk = {"f_bavail": 10**6, "f_frsize": 4096, "f_blocks": 10**6, "f_files": 10**6, "f_favail": 10**6, **full}
    monkeypatch.setattr(os, "statvfs", lambda _folder: SimpleNamespace(**disk))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match=r"disk is full.*TMPDIR"), temporary_folder("x-"):
        pass
    with pytest.raises(EnvironmentProblem, match=r"disk is full.*LEPAUTE_HOME"):
        built_once("x", [], "product", lambda _folder: None, tmp_path / "cache")
