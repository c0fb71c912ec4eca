"""Design of dgemm calls: products spread over decades, all permutations, and fixed tuples."""

from collections.abc import Sequence

import numpy as np

from lepaute.design.provenance import header_of
from lepaute.design.sizes import Triple, permutations_within, shuffled, stratified_log_uniform, triple_of_product
from lepaute.design.table import Design

#: Calls of the kinds HPL makes with NB = 128: updates (k = NB) square, tall and flat, and the recursion of the panel.
HPL_TUPLES: tuple[Triple, ...] = (
    (2000, 2000, 128),
    (4000, 2000, 128),
    (3000, 3000, 128),
    (1000, 1000, 128),
    (500, 500, 128),
    (8000, 128, 128),
    (4000, 128, 128),
    (1000, 128, 128),
    (128, 4000, 128),
    (8000, 64, 64),
    (4000, 32, 32),
    (2000, 64, 64),
    (1000, 16, 16),
    (4000, 8, 8),
    (2000, 4, 4),
    (1000, 2, 2),
)


def dgemm_design(
    seed: int,
    *,
    products: int = 60,
    product_range: tuple[float, float] = (1e3, 1.3e9),
    most: Triple = (8000, 8000, 2048),
    fixed: Sequence[Triple] = HPL_TUPLES,
) -> Design:
    """Fully shuffled dgemm calls.

    products     : how many products m*n*k, one in each stratum of equal width in the logarithm
    product_range: their lowest and highest value
    most         : largest m, n, k; permutations and fixed tuples that exceed it are left out
    fixed        : tuples measured in every design besides, so that blocks can be compared call by call
    """
    rng = np.random.default_rng(seed)
    triples = [
        permutation
        for product in stratified_log_uniform(rng, products, *product_range)
        for permutation in permutations_within(triple_of_product(rng, product, most), most)
    ]
    within = [(m, n, k) for m, n, k in fixed if m <= most[0] and n <= most[1] and k <= most[2]]
    triples.extend(within)
    rows = tuple(("dgemm", *triple) for triple in shuffled(rng, triples))
    header = header_of(
        "dgemm",
        seed,
        products=products,
        product_range=product_range,
        most=most,
        fixed=len(within),
        bit_generator="PCG64",
    )
    return Design(header, ("kind", "m", "n", "k"), rows)
