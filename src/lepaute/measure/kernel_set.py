"""Which BLAS kernels really run here, and whether faster ones would.

OpenBLAS picks its kernels by the processor's model number. A version older than the processor falls back,
silently, to kernels of twenty years ago: a fifth of the speed. The environment variable
OPENBLAS_CORETYPE overrides the choice, and crashes where the processor lacks the instructions; so
candidates are taken from the processor's flags and tried in processes of their own.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lepaute.errors import EnvironmentProblem
from lepaute.measure.node_agent.facts import cpu_flags
from lepaute.measure.node_agent.system_files import run_command

CORETYPE = "OPENBLAS_CORETYPE"
LIBRARY = "libopenblas.so.0"

#: A candidate replaces the default only where the default is slower by more than this share: kernel sets
#: of one generation differ by a few per cent, which is noise on a shared machine.
SLOWER_BY = 0.20

#: Name of the kernel set and the flags its kernels need, best guess first.
_CANDIDATES: tuple[tuple[str, frozenset[str]], ...] = (
    ("SkylakeX", frozenset({"avx512f", "avx512dq", "avx512bw", "avx512vl", "fma"})),
    ("Zen", frozenset({"avx2", "fma"})),
    ("Haswell", frozenset({"avx2", "fma"})),
    ("Sandybridge", frozenset({"avx"})),
)

#: Runs in a fresh interpreter with ctypes alone: loads the library as a program would, times dgemm.
#: 0x3f bytes make doubles of 4.8e-4: no denormals, which are slow, and no overflow.
_CHILD = """
import ctypes, json, sys, time
library, repeats = sys.argv[1], int(sys.argv[2])
blas = ctypes.CDLL(library)
for name in ("openblas_get_corename", "openblas_get_config"):
    getattr(blas, name).restype = ctypes.c_char_p
m, n, k = 2000, 2000, 128
a, b, c = ((ctypes.c_double * size)() for size in (m * k, k * n, m * n))
for block in (a, b, c):
    ctypes.memset(block, 0x3f, ctypes.sizeof(block))
column_major, plain, one = 102, 111, ctypes.c_double(1.0)
best = float("inf")
for _ in range(repeats):
    start = time.perf_counter()
    blas.cblas_dgemm(column_major, plain, plain, m, n, k, one, a, m, b, k, one, c, m)
    best = min(best, time.perf_counter() - start)
print(json.dumps({"core_name": blas.openblas_get_corename().decode(), "config": blas.openblas_get_config().decode(),
                  "gflops": 2e-9 * m * n * k / best}))
"""
_REPEATS = 7
KERNELS_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Timing:
    """One kernel set as it was seen to run: OpenBLAS' own name for it, its build, and dgemm's best rate."""

    coretype_env: str | None  # the value of OPENBLAS_CORETYPE; None: not set
    core_name: str
    config: str
    gflops: float


@dataclass(frozen=True, slots=True)
class KernelSet:
    """The kernels that calibration and application shall both run.

    core_name   : what OpenBLAS says it uses
    coretype_env: the value OPENBLAS_CORETYPE must have, None to leave it unset
    gflops      : best rate of dgemm(2000, 2000, 128) on one core
    default     : what runs when nothing is set
    """

    core_name: str
    coretype_env: str | None
    gflops: float
    warnings: tuple[str, ...]
    config: str = ""
    default: Timing | None = None


def blas_environment(threads: int, coretype: str | None) -> dict[str, str]:
    """Variables that make OpenBLAS use the threads, and the kernels of that setting; None: those it chooses."""
    return {"OPENBLAS_NUM_THREADS": str(threads)} | ({} if coretype is None else {CORETYPE: coretype})


def candidates(flags: frozenset[str]) -> list[str]:
    """Values of OPENBLAS_CORETYPE whose instructions a processor with these flags has."""
    return [name for name, needed in _CANDIDATES if needed <= flags]


def decide(default: Timing, others: Sequence[Timing]) -> Timing:
    """The kernel set to use: the default, unless it is slower than the best other one by more than 20 %."""
    best = max(others, key=lambda timing: timing.gflops, default=default)
    return best if default.gflops < (1 - SLOWER_BY) * best.gflops else default


def time_kernels(coretype: str | None, library: str = LIBRARY) -> Timing | None:
    """Runs dgemm in a fresh process with OPENBLAS_CORETYPE set (or unset); None when that process fails."""
    ran = run_command(kernels_argv(sys.executable, coretype, library), KERNELS_LIMIT_S)
    return timing_of(coretype, ran.stdout.decode(errors="replace")) if ran.returncode == 0 else None


def kernels_argv(python: str, coretype: str | None, library: str = LIBRARY) -> list[str]:
    """Command to run, here or on a node, for `timing_of`; `python` is an interpreter there."""
    setting = [] if coretype is None else [f"{CORETYPE}={coretype}"]
    words = [python, "-I", "-S", "-c", _CHILD, library, str(_REPEATS)]
    return ["env", "-u", CORETYPE, "OPENBLAS_NUM_THREADS=1", *setting, *words]


def timing_of(coretype: str | None, output: str) -> Timing | None:
    """Timing that the program of `kernels_argv` printed; None if that makes no sense."""
    try:
        seen = json.loads(output)
        return Timing(coretype, str(seen["core_name"]), str(seen["config"]), float(seen["gflops"]))
    except (ValueError, KeyError, TypeError):
        return None


def choose_kernel_set(
    *,
    environment: Mapping[str, str] | None = None,
    flags: frozenset[str] | None = None,
    timer: Callable[[str | None], Timing | None] = time_kernels,
) -> KernelSet:
    """Finds the kernels that run by default, tries those this processor can run, and chooses.

    A user's own OPENBLAS_CORETYPE is respected, with a warning where it is slow.
    Raises EnvironmentProblem when OpenBLAS cannot be loaded or run.
    """
    environment = os.environ if environment is None else environment
    flags = cpu_flags() if flags is None else flags
    forced = environment.get(CORETYPE) or None
    default = timer(forced)
    if default is None:
        cause = f"with {CORETYPE}={forced}" if forced else f"({LIBRARY})"
        remedy = f"unset {CORETYPE}" if forced else "install it: apt-get install libopenblas-dev"
        raise EnvironmentProblem(f"OpenBLAS cannot be loaded or run {cause}; {remedy}")
    best = decide(default, _others(default, flags, timer))
    if best is not default:
        # A disturbance during the one timing of the default would look like slow kernels: time both again.
        again = [timing for timing in (timer(forced), timer(best.coretype_env)) if timing is not None]
        default = max([default, *(t for t in again if t.coretype_env == forced)], key=lambda timing: timing.gflops)
        best = decide(default, [best, *(t for t in again if t.coretype_env != forced)])
    if best is default:
        return KernelSet(default.core_name, default.coretype_env, default.gflops, (), default.config, default)
    slow = (
        f"OpenBLAS runs its {default.core_name} kernels here ({default.gflops:.1f} Gflop/s a core) "
        f"where {best.core_name} reach {best.gflops:.1f}"
    )
    if forced:
        warning = f"{slow}; kept, because {CORETYPE}={forced} is set: unset it for the faster ones"
        return KernelSet(default.core_name, forced, default.gflops, (warning,), default.config, default)
    warning = f"{slow}; took the fast ones. Run your application with {CORETYPE}={best.coretype_env} as well"
    return KernelSet(best.core_name, best.coretype_env, best.gflops, (warning,), best.config, default)


def _others(default: Timing, flags: frozenset[str], timer: Callable[[str | None], Timing | None]) -> list[Timing]:
    """Timings of the kernel sets that really differ from the default; a library built for one set has none."""
    timings = []
    for name in candidates(flags):
        if name.lower() == default.core_name.lower():
            continue
        timing = timer(name)
        if timing is not None and timing.core_name != default.core_name:
            timings.append(timing)
    return timings
