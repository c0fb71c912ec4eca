"""What an archive shows on its first screen, and what it extracts: inside the folder, and nothing over anything."""

import errno
import os
from pathlib import Path

import pytest
from support_archive import Node, command, experiment_archive, failed_archive

from lepaute.cli.main import main
from lepaute.errors import ArchiveError, InputError
from lepaute.kit.printable import columns
from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.measure.archive.extraction import extract
from lepaute.measure.archive.screen import LINES, WIDTH, first_screen


def screen(path: Path) -> list[str]:
    lines = first_screen(Archive.open(path))
    assert len(lines) <= LINES
    assert all(columns(line) <= WIDTH and line.isprintable() for line in lines)
    return lines


def test_a_complete_experiment_tells_what_it_is(tmp_path: Path) -> None:
    nodes = [Node(f"node{number}") for number in (1, 2, 3, 10)]
    lines = screen(experiment_archive(tmp_path / "a.zip", nodes))
    shown = "\n".join(lines)
    assert lines[0] == "COMPLETE: experiment croaring, 10 of 10 rows measured on 4 nodes, 2026-11-21"
    assert "node[1-3,10] (4); ssh" in shown
    assert "seed=7 repetitions=5" in shown
    assert "environment/ 80" in shown
    assert "resume" not in shown


def test_a_failed_experiment_tells_why_in_its_first_screen(tmp_path: Path) -> None:
    """Phase, node, command, status, end of its stderr, place in the script, rows done, lost nodes, warnings, go on."""
    lines = screen(failed_archive(tmp_path / "failed run.zip"))
    shown = "\n".join(lines)
    assert lines[0] == "FAILED: experiment croaring, in phase run on node2, 4 of 10 rows measured, 2026-11-21"
    for told in (
        "CommandFailed: make ended with exit status 2",
        "croaring.py:9",
        "node2$ make -j 4 'CFLAGS=-O3 -march=native'",
        "exit status 2 after 1.25 s, number 1 of commands.json",
        "| roaring.c:12:9: error: unknown type name 'uint'",
        "setup complete 31.5 s, run failed 20 s",
        "lost nodes node3: the connection ended (2026-11-21T09:14:40+00:00)",
        "5 caveats: node1: turbo cannot be set, no permission",
        "lepaute run croaring.py --resume -o ",
        "lepaute archive extract 'failed run.zip' log.txt commands.json -o FOLDER",
    ):
        assert told in shown, told


def test_an_interrupted_experiment_without_a_failure_says_so(tmp_path: Path) -> None:
    lines = screen(
        experiment_archive(tmp_path / "a.zip", status="partial", partial=True, design={"rows": 10, "done": 3})
    )
    assert lines[0] == "PARTIAL: experiment croaring, 3 of 10 rows measured on 2 nodes, 2026-11-21"
    assert any("it was interrupted" in line for line in lines)
    assert any("lepaute run croaring.py --resume -o" in line for line in lines)


def test_a_calibration_is_shown_too(tmp_path: Path) -> None:
    metadata = {
        "kind": "calibration", "created": "2026-11-21", "host": "n1", "partial": True, "partial_cause": "interrupted",
    }  # fmt: skip
    with ArchiveWriter(
        tmp_path / "a.zip", {**metadata, "cpu_model": "Xeon", "blas": {"library": "openblas", "core": "Zen"}}
    ):
        pass
    shown = "\n".join(screen(tmp_path / "a.zip"))
    assert shown.startswith("PARTIAL: calibration n1")
    assert "openblas, Zen" in shown


def test_json_keeps_its_keys_and_members_lists_all(tmp_path, output_of, json_of):
    path = experiment_archive(tmp_path / "a.zip")
    assert set(json_of("archive", "show", path, "--json")) == {"id", "metadata", "members"}
    printed = output_of("archive", "show", path, "--members")
    assert all(name in printed for name in Archive.open(path).members())


def test_verify_checks_several_files_and_goes_on_after_a_bad_one(tmp_path, capsys, json_of):
    good, failed, bad = (tmp_path / f"{name}.zip" for name in ("good", "failed", "bad"))
    experiment_archive(good)
    failed_archive(failed)
    bad.write_bytes(good.read_bytes()[:-5])
    assert main(["archive", "verify", str(good), str(bad), str(failed)]) == 2
    printed = capsys.readouterr()
    answer, *lines = printed.out.splitlines()
    assert answer == "1 of 3 archives is not intact"
    assert [line.partition(": ")[0] for line in lines] == [str(good), str(failed)]
    assert "(failed: `lepaute archive show` tells why)" in printed.out
    assert printed.err.count("\n") == 1
    assert str(bad) in printed.err
    (sound,) = json_of("archive", "verify", good, "--json")["archives"]
    assert (sound["whole"], sound["id"]) == (True, Archive.open(good).id)
    (cut,) = json_of("archive", "verify", bad, "--json", status=2)["archives"]
    assert (cut["whole"], cut["path"]) == (False, str(bad))


def test_into_a_pipe_nothing_is_cut_or_broken(tmp_path, output_of):
    word, cause = "x" * 300, "word " * 100
    path = failed_archive(
        tmp_path / "a.zip",
        failure={"phase": "setup", "type": "X", "message": cause, "node": "n1", "command": 0, "stderr_tail": ""},
        commands=[command("n1", [word] * 3, returncode=1, stderr="")],
    )
    lines = output_of("archive", "show", path).splitlines()
    assert any(f"n1$ {word} {word} {word}" in line for line in lines)
    assert any(cause.strip() in line for line in lines)


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
