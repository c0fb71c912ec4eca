"""Load of others during a calibration: runs that are repeated, sentinels; and a calibration of several nodes."""

import collections
import itertools
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from support_calibration import (
    BLOCK,
    KINDS,
    LIMITS,
    RUNS,
    SEMANTIC_ROUNDS,
    TWO,
    FakeMachine,
    disturb,
    fake_machine,
    names_in,
)

from lepaute.errors import EnvironmentProblem
from lepaute.measure.archive import Archive
from lepaute.measure.calibration import attempt as attempts
from lepaute.measure.calibration import machines
from lepaute.measure.calibration.attempt import next_repetition
from lepaute.measure.calibration.campaign import Calibration, calibrate
from lepaute.measure.calibration.entries import AttemptEntry, RawFile
from lepaute.measure.calibration.speed import SpeedWitness
from lepaute.measure.experiment.entries import RunState
from lepaute.measure.experiment.workspace import Workspace
from lepaute.measure.kernel_set import KernelSet, Timing
from lepaute.measure.machine_load import disturbance_warnings
from lepaute.measure.nodes.group import Nodes
from lepaute.measure.nodes.results import Result, why_not
from lepaute.measure.plan import QUICK, plan

pytest_plugins = ["support_calibration_fixtures"]


def test_disturbed_runs_are_repeated_at_the_end_of_their_block_and_every_attempt_is_kept(machine, place, monkeypatch):
    # Two runs of the first block are disturbed, and of their repetitions the second: a third follows.
    first_again = BLOCK
    disturb(monkeypatch, {1, 3, first_again + 1})
    archive = Archive.open(calibrate(place, quick=True))
    records = json.loads(archive.read_bytes("blocks.json"))
    assert [record["block"] for record in records] == [0] * (BLOCK + 3 + SEMANTIC_ROUNDS) + [1] * BLOCK
    names = [record["name"] for record in records]
    assert [
        (name, record["attempt"])
        for name, record in zip(names[BLOCK : BLOCK + 3], records[BLOCK : BLOCK + 3], strict=True)
    ] == [(names[1], 1), (names[3], 1), (names[3], 2)]
    assert {record["seed"] for record in records if record["name"] == names[3] and record["block"] == 0} == {
        records[3]["seed"]
    }
    assert [position for position, record in enumerate(records) if record["disturbed"]] == [1, 3, first_again + 1]
    raw = [name for name in archive.members() if name.startswith("raw/") and "semantics" not in name]
    assert any(name.startswith(f"raw/alone/block0/{names[3]}.attempt2") for name in raw)
    tables = [archive.table(f"observations/{kind}.parquet") for kind in KINDS]
    assert sum(len(table) for table in tables) == len(raw)  # a row each
    attempts = {row for table in tables for row in table[["block", "attempt", "disturbed"]].itertuples(index=False)}
    assert not any(table["slow"].any() for table in tables)
    assert attempts == {(0, 0, False), (0, 0, True), (0, 1, False), (0, 1, True), (0, 2, False), (1, 0, False)}
    assert archive.metadata["warnings"] == [
        f"2 of {RUNS} probe runs were disturbed by other programs (2) (blocks.json): 2 repeated, "
        "0 without an undisturbed attempt"
    ]


def test_load_that_stays_costs_no_more_time_than_a_part_of_the_campaign(machine, place, monkeypatch):
    disturb(monkeypatch, set(range(100)), wall_s=1.0)
    archive = Archive.open(calibrate(place, quick=True))
    numbers = collections.Counter(record["attempt"] for record in json.loads(archive.read_bytes("blocks.json")))
    assert numbers == {0: RUNS + SEMANTIC_ROUNDS, 1: 4}  # 4 s, used up in the first block
    assert archive.metadata["warnings"] == [
        f"{RUNS} of {RUNS} probe runs were disturbed by other programs ({RUNS}) (blocks.json): 4 repeated, "
        f"{RUNS} without an undisturbed attempt"
    ]


def attempt(name: str, number: int, wall_s: float, disturbed: bool = True) -> AttemptEntry:
    run = ("alone", None, 0, name, number, "dgemm", (0,), "one", 1, 1, "", 0.0, 0.0)
    return AttemptEntry(*run, wall_s, disturbed, (), {})


def test_a_repetition_that_would_last_too_long_is_left_for_one_that_fits() -> None:
    first = [attempt("a", 0, 15.0), attempt("b", 0, 12.0), attempt("c", 0, 3.0), attempt("d", 0, 1.0, disturbed=False)]
    following = []
    while (again := next_repetition(first, (), 0, 20.0)) is not None:
        following.append((again.name, again.attempt))
        first.append(attempt(again.name, again.attempt + 1, again.wall_s))
    assert following == [("a", 0), ("c", 0)]  # 15 + 12 s and 15 + 3 + 3 s would be too much
    assert next_repetition(first, (), 1, 20.0) is None
    lasting = [attempt("a", number, 1.0) for number in range(3)]
    assert next_repetition(lasting, (), 0, 20.0) is None  # twice is enough
    assert disturbance_warnings([[False, True]], "probe runs", "blocks.json") == []
    assert "1 of 1 probe runs were disturbed" in disturbance_warnings([[True]], "probe runs", "blocks.json")[0]


def test_sentinels_are_run_between_the_probes_on_all_cores_and_have_a_table_of_their_own(tmp_path, place, monkeypatch):
    machine = fake_machine(tmp_path / "programs", monkeypatch, os.getpid(), sentinels=True)
    monkeypatch.setattr(attempts, "gap_s", lambda _cost_s: 0.0)
    machine.break_at(7, "fail")
    with pytest.raises(EnvironmentProblem):
        calibrate(place, quick=True)
    archive = Archive.open(calibrate(place, quick=True, resume=True))
    table = archive.table("observations/sentinels.parquet")
    # One before each run and one at the end of a block; numbered on, also where the calibration was broken off.
    assert len(set(table["order"])) >= RUNS + QUICK.blocks
    assert set(table["cpu"]) == {0, 1}
    assert set(table["block"]) == {0, 1}
    assert table["started_s"].is_monotonic_increasing
    assert (table["active_cores"] == 2).all()
    entries = [entry for entry in archive.json("blocks.json") if entry["probe"] == "sentinel"]
    assert len({entry["name"] for entry in entries}) == len(entries)
    assert {tuple(entry["run_cores"]) for entry in entries} == {(0, 1)}
    assert "sentinel" not in set(archive.table("observations/kernels.parquet")["probe"])


def test_a_run_that_was_slow_on_all_cores_is_measured_once_more_though_no_counter_shows_it(machine, place):
    # Of the second block, whose steps have those of the first to be compared with.
    names = [run.name for run in plan(QUICK, 1, TWO, LIMITS)]
    slow = names.index("hpl_steps_1x1_all", BLOCK)
    machine.write_steps({slow + 1 + SEMANTIC_ROUNDS})
    archive = Archive.open(calibrate(place, quick=True))
    (entry,) = archive.json("slow.json")
    assert (entry["name"], entry["block"], entry["attempt"]) == ("hpl_steps_1x1_all", 1, 0)
    assert entry["causes"][0].startswith("steps: ")
    table = archive.table("observations/kernels.parquet")
    mine = table[(table["probe"] == "hpl_steps_1x1") & (table["block"] == 1) & (table["active_cores"] == 2)]
    # Added, not substituted; neither counts as disturbed.
    attempts = set(zip(mine["attempt"], mine["slow"], mine["disturbed"], strict=True))
    assert attempts == {(0, True, False), (1, False, False)}
    assert table["slow"].sum() == (mine["attempt"] == 0).sum()
    assert archive.metadata["warnings"] == [
        f"1 of {RUNS} probe runs met a slow machine (steps; slow.json); each was measured once more"
    ]


def test_runs_beside_a_slow_sentinel_met_a_slow_machine(tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path / "c.zip", RunState())
    (tmp_path / "c.work" / "raw").mkdir()
    for order in range(6):
        for probe, duration_s in (("sentinel", 0.02 if order == 3 else 0.01), ("p2p", 1.0)):
            name, block, member = f"{probe}{order}", order // 3, f"raw/{probe}{order}.csv"
            (tmp_path / "c.work" / member).write_text(f"design_row,duration_s\n0,{duration_s}\n")
            workspace.note(RawFile(member, "n", "n", name, block, probe, 0, 0, 1, 1, 1, ""))
            run = ("n", None, block, name, 0, probe, (0,), "all", 1, 1, "")
            workspace.note(AttemptEntry(*run, 10.0 * order + (probe == "p2p"), 0.0, 1.0, False, (), {}))
    slow = SpeedWitness(workspace, "n").new_slow_runs()
    assert [(each.name, each.causes) for each in slow] == [
        ("p2p2", ("sentinels: 100.0 % longer beside it",)),
        ("p2p3", ("sentinels: 100.0 % longer beside it",)),
    ]
    assert SpeedWitness(workspace, "n").new_slow_runs() == []  # noted once
    workspace.close()


def test_what_met_a_slow_machine_is_repeated_once_however_slow_it_is_again() -> None:
    first, again = (attempt("a", number, 1.0, disturbed=False) for number in (0, 1))
    assert next_repetition([first], {first.key}, 1, 20.0) == first
    assert next_repetition([first, again], {first.key, again.key}, 1, 20.0) is None


def separate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets each node count as a machine of its own, with the folder that the first has."""
    use = Calibration.use

    def as_machines(job: Calibration, nodes: Nodes) -> None:
        for channel in nodes.channels:
            channel.hello = replace(channel.hello, boot=channel.name)
        use(job, nodes)

    monkeypatch.setattr(Calibration, "use", as_machines)


@pytest.mark.slow
def test_names_of_one_machine_are_measured_one_after_the_other_then_the_messages_between_them(machine, place):
    machine.nodes = ["a", "b", "c"]
    archive = Archive.open(calibrate(place, quick=True))
    records = archive.json("blocks.json")
    of_block = [(record["node"], record["peer"]) for record in records if record["block"] == 0]
    assert of_block[: 3 * BLOCK] == [(node, None) for node in "abc" for _ in range(BLOCK)]
    links = [(node, peer) for node, peer in of_block[3 * BLOCK : -2 * SEMANTIC_ROUNDS]]
    assert len(set(links)) == 1  # a pair drawn of three, no node in two
    assert links[0] in {("a", "b"), ("a", "c"), ("b", "c")}
    assert of_block[-2 * SEMANTIC_ROUNDS :] == [("a", None)] * SEMANTIC_ROUNDS + [("a", "b")] * SEMANTIC_ROUNDS
    assert all(record["run_cores"] == [0, 1] for record in records if record["peer"])
    orders = {
        node: [record["name"] for record in records if record["node"] == node and not record["peer"]] for node in "abc"
    }
    assert orders["a"] != orders["b"]  # each node has a design and an order of its own
    messages = archive.table("observations/p2p.parquet")
    remote = messages[messages["link"] == "remote"]
    assert all(host != peer for host, peer in zip(remote["host"], remote["peer"], strict=True))
    assert set(remote["host"]) == set(remote["peer"])
    assert list(archive.metadata["machines"]) == ["a", "b", "c"]


def test_a_node_that_is_lost_loses_its_own_rows_and_the_campaign_goes_on(machine: FakeMachine, place: Path) -> None:
    machine.nodes = ["a", "b"]
    machine.break_at(BLOCK + 2, "lose")  # the second run on b
    archive = Archive.open(calibrate(place, quick=True))
    assert [lost["node"] for lost in archive.metadata["lost_nodes"]] == ["b"]
    assert archive.metadata["status"] == "complete"
    assert collections.Counter(record["node"] for record in archive.json("blocks.json")) == {
        "a": RUNS + SEMANTIC_ROUNDS,
        "b": 1,
    }
    assert any("b was lost" in warning for warning in archive.metadata["warnings"])
    tables = [archive.table(f"observations/{kind}.parquet") for kind in KINDS]
    rows = sum(int((table["host"] == "b").sum()) for table in tables)
    ranks = {record["name"]: len(record["run_cores"]) for record in archive.json("blocks.json")}
    last = max(name for name in archive.members() if name.startswith("raw/b/"))
    assert rows > ranks[archive.json("blocks.json")[BLOCK]["name"]], f"what was seen of {last} is not there"


@pytest.mark.slow
def test_machines_are_measured_at_the_same_time_and_a_failure_on_one_ends_all(machine, place, monkeypatch):
    separate(monkeypatch)
    machine.nodes = ["a", "b"]
    archive = Archive.open(calibrate(place, quick=True))
    spans = {
        node: [(block["started_s"], block["node"]) for block in archive.json("blocks.json") if block["node"] == node]
        for node in "ab"
    }
    order = [node for _, node in sorted(itertools.chain(*spans.values()))]
    assert len(list(itertools.groupby(order))) > 4  # one by one there would be four stretches
    # Their folders differ here, as those of real machines do not, and mpirun needs the same.
    assert archive.metadata["warnings"] == [
        next(text for text in archive.metadata["warnings"] if "messages between a and b were not measured" in text)
    ]
    place.unlink()
    machine.break_at(len(machine.runs()) + 4, "fail-from")
    with pytest.raises(EnvironmentProblem, match="it broke"):
        calibrate(place, quick=True)
    assert len(Archive.open(place.with_name("c.partial.zip")).json("blocks.json")) < 8


def test_nodes_of_two_kinds_are_refused_before_anything_is_measured(machine, place, monkeypatch):
    machine.nodes = ["a", "b"]
    kinds = iter(["Zen", "Haswell"])
    monkeypatch.setattr(machines, "choose_kernel_set", lambda **_options: KernelSet(next(kinds), None, 50.0, ()))
    monkeypatch.setattr(machines, "_timer", lambda _node, _python: lambda _coretype: None)
    with pytest.raises(EnvironmentProblem, match=r"b and a differ in their BLAS kernels \(Haswell and Zen\)"):
        calibrate(place, quick=True)
    assert names_in(place) == []


@pytest.mark.parametrize(
    ("stderr", "told"),
    [
        (
            "./probe-dgemm: error while loading shared libraries: libopenblas.so.0: cannot open shared object file",
            "libopenblas.so.0 is missing, which programs built here use; install it there: apt-get install libopenbl",
        ),
        ("/lib/libc.so.6: version `GLIBC_2.38' not found", "programs built here need GLIBC_2.38, and the system"),
        ("Permission denied", "a program built here does not start: exit status 127: Permission denied"),
    ],
)
def test_a_library_that_a_node_lacks_is_named_with_its_package(stderr: str, told: str) -> None:
    assert why_not(Result("n", ("./probe-dgemm",), None, 127, "", stderr, "", 0.0)).startswith(told)
    assert "apt-get install openmpi-bin" in why_not(Result("n", ("mpirun",), None, None, "", "", "", 0.0, error="none"))


def test_nodes_that_are_alike_get_the_kernels_that_most_of_them_chose() -> None:
    zen, haswell = KernelSet("Zen", "Zen", 50.0, ()), KernelSet("Haswell", None, 45.0, ())
    asked: list[tuple[str, str | None]] = []

    def time_on(name: str, coretype: str | None) -> Timing | None:
        asked.append((name, coretype))
        return Timing(coretype, "Zen", "test", 49.0) if name == "b" else None

    settled = machines.settle({"a": zen, "b": haswell, "c": zen, "d": haswell, "e": zen}, time_on)
    assert asked == [("b", "Zen"), ("d", "Zen")]
    assert [settled[name].core_name for name in "abcde"] == ["Zen", "Zen", "Zen", "Haswell", "Zen"]
    assert (settled["b"].coretype_env, settled["b"].gflops) == ("Zen", 49.0)
    assert "the Haswell kernels of OpenBLAS were faster" in settled["b"].warnings[0]
    assert settled["d"] is haswell  # it cannot run them: `check_alike` refuses it
