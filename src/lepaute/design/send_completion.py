"""Design of tests of the send-completion semantics of MPI_Send and MPI_Isend: one round of a search, shuffled."""

from collections.abc import Sequence

import numpy as np

from lepaute.design.provenance import header_of
from lepaute.design.sizes import shuffled
from lepaute.design.table import Design


def semantics_design(seed: int, tests: Sequence[tuple[str, int, int, int]]) -> Design:
    """Every test (name, size_bytes, backlog, patience_ms) in random order; one given several times is repeated."""
    rng = np.random.default_rng(seed)
    header = header_of("semantics", seed, bit_generator="PCG64")
    return Design(header, ("test", "size_bytes", "backlog", "patience_ms"), tuple(shuffled(rng, list(tests))))
