"""How the agent gets onto a node: as source, over the connection that starts it.

The command line that starts it is short and always the same. What follows on its standard input is a loader and the
modules of the agent, which live in the memory of that process alone.
"""

import json
from importlib import resources

from lepaute.measure.schedulers.types import NodeAddress

PACKAGE = "lepaute.measure.node_agent"
#: Modules outside the package that the agent needs.
BESIDE = ("lepaute.kit.sessions",)
#: Reads the length of a program, the program, and runs it; the rest of the input is the program's.
_FIRST = "import sys;i=sys.stdin.buffer;exec(compile(i.read(int(i.readline())),'lepaute-agent','exec'))"
_LOADER = """
import importlib.abc, importlib.util, json, sys

SOURCES = json.loads({sources!r})

class Loader(importlib.abc.InspectLoader, importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in SOURCES:
            return importlib.util.spec_from_loader(name, self, is_package=SOURCES[name] is None)

    def is_package(self, name):
        return SOURCES[name] is None

    def get_source(self, name):
        return SOURCES[name] or ""

sys.meta_path.insert(0, Loader())
if sys.version_info < (3, 9):
    sys.exit("lepaute: Python %d.%d is too old for a node; 3.9 or newer is needed" % sys.version_info[:2])
from lepaute.measure.node_agent.main import main
main({nonce!r}, {root!r})
"""


def agent_argv(node: NodeAddress, python: str) -> list[str]:
    """What to start here so that the agent starts on the node; `python` is the interpreter there."""
    return node.argv([python, "-I", "-c", _FIRST])


def agent_program(nonce: str, root: str = "/") -> bytes:
    """What goes to the agent's standard input first.

    nonce: comes back in its first message, so that a greeting of the node's shell is not taken for one
    root : under which it looks for the system's control files
    """
    sources: dict[str, str | None] = dict.fromkeys(("lepaute", "lepaute.kit", "lepaute.measure", PACKAGE))
    for file in resources.files(PACKAGE).iterdir():
        if file.name.endswith(".py") and file.name != "__init__.py":
            sources[f"{PACKAGE}.{file.name.removesuffix('.py')}"] = file.read_text()
    for name in BESIDE:
        package, _, module = name.rpartition(".")
        sources[name] = resources.files(package).joinpath(f"{module}.py").read_text()
    program = _LOADER.format(sources=json.dumps(sources), nonce=nonce, root=root).encode()
    return str(len(program)).encode() + b"\n" + program
