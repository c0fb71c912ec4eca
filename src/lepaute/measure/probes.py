"""The probes: C programs that time kernels and messages, built here and run one design table at a time."""

import hashlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lepaute.cache import cache_folder
from lepaute.command import CommandRecord, run_command
from lepaute.errors import EnvironmentProblem
from lepaute.measure.apt_source import sha256_of
from lepaute.measure.hpl_source import build_hpl, hpl_include_flags
from lepaute.measure.probe_source import C_FLAGS, probe_source
from lepaute.measure.toolchain import Toolchain, find_toolchain, mpirun_argv

_COMMON = ("probe_common.c",)
_LOG = (*_COMMON, "kernel_log.c")
_MPI = ("probe_mpi.c",)

#: The symbols behind every kernel that HPL calls: with HPL_CALL_CBLAS its BLAS names are macros for cblas_*.
WRAPPED_SYMBOLS = (
    *(f"cblas_{name}" for name in ("dgemm", "dtrsm", "dgemv", "dger", "dtrsv", "dscal", "daxpy", "dcopy", "idamax")),
    *(f"HPL_{name}" for name in ("dlocswpT", "dlocswpN", "dlatcpy", "dlacpy")),
    *(f"HPL_dlaswp{name}" for name in ("00N", "01T", "02N", "03T", "04T", "05T", "06T", "10N")),
)

_COMPILE_LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Probes:
    """Paths of the built programs."""

    dgemm: Path
    hpl_steps: Path
    p2p: Path
    xhpl: Path


@dataclass(frozen=True, slots=True)
class ProbeRun:
    """A run of a probe: its raw files, in the order of the ranks, and the record of the command."""

    files: tuple[Path, ...]
    command: CommandRecord


def build_probes(
    build_dir: Path | None = None,
    progress: Callable[[str], None] | None = None,
    toolchain: Toolchain | None = None,
) -> Probes:
    """Build the probes and HPL, or find them built already; see build_hpl for `build_dir` and for what is raised."""
    tools = toolchain or find_toolchain()
    hpl = build_hpl(build_dir, progress, tools)
    parent = (build_dir or cache_folder()).resolve()
    built = parent / f"probes-{_inputs_hash(tools, hpl)}"
    probes = Probes(built / "probe-dgemm", built / "probe-hpl-steps", built / "probe-p2p", hpl / "xhpl-lepaute")
    if all(path.is_file() for path in (probes.dgemm, probes.hpl_steps, probes.p2p)):
        return probes
    if progress is not None:
        progress("compiling the probes")
    with tempfile.TemporaryDirectory(prefix=".probes-", dir=parent) as temporary:
        folder = Path(temporary, "probes")
        folder.mkdir()
        wraps = [f"-Wl,--wrap={symbol}" for symbol in WRAPPED_SYMBOLS]
        library = [*wraps, str(hpl / "libhpl.a"), *tools.blas_flags]
        steps = ("probe_hpl_steps.c", "kernel_wraps.c", *_LOG, *_MPI)
        _compile(tools, folder / probes.hpl_steps.name, steps, hpl_include_flags(hpl), library)
        _compile(tools, folder / probes.p2p.name, ("probe_p2p.c", *_COMMON, *_MPI), (), ())
        _compile(tools, folder / probes.dgemm.name, ("probe_dgemm.c", *_LOG), (), tools.blas_flags)
        try:
            folder.rename(built)
        except OSError:
            if not probes.dgemm.is_file():
                raise EnvironmentProblem(f"{built} is in the way; remove it and try again") from None
    return probes


def run_probe_dgemm(
    probes: Probes,
    design: Path,
    out: Path,
    *,
    cpu: int,
    seed: int,
    max_bytes: int | None = None,
    coretype: str | None = None,
    timeout_s: float = 600.0,
) -> ProbeRun:
    """Time the products of a dgemm design alone on one core; the raw file is `out` itself.

    max_bytes: most memory for operands, None for the probe's own limit
    coretype : OPENBLAS_CORETYPE, None to leave it as it is
    Raises EnvironmentProblem when the probe fails or takes longer than timeout_s.
    """
    environment = {"OPENBLAS_NUM_THREADS": "1"} | ({} if coretype is None else {"OPENBLAS_CORETYPE": coretype})
    argv: list[str | Path] = [probes.dgemm, "--design", design, "--out", out, "--cpu", str(cpu), "--seed", str(seed)]
    if max_bytes is not None:
        argv += ["--max-bytes", str(max_bytes)]
    record = run_command(argv, what="the dgemm probe", timeout_s=timeout_s, environment=environment)
    return ProbeRun(_existing([out]), record)


def run_probe_steps(
    probes: Probes,
    design: Path,
    out: Path,
    *,
    cpus: Sequence[int],
    seed: int,
    options: Sequence[str] = (),
    coretype: str | None = None,
    timeout_s: float = 900.0,
) -> ProbeRun:
    """Time HPL's kernels in place, on a grid of len(cpus) x 1 ranks; rank r leaves the raw file `out`.r<r>.

    options: more of the probe's options, such as ("--nbmin", "4")
    """
    return _run_ranks(probes.hpl_steps, "the HPL step probe", design, out, cpus, seed, options, coretype, timeout_s)


def run_probe_p2p(
    probes: Probes,
    design: Path,
    out: Path,
    *,
    cpus: Sequence[int] = (0, 1),
    seed: int,
    options: Sequence[str] = (),
    timeout_s: float = 600.0,
) -> ProbeRun:
    """Time messages between two cores; rank r leaves the raw file `out`.r<r>.

    options: more of the probe's options, such as ("--buffers", "warm")
    """
    if len(cpus) != 2:
        raise EnvironmentProblem(f"messages are timed between two cores; given are {len(cpus)}")
    return _run_ranks(probes.p2p, "the message probe", design, out, cpus, seed, options, None, timeout_s)


def _run_ranks(
    program: Path,
    what: str,
    design: Path,
    out: Path,
    cpus: Sequence[int],
    seed: int,
    options: Sequence[str],
    coretype: str | None,
    timeout_s: float,
) -> ProbeRun:
    argv, environment = mpirun_argv(len(cpus), cpus, bind=False, coretype=coretype)
    cores = ",".join(map(str, cpus))
    argv += [str(program), "--design", str(design), "--out", str(out), "--seed", str(seed), "--cpus", cores, *options]
    record = run_command(argv, what=what, timeout_s=timeout_s, environment=environment)
    return ProbeRun(_existing([Path(f"{out}.r{rank}") for rank in range(len(cpus))]), record)


def _existing(files: list[Path]) -> tuple[Path, ...]:
    for path in files:
        if not path.is_file():
            raise EnvironmentProblem(f"the probe ended well but left no {path}")
    return tuple(files)


def _version() -> str:
    import lepaute

    return str(getattr(lepaute, "__version__", "unknown"))


def _inputs_hash(tools: Toolchain, hpl: Path) -> str:
    digest = hashlib.sha256()
    sources = sorted(path for pattern in ("*.c", "*.h") for path in probe_source().glob(pattern))
    text = (*map(sha256_of, sources), hpl.name, tools.compiler, tools.mpi, str(tools.mpicc), _version())
    for item in (*text, *tools.blas_flags, *WRAPPED_SYMBOLS, *C_FLAGS):
        digest.update(item.encode() + b"\0")
    return digest.hexdigest()[:16]


def _compile(
    tools: Toolchain, program: Path, names: Sequence[str], flags: Sequence[str], libraries: Sequence[str]
) -> None:
    sources = [str(probe_source() / name) for name in names]
    argv = [str(tools.mpicc), *C_FLAGS, f'-DLEPAUTE_VERSION="{_version()}"', *flags, *sources, *libraries]
    run_command([*argv, "-lm", "-o", str(program)], what=f"building {program.name}", timeout_s=_COMPILE_LIMIT_S)
