"""Programs built once into the cache."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support_limits import HANG_S

from lepaute.errors import EnvironmentProblem
from lepaute.kit.builds import built_once

#: A build that takes a while and leaves a line for each time it ran; argv: parent, log, seconds.
BUILDER = """
import sys, time
from pathlib import Path
from lepaute.kit.builds import built_once
parent, log, seconds = sys.argv[1:]
def build(folder):
    with open(log, "a") as file:
        file.write("built\\n")
    print("building", flush=True)
    time.sleep(float(seconds))
    (folder / "program").write_text("whole")
print((built_once("demo", ["a"], "program", build, Path(parent)) / "program").read_text())
"""


def start(folder: Path, seconds: float) -> "subprocess.Popen[str]":
    words = [sys.executable, "-c", BUILDER, str(folder / "cache"), str(folder / "log"), str(seconds)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def make(folder: Path) -> None:
    (folder / "program").write_text("x")


def test_two_processes_at_once_build_once(tmp_path: Path) -> None:
    both = [start(tmp_path, 1.0), start(tmp_path, 1.0)]
    printed = [process.communicate(timeout=HANG_S)[0].split()[-1] for process in both]
    assert printed == ["whole", "whole"]
    assert (tmp_path / "log").read_text().split() == ["built"]


def test_what_a_killed_build_left_is_removed_by_the_next(tmp_path: Path) -> None:
    with start(tmp_path, 60.0) as process:
        assert process.stdout.readline() == "building\n"
        os.kill(process.pid, signal.SIGKILL)
    assert len(list((tmp_path / "cache").glob("*.new"))) == 1
    assert start(tmp_path, 0.0).communicate(timeout=HANG_S)[0].split()[-1] == "whole"
    assert not list((tmp_path / "cache").glob("*.new"))


def test_the_same_inputs_are_built_once_and_others_anew(tmp_path: Path) -> None:
    calls: list[Path] = []

    def build(folder: Path) -> None:
        calls.append(folder)
        make(folder)

    folders = [built_once("demo", inputs, "program", build, tmp_path) for inputs in (["a", "b"], ["a", "b"], ["ab"])]
    assert folders[0] == folders[1] != folders[2]
    assert len(calls) == 2
    assert all((folder / "program").is_file() for folder in folders)


def test_a_program_that_was_cut_short_is_built_again(tmp_path: Path) -> None:
    folder = built_once("demo", ["a"], "program", make, tmp_path)
    (folder / "program").write_text("")
    assert built_once("demo", ["a"], "program", make, tmp_path) == folder
    assert (folder / "program").read_text() == "x"
    (folder / "size.txt").unlink()  # as before sizes were kept
    built_once("demo", ["a"], "program", pytest.fail, tmp_path)


def test_a_build_that_fails_leaves_nothing_and_may_be_tried_again(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        make(folder)
        raise EnvironmentProblem("the compiler is missing")

    with pytest.raises(EnvironmentProblem, match="the compiler is missing"):
        built_once("demo", ["a"], "program", fail, tmp_path)
    assert not [path for path in tmp_path.iterdir() if not path.name.endswith(".lock")]
    assert built_once("demo", ["a"], "program", make, tmp_path).is_dir()


def test_something_in_the_way_is_named(tmp_path: Path) -> None:
    built = built_once("demo", ["a"], "program", make, tmp_path)
    (built / "program").rename(built / "other")
    with pytest.raises(EnvironmentProblem, match="is in the way; remove it"):
        built_once("demo", ["a"], "program", make, tmp_path)
