"""HPL's own code under SMPI: the solver as it is, its kernels and its memory simulated."""

from collections.abc import Callable
from pathlib import Path

from lepaute.kit.builds import built_once, digests
from lepaute.simulate.apps.hpl.parameters import Hpl, check_sayable, code_of, places
from lepaute.simulate.smpi.building import (
    CXX_FLAGS,
    compile_and_link,
    compilers,
    core_source,
    include_flags,
    probes_source,
    simblas_source,
)
from lepaute.simulate.smpi.emulate import Options
from lepaute.simulate.smpi.request import Folding

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
#: Anything larger than a message that steers the program is folded.
_FOLD_FROM_BYTES = 32 << 10
#: Simulated date at which the solver begins (simblas/hpl/driver.cpp).
START_S = 10.0
#: Arguments of the program that have another name than the parameter.
ARGUMENTS = {"pmap": "column_major"}
_TIME = r"^xhpl-smpi: time (\S+) info 0$"

HplSource = Callable[[Path], None]


def build_hpl_smpi(unpack: HplSource, key: str, *, copy_l: bool = False) -> Path:
    """The program, linked with simblas, in the cache.

    unpack : writes HPL's source (hpl/src, hpl/include, include) into a folder
    key : of that source; another one builds again
    """
    wrappers = sorted((simblas_source() / "hpl").glob("*.cpp"))
    folder_of_compilers = compilers()
    flags = (*_HPL_FLAGS, *(["-DHPL_COPY_L", "-DHPL_NO_MPI_DATATYPE"] if copy_l else []))

    def build(folder: Path) -> None:
        unpack(folder)
        includes = [f"-I{folder / 'hpl/include'}", f"-I{folder / 'include'}"]
        compat = ["-include", str(probes_source() / "hpl_compat.h")]
        sources = [
            source
            for part in _PARTS
            for source in sorted((folder / "hpl/src" / part).glob("*.c"))
            if not any(source.match(f"{pattern}.c") for pattern in (*_OURS, *_UNUSED))
        ]

        def compiling(source: Path) -> list[str]:
            if source.suffix == ".c":
                return [str(folder_of_compilers / "mpicc"), *flags, *includes, *compat]
            defined = [flag for flag in flags if flag.startswith("-D")]
            ours = [*include_flags(), *includes, f"-I{probes_source()}", *compat]
            return [str(folder_of_compilers / "mpicxx"), *CXX_FLAGS, *defined, *ours]

        wraps = "-Wl," + ",".join(f"--wrap={name}" for name in _WRAPPED)
        linking = [str(folder_of_compilers / "mpicxx"), wraps, "-lsimgrid", "-lm"]
        units = [*sources, *wrappers, core_source() / "rng/philox.cpp"]
        compile_and_link(units, folder / PROGRAM, compiling, linking, "HPL for SMPI")

    sources = digests([*wrappers, probes_source() / "hpl_loops.h"])
    inputs = [key, str(folder_of_compilers), *flags, *CXX_FLAGS, *_WRAPPED, *sources]
    return built_once("hpl-smpi", inputs, PROGRAM, build) / PROGRAM


def arguments_of(hpl: Hpl, seed: int) -> list[str]:
    """As HPL.dat has them, codes for choices; raises InputError for what only the native engine has."""
    check_sayable(hpl, "copy_l", "pivots", "threads_per_rank")
    known = dict(places())
    values = {name: code_of(known[name], value) for name, value in hpl.parameters().items() if name in known}
    values |= {"seed": seed, "random_pivots": int(hpl.pivots == "random")}
    return [word for name, value in values.items() for word in (ARGUMENTS.get(name, name), str(value))]


def hpl_options() -> Options:
    return Options(
        computing="untimed",
        privatize=False,  # HPL has no global variables that differ between ranks
        folding=Folding(_FOLD_FROM_BYTES),
        stack_kib=256,  # HPL has no large arrays on the stack
        value_pattern=_TIME,
    )
