"""Tests pass on a slow or busy machine: none reads a clock or judges memory, none waits for less than a minute or for a
fixed time, and none says how long a real run may take.

Limits are those of `support_limits`; speed and memory are measured in `benchmarks/`. That a run takes no less than what
it does, or a call no longer than the one around it, holds on any machine: allowed are least times, and times that are
compared as they are with others.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
CLOCKS = {
    f"{clock}{unit}" for clock in ("monotonic", "perf_counter", "process_time", "thread_time") for unit in ("", "_ns")
}
MEMORY = {"ru_maxrss", "memory_info", "tracemalloc"}
LIMITS = {"timeout", "timeout_s", "limit_s"}
#: Functions whose first argument is a limit.
WAITS = {"wait", "join", "result", "communicate", "wait_until_there"}
MIN_S = 60.0
#: What a name or column is called that has something measured; `found_s` and HERE_S are told apart.
MEASURED = re.compile(r"\b(\w*[a-z]\w*_(s|ms|us|ns|[gm]?flops|B_per_s)|elapsed|durations?|medians?|times)\b")
REAL = re.compile(r"\bmark\.(machine|nodes)\b")
#: Further apart than this are two measurements, not one that was rounded.
CLOSEST = 0.02
#: What may do so all the same, and why.
ALLOWED = {
    "end_to_end/test_emulate_against.py": "times are simulated",
    "end_to_end/test_emulate_failures.py": "an interrupt at any moment; later is more telling",
    "end_to_end/test_emulate_habits.py": "times are simulated",
    "end_to_end/test_record.py": "an error below half of the 11 days that the clocks are apart",
    "end_to_end/test_record_processor_time.py": "processor time, which programs measure by the same clock",
    "end_to_end/test_verify_command.py": "what is compared is a prediction",
    "farms/daemons.py": "asks again, whether a port of this machine answers",
    "hostile/server.py": "ends what waits for HANG_S; memory is compared with the command's own",
    "mutants/pool.py": "ends what waits for HANG_S, and looks every second",
    "promises/test_clock_methods.py": "times are simulated",
    "support_limits.py": "what all others use",
    "support_store.py": "kills at moments spread over what the work takes",
    "unit/test_emulate_process.py": "its subject is the limit of a program, by a made-up clock",
    "unit/test_kit_command.py": "its subject is the limit of a program, and tasks that take a moment",
    "unit/test_nodes.py": "its subject is the limit of a program",
    "unit/test_probes.py": "its subject is the limit of a program",
    "unit/test_study_dask.py": "kills at moments spread over what the work takes",
    "unit/test_verify_faults.py": "kills at moments spread over what the work takes",
}


def found_in(source: str) -> Iterator[str]:
    """What of a file reads a clock or memory, sets a short limit, waits for a while, or judges what a real run took."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            is_clock = node.attr in {*CLOCKS, "sleep"} and isinstance(node.value, ast.Name) and node.value.id == "time"
            if is_clock or node.attr in MEMORY:
                yield f"line {node.lineno}: {node.attr}"
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            yield f"line {node.lineno}: imports from time"
        if isinstance(node, ast.Call):
            name = name_of(node)
            limits = [keyword.value for keyword in node.keywords if keyword.arg in LIMITS]
            limits += node.args[:1] if name in WAITS else []
            for limit in limits:
                if isinstance(limit, ast.Constant) and isinstance(limit.value, int | float) and limit.value < MIN_S:
                    yield f"line {node.lineno}: {name} has {limit.value:g} s"
    marked = any(REAL.search(ast.unparse(node)) for node in tree.body if isinstance(node, ast.Assign))
    for test in tree.body:
        if isinstance(test, ast.FunctionDef) and (
            marked or any(REAL.search(ast.unparse(at)) for at in test.decorator_list)
        ):
            asserted = (part for node in ast.walk(test) if isinstance(node, ast.Assert) for part in ast.walk(node.test))
            yield from (f"line {part.lineno}: {ast.unparse(part)}" for part in asserted if is_judged(part))


def name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def is_judged(node: ast.AST) -> bool:
    """Whether something measured must be below a bound or a multiple of something measured, or roughly equal to it."""
    if isinstance(node, ast.Call) and name_of(node) in ("approx", "allclose", "isclose"):
        far = (keyword.value.value for keyword in node.keywords if isinstance(keyword.value, ast.Constant))
        return any(isinstance(value, float) and value > CLOSEST for value in far)
    if not isinstance(node, ast.Compare):
        return False
    sides = [node.left, *node.comparators]
    for less, order, more in zip(sides, node.ops, sides[1:], strict=False):
        if isinstance(order, ast.Gt | ast.GtE):
            less, more = more, less  # noqa: PLW2901 - the same pair the other way round
        elif not isinstance(order, ast.Lt | ast.LtE):
            continue
        bounded = is_measured(less) and not is_measured(more) and not any(isinstance(at, ast.Call) for at in [more])
        if (bounded and is_fixed(more)) or is_multiple(less) or is_multiple(more):
            return True
    return False


def is_measured(node: ast.AST) -> bool:
    return MEASURED.search(ast.unparse(node)) is not None


def is_fixed(node: ast.AST) -> bool:
    """A number, or made of numbers and of names in capitals."""
    return all(at.id.isupper() for at in ast.walk(node) if isinstance(at, ast.Name))


def is_multiple(node: ast.AST) -> bool:
    """Whether something measured is multiplied or divided by a number."""
    return any(
        isinstance(at, ast.BinOp)
        and isinstance(at.op, ast.Mult | ast.Div)
        and is_measured(at)
        and any(isinstance(side, ast.Constant) for side in (at.left, at.right))
        for at in ast.walk(node)
    )


def test_no_test_reads_a_clock_or_waits_for_less_than_a_minute_or_judges_what_a_real_run_took() -> None:
    paths = sorted(TESTS.rglob("*.py"))
    found = {str(path.relative_to(TESTS)): list(found_in(path.read_text(encoding="utf-8"))) for path in paths}
    assert {path: lines for path, lines in found.items() if lines and path not in ALLOWED} == {}
    assert [path for path in ALLOWED if not found.get(path)] == []


@pytest.mark.parametrize(
    "line",
    [
        "assert took_s < 0.5", "assert 0.0 < times[-1] < 2.5 * times[0]",
        "assert measured.local_ns('dissemination') < LATE_NS / 2",
        "assert (rows['error_ns'].abs() < 0.05 * rows['offset_ns'] + 2e8).all()", "assert late_s.sum() > slept_s / 4",
        "assert second == pytest.approx(first, rel=1.0)", "time.sleep(0.5)", "process.wait(5)",
    ],
)  # fmt: skip
def test_a_planted_judgement_is_found_and_what_holds_anywhere_is_not(line: str) -> None:
    planted = f"@pytest.mark.machine\ndef test_it():\n    assert end_s - start_s >= 0.2\n    {line}\n"
    assert [found.partition(":")[0] for found in found_in(planted)] == ["line 4"]
