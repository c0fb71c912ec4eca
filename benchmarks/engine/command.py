"""One `lepaute predict hpl` in a fresh process, with what it cost."""

import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Cost:
    """What one prediction cost; `problem` says why there is none (then the numbers are NaN).

    user_s : user time of the whole process, start-up included
    wall_s : of the whole process
    simulation_s : wall time of the simulation alone, as the prediction states it
    """

    user_s: float
    wall_s: float
    simulation_s: float
    engine_bytes: float
    peak_rss_bytes: float
    messages: float
    times_s: tuple[float, ...]
    fidelity: str
    problem: str = ""


def predict(arguments: dict[str, str], cores: int = 1, timeout_s: float = 600.0) -> Cost:
    """Runs the prediction on the first `cores` of this process's cores.

    arguments : options without their dashes
    """
    chosen = sorted(os.sched_getaffinity(0))[:cores]
    options = [part for name, value in arguments.items() for part in (f"--{name}", value)]
    argv = [sys.executable, "-m", "lepaute.cli.main", "predict", "hpl", *options, "--json"]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime, time.perf_counter()
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=timeout_s, check=False,
            preexec_fn=lambda: os.sched_setaffinity(0, chosen),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return nothing(f"stopped after {timeout_s:.0f} s")
    wall_s = time.perf_counter() - started
    user_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    if done.returncode:
        return nothing((done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1])
    result: dict[str, Any] = json.loads(done.stdout)
    figures = result["simulation"]
    return Cost(
        user_s,
        wall_s,
        figures["wall_s"],
        figures["engine_bytes"],
        figures["peak_rss_bytes"],
        figures["messages"],
        tuple(run["time_s"] for run in result["runs"]),
        result["fidelity"],
    )


def nothing(problem: str) -> Cost:
    """No cost, and why."""
    nan = float("nan")
    return Cost(nan, nan, nan, nan, nan, nan, (), "", problem)
