"""A parameter or broadcast of HPL that two files of C and C++ do not know is named here.

What is known of HPL's parameters stands in one table (simulate/apps/hpl/parameters.py), which those cannot read.
"""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from lepaute.simulate import Hpl
from lepaute.simulate.apps.hpl.emulation import ARGUMENTS
from lepaute.simulate.apps.hpl.parameters import BROADCASTS, DAT, FACTORISATIONS, SWAPS

ROOT = Path(__file__).parent.parent.parent
#: That runs HPL's own sources, and that records the parameters of a run of HPL.
DRIVER, RECORDER = "simblas/hpl/driver.cpp", "probes/record_hpl_wraps.c"
PARAMETERS = [field.name for field in fields(Hpl) if field.metadata.get(DAT) is not None]


@pytest.mark.parametrize("name", PARAMETERS)
def test_each_parameter_of_hpl_dat_is_taken_by_the_driver_and_recorded(name: str) -> None:
    argument = ARGUMENTS.get(name, name)
    assert f'"{argument}"' in (ROOT / DRIVER).read_text(), f"add {argument} to {DRIVER}"
    assert f'\\"{name}\\"' in (ROOT / RECORDER).read_text(), f"add {name} to {RECORDER}"


@pytest.mark.parametrize(
    ("array", "words"), [("broadcasts", BROADCASTS), ("factorisations", FACTORISATIONS), ("swaps", SWAPS)]
)
def test_the_driver_has_an_entry_for_each_choice(array: str, words: dict[str, str]) -> None:
    (entries,) = re.findall(rf"{array}\[\] = {{(.*?)}};", (ROOT / DRIVER).read_text(), re.DOTALL)
    assert entries.count(",") + 1 == len(words), f"{array} in {DRIVER} has other choices than {list(words)}"


def test_the_recorder_has_the_words_of_all_choices_in_their_order() -> None:
    text = (ROOT / RECORDER).read_text()
    (entries,) = re.findall(r"broadcasts\[\] = {(.*?)};", text, re.DOTALL)
    assert re.findall(r'"(.*?)"', entries) == list(BROADCASTS), f"correct the broadcasts in {RECORDER}"
    for word in (*SWAPS, *FACTORISATIONS):
        assert f'"{word}"' in text, f"add {word} to {RECORDER}"
