"""The agent in the interpreters that nodes have, which are older than the engine's."""

import ast
import os
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest
from support_limits import HANG_S
from support_nodes import Remembered

from lepaute.measure.nodes.bootstrap import BESIDE, PACKAGE
from lepaute.measure.nodes.group import Nodes
from lepaute.measure.nodes.pool import Pool
from lepaute.measure.schedulers.types import NodeAddress

#: What came after Python 3.9 in modules that were there before, as far as an agent could want it.
LATER = {
    "UTC",
    "StrEnum",
    "pairwise",
    "chdir",
    "aclosing",
    "KW_ONLY",
    "ParamSpec",
    "Self",
    "TypeAlias",
    "ExceptionGroup",
}


def interpreter(version: str) -> str:
    found = shutil.which(f"python{version}")
    works = found and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0
    if not works:
        pytest.skip(f"there is no Python {version} here")
    return str(found)


def sources() -> list[Path]:
    beside = [
        resources.files(package).joinpath(f"{module}.py")
        for package, _, module in (name.rpartition(".") for name in BESIDE)
    ]
    inside = [file for file in resources.files(PACKAGE).iterdir() if file.name.endswith(".py")]
    return [Path(str(file)) for file in (*inside, *beside)]


@pytest.mark.parametrize("source", sources(), ids=lambda path: path.name)
def test_what_travels_to_nodes_is_python_3_9_and_imports_nothing_newer(source: Path) -> None:
    tree = ast.parse(source.read_text(), feature_version=(3, 9))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert not imported & LATER
    assert not any(isinstance(node, ast.Match) for node in ast.walk(tree))


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.11", "3.12", "3.13"])
def test_an_agent_works_in_the_python_of_a_node(version: str) -> None:
    python = interpreter(version)
    with Pool([NodeAddress("n")], python=python, folder=f"lepaute-test-{os.urandom(4).hex()}") as pool:
        nodes = Nodes(pool.channels, Remembered())
        assert pool.channels[0].hello.python.startswith(f"{version}.")
        nodes.write("a", "b")
        assert nodes.read("a") == {"n": b"b"}
        assert nodes.shell("cat a; sleep 0.1", timeout_s=HANG_S).stdout == "b"
        assert nodes.call("monitor", period_s=0.05)["n"]["columns"]
        assert nodes.call("reference")["n"]["compute_s"] > 0
        assert nodes.call("control", wanted={"pinning": [0], "scheduling": {"nice": 1}})["n"]
        assert pool.channels[0].result(pool.channels[0].ask({"do": "environment"})[1], HANG_S)
        assert nodes.call("undo") == {"n": []}
        assert nodes.call("unmonitor")["n"]["samples"] >= 0
