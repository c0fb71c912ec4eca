"""The input file of HPL (HPL.dat, or hpccinf.txt for the HPL inside HPCC) of one set of parameters."""

from typing import TYPE_CHECKING

from lepaute.simulate.hpl import BROADCASTS, FACTORISATIONS, FORMS, ORDERS, SWAPS

if TYPE_CHECKING:
    from lepaute.simulate import Hpl

# HPL checks the solution only where the threshold is positive; the check takes longer than some solves.
NO_RESIDUAL_CHECK = -1.0


def hpl_input_text(hpl: "Hpl", to_stdout: bool = True) -> str:
    """The text of the input file for exactly one run of the solver.

    to_stdout: HPL's report goes to standard output, else to its file (a driver that speaks JSON there wants that).

    The lines stand in the order in which HPL_pdinfo reads them (two titles, output file, then one count and one
    list per parameter). HPL ignores what follows the value on a line; there the file says what the value is.
    HPL's number of a choice is its place in the tuples of simulate.hpl.
    """
    lines: list[tuple[object, str]] = [
        (1, "number of problem sizes"),
        (hpl.n, "N"),
        (1, "number of block sizes"),
        (hpl.nb, "NB"),
        (ORDERS.index(hpl.pmap), "PMAP (0 = row-major, 1 = column-major)"),
        (1, "number of process grids"),
        (hpl.p, "P"),
        (hpl.q, "Q"),
        (NO_RESIDUAL_CHECK, "threshold (negative: no residual check)"),
        (1, "number of panel factorisations"),
        (FACTORISATIONS.index(hpl.pfact), "PFACT (0 = left, 1 = Crout, 2 = right)"),
        (1, "number of recursive stopping criteria"),
        (hpl.nbmin, "NBMIN"),
        (1, "number of panels in recursion"),
        (hpl.ndiv, "NDIV"),
        (1, "number of recursive factorisations"),
        (FACTORISATIONS.index(hpl.rfact), "RFACT (0 = left, 1 = Crout, 2 = right)"),
        (1, "number of broadcasts"),
        (BROADCASTS.index(hpl.bcast), "BCAST (0 = 1rg, 1 = 1rM, 2 = 2rg, 3 = 2rM, 4 = Lng, 5 = LnM)"),
        (1, "number of look-ahead depths"),
        (hpl.depth, "DEPTH"),
        (SWAPS.index(hpl.swap), "SWAP (0 = binary exchange, 1 = long, 2 = mix)"),
        (hpl.parameters()["swap_threshold"], "swapping threshold"),
        (FORMS.index(hpl.l1), "L1 (0 = transposed, 1 = no-transposed)"),
        (FORMS.index(hpl.u), "U (0 = transposed, 1 = no-transposed)"),
        (int(hpl.equil), "equilibration (0 = no, 1 = yes)"),
        (hpl.align, "memory alignment in doubles"),
    ]
    device = 6 if to_stdout else 8
    head = ["HPL input file", "written by Lepaute", "HPL.out      output file", f"{device:<12} device out (6 = stdout)"]
    return "\n".join(head + [f"{value!s:<12} {meaning}" for value, meaning in lines]) + "\n"
