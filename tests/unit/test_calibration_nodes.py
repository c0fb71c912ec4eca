"""A calibration of several nodes: their order, those that are lost, and those that are not alike."""

import collections
import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from support_calibration import BLOCK, KINDS, RUNS, SEMANTIC_ROUNDS, FakeMachine, names_in

from lepaute.errors import EnvironmentProblem
from lepaute.measure.archive import Archive
from lepaute.measure.calibration import machines
from lepaute.measure.calibration.campaign import Calibration, calibrate
from lepaute.measure.kernel_set import KernelSet, Timing
from lepaute.measure.nodes.group import Nodes
from lepaute.measure.nodes.results import Result, why_not

pytest_plugins = ["support_calibration_fixtures"]


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
