"""Another version of Lepaute, built from the repository to be measured beside this one."""

import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

from engine.command import Program

ROOT = Path(__file__).resolve().parents[2]


def built(revision: str) -> Program:
    """The package at `revision`, in build/before, with its core compiled as CMakeLists.txt there has it.

    Raises RuntimeError, with a reason, where there is no such revision or it cannot be built.
    """
    commit = _output(["git", "rev-parse", "--verify", f"{revision}^{{commit}}"], ROOT).decode().strip()
    folder = ROOT / "build" / "before" / commit
    program = Program(commit[:7], folder / "src")
    if any((folder / "src" / "lepaute").glob("_core*.so")):
        return program
    archive = _output(["git", "archive", "--format=tar", commit], ROOT)
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    build = folder / "build"
    configure = ["cmake", "-S", str(folder), "-B", str(build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
    _output([*configure, "-DLEPAUTE_PYTHON=ON", f"-DPython_EXECUTABLE={sys.executable}"], folder)
    _output(["cmake", "--build", str(build)], folder)
    for module in build.glob("_core*.so"):
        module.rename(folder / "src" / "lepaute" / module.name)
    return program


def _output(argv: list[str], folder: Path) -> bytes:
    try:
        return subprocess.run(argv, cwd=folder, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", b"") or str(error).encode()
        last = (said.decode(errors="replace").strip().splitlines() or ["no reason given"])[-1]
        raise RuntimeError(f"{' '.join(argv[:2])}: {last}") from error
