"""The input file of HPL that Lepaute writes."""

from dataclasses import replace

import pytest

from lepaute.errors import InputError
from lepaute.measure.verify.real_run import hpl_input_text
from lepaute.simulate import Hpl
from lepaute.simulate.apps.hpl.parameters import check_sayable

# A file that HPL 2.0 was seen to run with our defaults (N 4000 on 1x2), values only: what HPL reads.
KNOWN_GOOD = [
    *("1", "4000", "1", "128", "0", "1", "1", "2", "-1.0"),  # sizes, blocks, mapping, grid, threshold
    *("1", "1", "1", "2", "1", "2", "1", "2"),  # PFACT, NBMIN, NDIV, RFACT
    *("1", "2", "1", "1", "0", "128", "0", "0", "1", "8"),  # BCAST, DEPTH, SWAP, L1, U, equilibration, alignment
]


def values_of(text: str) -> list[str]:
    """What HPL reads: the first word of each line after two titles, the output file and the device."""
    return [line.split()[0] for line in text.splitlines()[4:]]


def test_the_defaults_give_the_file_that_real_hpl_ran_with():
    assert values_of(hpl_input_text(Hpl(n=4000, p=1, q=2))) == KNOWN_GOOD


def test_each_parameter_changes_its_own_line_and_no_other():
    # Line numbers count from the first value, in the order in which HPL_pdinfo reads them.
    base = Hpl(n=4000, p=1, q=2)
    changes = {
        1: ({"n": 5000}, "5000"), 4: ({"pmap": "column"}, "1"), 10: ({"pfact": "left"}, "0"),
        12: ({"nbmin": 4}, "4"), 14: ({"ndiv": 3}, "3"), 16: ({"rfact": "crout"}, "1"),
        18: ({"bcast": "long-modified"}, "5"), 20: ({"depth": 0}, "0"), 21: ({"swap": "mix"}, "2"),
        22: ({"swap_threshold": 64}, "64"), 23: ({"l1": "no-transposed"}, "1"), 24: ({"u": "no-transposed"}, "1"),
        25: ({"equil": False}, "0"), 26: ({"align": 16}, "16"),
    }  # fmt: skip
    for line, (change, expected) in changes.items():
        values = values_of(hpl_input_text(replace(base, **change)))
        different = [i for i, (old, new) in enumerate(zip(KNOWN_GOOD, values, strict=True)) if old != new]
        assert different == [line], change
        assert values[line] == expected, change


def test_the_report_goes_to_standard_output_only_when_asked():
    # HPL: device 6 is standard output, 7 standard error, anything else the file.
    assert hpl_input_text(Hpl(n=100), to_stdout=True).splitlines()[3].split()[0] == "6"
    assert hpl_input_text(Hpl(n=100), to_stdout=False).splitlines()[3].split()[0] == "8"


def test_an_option_that_only_the_native_engine_has_is_refused_for_the_real_hpl() -> None:
    check_sayable(Hpl(n=100, threads_per_rank=2), "threads_per_rank")
    with pytest.raises(InputError, match="the real HPL does not have copy_l, pivots; leave the default"):
        check_sayable(Hpl(n=100, copy_l=True, pivots="first-row"))
