"""HPL.dat: whatever is written is read back as it was."""

from hypothesis import given
from hypothesis import strategies as st

from lepaute.simulate.apps.hpl.hpl_dat import HplDat, parse_hpl_dat
from lepaute.simulate.apps.hpl.parameters import BROADCASTS, FACTORISATIONS, FORMS, ORDERS, SWAPS


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
