"""The agent in the interpreters that nodes have, which are older than the engine's."""

import os
import re
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import pytest
from support_limits import HANG_S, ran
from support_nodes import Remembered

from lepaute.measure.nodes.channel import BESIDE, PACKAGE
from lepaute.measure.nodes.group import Nodes
from lepaute.measure.nodes.pool import Pool
from lepaute.measure.schedulers.types import NodeAddress

#: Where Debian, who compiles, pyenv and uv put interpreters, each named by its version.
INSTALLED = (
    "/usr/bin/python3.*",
    "/usr/local/bin/python3.*",
    "~/.pyenv/versions/*/bin/python3.*",
    "~/.local/share/uv/python/*/bin/python3.*",
)


def interpreters() -> dict[str, str]:
    """Those that are here from Python 3.9 on, by version: at least the one that runs this."""
    found = {}
    for pattern in INSTALLED:
        for path in sorted(Path("/").glob(str(Path(pattern).expanduser().relative_to("/")))):
            named = re.fullmatch(r"python3\.(\d+)", path.name)
            if named and int(named[1]) >= 9:
                found[f"3.{named[1]}"] = str(path)
    return found | {"{}.{}".format(*sys.version_info): sys.executable}


def sources() -> list[Path]:
    beside = [
        resources.files(package).joinpath(f"{module}.py")
        for package, _, module in (name.rpartition(".") for name in BESIDE)
    ]
    inside = [file for file in resources.files(PACKAGE).iterdir() if file.name.endswith(".py")]
    return [Path(str(file)) for file in (*inside, *beside)]


def asking_for_newer_python(files: Sequence[Path]) -> str:
    """What asks for a grammar or a standard library newer than Python 3.9, by file and line; empty if nothing does."""
    words = ["--target=3.9-", "--violations", "--no-tips", "--quiet", *map(str, files)]
    program = [sys.executable, "-c", "import vermin; vermin.main()"]
    done = ran([*program, *words])
    assert done.stderr == ""
    return done.stdout


def test_what_travels_to_nodes_asks_for_no_python_newer_than_3_9() -> None:
    assert asking_for_newer_python(sources()) == ""


@pytest.mark.parametrize(("version", "python"), interpreters().items(), ids=list(interpreters()))
def test_an_agent_works_in_the_python_of_a_node(version: str, python: str) -> None:
    """For real in the interpreters that are here: on Debian 12 alone that is 3.11, and the others, 3.9 too, are
    covered only by the reading of the sources above. pyenv and uv bring others."""
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
