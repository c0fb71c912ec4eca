"""Python files of users: what runs is what the file says, whatever bytecode lies there."""

import os
import py_compile
import sys
import traceback
from pathlib import Path

import pytest
from support_run import run_lepaute

from lepaute.archive import Archive
from lepaute.kit.python_files import Program
from lepaute.simulate.apps.own.loading import loaded

EXPERIMENT = """
import lepaute as lp
{first}

class Times(lp.Job):
    def design(self):
        return lp.design.full_factorial({{"n": [1, 2, 3]}}, seed=self.seed)

    def run(self):
        {later}
        for row in self.rows():
            self.record(value=row["n"] * FACTOR)
"""
APPLICATION = """
import lepaute as lp
{first}

class Computes(lp.Application):
    ranks: int = 2
    work = lp.Cost(1e-3)

    def run(self, me):
        yield me.compute(self.work, FACTOR)
"""
#: Where the factor is: its file, and how the script comes to it.
PLACES = {
    "script": ("main.py", "FACTOR = 9", "pass"),
    "module": ("helper.py", "from helper import FACTOR", "pass"),
    "package": ("package/deep/values.py", "from package.deep.values import FACTOR", "pass"),
    "later": ("helper.py", "", "from helper import FACTOR"),
}


def write_with_old_bytecode(path: Path, text: str) -> None:
    """A file that says 9, and its bytecode, which says 7 and is up to date by date and length."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for content in (text.replace("9", "7"), text):
        path.write_text(content)
        os.utime(path, (1e9, 1e9))
        if content != text:
            py_compile.compile(str(path), doraise=True)


def written(folder: Path, text: str, place: str) -> list[str]:
    """Writes a script and what it imports; the names of all files that it consists of."""
    name, first, later = PLACES[place]
    write_with_old_bytecode(folder / name, "FACTOR = 9\n")
    write_with_old_bytecode(folder / "main.py", text.format(first=first, later=later))
    return sorted({"main.py", name})


def files_in(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.nodes
@pytest.mark.parametrize("place", PLACES)
def test_an_experiment_runs_what_its_archive_keeps_whatever_bytecode_is_there(tmp_path: Path, place: str) -> None:
    sources = written(tmp_path, EXPERIMENT, place)
    before = files_in(tmp_path)
    done = run_lepaute(
        "run", "main.py", "-q", "-o", "x.zip", "--monitor", "0", folder=tmp_path, PYTHONDONTWRITEBYTECODE=""
    )
    assert done.returncode == 0, done.stderr
    archive = Archive.open(tmp_path / "x.zip")
    assert sorted(archive.table("observations/observations.parquet")["value"]) == [9, 18, 27]
    assert sorted(name for name in archive.members() if name.startswith("experiment/")) == [
        f"experiment/{name}" for name in sources
    ]
    for name in sources:
        assert archive.read_bytes(f"experiment/{name}") == (tmp_path / name).read_bytes()
    assert files_in(tmp_path) - before == {tmp_path / "x.zip"}, "bytecode was left"


@pytest.fixture(autouse=True)
def _writes_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


def computed(folder: Path) -> tuple[int, str]:
    """What the application there computes, and its digest."""
    cls = loaded("main.py", folder)
    return sys.modules[cls.__module__].FACTOR, cls().code


@pytest.mark.parametrize("place", ["script", "module", "package"])
def test_an_application_is_what_its_files_say_and_so_is_its_digest(tmp_path: Path, place: str) -> None:
    written(tmp_path, APPLICATION, place)
    name = PLACES[place][0]
    before = files_in(tmp_path)
    factor, digest = computed(tmp_path)
    assert factor == 9
    assert computed(tmp_path) == (9, digest)
    text = (tmp_path / name).read_text()
    write_with_old_bytecode(tmp_path / name, text.replace("9", "5"))
    changed, other = computed(tmp_path)
    assert (changed, other == digest) == (5, False)
    (tmp_path / name).write_text(text)
    assert computed(tmp_path) == (9, digest)
    assert files_in(tmp_path) == before


def test_modules_of_one_name_in_two_folders_are_two_and_both_applications_of_one_folder_have_it(tmp_path: Path) -> None:
    for folder, value in (("a", 9), ("b", 5)):
        written(tmp_path / folder, APPLICATION, "module")
        (tmp_path / folder / "helper.py").write_text(f"FACTOR = {value}\n")
    (tmp_path / "a" / "other.py").write_text((tmp_path / "a" / "main.py").read_text() + "# other\n")
    assert [computed(tmp_path / folder)[0] for folder in "aba"] == [9, 5, 9]
    before = loaded("other.py", tmp_path / "a").file_sha256
    (tmp_path / "a" / "helper.py").write_text("FACTOR = 1\n")
    assert loaded("other.py", tmp_path / "a").file_sha256 != before


def test_a_session_keeps_the_modules_that_it_has_imported_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, APPLICATION, "module")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "helper", raising=False)
    import helper  # type: ignore[import-not-found]

    assert helper.FACTOR == 7  # Python's own import, by date and length
    try:
        assert computed(tmp_path)[0] == 9
        assert sys.modules["helper"] is helper
    finally:
        del sys.modules["helper"]


def test_a_traceback_shows_the_lines_that_ran(tmp_path: Path) -> None:
    script = tmp_path / "main.py"
    script.write_text("import helper\n\ndef fail():\n    helper.fail()\n")
    (tmp_path / "helper.py").write_text("def fail():\n    1 / 0  # as it ran\n")
    program = Program(script)
    (tmp_path / "helper.py").write_text("\n\n\n")
    with pytest.raises(ZeroDivisionError) as failed:
        program.module.fail()
    shown = "".join(traceback.format_exception(failed.value))
    assert f'{tmp_path}/helper.py", line 2' in shown
    assert "1 / 0  # as it ran" in shown
