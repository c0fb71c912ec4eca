"""The recorder inside of an emulation: a library that writes the calls of MPI as a recording has them."""

import shutil
from pathlib import Path

from lepaute.errors import EnvironmentProblem
from lepaute.kit.builds import built_once, digests
from lepaute.kit.command import run_command
from lepaute.simulate.smpi.library import probes_source
from lepaute.simulate.smpi.simgrid import INSTALL, find_simgrid

LIBRARY = "liblepaute-calls.so"
#: Names the file that it writes.
VARIABLE = "LEPAUTE_RECORD_CALLS"

_SOURCES = ("record_smpi.c", "record_world.c", "record_mpi.c", "record_requests.c", "record_collectives.c")
_HEADERS = (
    *("record.h", *(f"record_{part}.h" for part in ("smpi", "inside", "calls", "requests", "world"))),
    "probe_common.h",
)
_FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-DLEP_RECORD_SMPI", "-O2", "-fPIC", "-fvisibility=hidden", "-shared")
_COMPILE_LIMIT_S = 120.0


def build_call_recorder() -> Path:
    """The library, to be preloaded behind simblas; built at first use, in the cache.

    Raises EnvironmentProblem where it cannot be built.
    """
    smpicc = find_simgrid().smpicc
    include = smpicc.resolve().parents[1] / "include" / "smpi"
    compiler = _compiler()
    sources = [str(probes_source() / name) for name in _SOURCES]

    def build(folder: Path) -> None:
        argv = [compiler, *_FLAGS, f"-I{include}", *sources, "-lsimgrid", "-ldl", "-o", str(folder / LIBRARY)]
        run_command(argv, what="building the recorder of emulations", timeout_s=_COMPILE_LIMIT_S)

    inputs = digests(probes_source() / name for name in (*_SOURCES, *_HEADERS))
    return built_once("call-recorder", [*inputs, compiler, str(include), *_FLAGS], LIBRARY, build) / LIBRARY


def _compiler() -> str:
    found = next(filter(None, map(shutil.which, ("gcc", "cc"))), None)
    if found is None:
        raise EnvironmentProblem(f"gcc is missing (Debian package gcc); to trace an emulation, install it: {INSTALL}")
    return found
