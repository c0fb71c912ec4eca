"""What is wrong in a table of routines is told with its line; formulas become C++ or are refused."""

from pathlib import Path

import pytest
from simblas_recorder import table

from lepaute.errors import InputError
from lepaute.simulate.machine.core import KERNELS
from lepaute.simulate.smpi.entries import members_of
from lepaute.simulate.smpi.routines import read_routines, rows

GOOD = Path(__file__).parents[1].joinpath("data", "texts", "simblas_table.txt").read_text()


def test_a_table_is_read() -> None:
    (block,) = read_routines(GOOD)
    assert block.names == (("s", "sfill"), ("d", "dfill"), ("z", "zfull"))
    assert [argument.name for argument in block.arguments("z")] == ["side", "m", "n", "a"]
    assert [(row.name, row.kernel) for row in rows((block,))] == [
        ("sfill", ""), ("dfill", "dfill"), ("dfill", ""), ("zfull", ""),
    ]  # fmt: skip
    assert [(member.name, member.first_row) for member in members_of((block,))] == [
        ("sfill", 0),
        ("dfill", 1),
        ("zfull", 3),
    ]


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("arguments array   a", "arguments matrix  a", 3, "'matrix' is none of the kinds"),
        ("arguments array   a", "arguments", 3, "'' is none of the kinds"),
        ("arguments array   a", "arguments array   m", 3, "m is integer already"),
        ("routine ?fill s d, z=zfull", "routine ?fill s q", 5, "neither `?name s d c z` nor"),
        ("routine ?fill s d, z=zfull", "rutine ?fill s", 5, "starts with `arguments`, `routine`"),
        ("side m n a w:sd", "side m n a b", 6, "b has no kind"),
        ("side m n a w:sd", "side m m n a", 6, "stands twice"),
        ("side m n a w:sd", "side m n a w:x", 6, "letters of sdcz"),
        ("cblas       order", "cblas       yes", 7, "`plain` or `order`"),
        ("swap m n,", "swap m a,", 8, "a is no argument of this routine that is letter or integer"),
        ("flip side", "turn side", 8, "'turn side' is neither"),
        ("let         longer", "let         long", 9, "C++ has no use for"),
        ("let         longer", "let         m", 9, "m has a meaning in this block already"),
        ("max(m, n)", "most(m, n)", 9, "nothing that a formula may contain"),
        ("needs       m n", "needs       m k", 10, "k in 'k' is no argument"),
        ("needs       m n", "wants       m n", 10, "'wants' is none of"),
        ("m, n, min(m, n)", "m, n", 11, "three formulas"),
        ("multiplies  m*n", "multiplies  m*", 12, "'m*' is not a formula"),
        ("multiplies  m*n", "adds        m*n", 13, "'adds' stands twice"),
        ("adds        0", "flops       0", 5, "either `multiplies` and `adds`, or `flops`"),
        ("  sizes       m, n, min(m, n)\n", "", 5, "lacks one of"),
        ("d dfill if", "c dfill if", 14, "of a letter of this block"),
    ],
)
def test_what_is_wrong_in_a_table_is_told_in_one_line_with_its_number(old: str, new: str, line: int, what: str) -> None:
    with pytest.raises(InputError) as error:
        read_routines(GOOD.replace(old, new, 1), "table.txt")
    message = str(error.value)
    assert message.startswith(f"table.txt:{line}: ")
    assert what in message
    assert "\n" not in message


def test_every_kernel_of_the_table_is_one_that_platforms_can_model() -> None:
    kernels = {row.kernel for row in rows(table())} - {""}
    assert kernels <= set(KERNELS)
    assert kernels >= {"dgemm", "dgemm_nn", "dtrsm", "dtrsm_left", "dgemv", "dger", "dtrsv", "dscal", "idamax", "daxpy"}
