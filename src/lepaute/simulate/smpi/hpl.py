"""HPL's own code under SMPI: the solver as it is, its kernels and its memory simulated."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from lepaute.errors import InputError, SimulationError
from lepaute.kit.builds import built_once, digests
from lepaute.kit.command import run_command
from lepaute.simulate.hpl import BROADCASTS, FACTORISATIONS, FORMS, SWAPS, Hpl
from lepaute.simulate.mapping import Mapping
from lepaute.simulate.outside_ranges import outside_ranges
from lepaute.simulate.population import on_its_day
from lepaute.simulate.predict import GLUE, Layers
from lepaute.simulate.prediction import Prediction, Run, SimulationFigures
from lepaute.simulate.smpi.compilers import compilers
from lepaute.simulate.smpi.emulate import Keep, Options, emulate_run
from lepaute.simulate.smpi.emulated_run import EmulatedRun
from lepaute.simulate.smpi.library import (
    CXX_FLAGS,
    core_source,
    include_flags,
    probes_source,
    simblas_source,
)
from lepaute.simulate.smpi.process import Limits
from lepaute.simulate.smpi.request import Folding
from lepaute.simulate.smpi.warnings import network_warnings
from lepaute.simulate.warnings import warnings_of
from lepaute.version import __version__

if TYPE_CHECKING:
    from lepaute.platform.schema import Platform

PROGRAM = "xhpl-smpi"
#: Parts of HPL's source below hpl/src, less the files whose functions simblas/hpl has.
_PARTS = ("pgesv", "pfact", "comm", "panel", "grid", "pauxil", "auxil")
_OURS = ("HPL_dlocmax", "HPL_dlocswpN", "HPL_dlocswpT", "HPL_dlacpy", "HPL_dlatcpy", "HPL_dlaswp*")
_UNUSED = ("HPL_dlamch", "HPL_pdlamch", "HPL_dlange", "HPL_pdlange", "HPL_dlaprnt", "HPL_pdlaprnt")
_WRAPPED = (
    "HPL_pdpanel_init",
    "HPL_packL",
    "HPL_pdfact",
    *(f"HPL_pdupdate{form}" for form in ("TT", "TN", "NT", "NN")),
    *(f"HPL_pdlaswp{way}" for way in ("00N", "00T", "01N", "01T")),
)
_HPL_FLAGS = ("-O2", "-w", "-DHPL_CALL_CBLAS")
_COMPILE_JOBS = 2
_COMPILE_LIMIT_S = 120.0
#: Anything larger than a message that steers the program is folded.
_FOLD_FROM_BYTES = 32 << 10
#: Simulated date at which the solver begins (simblas/hpl/driver.cpp).
START_S = 10.0
_TIME = r"^xhpl-smpi: time (\S+) info 0$"

HplSource = Callable[[Path], None]


def build_hpl_smpi(unpack: HplSource, key: str, *, copy_l: bool = False) -> Path:
    """The program, linked with simblas, in the cache.

    unpack : writes HPL's source (hpl/src, hpl/include, include) into a folder
    key : of that source; another one builds again
    copy_l : HPL built without derived datatypes, as Hpl.copy_l
    """
    own = sorted((simblas_source() / "hpl").glob("*.cpp"))
    here = compilers()
    flags = (*_HPL_FLAGS, *(["-DHPL_COPY_L", "-DHPL_NO_MPI_DATATYPE"] if copy_l else []))
    inputs = [key, str(here), *flags, *CXX_FLAGS, *_WRAPPED, *digests([*own, probes_source() / "hpl_loops.h"])]
    folder = built_once("hpl-smpi", inputs, PROGRAM, lambda folder: _build(folder, unpack, own, flags))
    return folder / PROGRAM


def _build(folder: Path, unpack: HplSource, own: Sequence[Path], flags: Sequence[str]) -> None:
    unpack(folder)
    here = compilers()
    includes = [f"-I{folder / 'hpl/include'}", f"-I{folder / 'include'}"]
    compat = ["-include", str(probes_source() / "hpl_compat.h")]
    sources = [
        source
        for part in _PARTS
        for source in sorted((folder / "hpl/src" / part).glob("*.c"))
        if not any(source.match(f"{pattern}.c") for pattern in (*_OURS, *_UNUSED))
    ]

    def compile_one(source: Path) -> str:
        target = folder / f"{source.stem}.o"
        if source.suffix == ".c":
            argv = [str(here / "mpicc"), *flags, *includes, *compat]
        else:
            defined = [flag for flag in flags if flag.startswith("-D")]
            argv = [str(here / "mpicxx"), *CXX_FLAGS, *defined, *include_flags(), *includes]
            argv += [f"-I{probes_source()}", *compat]
        argv += ["-c", str(source), "-o", str(target)]
        run_command(argv, what=f"compiling {source.name} of HPL for SMPI", timeout_s=_COMPILE_LIMIT_S)
        return str(target)

    with ThreadPoolExecutor(_COMPILE_JOBS) as pool:
        objects = list(pool.map(compile_one, [*sources, *own, core_source() / "rng/philox.cpp"]))
    wraps = "-Wl," + ",".join(f"--wrap={name}" for name in _WRAPPED)
    argv = [str(here / "mpicxx"), *objects, wraps, "-lsimgrid", "-lm", "-o", str(folder / PROGRAM)]
    run_command(argv, what=f"linking {PROGRAM}", timeout_s=_COMPILE_LIMIT_S)
    for made in objects:
        Path(made).unlink()


def hpl_arguments(hpl: Hpl, seed: int) -> list[str]:
    """The command line of the program for `hpl`."""
    values = {
        "n": hpl.n,
        "nb": hpl.nb,
        "p": hpl.p,
        "q": hpl.q,
        "depth": hpl.depth,
        "bcast": BROADCASTS.index(hpl.bcast),
        "swap": SWAPS.index(hpl.swap),
        "swap_threshold": hpl.nb if hpl.swap_threshold is None else hpl.swap_threshold,
        "pfact": FACTORISATIONS.index(hpl.pfact),
        "rfact": FACTORISATIONS.index(hpl.rfact),
        "nbmin": hpl.nbmin,
        "ndiv": hpl.ndiv,
        "column_major": int(hpl.pmap == "column"),
        "l1": FORMS.index(hpl.l1),
        "u": FORMS.index(hpl.u),
        "equil": int(hpl.equil),
        "align": hpl.align,
        "seed": seed,
        "random_pivots": int(hpl.pivots == "random"),
    }
    return [word for name, value in values.items() for word in (name, str(value))]


def emulate_hpl(
    hpl: Hpl,
    platform: "Platform",
    program: Path,
    *,
    runs: int = 1,
    seed: int = 1,
    layers: Layers | None = None,
    settings: dict[str, str] | None = None,
    mapping: Mapping | None = None,
    limits: Limits | None = None,
    progress: Callable[[float], None] | None = None,
    keep: Keep | None = None,
) -> Prediction:
    """What `predict` predicts, by emulating HPL's own code; run i uses seed + i, and draws the days and coefficients
    that the native engine draws for it.

    program : of build_hpl_smpi() for hpl.copy_l
    progress : called with the simulated date, in seconds
    Raises what emulate_run() raises, and InputError for what this build of HPL does not do.
    """
    if runs < 1:
        raise InputError(f"runs is {runs}; at least one run is simulated")
    began_s = time.perf_counter()
    options = Options(
        privatize=False,  # HPL has no global variables that differ between ranks
        folding=Folding(_FOLD_FROM_BYTES),
        limits=limits or Limits(),
        stack_kib=256,  # HPL has no large arrays on the stack
        value_pattern=_TIME,
    )
    done = []
    for run in range(runs):
        ended = emulate_run(
            program,
            hpl_arguments(hpl, seed + run),
            platform,
            hpl.ranks,
            seed=seed + run,
            layers=layers,
            mapping=mapping,
            options=options,
            threads=hpl.threads_per_rank,
            on_progress=progress,
            keep=keep if run == 0 else None,
        )
        if ended.value_s is None:
            raise SimulationError("HPL ended without a time")
        done.append(ended)
    wall_s = time.perf_counter() - began_s
    # Models that are drawn anew have no fitted ranges.
    first_day = on_its_day(platform, seed, days=(layers or Layers()).days)
    return _prediction_of(hpl, platform, first_day, done, seed, settings or {}, mapping or Mapping(), wall_s)


def _prediction_of(
    hpl: Hpl,
    platform: "Platform",
    first_day: "Platform",
    done: Sequence[EmulatedRun],
    seed: int,
    settings: dict[str, str],
    mapping: Mapping,
    wall_s: float,
) -> Prediction:
    first = done[0]
    cores = mapping.cores(platform, hpl.ranks, hpl.threads_per_rank)
    nodes = [core // platform.nodes.cores for core in cores]
    own = {name: use for name, use in first.kernels.items() if name not in GLUE}
    told = warnings_of(hpl, platform, own, max(nodes.count(node) for node in set(nodes)))
    told += network_warnings(platform)
    return Prediction(
        hpl=hpl,
        platform_name=platform.name,
        platform_sha256=platform.sha256,
        seed=seed,
        run_list=tuple(Run(run.seed, run.time_s, hpl.rate_gflops(run.time_s)) for run in done),
        fidelity="smpi",
        warnings=tuple(told),
        simulation=SimulationFigures(
            wall_s=wall_s,
            peak_rss_bytes=max(run.peak_rss_bytes for run in done),
            engine_bytes=max(run.peak_rss_bytes for run in done),
            messages=first.messages,
        ),
        kernel_time_s={name: use.time_s for name, use in first.kernels.items()},
        waiting_s=hpl.ranks * first.time_s - first.computing_s,
        settings=settings,
        version=__version__,
        mapping=mapping.to_dict(platform, hpl.ranks, hpl.threads_per_rank),
        nodes=len(set(nodes)),
        outside=outside_ranges(first.kernels, first_day, hpl.ranks * first.time_s),
    )
