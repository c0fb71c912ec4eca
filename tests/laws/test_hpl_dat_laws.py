"""HPL.dat is read back as it was written; a parameter of HPL that two files do not know is named."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lepaute.simulate import Hpl
from lepaute.simulate.apps.hpl.emulation import ARGUMENTS
from lepaute.simulate.apps.hpl.hpl_dat import HplDat, parse_hpl_dat
from lepaute.simulate.apps.hpl.parameters import BROADCASTS, DAT, FACTORISATIONS, FORMS, ORDERS, SWAPS


def lists_of(values):
    return st.lists(values, min_size=1, max_size=20).map(tuple)


# Twenty numbers of ten digits are the most that HPL's line can hold; smaller ones are always well inside.
SIZES = st.integers(1, 10**9)
GRIDS = st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 1000)), min_size=1, max_size=20)


def one_of(words):
    return st.tuples(st.sampled_from(tuple(words)))


def listed(words):
    return lists_of(st.sampled_from(tuple(words)))


VALUES = st.fixed_dictionaries(
    {
        "n": lists_of(SIZES), "nb": lists_of(st.integers(1, 4096)), "pmap": one_of(ORDERS),
        "pfact": listed(FACTORISATIONS), "nbmin": lists_of(st.integers(1, 64)), "ndiv": lists_of(st.integers(2, 8)),
        "rfact": listed(FACTORISATIONS), "bcast": listed(BROADCASTS), "depth": lists_of(st.integers(0, 5)),
        "swap": one_of(SWAPS), "swap_threshold": st.tuples(st.integers(0, 10**6)), "l1": one_of(FORMS),
        "u": one_of(FORMS), "equil": st.tuples(st.booleans()), "align": st.tuples(st.integers(1, 64)),
    }
)  # fmt: skip


@st.composite
def files(draw):
    p, q = zip(*draw(GRIDS), strict=True)
    values = draw(VALUES) | {"p": p, "q": q}
    return HplDat(values, threshold=draw(st.floats(-1e3, 1e3)), device=draw(st.sampled_from((6, 7, 8))))


@given(files())
def test_a_file_that_was_written_is_read_back_as_it_was(dat):
    text = dat.text()
    assert parse_hpl_dat(text) == dat
    assert len(text.splitlines()) == 31


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
