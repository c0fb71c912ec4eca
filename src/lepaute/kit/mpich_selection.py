"""The tree by which an MPICH chooses its algorithms, as the library itself holds it.

MPICH is compiled with its default selection as JSON text (maint/tuning/coll/mpir/generic.json of its sources), which
its shared object holds. A file of its own (MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE) takes the place of the whole
tree.
"""

import json
import re
from pathlib import Path
from typing import Any

from lepaute.errors import EnvironmentProblem
from lepaute.kit.command import run_command
from lepaute.kit.mpi_library import MpiLibrary

#: Text in the shared object, from the brace on to the byte 0 at its end.
_TREE = re.compile(rb'\{"collective=[^\x00]{1,1000000}(?=\x00)')
_LIMIT_S = 30.0
_FILES = ("libmpich.so", "libmpi.so")


def default_tree(library: MpiLibrary) -> dict[str, Any]:
    """The tree of all operations; MPICH has further ones, of its devices, for a few operations.

    Raises EnvironmentProblem where the library does not hold one.
    """
    path = _shared_object(library)
    trees = []
    for match in _TREE.finditer(path.read_bytes()):
        try:
            trees.append(json.loads(match[0]))
        except ValueError:
            continue
    tree: dict[str, Any] = max(trees, key=len, default={})
    if "MPIR_" not in json.dumps(tree):
        raise EnvironmentProblem(f"{path}: holds no selection of algorithms; its MPICH is older than 3.4 or another's")
    return tree


def _shared_object(library: MpiLibrary) -> Path:
    words, variables = [str(library.mpicc), "-show"], dict(library.environment)
    done = run_command(words, what=str(library.mpicc), timeout_s=_LIMIT_S, environment=variables)
    folders = [word[2:] for word in done.stdout.split() if word.startswith("-L")]
    for folder in [*folders, str(library.mpicc.parent.parent / "lib")]:
        for name in _FILES:
            if (Path(folder) / name).is_file():
                return Path(folder) / name
    raise EnvironmentProblem(f"{library.mpicc}: found no {' or '.join(_FILES)} in {', '.join(folders) or 'no folder'}")
