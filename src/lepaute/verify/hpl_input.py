"""The input file of HPL (HPL.dat, or hpccinf.txt for the HPL inside HPCC) of one set of parameters."""

from typing import TYPE_CHECKING

from lepaute.simulate.apps.hpl.hpl_dat import TO_STDOUT, HplDat

if TYPE_CHECKING:
    from lepaute.simulate import Hpl

TO_FILE = 8  # any device but HPL's 6 and 7

# HPL checks the solution only where the threshold is positive; the check takes longer than some solves.
NO_RESIDUAL_CHECK = -1.0


def hpl_input_text(hpl: "Hpl", to_stdout: bool = True) -> str:
    """The text of the input file for exactly one run of the solver, without a check of its result.

    to_stdout: HPL's report goes to standard output, else to its file (a driver that speaks JSON there wants that).
    """
    return HplDat.of(hpl, threshold=NO_RESIDUAL_CHECK, device=TO_STDOUT if to_stdout else TO_FILE).text()
