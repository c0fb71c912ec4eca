"""How commands are started under machine control; and the rules of the program that runs on nodes."""

import ast
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from support_limits import HANG_S

import lepaute.measure.node_agent
from lepaute.measure.node_agent.control_settings import pinning, scheduling, started_as
from lepaute.measure.node_agent.system_files import SystemFiles
from lepaute.measure.nodes.channel import BESIDE

#: Of the program on the nodes, and those from elsewhere that travel with it.
MODULES = [
    *sorted(Path(lepaute.measure.node_agent.__file__).parent.glob("*.py")),
    *(Path(str(import_module(name).__file__)) for name in BESIDE),
]


def _status(launch: dict[str, object]) -> tuple[str, str]:
    """(CPUs, nice) of a command started so."""
    argv = [sys.executable, "-c", "import os; print(sorted(os.sched_getaffinity(0)), os.nice(0))"]
    process = started_as(launch, lambda: subprocess.Popen(argv, stdout=subprocess.PIPE, text=True))
    out = process.communicate(timeout=HANG_S)[0]
    cpus, nice = out.rsplit(maxsplit=1)
    return cpus, nice


def test_a_command_has_the_cpus_and_the_nice_value_and_the_agent_keeps_its_own() -> None:
    mine, nice = os.sched_getaffinity(0), os.nice(0)
    last = max(mine)
    nicer = min(nice + 3, 19)  # the largest there is
    assert _status({"cpus": [last], "scheduling": {"class": "other", "nice": nicer}}) == (f"[{last}]", str(nicer))
    assert (os.sched_getaffinity(0), os.nice(0)) == (mine, nice)


def test_what_a_start_raises_reaches_its_caller() -> None:
    with pytest.raises(FileNotFoundError):
        started_as({"cpus": list(os.sched_getaffinity(0))}, lambda: subprocess.Popen(["/no/such/program"]))


def test_a_class_is_tried_before_it_is_promised() -> None:
    launch, record = scheduling({"class": "batch", "nice": os.nice(0) + 1})
    assert record["status"] == "done"
    assert launch == {"scheduling": {"class": "batch", "nice": os.nice(0) + 1}}


def test_a_cpu_that_is_not_there_is_not_promised() -> None:
    launch, record = pinning(SystemFiles(), [4095])
    assert (launch, record["status"]) == ({}, "warning")


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_the_program_on_the_nodes_is_python_3_9_and_imports_only_its_standard_library(module: Path) -> None:
    tree = ast.parse(module.read_text(), feature_version=(3, 9))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert {alias.name.split(".")[0] for alias in node.names} <= sys.stdlib_module_names
        elif isinstance(node, ast.ImportFrom):
            standard = (node.module or "").split(".")[0] in sys.stdlib_module_names
            assert node.level == 1 or standard or node.module in BESIDE
        elif isinstance(node, ast.keyword):
            assert (node.arg, getattr(node.value, "value", None)) not in {("slots", True), ("kw_only", True)}
        assert not isinstance(node, ast.Attribute) or (node.attr != "UTC"), f"line {node.lineno}: datetime.UTC is 3.11"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "zip":
            assert not node.keywords, f"line {node.lineno}: zip(strict=) is 3.10"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            assert not isinstance(node.args[1], ast.BinOp), f"line {node.lineno}: isinstance(x, A | B) is 3.10"
