"""Tests pass on a slow or busy machine: none reads a clock or judges memory, and none waits for less than a minute.

Limits are those of `support_limits`; speed and memory are measured in `benchmarks/`.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
CLOCKS = {
    f"{clock}{unit}" for clock in ("monotonic", "perf_counter", "process_time", "thread_time") for unit in ("", "_ns")
}
MEMORY = {"ru_maxrss", "memory_info", "tracemalloc"}
LIMITS = {"timeout", "timeout_s", "limit_s"}
#: Functions whose first argument is a limit.
WAITS = {"wait", "join", "result", "communicate", "wait_until_there"}
LEAST_S = 60.0
#: What may do so all the same, and why.
ALLOWED = {
    "farms/daemons.py": "asks again, whether a port of this machine answers",
    "hostile/server.py": "ends what waits for HANG_S; memory is compared with the command's own",
    "mutants/pool.py": "ends what waits for HANG_S, and looks every second",
    "support_limits.py": "what all others use",
    "unit/test_emulate_process.py": "its subject is the limit of a program, by a made-up clock",
    "unit/test_kit_command.py": "its subject is the limit of a program",
    "unit/test_nodes.py": "its subject is the limit of a program",
    "unit/test_probes.py": "its subject is the limit of a program",
    "unit/test_store.py": "kills at moments spread over what the work takes",
    "unit/test_support_limits.py": "its subject is the limits themselves",
    "unit/test_watch.py": "kills at moments spread over what the work takes",
}


def found_in(path: Path) -> Iterator[str]:
    """What of a file reads a clock or memory, or sets a short limit."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute):
            is_clock = node.attr in CLOCKS and isinstance(node.value, ast.Name) and node.value.id == "time"
            if is_clock or node.attr in MEMORY:
                yield f"line {node.lineno}: {node.attr}"
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            yield f"line {node.lineno}: imports from time"
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            limits = [each.value for each in node.keywords if each.arg in LIMITS]
            limits += node.args[:1] if name in WAITS else []
            for limit in limits:
                if isinstance(limit, ast.Constant) and isinstance(limit.value, int | float) and limit.value < LEAST_S:
                    yield f"line {node.lineno}: {name} has {limit.value:g} s"


def test_no_test_reads_a_clock_or_waits_for_less_than_a_minute() -> None:
    found = {str(path.relative_to(TESTS)): list(found_in(path)) for path in sorted(TESTS.rglob("*.py"))}
    assert {path: lines for path, lines in found.items() if lines and path not in ALLOWED} == {}
    assert [path for path in ALLOWED if not found.get(path)] == []
