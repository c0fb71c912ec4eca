"""The options that describe an HPL run, the same for every command that takes one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lepaute.platform import Platform
    from lepaute.simulate import Hpl, Mapping

Nb = Annotated[int, typer.Option("--nb", help="block size")]
Depth = Annotated[int, typer.Option("--depth", help="look-ahead")]
Bcast = Annotated[str, typer.Option("--bcast", help="panel broadcast (or HPL.dat's code)")]
Swap = Annotated[str, typer.Option("--swap", help="row swap (or HPL.dat's code)")]
SwapThreshold = Annotated[int | None, typer.Option("--swap-threshold", help="columns; NB if not given")]
Pfact = Annotated[str, typer.Option("--pfact", help="left, crout or right")]
Rfact = Annotated[str, typer.Option("--rfact", help="left, crout or right")]
Nbmin = Annotated[int, typer.Option("--nbmin", help="columns of a leaf of the recursion")]
Ndiv = Annotated[int, typer.Option("--ndiv", help="parts of the recursion")]
Pmap = Annotated[str, typer.Option("--pmap", help="row or column")]
L1 = Annotated[str, typer.Option("--l1", help="transposed or no-transposed")]
U = Annotated[str, typer.Option("--u", help="transposed or no-transposed")]
Equil = Annotated[int, typer.Option("--equil", help="0 or 1", min=0, max=1)]
Align = Annotated[int, typer.Option("--align", help="alignment in doubles")]
Settings = Annotated[list[str] | None, typer.Option("--set", help="FIELD=VALUE of the platform")]

Dat = Annotated[
    Path | None, typer.Option("--dat", help="an HPL.dat: all its combinations, in the place of the options")
]
MappingWord = Annotated[str, typer.Option("--mapping", help="ranks to nodes: sequential or random")]
MappingSeed = Annotated[int | None, typer.Option("--mapping-seed", help="of a random mapping; 1 if not given")]
Hostfile = Annotated[Path | None, typer.Option("--hostfile", help="slots for ranks: lines as host slots=N or host:N")]
Rankfile = Annotated[Path | None, typer.Option("--rankfile", help="a place for each rank: rank 0=host slot=0:1")]

NOT_WITH_DAT = (  # what HPL.dat says, by the names of the command's arguments
    *("n", "nb", "grid", "depth", "bcast", "swap", "swap_threshold", "pfact", "rfact", "nbmin", "ndiv", "pmap"),
    *("l1", "u", "equil", "align"),
)


def refuse_beside_dat(context: typer.Context) -> None:
    """Raises InputError where the command line has options that HPL.dat decides."""
    from lepaute.errors import InputError

    given = [name for name in NOT_WITH_DAT if is_given(context, name)]
    if given:
        options = ", ".join("--" + name.replace("_", "-") for name in given)
        raise InputError(f"HPL.dat and {options} contradict each other; give --dat, or options without it")


def is_given(context: typer.Context, name: str) -> bool:
    """Whether the command line has the option, rather than its default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def mapping_of(
    word: str, seed: int | None, hostfile: Path | None, rankfile: Path | None, platform: "Platform", threads: int
) -> "Mapping":
    """The mapping that the options describe; raises InputError for those that contradict each other."""
    from lepaute.errors import InputError
    from lepaute.simulate.hostfile import read_hostfile, read_rankfile
    from lepaute.simulate.mapping import Mapping

    if word not in ("sequential", "random"):
        raise InputError(f"mapping is {word!r}; it is sequential or random, or give --hostfile or --rankfile")
    if seed is not None and word != "random":
        raise InputError("--mapping-seed goes with --mapping random, which is not asked for")
    if rankfile is not None:
        if hostfile is not None or word == "random":
            raise InputError("a rankfile places every rank; give no --hostfile and no --mapping beside it")
        return read_rankfile(rankfile, platform, threads)
    drawn = (1 if seed is None else seed) if word == "random" else None
    if hostfile is not None:
        return read_hostfile(hostfile, platform, threads, seed=drawn)
    return Mapping() if drawn is None else Mapping("random", drawn)


def hpl_of(*, bcast: str, swap: str, pfact: str, rfact: str, l1: str, u: str, equil: int, **numbers: object) -> "Hpl":
    """The run that the options describe, words or HPL.dat's codes; raises InputError for what HPL does not have.

    numbers : the other parameters of Hpl, by name
    """
    from lepaute.simulate.hpl import BROADCASTS, FACTORISATIONS, FORMS, SWAPS, Hpl, by_code

    return Hpl(
        bcast=by_code(bcast, BROADCASTS, "bcast"),
        swap=by_code(swap, SWAPS, "swap"),
        pfact=by_code(pfact, FACTORISATIONS, "pfact"),
        rfact=by_code(rfact, FACTORISATIONS, "rfact"),
        l1=by_code(l1, FORMS, "l1"),
        u=by_code(u, FORMS, "u"),
        equil=bool(equil),
        **numbers,  # type: ignore[arg-type]  # Hpl checks them
    )
