"""HPL.dat: whatever is written is read back as it was."""

from hypothesis import given
from hypothesis import strategies as st

from lepaute.simulate.hpl import BROADCASTS, FACTORISATIONS, FORMS, ORDERS, SWAPS
from lepaute.simulate.hpl_dat import HplDat, parse_hpl_dat


def lists_of(values):
    return st.lists(values, min_size=1, max_size=20).map(tuple)


# Twenty numbers of ten digits are the most that HPL's line can hold; smaller ones are always well inside.
SIZES = st.integers(1, 10**9)
FILES = st.builds(
    HplDat,
    ns=lists_of(SIZES),
    nbs=lists_of(st.integers(1, 4096)),
    grids=lists_of(st.tuples(st.integers(1, 1000), st.integers(1, 1000))),
    pmap=st.sampled_from(ORDERS),
    pfacts=lists_of(st.sampled_from(FACTORISATIONS)),
    nbmins=lists_of(st.integers(1, 64)),
    ndivs=lists_of(st.integers(2, 8)),
    rfacts=lists_of(st.sampled_from(FACTORISATIONS)),
    bcasts=lists_of(st.sampled_from(BROADCASTS)),
    depths=lists_of(st.integers(0, 5)),
    swap=st.sampled_from(SWAPS),
    swap_threshold=st.integers(0, 10**6),
    l1=st.sampled_from(FORMS),
    u=st.sampled_from(FORMS),
    equil=st.booleans(),
    align=st.integers(1, 64),
    threshold=st.floats(-1e3, 1e3),
    device=st.sampled_from((6, 7, 8)),
)


@given(FILES)
def test_a_file_that_was_written_is_read_back_as_it_was(dat):
    text = dat.text()
    assert parse_hpl_dat(text) == dat
    assert len(text.splitlines()) == 31
