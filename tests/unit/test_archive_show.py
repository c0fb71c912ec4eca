"""The first screen of an archive: 24 lines of 100 columns that say what it is, and why it failed."""

from pathlib import Path

from support_archive import Node, command, experiment_archive, failed_archive

from lepaute.cli.main import main
from lepaute.kit.printable import columns
from lepaute.measure.archive import Archive, ArchiveWriter
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
