"""Values given to the extension module itself, in a process of its own that may die of them.

`Engine` starts it and asks it; run as a program, it reads lines of JSON, each a list of [place, value] that are set in
turn on what a run is given, simulates, and answers with a line: `time SECONDS`, `refused MESSAGE`, or what else came.
A place is a path of attributes and positions from a root of `roots()`: machine.network.remote.segments[0].latency_s.
"""

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from support_limits import HANG_S

from lepaute import _core
from lepaute.simulate.machine.core import machine_of
from lepaute.simulate.platform.io import load_platform

TESTS = Path(__file__).resolve().parents[1]
#: A run that is fine, but long, is cancelled.
CANCELLED_AFTER_S = 2.0
#: With AddressSanitizer, whose shadow takes terabytes of addresses and which ends a process that has no memory left.
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
MAX_MEMORY_BYTES = 6 << 30


def roots() -> dict[str, Any]:
    """What a run is given, by name: all of it sound."""
    machine = machine_of(load_platform(TESTS / "data/platforms/small.yaml"))
    machine.network.exact_sharing = False
    hpl, stencil, options = _core.HplParameters(), _core.StencilParameters(), _core.TopologyOptions()
    hpl.n, hpl.nb, hpl.p, hpl.q = 200, 32, 2, 2
    stencil.grid, stencil.cells, stencil.iterations, stencil.cell_time_s = [2, 2, 1], [8, 8, 8], 3, 1e-6
    options.levels = [(1e9, 1e-6)]
    piece = _core.KernelPiece()
    piece.mean, piece.deviation, piece.noise = [1e-10] * 9, [1e-12] * 9, "half-normal"
    piece.covariance_terms, piece.covariance = [0, 8], [1e-24, 0.0, 0.0, 1e-14]
    piece.fitted_parts = [piece.fitted]
    kernel = _core.MachineKernel()
    kernel.name, kernel.crowding = "dgemm", [_core.CrowdingPoint(0.5, 0.1), _core.CrowdingPoint(1.0, 0.2)]
    return {
        "program": program(), "hpl": hpl, "stencil": stencil, "machine": machine, "options": options, "piece": piece,
        "kernel": kernel,
        "run": {"cores": [0, 1, 2, 3], "seed": 1, "trace_ranks": None, "trace_steps": None, "topology_nodes": 2,
                "models": 1},
    }  # fmt: skip


def program() -> dict[str, Any]:
    """Parts of a program of four ranks: what rank 0 sends to rank 1, and ranks 2 and 3 exchange, before all compute."""
    return {
        "op": {"code": "isend", "algorithm": "usual", "peer": 1, "tag": 3, "which": 0, "m": 800.0, "n": 0.0, "k": 0.0,
               "line": 0},
        "meeting": {"code": "bcast", "algorithm": "usual", "peer": 1, "tag": 0, "which": 0, "m": 80.0},
        "waited": {"numbers": [0], "bytes": [0.0]},
        "neighbours": {"numbers": [3], "bytes": [80.0]},
        "communicators": [[0, 1, 2, 3], [3, 2]],
        "ops": [0, 1, 2, 3, 4],
        "part": [0, 5, 1],
        "kernels": ["dgemm"],
        "lines": ["app.py:1"],
        "step_count": 1,
        "by_date": False,
    }  # fmt: skip


def program_of(given: dict[str, Any]) -> _core.ProgramParameters:
    """The parameters of such a program."""

    def op(code: str, which: int = 0, peer: int = 0, **more: Any) -> _core.ProgramOp:
        usual = {"algorithm": "usual", "tag": 0, "m": 8.0, "n": 8.0, "k": 8.0, "line": 0}
        return _core.ProgramOp(**usual | {"code": code, "which": which, "peer": peer} | more)

    parameters = _core.ProgramParameters()
    parameters.ops = [
        op(**given["op"]), op("waitall", 0), op("step"), op("compute"), op(**given["meeting"]),
        op("receive", 0, _core.PROGRAM_ANY, tag=3), op("exchange", 1), op("exchange", 2), op("barrier", 1),
    ]  # fmt: skip
    lists = (given["waited"], given["neighbours"], {"numbers": [2], "bytes": [8.0]})
    parameters.lists = [_core.ProgramList(each["numbers"], each["bytes"]) for each in lists]
    others = ([5, 2, 3, 4], [6, 8, 2, 3, 4], [7, 8, 2, 3, 4])
    parameters.rank_code = [
        _core.ProgramRankCode(given["ops"], [given["part"]]),
        *(_core.ProgramRankCode(ops, [(0, len(ops), 1)]) for ops in others),
    ]
    for name in ("communicators", "kernels", "lines", "step_count", "by_date"):
        setattr(parameters, name, given[name])
    _core.check_program(parameters)
    return parameters


def places() -> dict[str, Any]:
    """Every place that a number, a word, a switch or a list can be put to, with the value that stands there."""
    found: dict[str, Any] = {}

    def visit(place: str, value: Any) -> None:
        if isinstance(value, dict):
            for name, inside in value.items():
                visit(f"{place}.{name}" if place else name, inside)
        elif type(value).__module__ == _core.__name__:
            for name, attribute in vars(type(value)).items():
                if isinstance(attribute, property) and attribute.fset is not None and name != "topology":
                    visit(f"{place}.{name}", getattr(value, name))
        else:
            found[place] = value
            if isinstance(value, list) and value and type(value[0]).__module__ == _core.__name__:
                visit(f"{place}[0]", value[0])

    visit("", roots())
    return {place: value for place, value in found.items() if not _holds_values(value)}


def _holds_values(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and type(value[0]).__module__ == _core.__name__


def assign(owner: Any, path: list[str], value: Any) -> None:
    """Sets what stands at the end of a path; what the module hands out as a copy is set again on the way back."""
    first, *rest = path
    if isinstance(owner, list):
        if rest:
            assign(owner[int(first)], rest, value)
        else:
            owner[int(first)] = value
        return
    if rest:
        inside = owner[first] if isinstance(owner, dict) else getattr(owner, first)
        assign(inside, rest, value)
        value = inside
    if isinstance(owner, dict):
        owner[first] = value
    else:
        setattr(owner, first, value)


def result_of(assignments: list[tuple[str, Any]]) -> str:
    """What a run says of its inputs."""
    given = roots()
    try:
        for place, value in assignments:
            assign(given, re.findall(r"[^.\[\]]+", place), value)
        times = [_time_s(name, given) for name in ("hpl", "stencil", "program")]
    except (ValueError, TypeError, OverflowError) as error:
        return f"refused {error}".replace("\n", " ")
    except (RuntimeError, MemoryError) as error:
        return f"{type(error).__name__} {error}"
    return f"time {max(times)!r}"


def _time_s(application: str, given: dict[str, Any]) -> float:
    machine, run = given["machine"].copy(), given["run"]
    given["kernel"].models = [_core.KernelModel([given["piece"]])] * run["models"]
    machine.kernels = [*machine.kernels[1:], given["kernel"]]
    machine.topology = _core.Topology.single_switch(run["topology_nodes"], given["options"])
    progress = _core.Progress()
    parameters = program_of(given["program"]) if application == "program" else given[application]
    timer = threading.Timer(CANCELLED_AFTER_S, progress.cancel)
    timer.start()
    try:
        simulate = getattr(_core, f"simulate_{application}")
        chosen = (run["trace_ranks"], run["trace_steps"])
        result = simulate(parameters, machine, _core.Layers(), run["cores"], run["seed"], *chosen, None, progress)
    finally:
        timer.cancel()
    return float(result.time_s)


class Engine:
    """The process, started anew when it has died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def __call__(self, assignments: list[tuple[str, Any]]) -> str:
        """Its answer; `ended by N` where the process died of the values, which a signal says by a negative number."""
        if self._process is None or self._process.poll() is not None:
            path = os.pathsep.join([*sys.path, str(TESTS)])
            self._process = subprocess.Popen(
                [sys.executable, "-m", "hostile.core_inputs"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                env={**os.environ, "PYTHONPATH": path},
            )  # fmt: skip
        process = self._process
        hangs = threading.Timer(HANG_S, process.kill)
        hangs.start()
        try:
            process.stdin.write(json.dumps(assignments) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline().rstrip("\n")
        finally:
            hangs.cancel()
        return answer or f"ended by {process.wait()}"

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate()


if __name__ == "__main__":
    import resource

    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    for line in sys.stdin:
        print(result_of(json.loads(line)), flush=True)
