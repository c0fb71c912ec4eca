"""A calibration without a machine: its plan, and what becomes of one that fails half-way.

The engine is the real one, and its nodes are agents on this machine; the probes are scripts that write raw files as
the real ones do. Those run in the end-to-end tests.
"""

import collections
import itertools
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from support_calibration import SEMANTIC_ROUNDS, FakeMachine, disturb, fake_machine

from lepaute.archive import Archive
from lepaute.cli.main import main
from lepaute.errors import EnvironmentProblem, InputError
from lepaute.measure.calibration import machines, sentinels
from lepaute.measure.calibration.attempt import Attempt, limit_of
from lepaute.measure.calibration.campaign import calibrate
from lepaute.measure.calibration.entries import AttemptEntry
from lepaute.measure.calibration.job import Calibration
from lepaute.measure.calibration.repetition import disturbance_warning, next_repetition
from lepaute.measure.kernel_set import KernelSet, Timing
from lepaute.measure.layout import made_up_layout
from lepaute.measure.nodes.group import Nodes
from lepaute.measure.nodes.programs import why_not
from lepaute.measure.nodes.results import Result
from lepaute.measure.plan import QUICK, RING_SPARE_BYTES, PlannedRun, largest_message, plan, room
from lepaute.stats.send_completion import rows_of, semantic_limits

#: Runs of a quick calibration of one node, and of each block; the tests of send-completion semantics come after.
TWO = made_up_layout("1x2", (0, 1))
LIMITS = room(QUICK, 64 << 30, 2)
RUNS = len(plan(QUICK, 1, TWO, LIMITS))
BLOCK = RUNS // QUICK.blocks
#: Tables of durations.
KINDS = ("kernels", "p2p", "ring")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    return fake_machine(tmp_path / "programs", monkeypatch, os.getpid())


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "place").mkdir()
    return tmp_path / "place" / "c.zip"


def names_in(place: Path) -> list[str]:
    return sorted(path.name for path in place.parent.iterdir())


def test_a_calibration_holds_designs_raw_files_observations_blocks_commands_and_environment(
    machine: FakeMachine, place: Path
) -> None:
    shares: list[float] = []
    path = calibrate(place, quick=True, seed=5, progress=lambda _what, share: shares.append(share))
    archive = Archive.open(path)
    folders = collections.Counter(name.split("/")[0] for name in archive.members() if "/" in name)
    assert folders["designs"] == RUNS + SEMANTIC_ROUNDS
    # One a rank: all but three runs of a block have two, as the tests of send-completion semantics have.
    assert folders["raw"] == 2 * RUNS - 2 * 3 + 2 * SEMANTIC_ROUNDS
    assert {"environment/alone/cpuinfo.txt", "raw/alone/block0/ring.r1.csv"} <= set(archive.members())
    metadata = archive.metadata
    assert (metadata["kind"], metadata["seed"], metadata["blocks"], metadata["partial"]) == ("calibration", 5, 2, False)
    assert metadata["blas"]["core"] == metadata["machines"]["alone"]["blas"]["core"] == "Zen"
    kernels = archive.table("observations/kernels.parquet")
    both = {"hpl_steps_column", "hpl_steps_options"}
    assert set(kernels["probe"]) == {"dgemm", "dgemm_content", "hpl_steps_1x1", *both}
    assert set(kernels.loc[kernels["active_cores"] == 1, "probe"]) == {"dgemm", "dgemm_content", "hpl_steps_1x1"}
    assert set(kernels["cpu"]) == {0, 1}
    assert set(kernels["block"]) == {0, 1}
    assert set(kernels["clock_cost_s"]) == {2e-8}
    messages = archive.table("observations/p2p.parquet")
    assert set(zip(messages["host"], messages["peer"], messages["link"], strict=True)) == {("alone", "alone", "local")}
    ring = archive.table("observations/ring.parquet")
    assert set(zip(ring["host"], ring["peer"], ring["link"], strict=True)) == {("alone", "alone", "local")}
    for table in (kernels, messages, ring):
        assert set(table["attempt"]) == {0}
        assert table["disturbed"].dtype == bool
        assert not table["disturbed"].any()
    assert metadata["warnings"] == []
    records = archive.json("blocks.json")
    assert len(records) == RUNS + SEMANTIC_ROUNDS
    assert {"others_cpu_s", "steal_s", "wall_s", "disturbed", "causes"} <= set(records[0])
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert names_in(place) == ["c.zip"]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["interrupt", "fail"])
def test_what_was_measured_before_a_failure_or_ctrl_c_is_archived_as_partial_and_gone_on_from(
    machine: FakeMachine, place: Path, how: str
) -> None:
    place.write_bytes(b"an older archive")
    machine.break_at(BLOCK, how)
    with pytest.raises(KeyboardInterrupt if how == "interrupt" else EnvironmentProblem) as caught:
        calibrate(place, quick=True)
    partial = place.with_name("c.partial.zip")
    assert caught.value.__notes__[-1] == f"what was measured until then is in {partial}; resume with --resume"
    assert place.read_bytes() == b"an older archive"
    archive = Archive.open(partial)
    assert archive.metadata["partial"] is True
    if how == "fail":
        assert "probe-x: it broke" in str(caught.value)
        assert archive.metadata["failure"]["message"] == str(caught.value)
    assert len(archive.json("blocks.json")) == BLOCK - 1
    tables = [archive.table(f"observations/{kind}.parquet") for kind in KINDS]
    assert all(table["duration_s"].eq(0.001).all() for table in tables)  # the row that was cut is not among them
    with pytest.raises(InputError, match="an interrupted run is there"):
        calibrate(place, quick=True)
    done = len(machine.runs())
    Archive.open(calibrate(place, quick=True, resume=True))
    assert len(machine.runs()) - done == RUNS + SEMANTIC_ROUNDS - (BLOCK - 1)
    again = Archive.open(place)
    assert len(again.json("blocks.json")) == RUNS + SEMANTIC_ROUNDS
    assert names_in(place) == ["c.zip"]


def test_what_an_engine_leaves_can_be_archived_without_it(machine: FakeMachine, place: Path) -> None:
    machine.break_at(5, "fail")
    with pytest.raises(EnvironmentProblem):
        calibrate(place, quick=True)
    place.with_name("c.partial.zip").unlink()
    assert main(["archive", "close", str(place.with_name("c.work"))]) == 0
    archive = Archive.open(place.with_name("c.partial.zip"))
    assert archive.metadata["kind"] == "calibration"
    assert len(archive.table("observations/kernels.parquet")) > 0


def test_probes_that_ran_other_kernels_than_those_chosen_end_the_campaign(
    machine: FakeMachine, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machines, "choose_kernel_set", lambda **_options: KernelSet("Haswell", "Haswell", 50.0, ()))
    with pytest.raises(EnvironmentProblem, match="ran the Zen kernels of OpenBLAS instead of Haswell"):
        calibrate(place, quick=True)


def test_a_place_that_cannot_be_written_and_an_impossible_seed_are_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no folder"):
        calibrate(tmp_path / "no" / "c.zip")
    with pytest.raises(InputError, match="is a folder"):
        calibrate(tmp_path)
    with pytest.raises(InputError, match="seed is -1"):
        calibrate(tmp_path / "c.zip", seed=-1)


@pytest.mark.slow
def test_tests_of_sends_that_hang_are_answers_and_any_other_failure_of_theirs_is_told(
    machine: FakeMachine, place: Path
) -> None:
    def limit(archive: Archive) -> float:
        return semantic_limits(rows_of(archive.table("observations/semantics.parquet"))).detached_up_to_bytes

    archive = Archive.open(calibrate(place, quick=True))
    assert limit(archive) == 1000
    place.unlink()
    machine.break_at(0, "hang")
    archive = Archive.open(calibrate(place, quick=True))
    assert limit(archive) == 1000
    assert "hung" in set(archive.table("observations/semantics.parquet")["outcome"])
    assert archive.metadata["warnings"] == []
    place.unlink()
    (machine.folder / "probe-semantics").write_text("#!/bin/sh\necho 'probe-semantics: no such luck' >&2\nexit 2\n")
    archive = Archive.open(calibrate(place, quick=True))
    (warning,) = archive.metadata["warnings"]
    assert warning.startswith("the send-completion semantics remain unknown: ")
    assert warning.endswith("no such luck")
    assert archive.metadata["status"] == "complete"


@pytest.mark.slow
def test_messages_that_no_probe_sends_are_refused_and_a_calibration_goes_on_with_those_it_began_with(
    machine: FakeMachine, place: Path
) -> None:
    for size in (1, (1 << 30) + 1):
        with pytest.raises(InputError, match=f"the largest message is {size} bytes; give"):
            calibrate(place, quick=True, network_bytes=size)
    machine.break_at(4, "fail")
    with pytest.raises(EnvironmentProblem):
        calibrate(place, quick=True, network_bytes=1 << 26)
    with pytest.raises(EnvironmentProblem, match="begun with another --network-bytes; give --network-bytes 67108864"):
        calibrate(place, quick=True, resume=True)
    machine.break_at(0, "never")
    archive = Archive.open(calibrate(place, quick=True, resume=True, network_bytes=1 << 26))
    assert archive.metadata["most_message_bytes"] == 1 << 26


@pytest.mark.slow
def test_a_calibration_goes_on_with_the_block_sizes_and_threads_that_it_began_with(
    machine: FakeMachine, place: Path
) -> None:
    for wrong in ({"nbs": ()}, {"nbs": (64, 64)}, {"nbs": (5000,)}, {"threads": (0,)}, {"threads": (1, 2000)}):
        with pytest.raises(InputError, match="give different numbers from 1 to"):
            calibrate(place, quick=True, **wrong)
    machine.break_at(4, "fail")
    with pytest.raises(EnvironmentProblem):
        calibrate(place, quick=True, nbs=(96, 160), threads=(1, 2))
    for other, remedy in (({"threads": (1, 2)}, "--nb 96,160"), ({"nbs": (96, 160)}, "--threads 1,2")):
        with pytest.raises(EnvironmentProblem, match=f"begun with another --[a-z]+; give {remedy}"):
            calibrate(place, quick=True, resume=True, **other)
    machine.break_at(0, "never")
    archive = Archive.open(calibrate(place, quick=True, resume=True, nbs=(96, 160), threads=(1, 2)))
    assert (archive.metadata["nbs"], archive.metadata["threads"]) == ([96, 160], [1, 2])
    kernels = archive.table("observations/kernels.parquet")
    assert set(zip(kernels["threads"], kernels["active_cores"], strict=True)) == {(1, 1), (1, 2), (2, 2)}


@pytest.mark.slow
def test_a_made_up_layout_has_all_its_cores_in_the_archive(
    machine: FakeMachine, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEPAUTE_LAYOUT", "2x4")
    archive = Archive.open(calibrate(place, quick=True))
    layout = archive.about.machines["alone"].layout
    assert layout is not None
    assert (layout.source, layout.socket) == ("LEPAUTE_LAYOUT=2x4", (0,) * 4 + (1,) * 4)
    assert archive.about.cores == tuple(range(8))
    assert archive.about.node_cores == 8
    kernels = archive.table("observations/kernels.parquet")
    full = kernels[kernels["active_cores"] == 8]
    assert set(full["cpu"]) == set(range(8))
    assert set(full["active_socket_cores"]) == {4}
    loads = set(zip(kernels["active_cores"], kernels["active_socket_cores"], strict=True))
    assert loads == {(1, 1), (2, 1), (4, 2), (8, 4)}
    assert set(archive.table("observations/p2p.parquet")["distance"]) == {"same-l3", "other-socket"}
    monkeypatch.setenv("LEPAUTE_LAYOUT", "none")
    place.unlink()
    with pytest.raises((InputError, EnvironmentProblem), match="LEPAUTE_LAYOUT is 'none'; it makes up a layout"):
        calibrate(place, quick=True)


def test_messages_are_as_large_as_the_memory_has_room_for() -> None:
    gibibyte = 1 << 30
    assert largest_message(gibibyte, 64 * gibibyte, 2) == gibibyte
    # Two ranks with a region of two messages to send and one to receive each: 8 S in 40 % of the memory.
    assert largest_message(gibibyte, 10 * gibibyte, 2) == gibibyte // 2
    # A ring of 64 ranks: 2 S and 64 MiB for each.
    assert largest_message(gibibyte, 160 * gibibyte, 64) == (gibibyte - RING_SPARE_BYTES) // 2
    # What a plan then asks for.
    eight = made_up_layout("1x8", (0, 1))
    sizes = {
        run.probe: max(int(str(size)) for size in run.design.column("size_bytes"))
        for run in plan(QUICK, 1, eight, room(QUICK, 64 << 30, 8, 1 << 20))
        if "size_bytes" in run.design.columns
    }
    assert set(sizes) == {"p2p", "ring"}
    assert all(1 << 16 < size <= 1 << 20 for size in sizes.values())  # in the last sixth of the logarithm


def test_a_probe_of_larger_messages_may_take_longer_before_it_counts_as_hanging() -> None:
    def limit(most: int) -> float:
        runs = plan(QUICK, 1, TWO, room(QUICK, 64 << 30, 2, most))
        return max(limit_of(run) for run in runs)

    assert limit(1 << 20) == limit(64 << 20) == 180
    assert 180 * 8 < limit(1 << 30) <= 180 * 16


def test_one_core_is_not_enough_and_leaves_nothing(machine: FakeMachine, place: Path) -> None:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        with pytest.raises(EnvironmentProblem, match="alone: calibration needs two cores and may use 1"):
            calibrate(place)
    finally:
        os.sched_setaffinity(0, allowed)
    assert names_in(place) == []


def test_disturbed_runs_are_repeated_at_the_end_of_their_block_and_every_attempt_is_kept(
    machine: FakeMachine, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    ] == [
        (names[1], 1),
        (names[3], 1),
        (names[3], 2),
    ]
    assert {record["seed"] for record in records if record["name"] == names[3] and record["block"] == 0} == {
        records[3]["seed"]
    }
    assert [position for position, record in enumerate(records) if record["disturbed"]] == [1, 3, first_again + 1]
    raw = [name for name in archive.members() if name.startswith("raw/") and "semantics" not in name]
    assert any(name.startswith(f"raw/alone/block0/{names[3]}.attempt2") for name in raw)
    tables = [archive.table(f"observations/{kind}.parquet") for kind in KINDS]
    assert sum(len(table) for table in tables) == len(raw)  # a row each
    attempts = {row for table in tables for row in table[["block", "attempt", "disturbed"]].itertuples(index=False)}
    assert attempts == {(0, 0, False), (0, 0, True), (0, 1, False), (0, 1, True), (0, 2, False), (1, 0, False)}
    assert archive.metadata["warnings"] == [
        f"2 of {RUNS} probe runs were disturbed by other load (blocks.json): 2 repeated, "
        "0 without an undisturbed attempt"
    ]


def test_load_that_stays_costs_no_more_time_than_a_part_of_the_campaign(
    machine: FakeMachine, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disturb(monkeypatch, set(range(100)), wall_s=1.0)
    archive = Archive.open(calibrate(place, quick=True))
    numbers = collections.Counter(record["attempt"] for record in json.loads(archive.read_bytes("blocks.json")))
    assert numbers == {0: RUNS + SEMANTIC_ROUNDS, 1: 4}  # 4 s, used up in the first block
    assert archive.metadata["warnings"] == [
        f"{RUNS} of {RUNS} probe runs were disturbed by other load (blocks.json): 4 repeated, "
        f"{RUNS} without an undisturbed attempt"
    ]


def test_a_repetition_that_would_last_too_long_is_left_for_one_that_fits() -> None:
    def attempt(name: str, number: int, wall_s: float, disturbed: bool = True) -> Attempt:
        design = plan(QUICK, 1, TWO, LIMITS)[0].design
        return Attempt("alone", PlannedRun(0, name, "dgemm", (0,), 1, design), number, wall_s, disturbed)

    first = [attempt("a", 0, 15.0), attempt("b", 0, 12.0), attempt("c", 0, 3.0), attempt("d", 0, 1.0, disturbed=False)]
    following = []
    while (again := next_repetition(first, 0, 20.0)) is not None:
        following.append((again.run.name, again.number))
        first.append(attempt(again.run.name, again.number + 1, again.wall_s))
    assert following == [("a", 0), ("c", 0)]  # 15 + 12 s and 15 + 3 + 3 s would be too much
    assert next_repetition(first, 1, 20.0) is None
    lasting = [attempt("a", number, 1.0) for number in range(3)]
    assert next_repetition(lasting, 0, 20.0) is None  # twice is enough
    ended = AttemptEntry("n", None, 0, "d", 0, "dgemm", (0,), "one", 1, 1, "", 0.0, 0.0, 1.0, False, (), {})
    assert disturbance_warning([ended]) is None
    assert "1 of 1 probe runs were disturbed" in (disturbance_warning([replace(ended, disturbed=True)]) or "")


def separate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets each node count as a machine of its own, with the folder that the first has."""
    use = Calibration.use

    def as_machines(job: Calibration, nodes: Nodes) -> None:
        for channel in nodes.channels:
            channel.hello = replace(channel.hello, boot=channel.name)
        use(job, nodes)

    monkeypatch.setattr(Calibration, "use", as_machines)


@pytest.mark.slow
def test_names_of_one_machine_are_measured_one_after_the_other_then_the_messages_between_them(
    machine: FakeMachine, place: Path
) -> None:
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
def test_where_no_node_is_left_what_was_measured_is_archived_and_gone_on_from(
    machine: FakeMachine, place: Path
) -> None:
    machine.break_at(4, "lose")
    with pytest.raises(EnvironmentProblem, match="no node is left"):
        calibrate(place, quick=True)
    partial = Archive.open(place.with_name("c.partial.zip"))
    assert partial.metadata["status"] == "failed"
    assert len(partial.json("blocks.json")) == 3
    calibrate(place, quick=True, resume=True)
    assert len(Archive.open(place).json("blocks.json")) == RUNS + SEMANTIC_ROUNDS


def test_a_calibration_goes_on_as_it_was_begun(machine: FakeMachine, place: Path) -> None:
    machine.break_at(4, "fail")
    with pytest.raises(EnvironmentProblem):
        calibrate(place, quick=True)
    with pytest.raises(EnvironmentProblem, match="was begun with --quick; give it again"):
        calibrate(place, resume=True)
    machine.nodes = ["other"]
    with pytest.raises(EnvironmentProblem, match="was begun on alone; resume it on the same nodes"):
        calibrate(place, quick=True, resume=True)


@pytest.mark.slow
def test_machines_are_measured_at_the_same_time_and_a_failure_on_one_ends_all(
    machine: FakeMachine, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    separate(monkeypatch)
    machine.nodes = ["a", "b"]
    archive = Archive.open(calibrate(place, quick=True))
    spans = {
        node: [
            (record["started_s"], record["node"]) for record in archive.json("blocks.json") if record["node"] == node
        ]
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


def test_nodes_of_two_kinds_are_refused_before_anything_is_measured(
    machine: FakeMachine, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        (
            "/lib/libc.so.6: version `GLIBC_2.38' not found",
            "programs built here need GLIBC_2.38, and the system there is older",
        ),
        ("Permission denied", "a program built here does not start: exit status 127: Permission denied"),
    ],
)
def test_a_library_that_a_node_lacks_is_named_with_its_package(stderr: str, told: str) -> None:
    trial = Result("n", ("./probe-dgemm",), None, 127, "", stderr, "", 0.0)
    assert why_not(trial).startswith(told)
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


def test_sentinels_are_run_between_the_probes_on_all_cores_and_have_a_table_of_their_own(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = fake_machine(tmp_path / "programs", monkeypatch, os.getpid(), sentinels=True)
    monkeypatch.setattr(sentinels, "gap_s", lambda _cost_s: 0.0)
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


def test_sentinels_take_a_small_share_of_the_time(tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_machine(tmp_path / "programs", monkeypatch, os.getpid(), sentinels=True)
    archive = Archive.open(calibrate(place, quick=True))
    # All takes a second or two here: only the first is due, and what the least gap lets through.
    assert 1 <= archive.table("observations/sentinels.parquet")["order"].nunique() <= 12
