"""The first screen of an archive: 24 lines of 100 columns that say what it is, and why it failed."""

from pathlib import Path

import pytest
from support_archive import Node, command, experiment_archive, failed_archive

from lepaute.cli.main import main
from lepaute.kit.node_sets import folded
from lepaute.kit.printable import columns, fitted, printable, wrapped
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


def test_a_screen_has_room_for_everything_at_its_longest(tmp_path: Path) -> None:
    long = "word " * 400
    path = failed_archive(
        tmp_path / "a.zip",
        warnings=[long] * 40,
        parameters={f"p{number}": long for number in range(30)},
        lost_nodes=[{"node": f"n{number}", "when": long, "why": long} for number in range(100)],
        failure={
            "phase": "setup", "type": "X", "message": long, "node": "n1", "command": 0, "where": long,
            "stderr_tail": "",
        },
        commands=[command("n1", ["x" * 300] * 9, returncode=-9, stderr=long)],
        scheduler={"name": "slurm", "job": 4711, "partition": long},
    )  # fmt: skip
    lines = screen(path)
    assert "signal 9" in "\n".join(lines)
    assert any(line.startswith("go on") for line in lines)
    assert any(line.startswith("members") for line in lines)


def test_an_interrupted_experiment_without_a_failure_says_so(tmp_path: Path) -> None:
    lines = screen(
        experiment_archive(tmp_path / "a.zip", status="partial", partial=True, design={"rows": 10, "done": 3})
    )
    assert lines[0] == "PARTIAL: experiment croaring, 3 of 10 rows measured on 2 nodes, 2026-11-21"
    assert any("it was interrupted" in line for line in lines)
    assert any("lepaute run croaring.py --resume -o" in line for line in lines)


def test_what_a_strangers_archive_says_cannot_command_the_terminal(tmp_path, output_of):
    evil = "\x1b]0;owned\x07\x1b[2J\u202e\r\nFAKE"
    path = failed_archive(
        tmp_path / "a.zip",
        name=evil,
        warnings=[evil],
        lost_nodes=[{"node": evil, "when": evil, "why": evil}],
        script=evil,
        parameters={evil: evil},
        failure=dict.fromkeys(("phase", "type", "message", "node", "where", "stderr_tail"), evil),
        phases=[{"name": evil, "status": evil, "duration_s": evil, "start": evil}],
    )
    screen(path)
    for options in ([], ["--members"], ["--json"]):
        printed = output_of("archive", "show", path, *options)
        assert all(line.isprintable() for line in printed.split("\n"))
    assert all(line.isprintable() for line in output_of("archive", "diff", path, path, "--all").split("\n"))


@pytest.mark.parametrize("value", [None, True, 3, -1, 1e300, "x", [], {}, [None], [[]], {"a": 1}, 10**400])
def test_metadata_of_any_type_are_shown_without_a_traceback(tmp_path: Path, value: object) -> None:
    keys = "name created lepaute_version run_id script scheduler nodes seed parameters status partial failure phases"
    for key in [*keys.split(), "lost_nodes", "design", "warnings", "host", "blas", "cpu_model"]:
        metadata = {"kind": "experiment", "created": "2026-11-21", "status": "failed", key: value}
        metadata["created"] = "2026-11-21"
        with ArchiveWriter(tmp_path / "a.zip", metadata) as writer:
            writer.add_bytes("log.txt", b"")
        screen(tmp_path / "a.zip")


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


def test_verify_checks_several_files_and_goes_on_after_a_bad_one(tmp_path, capsys):
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
    assert main(["archive", "verify", str(good)]) == 0


def test_names_of_nodes_fold_into_sets() -> None:
    assert folded(["node3", "node1", "node2"]) == "node[1-3]"
    assert folded(["n01", "n02", "n10", "n1"]) == "n[01-02],n[1,10]"
    assert folded(["dahu-1.grenoble", "dahu-2.grenoble", "login"]) == "dahu-[1-2].grenoble,login"
    assert folded(["one", "one"]) == "one"
    assert folded([]) == ""
    assert folded([f"node{number}" for number in range(1, 101)]) == "node[1-100]"


def test_text_is_made_plain_and_fits() -> None:
    assert printable("a\x1b[1m\tb\u202e") == "a\\x1b[1m b\\u202e"
    assert fitted("abcdefgh", 6) == "abc..."
    assert columns(fitted("日本語日本語", 8)) <= 8
    assert wrapped("one two three", 7, 5) == ["one two", "three"]
    assert wrapped("one two three four", 7, 2) == ["one two", "thre..."]


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
