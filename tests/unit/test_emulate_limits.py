"""Limits of the system are told before an emulation runs into them; the control files are those of a made-up root."""

import resource
from pathlib import Path

import pytest

from lepaute.errors import EnvironmentProblem
from lepaute.simulate.smpi.request import check_limits, free_huge_bytes


def system(root: Path, *, maps: int = 65530, overcommit: int = 0, available_kib: int = 16 << 20) -> Path:
    (root / "proc/sys/vm").mkdir(parents=True, exist_ok=True)
    (root / "proc/sys/vm/max_map_count").write_text(f"{maps}\n")
    (root / "proc/sys/vm/overcommit_memory").write_text(f"{overcommit}\n")
    (root / "proc/meminfo").write_text(
        f"MemTotal: {2 * available_kib} kB\nMemAvailable: {available_kib} kB\nHugePages_Free:       5\n"
        "Hugepagesize:       2048 kB\n"
    )
    return root


@pytest.mark.parametrize(
    ("ranks", "stack_kib", "fold_bytes", "of_system", "message"),
    [
        (10_000, 64, None, {}, r"10000 ranks need about 82000 .* sysctl vm.max_map_count=164000"),
        (4, 1024, 1 << 20, {"overcommit": 2}, r"vm.overcommit_memory is 2.*sysctl vm.overcommit_memory=1"),
        (1024, 65536, None, {"available_kib": 1 << 20}, r"stacks of 1024 ranks take 68.7 GB, 1.07 GB are free"),
    ],
)
def test_a_limit_of_the_system_is_told_with_what_lifts_it(tmp_path, ranks, stack_kib, fold_bytes, of_system, message):
    with pytest.raises(EnvironmentProblem, match=message):
        check_limits(ranks, stack_kib, fold_bytes, system(tmp_path, **of_system))
    check_limits(4, 1024, None, system(tmp_path, **of_system))


def test_a_shell_that_allows_less_address_space_than_the_stacks_take_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _what: (1 << 30, 1 << 30))
    with pytest.raises(EnvironmentProblem, match="ulimit -v unlimited"):
        check_limits(2048, 1024, None, system(tmp_path))


def test_free_huge_pages_are_counted_and_a_system_without_control_files_is_not_complained_about(tmp_path) -> None:
    check_limits(100_000, 1024, 1 << 20, tmp_path)
    assert free_huge_bytes(tmp_path) == 0
    assert free_huge_bytes(system(tmp_path)) == 5 * (2 << 20)
