"""The probes: C programs that time kernels and messages, built here and run one design table at a time.

The raw file that a probe writes has `#@key=value` lines, the names of its columns, and a row a call.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from lepaute.kit.builds import built_once, digests
from lepaute.measure.hpl_source import HPL_KERNELS, build_hpl, hpl_include_flags
from lepaute.measure.plan import FLOWS, P2P, RING, SEMANTICS, SERIAL, STEPS, PlannedRun
from lepaute.measure.toolchain import C_FLAGS, Toolchain, find_toolchain, probe_source
from lepaute.version import __version__

_COMMON = ("probe_common.c",)
_LOG = (*_COMMON, "kernel_log.c")
_MPI = ("probe_mpi.c",)
#: The symbols behind every kernel that HPL calls: with HPL_CALL_CBLAS its BLAS names are macros for cblas_*.
WRAPPED_SYMBOLS = (
    *(f"cblas_{name}" for name in ("dgemm", "dtrsm", "dgemv", "dger", "dtrsv", "dscal", "daxpy", "dcopy", "idamax")),
    *HPL_KERNELS,
)
DGEMM_PROGRAM, STEPS_PROGRAM, P2P_PROGRAM = "probe-dgemm", "probe-hpl-steps", "probe-p2p"
SEMANTICS_PROGRAM, RING_PROGRAM, MEMORY_PROGRAM = "probe-semantics", "probe-ring", "probe-memory"
#: The files of each program, in the order of `Probes`.
_SOURCES = {
    DGEMM_PROGRAM: ("probe_dgemm.c", "content.c", *_LOG),
    STEPS_PROGRAM: ("probe_hpl_steps.c", "kernel_wraps.c", *_LOG, *_MPI),
    P2P_PROGRAM: ("probe_p2p.c", *_COMMON, *_MPI),
    SEMANTICS_PROGRAM: ("probe_semantics.c", *_COMMON, *_MPI),
    RING_PROGRAM: ("probe_ring.c", *_COMMON, *_MPI),
    MEMORY_PROGRAM: ("probe_memory.c", "memory_read.c", *_COMMON),
}
_PROGRAMS = {P2P: P2P_PROGRAM, SEMANTICS: SEMANTICS_PROGRAM, RING: RING_PROGRAM, FLOWS: RING_PROGRAM}
#: A row of HPL's steps has some thousand calls on every rank. On more ranks than this each writes only some rows, in
#: turn: an archive then has as many calls on any number of cores, and every core has its share of them.
WRITING_RANKS = 8


@dataclass(frozen=True, slots=True)
class Probes:
    """Paths of the built programs."""

    dgemm: Path
    hpl_steps: Path
    p2p: Path
    semantics: Path
    ring: Path
    memory: Path

    @property
    def on_nodes(self) -> tuple[Path, ...]:
        """The programs that a calibration runs."""
        return (self.dgemm, self.hpl_steps, self.p2p, self.semantics, self.ring)


def build_probes(progress: Callable[[str], None] | None = None) -> Probes:
    """Builds the probes and HPL, or finds them built already; see build_hpl for what is raised."""
    tools = find_toolchain()
    built = build_programs(_SOURCES, progress, tools, build_hpl(progress, tools))
    return Probes(*(built / name for name in _SOURCES))


def build_programs(
    names: Collection[str], progress: Callable[[str], None] | None, tools: Toolchain, hpl: Path | None = None
) -> Path:
    """The folder of some probes; all but STEPS_PROGRAM need no HPL, the folder that `build_hpl` gives.

    Raises EnvironmentProblem if they cannot be compiled.
    """
    more = dict.fromkeys((DGEMM_PROGRAM, RING_PROGRAM), tools.blas_flags)
    if hpl is not None:
        wraps = [f"-Wl,--wrap={symbol}" for symbol in WRAPPED_SYMBOLS]
        more[STEPS_PROGRAM] = (*hpl_include_flags(hpl), *wraps, str(hpl / "libhpl.a"), *tools.blas_flags)

    def build(folder: Path) -> None:
        if progress is not None:
            progress("compiling the probes")
        for name in names:
            files = [str(probe_source() / source) for source in _SOURCES[name]]
            words = [*C_FLAGS, f'-DLEPAUTE_VERSION="{__version__}"', *files, *more.get(name, ()), "-lm"]
            tools.mpi.compile([*words, "-o", str(folder / name)], what=f"building {name}")

    sources = digests(path for pattern in ("*.c", "*.h") for path in probe_source().glob(pattern))
    of_hpl = (hpl.name, *WRAPPED_SYMBOLS) if hpl is not None else ()
    inputs = [*sources, *of_hpl, *tools.identity, __version__, *C_FLAGS, *names]
    return built_once("probes", inputs, next(iter(names)), build)


def probe_words(
    run: PlannedRun, pus: Sequence[int], folder: str, design: str, out: str, coretype: str | None, nodes: int = 1
) -> tuple[list[str], dict[str, str]]:
    """A probe and its arguments, and the variables to add; rank r leaves the raw file `out`.r<r>.

    pus     : the hardware thread of each core of the run
    folder  : where the programs are
    coretype: OPENBLAS_CORETYPE, None to leave it as it is
    nodes   : the ranks are on, as many on each
    """
    environment = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), str(run.threads))
    if coretype is not None and run.probe not in (P2P, SEMANTICS):
        environment["OPENBLAS_CORETYPE"] = coretype
    words = ["--design", design, "--out", out, "--seed", str(run.seed), "--cpus", ",".join(map(str, pus))]
    threads = ("--threads", str(run.threads))
    if run.probe in SERIAL:
        room = () if run.most_bytes is None else ("--max-bytes", str(run.most_bytes))
        return [f"{folder}/{DGEMM_PROGRAM}", *words, *threads, *room], environment
    if run.probe in _PROGRAMS:
        more = ("--ranks-per-node", str(run.ranks // nodes)) if run.probe in (RING, FLOWS) and nodes > 1 else ()
        return [f"{folder}/{_PROGRAMS[run.probe]}", *words, *more], environment
    grid = ("--grid", "single" if run.probe == STEPS else "column")
    every = ("--every", str(-(-run.ranks // WRITING_RANKS))) if run.ranks > WRITING_RANKS else ()
    options = () if run.options is None else run.options.words()
    return [f"{folder}/{STEPS_PROGRAM}", *words, *threads, *grid, *every, *options], environment
