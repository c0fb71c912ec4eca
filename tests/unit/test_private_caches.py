"""The cache that a cold call finds overwritten, from made-up trees of the kernel's files."""

from pathlib import Path

import pytest

from lepaute.errors import EnvironmentProblem
from lepaute.measure.comparison.mpirun import private_cache_bytes
from lepaute.measure.node_agent.system_files import SystemFiles


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
