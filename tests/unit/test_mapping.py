"""Where ranks go, and the layout of a node that hwloc or the kernel tells."""

import shutil
from collections import Counter
from pathlib import Path

import pytest
from support_limits import ran

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.measure.comparison.mpirun import private_cache_bytes
from lepaute.measure.layout import Layout, from_hwloc, from_sysfs, layout_of
from lepaute.measure.node_agent.system_files import SystemFiles
from lepaute.simulate import Hpl, Mapping, predict
from lepaute.simulate.conditions import Conditions
from lepaute.simulate.machine.mapping import (
    Slot,
    hostfile_slots,
    permuted,
    rankfile_slots,
    read_hostfile,
    read_rankfile,
)
from lepaute.simulate.platform import override
from lepaute.simulate.prediction.predicting import expected_run_s, simulate_one
from lepaute.simulate.smpi.emulate import Smpi


def slots_of(nodes_and_cores):
    return tuple(Slot(node, core) for node, core in nodes_and_cores)


def test_sequential_fills_one_node_after_the_other_and_random_draws_every_order_of_slots_by_its_seed(dahu):
    assert Mapping().cores(dahu, 70) == list(range(70))
    # 10 threads a rank: three ranks a node, and its last two cores stay empty.
    assert Mapping().cores(dahu, 5, threads=10) == [0, 10, 20, 32, 42]
    first = Mapping("random", seed=7).cores(dahu, 1024)
    assert sorted(first) == list(range(1024))
    assert first != list(range(1024))
    assert Mapping("random", seed=7).cores(dahu, 1024) == first
    assert Mapping("random", seed=8).cores(dahu, 1024) != first
    assert {core // 32 for core in Mapping("random").cores(dahu, 40)} <= {0, 1}
    slots = [Slot(0, core) for core in range(4)]
    seen = Counter(tuple(slot.core for slot in permuted(slots, seed)) for seed in range(4800))
    assert len(seen) == 24
    # 200 each; the binomial's standard deviation is 13.8, and 24 orders stay within 5 of them but once in 70,000 times.
    assert all(131 <= count <= 269 for count in seen.values())


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        ("user@192.168.7.1\nuser@192.168.7.2", [(0, 0), (1, 0)]),
        ("10.0.0.9:2\nfe80::1 slots=2\n10.0.0.9\n", [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2)]),
        ("2001:db8:0:0:0:0:0:7\nfrontend\ndahu-700\ndahu-700.site", [(0, 0), (1, 0), (2, 0), (2, 1)]),
    ],
)
def test_hosts_are_nodes_in_their_order_where_that_is_asked_for(dahu, text, slots):
    assert hostfile_slots(text, "hosts", dahu, hosts="in-order") == slots_of(slots)
    with pytest.raises(InputError, match="--map-hosts in-order takes hosts as nodes in the order of the file"):
        hostfile_slots(text, "hosts", dahu)


def test_the_command_maps_hosts_as_asked(tmp_path, refusal_of, json_of):
    (tmp_path / "hosts").write_text("user@192.168.7.1\nuser@192.168.7.2\n")
    words = ["predict", "hpl", "-p", "dahu", "--n", "500", "--grid", "1x2", "--runs", "1", "--json"]
    given = ["--hostfile", str(tmp_path / "hosts")]
    assert json_of(*words, *given, "--map-hosts", "In-Order")["parameters"]["mapping_slots"] == "1:0 2:0"
    told = refusal_of(*words, *given, "--map-hosts", "random")
    assert "--map-hosts is 'random'; it must be one of by-number, in-order" in told


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        ("dahu-3 slots=2\ndahu-1 slots=1\n", [(2, 0), (2, 1), (0, 0)]),
        ("dahu-3:2\ndahu-1\n", [(2, 0), (2, 1), (0, 0)]),
        ("dahu-1\ndahu-2\ndahu-1\n", [(0, 0), (1, 0), (0, 1)]),
        ("# a comment\n\n  dahu-32.grenoble.example.org  slots = 1 max_slots=4  # the last\n", [(31, 0)]),
        ("1 slots=2", [(0, 0), (0, 1)]),
        ("root@dahu-3 2\ndahu-3 cpu=1 user=x", [(2, 0), (2, 1), (2, 2)]),
        ("dahu-[1-2] slots=2\nroot@dahu-[7,3],dahu-1:1", [(0, 0), (0, 1), (1, 0), (1, 1), (6, 0), (2, 0), (0, 2)]),
        ("dahu-1 max_slots=2\ndahu-2 count=1 max-slots=2", [(0, 0), (0, 1), (1, 0)]),
        # Core c is on cpu c mod 2: cpu 1 has the cores 1, 3, 5, ...
        ("rank 0=dahu-1 slot=0:1\nrank 1=dahu-1 slot=1:2", [(0, 2), (0, 5)]),
        ("rank 1=dahu-2 slot=3\nrank 0=dahu-1 slot=31", [(0, 31), (1, 3)]),
        ("rank 0 = dahu-1 slots=0-3\nrank 1=dahu-1 slot=0-3", [(0, 0), (0, 1)]),
        ("rank 0=dahu-1 slot=1:*\nrank 1=dahu-1 slot=1:0,1", [(0, 1), (0, 3)]),
    ],
)
def test_a_hostfile_gives_slots_in_the_order_of_its_lines_and_a_rankfile_each_rank_its_core(dahu, text, slots):
    assert (rankfile_slots if text.startswith("rank") else hostfile_slots)(text, "file", dahu) == slots_of(slots)


def test_a_slot_of_several_threads_takes_as_many_cores_and_a_rank_its_own_or_those_behind_its_one_core(dahu):
    assert hostfile_slots("dahu-1:2\ndahu-2:1", "hosts", dahu, 16) == slots_of([(0, 0), (0, 16), (1, 0)])
    ranks = "rank 0=dahu-1 slot=0\nrank 1=dahu-1 slot=4-7"
    assert rankfile_slots(ranks, "ranks", dahu, 4) == slots_of([(0, 0), (0, 4)])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dahu-1\ndahu-33\n", "hosts:2: host dahu-33 is no node of platform dahu-2020-01, whose nodes have the"),
        ("dahu-0", "hosts:1: host dahu-0 is no node"),
        ("frontend", "hosts:1: host frontend has no number at its end"),
        ("10.0.0.3", "hosts:1: 10.0.0.3 is an address, and a name that ends in the number of its node is needed"),
        ("dahu-1 slots=33", "hosts:1: host dahu-1 has now 33 slots, and a node"),
        ("dahu-1:20\ndahu-2\ndahu-1:13", "hosts:3: host dahu-1 has now 33 slots"),
        ("dahu-1 slots=many", "hosts:1: slots is 'many'"),
        ("dahu-1 slots=3 max_slots=2", "hosts:1: has 3 slots, and at most 2"),
        ("dahu-1 slots=0", "hosts:1: host dahu-1 has 0 slots"),
        ("dahu-1 cores=4", "hosts:1: cores is no key"),
        ("dahu-1 dahu-2", "hosts:1: 'dahu-1 dahu-2' is no host"),
        ("dahu-1\nyeti-1", "hosts:2: hosts dahu-1 and yeti-1 are both node 1"),
        ("8*dahu-1", "hosts:1: '8*dahu-1' is no host"),
        ("dahu-1\n+n1", "hosts:2: '+n1' is no host"),
        ("dahu-[1-", "hosts:1: 'dahu-[1-' is not a"),
        ("dahu-[3-1]", "hosts:1: 'dahu-[3-1]' is not a set of nodes"),
        ("dahu-[1-99999] slots=1", "hosts:1: 'dahu-[1-99999]' names more than 10000 nodes"),
        ("# nothing\n", "hosts: names no host"),
        ("rank 0=dahu-1 slot=32", "ranks:1: slot=32: a node of dahu-2020-01 has cores 0 to 31"),
        ("rank 0=dahu-1 slot=0:16", "ranks:1: slot=0:16: its cpu 0 has cores 0 to 15"),
        ("rank 0=dahu-1 slot=2:0", "ranks:1: slot=2:0: there is no cpu 2"),
        ("rank 0=dahu-1 slot=first", "ranks:1: slot=first is no list of cores"),
        ("rank 0=dahu-1 slot=5-3", "ranks:1: slot=5-3"),
        ("rank 0=dahu-1 slot=4\nrank 1=dahu-1 slot=4", "ranks:2: rank 1 needs 1 core and finds 0 free, rank 0 has"),
        ("rank 0=dahu-1 slot=4\nrank 0=dahu-1 slot=5", "ranks:2: rank 0 is given a second place"),
        ("rank 0=dahu-1 slot=4\nrank 2=dahu-1 slot=5", "ranks: has no line for rank 1"),
        ("rank 0=dahu-99 slot=4", "ranks:1: host dahu-99 is no node"),
        ("0 dahu-1 4", "ranks:1: '0 dahu-1 4' is no line of a rankfile"),
        ("", "ranks: places no rank"),
    ],
)
def test_a_bad_hostfile_or_rankfile_is_refused_with_its_line(dahu, text, words):
    with pytest.raises(InputError) as refusal:
        (hostfile_slots if words.startswith("hosts") else rankfile_slots)(text, words[:5], dahu)
    assert str(refusal.value).startswith(words)


def test_the_mapping_is_recorded_so_that_the_prediction_repeats(dahu, tmp_path):
    (tmp_path / "hosts").write_text("dahu-2:3\ndahu-5\n")
    (tmp_path / "ranks").write_text("".join(f"rank {rank}=dahu-{rank + 1} slot=7\n" for rank in range(4)))
    hpl = Hpl(n=500, p=2, q=2)

    def recorded(mapping):
        parameters = predict(hpl, dahu, runs=1, mapping=mapping).to_dict()["parameters"]
        return {name: value for name, value in parameters.items() if name.startswith("mapping")}

    assert recorded(None) == {"mapping": "sequential"}
    assert recorded(Mapping("random", seed=3)) == {"mapping": "random", "mapping_seed": 3}
    assert recorded(read_hostfile(tmp_path / "hosts", dahu)) == {"mapping": "hostfile", "mapping_slots": "2:0-2 5:0"}
    assert recorded(read_rankfile(tmp_path / "ranks", dahu)) == {
        "mapping": "rankfile",
        "mapping_slots": "1:7 2:7 3:7 4:7",
    }
    drawn = recorded(read_hostfile(tmp_path / "hosts", dahu, seed=1))
    assert (drawn["mapping"], drawn["mapping_seed"]) == ("random", 1)


def test_ranks_on_nodes_of_their_own_exchange_messages_over_the_network(dahu):
    # Same cores relative to their nodes: only the network differs.
    hpl = Hpl(n=2000, p=2, q=2)
    apart = Mapping(slots=slots_of([(0, 0), (1, 0), (2, 0), (3, 0)]))
    together = predict(hpl, dahu, runs=1)
    spread = predict(hpl, dahu, runs=1, mapping=apart)
    assert (together.nodes, spread.nodes) == (1, 4)
    assert spread.simulation.messages == together.simulation.messages
    assert spread.time_s.mean != together.time_s.mean


def test_what_is_larger_than_the_memory_of_the_node_with_most_ranks_is_refused_before_anything_is_simulated(dahu):
    # 8 MB of matrix on nodes of 5 MB: it fits on four nodes, and not on one.
    small = override(dahu, {"nodes.memory_bytes": "5000000"})
    hpl = Hpl(n=1000, p=2, q=2)
    apart = Mapping(slots=slots_of([(0, 0), (1, 0), (2, 0), (3, 0)]))
    assert predict(hpl, small, runs=1, mapping=apart).nodes == 4
    assert predict(hpl, override(small, {"nodes.memory_bytes": "null"}), runs=1).nodes == 1
    for asked in (predict, simulate_one, lambda *of: expected_run_s([of[0]], of[1], runs=1)):
        with pytest.raises(
            InputError, match=r"N = 1000 need 0.008\d* GB on the node with most ranks \(4\).* 0.0050+ GB"
        ):
            asked(hpl, small)
    with pytest.raises(InputError, match="N = 1000 need"):
        Smpi(Path("xhpl")).on(Conditions(small)).prepare(hpl)


#: As `lstopo --of xml` of hwloc 2 has them: two sockets of two cores with two threads each, the second thread of core c
#: being c + 4; NUMA nodes stand beside what is in them.
_CORE = (
    '<object type="Core" os_index="0"><object type="PU" os_index="{first}" nodeset="{nodes}"/>'
    '<object type="PU" os_index="{second}" nodeset="{nodes}"/></object>'
)
HWLOC_2 = (
    '<?xml version="1.0"?><topology version="2.0"><object type="Machine">'
    + "".join(
        f'<object type="Package" os_index="{socket}"><object type="NUMANode" os_index="{socket}"/>'
        '<object type="L3Cache" depth="3">'
        + "".join(_CORE.format(first=at, second=at + 4, nodes=hex(1 << socket)) for at in (2 * socket, 2 * socket + 1))
        + "</object></object>"
        for socket in (0, 1)
    )
    + "</object></topology>"
)
#: hwloc 1: other names, NUMA nodes around the sockets; cores of the sockets alternate in the system's numbers.
HWLOC_1 = (
    "<topology>"
    + "".join(
        f'<object type="NUMANode"><object type="Socket"><object type="Cache" depth="3">'
        f'<object type="Core"><object type="PU" os_index="{socket}"/></object></object>'
        f'<object type="Cache" depth="3"><object type="Core"><object type="PU" os_index="{socket + 2}"/>'
        "</object></object>"
        "</object></object>"
        for socket in (0, 1)
    )
    + "</topology>"
)


def pus(layout: Layout | None) -> list[int]:
    return [core.pu for core in layout.cores]


def test_cores_are_bound_to_their_first_thread_and_numbered_in_logical_order_without_gaps() -> None:
    layout = from_hwloc(HWLOC_2, range(8))
    assert pus(layout) == [0, 1, 2, 3]
    assert [core.number for core in layout.cores] == [0, 1, 2, 3]
    assert [core.smt_pus for core in layout.cores] == [(0, 4), (1, 5), (2, 6), (3, 7)]
    assert layout.facts.socket == layout.facts.numa == layout.facts.l3 == (0, 0, 1, 1)
    assert layout.sockets == ((0, 1), (2, 3))
    # Of core 0 only the second thread is left, core 1 and socket 1's core 2 are gone.
    layout = from_hwloc(HWLOC_2, {4, 3, 7})
    assert pus(layout) == [4, 3]
    assert layout.cores[1].smt_pus == (3, 7)
    assert layout.facts.socket == (0, 1)
    layout = from_hwloc(HWLOC_1, range(4))
    assert pus(layout) == [0, 2, 1, 3]
    assert layout.facts.socket == layout.facts.numa == (0, 0, 1, 1)
    assert layout.facts.l3 == (0, 1, 2, 3)


def test_the_kernel_tells_the_same_as_hwloc() -> None:
    def place(cpu: int, package: int, siblings: list[int], cache: list[int]) -> dict[str, object]:
        return {"cpu": cpu, "package": package, "numa": package, "siblings": siblings, "cache": cache}

    told = [place(cpu, cpu % 4 // 2, [cpu % 4, cpu % 4 + 4], [0, 1, 4, 5] if cpu % 4 < 2 else []) for cpu in range(8)]
    layout, expected = from_sysfs(told, range(8)), from_hwloc(HWLOC_2, range(8))
    assert layout.cores == expected.cores
    alternating = [place(cpu, cpu % 2, [cpu], [cpu]) for cpu in range(4)]
    expected = from_hwloc(HWLOC_1, range(4))
    assert from_sysfs(alternating, range(4)).cores == expected.cores
    # A kernel that tells nothing: every thread is a core, all on one socket.
    assert from_sysfs([], {3, 5}).facts.socket == (0, 0)


@pytest.mark.parametrize("xml", ["", "<topology", "<topology></topology>", HWLOC_2.replace('os_index="5"', "")])
def test_what_is_no_topology_of_these_threads_is_not_believed(xml: str) -> None:
    assert from_hwloc(xml, range(8)) is None
    assert layout_of({"lstopo": xml, "sysfs": []}, range(8)).source == "sysfs"


def test_distances_and_the_cores_beside_one_and_a_layout_that_is_made_up() -> None:
    layout = from_hwloc(HWLOC_1, range(4))
    assert [layout.distance(0, other) for other in (1, 2)] == ["same-socket", "other-socket"]
    two = from_hwloc(HWLOC_2, range(8))
    assert two.distance(2, 3) == "same-l3"
    assert two.active_beside(2, (0, 2, 3)) == 2
    layout = layout_of({}, {0, 1}, "2x3")
    assert pus(layout) == [0, 1, 0, 1, 0, 1]
    assert layout.facts.socket == (0, 0, 0, 1, 1, 1)
    assert layout.source == "LEPAUTE_LAYOUT=2x3"


@pytest.mark.skipif(shutil.which("lstopo-no-graphics") is None, reason="hwloc is not installed")
@pytest.mark.parametrize("description", ["package:2 l3:2 core:4 pu:2", "package:2 numa:2 core:4 pu:1", "pu:4"])
def test_what_hwloc_itself_prints_is_understood(description: str) -> None:
    argv = ["lstopo-no-graphics", "--of", "xml", "-i", description]
    xml = ran(argv, check=True).stdout
    parts = {key: int(count) for key, count in (part.split(":") for part in description.split())}
    cores = parts.get("package", 1) * parts.get("l3", 1) * parts.get("numa", 1) * parts.get("core", parts["pu"])
    layout = from_hwloc(xml, range(xml.count('type="PU"')))
    assert len(layout.cores) == cores
    assert len(layout.sockets) == parts.get("package", 1)
    assert len(set(layout.facts.numa)) == max(1, parts.get("package", 1) * parts.get("numa", 0))


def _tree(root: Path, caches: list[tuple[str, str, str, str]], threads: str = "0,16") -> SystemFiles:
    """caches: level, type, size, and the hardware threads that share it."""
    cpu = root / "sys/devices/system/cpu/cpu0"
    (cpu / "topology").mkdir(parents=True)
    (cpu / "topology/thread_siblings_list").write_text(f"{threads}\n")
    for index, (level, kind, size, shared) in enumerate(caches):
        folder = cpu / f"cache/index{index}"
        folder.mkdir(parents=True)
        for name, text in (("level", level), ("type", kind), ("size", size), ("shared_cpu_list", shared)):
            (folder / name).write_text(f"{text}\n")
    return SystemFiles(root)


_FIRST = [("1", "Data", "32K", "0,16"), ("1", "Instruction", "64K", "0,16")]


def test_it_is_the_last_level_that_only_the_threads_of_one_core_share_and_else_an_error(tmp_path: Path) -> None:
    caches = [*_FIRST, ("2", "Unified", "1M", "0,16"), ("3", "Unified", "32768K", "0-31")]
    assert private_cache_bytes(_tree(tmp_path / "a", caches)) == 1 << 20
    assert private_cache_bytes(_tree(tmp_path / "b", [*_FIRST, ("2", "Unified", "4M", "0-3,16-19")])) == 32 << 10
    with pytest.raises(EnvironmentProblem, match="--cold: this machine does not tell"):
        private_cache_bytes(_tree(tmp_path, []))
