"""The layout of a node, from what hwloc or the kernel tells of it, and caches that a cold call finds overwritten."""

import shutil
from pathlib import Path

import pytest
from support_limits import ran

from lepaute.errors import EnvironmentProblem
from lepaute.measure.comparison.mpirun import private_cache_bytes
from lepaute.measure.layout import Layout, from_hwloc, from_sysfs, layout_of
from lepaute.measure.node_agent.system_files import SystemFiles

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
        + "".join(
            _CORE.format(first=core, second=core + 4, nodes=hex(1 << socket)) for core in (2 * socket, 2 * socket + 1)
        )
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


def test_a_core_is_bound_to_its_first_thread_and_numbered_in_logical_order() -> None:
    layout = from_hwloc(HWLOC_2, range(8))
    assert pus(layout) == [0, 1, 2, 3]
    assert [core.number for core in layout.cores] == [0, 1, 2, 3]
    assert [core.smt_pus for core in layout.cores] == [(0, 4), (1, 5), (2, 6), (3, 7)]
    assert layout.facts.socket == layout.facts.numa == layout.facts.l3 == (0, 0, 1, 1)
    assert layout.sockets == ((0, 1), (2, 3))


def test_what_the_affinity_mask_takes_away_is_not_measured_and_the_rest_is_numbered_without_gaps() -> None:
    # Of core 0 only the second thread is left, core 1 and socket 1's core 2 are gone.
    layout = from_hwloc(HWLOC_2, {4, 3, 7})
    assert pus(layout) == [4, 3]
    assert layout.cores[1].smt_pus == (3, 7)
    assert layout.facts.socket == (0, 1)


def test_in_logical_order_a_socket_comes_before_the_next_even_where_the_system_numbers_them_alternately() -> None:
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


def test_distances_and_the_cores_beside_one() -> None:
    layout = from_hwloc(HWLOC_1, range(4))
    assert [layout.distance(0, other) for other in (1, 2)] == ["same-socket", "other-socket"]
    two = from_hwloc(HWLOC_2, range(8))
    assert two.distance(2, 3) == "same-l3"
    assert two.active_beside(2, (0, 2, 3)) == 2


def test_a_layout_can_be_made_up_on_the_threads_that_there_are() -> None:
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


def test_it_is_the_last_level_that_only_the_threads_of_one_core_share(tmp_path: Path) -> None:
    caches = [*_FIRST, ("2", "Unified", "1M", "0,16"), ("3", "Unified", "32768K", "0-31")]
    assert private_cache_bytes(_tree(tmp_path / "a", caches)) == 1 << 20
    assert private_cache_bytes(_tree(tmp_path / "b", [*_FIRST, ("2", "Unified", "4M", "0-3,16-19")])) == 32 << 10


def test_a_machine_that_does_not_tell_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="--cold: this machine does not tell"):
        private_cache_bytes(_tree(tmp_path, []))
