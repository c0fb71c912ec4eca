"""The options that describe an HPL run, the same for every command that takes one."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lepaute.simulate import Hpl

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
