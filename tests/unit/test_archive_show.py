"""What an archive shows on its first screen, what it extracts, and what differs between two."""

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support_archive import DESIGN, FLAGS, SCRIPT, Node, command, experiment_archive, failed_archive

from lepaute.cli.main import main
from lepaute.errors import ArchiveError, InputError
from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.measure.archive.comparison import compare, comparison_lines
from lepaute.measure.archive.extraction import extract
from lepaute.measure.archive.screen import first_facts
from lepaute.measure.archive.setups import control_facts, file_facts, setup_of
from lepaute.measure.archive.setups.facts import Fact


def screen(path: Path) -> list[str]:
    answer, facts = first_facts(Archive.open(path))
    lines = [answer, *(" ".join(fact) for fact in facts)]
    assert all(line.isprintable() for line in lines)
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


def four(**changed: Any) -> list[Node]:
    return [Node(f"node{number}", mhz=2000.0 + number, **changed) for number in range(1, 5)]


def differences(a: Path, b: Path) -> dict[str, tuple[object, object]]:
    """What differs, with both values; sets reduced to what only one side has."""
    comparison = compare(setup_of(Archive.open(a)), setup_of(Archive.open(b)))
    found: dict[str, tuple[object, object]] = {}
    for change in comparison.changes:
        old, new = change.a, change.b
        if isinstance(old, frozenset) and isinstance(new, frozenset):
            old, new = old - new, new - old
        found[f"{change.nodes_b or change.nodes_a} {change.what}".strip()] = (old, new)
    return found


def report(a: Path, b: Path, *, everything: bool = False) -> list[str]:
    comparison = compare(setup_of(Archive.open(a)), setup_of(Archive.open(b)))
    return list(comparison_lines(comparison, [], everything=everything))


def test_two_runs_of_one_setup_do_not_differ(tmp_path: Path) -> None:
    """Other dates, run ids, job numbers, frequencies, free memory, load, kernel log, temporary folders, results."""
    a = experiment_archive(tmp_path / "a.zip", four(), scheduler={"name": "slurm", "job": 1})
    nodes = [replace(node, mhz=node.mhz + 777) for node in four()]
    later = [command(node.name, ["make", "-j", "4"], folder="/tmp/lepaute/other-run", duration_s=9.0) for node in nodes]
    b = experiment_archive(
        tmp_path / "b.zip",
        nodes,
        commands=later,
        created="2026-12-24T00:00:00+00:00",
        run_id="other-run",
        scheduler={"name": "slurm", "job": 2},
    )
    assert differences(a, b) == {}
    assert report(a, b) == ["no difference between the two setups (results are not compared)"]


@pytest.mark.parametrize(
    ("changed", "what", "old", "new"),
    [
        ({"microcode": "0x5003604"}, "microcode", "0x5003303", "0x5003604"),
        ({"flags": FLAGS + " amx_tile"}, "processor flags", frozenset(), frozenset({"amx_tile"})),
        ({"bios": "2.10.1"}, "BIOS Version", "2.8.2", "2.10.1"),
        ({"kernel": "6.1.0-18-amd64"}, "kernel", "5.10.0-28-amd64", "6.1.0-18-amd64"),
        ({"command_line": "quiet nosmt"}, "kernel command line", {"mitigations=auto"}, {"nosmt"}),
        ({"modules": ("ib_core", "nfs")}, "modules", {"mlx5_core"}, set()),
        ({"governor": "powersave"}, "frequency governor", "performance", "powersave"),
        ({"thp": "[always] madvise never"}, "transparent huge pages", "madvise", "always"),
        ({"gcc": "gcc (Debian 12.2.0-14) 12.2.0"}, "gcc", "gcc (Debian 10.2.1-6) 10.2.1 20210110", None),
        ({"mpi": "mpirun (Open MPI) 4.1.4"}, "MPI (mpirun)", "mpirun (Open MPI) 4.1.0", "mpirun (Open MPI) 4.1.4"),
        ({"packages": {"libc6": "2.31-13"}}, "package libopenblas0", "0.3.13+ds-3", None),
        ({"variables": {"OMP_NUM_THREADS": "8", "PATH": "/usr/bin:/bin"}}, "OMP_NUM_THREADS", "4", "8"),
        ({"nic": "Ethernet controller: Other"}, "PCI devices", None, {"Ethernet controller: Other"}),
        ({"extra": {"numactl.txt": "policy: bind\n"}}, "numactl.txt", None, ("policy: bind",)),
    ],
)
def test_each_change_of_all_nodes_is_named_once_with_the_node_set(tmp_path, changed, what, old, new):
    found = differences(
        experiment_archive(tmp_path / "a.zip", four()), experiment_archive(tmp_path / "b.zip", four(**changed))
    )
    assert list(found) == [f"node[1-4] {what}"]
    was, became = found[f"node[1-4] {what}"]
    assert old is None or was == old
    assert new is None or became == new


def test_a_node_that_is_otherwise_is_named_between_the_sides_and_within_one(tmp_path: Path) -> None:
    a, nodes = experiment_archive(tmp_path / "a.zip", four()), four()
    nodes[3] = replace(nodes[3], bios="2.10.1")
    b = experiment_archive(tmp_path / "b.zip", nodes)
    assert differences(a, b) == {"node4 BIOS Version": ("2.8.2", "2.10.1")}
    assert report(a, b)[-2:] == [
        "nodes of B that differ from each other (1)",
        "  BIOS Version: node[1-3] 2.8.2; node4 2.10.1",
    ]


def test_experiment_script_seed_parameters_commits_and_commands_come_before_the_machine(tmp_path: Path) -> None:
    a = experiment_archive(tmp_path / "a.zip", four())
    b = experiment_archive(
        tmp_path / "b.zip",
        four(kernel="6.1.0"),
        script=SCRIPT.replace('"-n"', '"--size"'),
        seed=8,
        parameters={"repetitions": 9},
        commit="beef" * 10,
        commands=[command("node1", ["make", "-j", "8"], returncode=2)],
    )
    lines = report(a, b)
    groups = [line.partition(" (")[0] for line in lines if not line.startswith(" ")]
    assert groups == ["experiment", "script", "system", "software", "commands"]
    for line in (
        "  parameter repetitions: 5 -> 9",
        "  seed: 7 -> 8",
        '    -        self.on(row.node, "./bench", "-n", row.size)',
        '    +        self.on(row.node, "./bench", "--size", row.size)',
        "    -setup: make -j 4",
        "    +setup: make -j 8   -> exit status 2",
    ):
        assert line in lines, line
    assert any("git https://example.org/roaring.git: f00dfeed" in line for line in lines)


def test_a_design_in_another_order_differs_in_its_order_and_one_of_other_rows_in_its_rows(tmp_path: Path) -> None:
    a = experiment_archive(tmp_path / "a.zip")
    head, rows = DESIGN.splitlines()[:3], DESIGN.splitlines()[3:]
    shuffled = experiment_archive(tmp_path / "b.zip", design_csv="\n".join([*head, *reversed(rows)]) + "\n")
    assert list(differences(a, shuffled)) == ["design.csv: rows in their order"]
    shorter = experiment_archive(tmp_path / "c.zip", design_csv="\n".join([*head, *rows[:-1]]) + "\n")
    assert list(differences(a, shorter)) == ["design.csv: rows", "design.csv: rows in any order"]


def test_machine_control_is_compared_by_what_it_reached() -> None:
    """The records of the nodes' program: several of one control are a set, dates and what was before are left out."""
    records = [
        {
            "node": "n1", "control": "turbo", "target": "no_turbo", "before": "0", "after": "1", "status": "done",
            "when": 3,
        },
        {"node": "n1", "control": "governor", "target": "cpu0", "after": "performance", "status": "done"},
        {"node": "n1", "control": "governor", "target": "cpu1", "after": None, "status": "warning", "message": "no"},
    ]  # fmt: skip
    expected = [
        ("n1", Fact("machine control", "turbo", "after 1, status done, target no_turbo")),
        ("n1", Fact("machine control", "governor", frozenset({
            "after performance, status done, target cpu0",
            "message no, status warning, target cpu1",
        }))),
    ]  # fmt: skip
    assert list(control_facts(records)) == expected
    assert list(control_facts({"n1": [{**record, "node": "n1"} for record in records]})) == expected
    assert list(control_facts({"n1": 3, "n2": [None, []]})) != expected


def test_exit_status_and_json(tmp_path, json_of, output_of):
    a, b = experiment_archive(tmp_path / "a.zip"), experiment_archive(tmp_path / "b.zip", seed=8)
    assert "  seed: 7 -> 8" in output_of("archive", "diff", a, b)
    assert main(["archive", "diff", str(a), str(b), "--exit-code"]) == 1
    output_of("archive", "diff", a, a, "--exit-code")
    printed = json_of("archive", "diff", a, b, "--json")
    assert printed["same"] is False
    assert printed["a"]["id"] == Archive.open(a).id
    assert printed["differences"] == [
        {"group": "experiment", "what": "seed", "nodes_a": "", "nodes_b": "", "a": "7", "b": "8"}
    ]
    assert main(["archive", "diff", str(a), str(tmp_path / "none.zip")]) == 2


@pytest.mark.parametrize(
    ("name", "text", "what", "value"),
    [
        ("packages.txt", "ii  libc6:amd64  2.31-13  amd64  GNU C Library\n", "package libc6:amd64", "2.31-13"),
        ("openblas.txt", "openblas-serial-0.3.21-1.el9.x86_64\n", "package openblas-serial", "0.3.21-1.el9.x86_64"),
        ("openblas.txt", "libopenblas-serial-dev\t\nlibc6:amd64\t2.36-9\n", "package libc6:amd64", "2.36-9"),
        ("dmesg.txt", "[ 1.2] mce: CPU3: Machine check\n[ 1] usb 1\n", "complaints of the kernel",
         {"mce: CPU#: Machine check"}),
        ("governor.txt", "performance\npowersave\n", "frequency governor", "performance powersave"),
        ("smt.txt", "off\n", "hyper-threading", "off"),
        ("mounts.txt", "/dev/sda1 / ext4 rw 0 0\nproc /proc proc rw 0 0\nfs:/home /home nfs4 rw 0 0\n", "file systems",
         {"ext4 at /", "nfs4 at /home"}),
        ("absent.json", '{"lspci.txt": "not found"}', "files that could not be collected whole", {"lspci.txt"}),
        ("new_tool.txt", "a\nb\n", "new_tool.txt", ("a", "b")),
        ("cpuinfo.txt", "", None, None),
        ("loadavg.txt", "1 2 3\n", None, None),
    ],
)  # fmt: skip
def test_files_are_read_by_their_meaning(name: str, text: str, what: str | None, value: object) -> None:
    facts = file_facts(name, text.encode())
    assert [(fact.what, fact.value) for fact in facts] == ([] if what is None else [(what, value)])
