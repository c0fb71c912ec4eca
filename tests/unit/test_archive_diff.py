"""`lepaute archive diff`: names what differs between two setups, and nothing that differs whenever one looks."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support_archive import DESIGN, FLAGS, SCRIPT, Node, command, experiment_archive, failed_archive

from lepaute.cli.main import main
from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.measure.archive.comparison import compare, comparison_lines
from lepaute.measure.archive.setups import control_facts, file_facts, setup_of
from lepaute.measure.archive.setups.facts import Fact


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


def test_cores_and_caches_change_the_topology(tmp_path: Path) -> None:
    a = experiment_archive(tmp_path / "a.zip", four())
    found = differences(a, experiment_archive(tmp_path / "b.zip", four(cores=8, l3_bytes=33_554_432)))
    was, became = found["node[1-4] topology"]
    assert became == {"8 Core", "8 PU", "1 L3Cache (32768 KiB)"}
    assert was == {"4 Core", "4 PU", "1 L3Cache (22528 KiB)"}
    assert found["node[1-4] hardware threads"] == ("4", "8")
    assert found["node[1-4] numbering of hardware threads along the topology"] == ("0 1 2 3", "0 1 2 3 4 5 6 7")


def test_a_node_that_is_otherwise_is_named_between_the_sides_and_within_one(tmp_path: Path) -> None:
    a, nodes = experiment_archive(tmp_path / "a.zip", four()), four()
    nodes[3] = replace(nodes[3], bios="2.10.1")
    b = experiment_archive(tmp_path / "b.zip", nodes)
    assert differences(a, b) == {"node4 BIOS Version": ("2.8.2", "2.10.1")}
    assert (
        report(a, b)[-2:]
        == ["nodes of B that differ from each other (1)", "  BIOS Version: node[1-3] 2.8.2;  node4 2.10.1"]
        or report(a, b)[-1] == "  BIOS Version: node[1-3] 2.8.2; node4 2.10.1"
    )


def test_other_nodes_of_the_same_kind_differ_in_their_names_only(tmp_path: Path) -> None:
    a = experiment_archive(tmp_path / "a.zip", four())
    others = [replace(node, name=f"dahu-{number}") for number, node in enumerate(four(), start=7)]
    b = experiment_archive(tmp_path / "b.zip", others)
    assert differences(a, b) == {"nodes": ("node[1-4]", "dahu-[7-10]")}
    newer = [replace(node, microcode="0x2") for node in others]
    found = differences(a, experiment_archive(tmp_path / "b.zip", newer))
    assert found["dahu-[7-10] microcode"] == ("0x5003303", "0x2")
    assert any(
        "node[1-4] -> dahu-[7-10]: microcode: 0x5003303 -> 0x2" in line for line in report(a, b.parent / "b.zip")
    )


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


def test_a_failed_run_differs_from_a_whole_one_in_its_outcome_first(tmp_path: Path) -> None:
    lines = report(experiment_archive(tmp_path / "a.zip"), failed_archive(tmp_path / "b.zip"))
    assert lines[0].startswith("outcome (")
    assert "  status: complete -> failed" in lines
    assert "  failed in phase: (none) -> run" in lines


@pytest.mark.slow
def test_a_hundred_nodes_stay_readable(tmp_path: Path) -> None:
    """Whatever the number of nodes, a change of all of them is one line; five odd ones are one more each."""
    nodes = [Node(f"node{number}") for number in range(1, 101)]
    a = experiment_archive(tmp_path / "a.zip", nodes)
    newer = [replace(node, kernel="6.1.0", packages={f"p{n}": "2" for n in range(300)}) for node in nodes]
    for odd in range(5):
        newer[odd] = replace(newer[odd], microcode=f"0x{odd}")
    b = experiment_archive(tmp_path / "b.zip", newer)
    lines = report(a, b)
    assert "  node[1-100]: kernel: 5.10.0-28-amd64 -> 6.1.0" in lines
    assert len(lines) < 60
    assert all(len(line) <= 100 for line in lines)
    assert any("lines more (--all)" in line for line in lines)
    assert sum("package p" in line for line in report(a, b, everything=True)) == 300


def calibration(path: Path, kernel: str, **changed: Any) -> Path:
    metadata = {
        "kind": "calibration", "created": "2026-11-21", "host": "n1", "seed": 1, "partial": False, "warnings": [],
    }  # fmt: skip
    with ArchiveWriter(path, {**metadata, "blas": {"core": "Zen"}, **changed}) as writer:
        for name, content in Node("n1", kernel=kernel).files().items():
            writer.add_bytes(f"environment/{name}", content.encode())
        writer.add_bytes("designs/block0_p2p.csv", b"#@seed=1\nsize_bytes\n8\n")
    return path


def test_calibrations_are_compared_without_a_node(tmp_path: Path) -> None:
    a = calibration(tmp_path / "a.zip", "5.10")
    b = calibration(tmp_path / "b.zip", "6.1", blas={"core": "SkylakeX"})
    assert differences(a, b) == {"blas.core": ("Zen", "SkylakeX"), "kernel": ("5.10", "6.1")}


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
