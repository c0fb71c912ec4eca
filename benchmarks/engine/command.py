"""One `lepaute predict hpl` in a fresh process, with what it cost; several of them in turn."""

import json
import math
import os
import resource
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

#: A process that took so long is not run again; one below LONG_S is run REPEATS times, others FEW_REPEATS times.
ONCE_S, LONG_S = 40.0, 8.0
REPEATS, FEW_REPEATS = 5, 3


@dataclass(frozen=True, slots=True)
class Program:
    """A version of Lepaute: the one that is installed, or that in a folder of sources."""

    name: str
    sources: Path | None = None

    def environment(self) -> dict[str, str]:
        return dict(os.environ) if self.sources is None else os.environ | {"PYTHONPATH": str(self.sources)}


NOW = Program("now")


NUMBERS = ("user_s", "wall_s", "simulation_s", "engine_bytes", "peak_rss_bytes", "messages")


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
    repeats: int = 1

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Self:
        """The cost of a row of the table of all measurements."""
        numbers = {name: float(row[name] or "nan") for name in NUMBERS}
        times_s = tuple(map(float, str(row["times_s"]).split()))
        return cls(**numbers, times_s=times_s, fidelity=str(row["fidelity"]), problem=str(row["problem"]))


def predict(arguments: Mapping[str, str], cores: int = 1, most_s: float = 600.0, program: Program = NOW) -> Cost:
    """Runs the prediction on the first `cores` of this process's cores.

    arguments : options without their dashes; an empty value for those that take none
    most_s : the process is stopped after so many seconds of CPU time
    """
    chosen = sorted(os.sched_getaffinity(0))[:cores]

    def limit() -> None:
        os.sched_setaffinity(0, chosen)
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(most_s), math.ceil(most_s) + 5))

    options = [part for name, value in arguments.items() for part in (f"--{name}", value) if part]
    argv = [sys.executable, "-m", "lepaute.cli.main", "predict", "hpl", *options, "--json"]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime, time.perf_counter()
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, env=program.environment(), preexec_fn=limit
    )
    wall_s = time.perf_counter() - started
    user_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    if done.returncode == -signal.SIGXCPU:
        return nothing(f"stopped after {most_s:.0f} s")
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


def repeats_for(first: Cost) -> int:
    """How often a prediction is run in all, after the first time."""
    if first.problem or first.user_s >= ONCE_S:
        return 1
    return REPEATS if first.user_s < LONG_S else FEW_REPEATS


def median(costs: Sequence[Cost]) -> Cost:
    """The cost with the medians of times and memory; all runs of a prediction have the same results."""
    if costs[0].problem:
        return costs[0]
    good = [cost for cost in costs if not cost.problem]
    middle = {
        name: statistics.median(getattr(cost, name) for cost in good)
        for name in ("user_s", "wall_s", "simulation_s", "engine_bytes", "peak_rss_bytes")
    }
    return replace(good[0], **middle, repeats=len(good))


def in_turn(runs: Mapping[str, Callable[[], Cost]]) -> dict[str, Cost]:
    """Medians of each, measured in turn, every other round in reverse order."""
    costs: dict[str, list[Cost]] = {key: [run()] for key, run in runs.items()}
    for round_number in range(1, REPEATS):
        keys = list(runs) if round_number % 2 == 0 else list(reversed(runs))
        for key in keys:
            if round_number < repeats_for(costs[key][0]):
                costs[key].append(runs[key]())
    return {key: median(found) for key, found in costs.items()}
