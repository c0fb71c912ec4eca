"""General designs of dgemm: independent sizes, uniform product, fixed K (Cornebize, thesis, sections 8.2.2 and 8.4.3).

They cover m, n and k evenly in another sense each, and lead to different models: a fit is only as good as the sizes it
saw are like those it will be asked for (`dgemm_calls` takes the sizes from the application).
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from lepaute.design.provenance import header_of
from lepaute.design.sizes import Triple, permutations_within, shuffled, stratified_uniform
from lepaute.design.table import Design
from lepaute.errors import DesignError

KINDS = ("independent", "product", "fixed-k")
_MOST_DRAWS = 100_000


def dgemm_sizes_design(
    seed: int,
    sizes: str,
    *,
    count: int = 360,
    highest_product: float = 1.3e9,
    most: Triple = (8000, 8000, 2048),
    fixed_k: Sequence[int] = (128,),
) -> Design:
    """Fully shuffled dgemm calls of one of KINDS.

    independent : m, n and k each uniform from 1 to its bound in `most`, drawn again while the product is too high
    product     : the product uniform up to the highest, one in each of equally wide strata, then sizes that make it,
                  in all orders that respect the bounds
    fixed-k     : the same with k one of `fixed_k`, in turn, and m and n in both orders
    count       : rows, about; those with the product drawn come in groups of its orders
    Raises DesignError for another kind, or bounds that admit no row.
    """
    if sizes not in KINDS:
        raise DesignError(f"sizes are {sizes!r}; they are one of {', '.join(KINDS)}")
    if count < 1 or min(most) < 1 or not 1 <= highest_product < math.inf:
        raise DesignError(f"cannot draw {count} calls of m, n, k up to {most} and products up to {highest_product:g}")
    rng = np.random.default_rng(seed)
    chosen: dict[str, object] = {}
    if sizes == "independent":
        triples = [_independent(rng, most, highest_product) for _ in range(count)]
    elif sizes == "product":
        triples = _groups(rng, count, 6, highest_product, lambda product: _of_product(rng, product, most))
    else:
        impossible = [k for k in fixed_k if not 1 <= k <= min(most[2], highest_product)]
        if impossible or not fixed_k:
            raise DesignError(f"k is {impossible or 'missing'}; it is from 1 to {most[2]}")
        turn = iter(range(count))
        triples = _groups(
            rng, count, 2, highest_product, lambda p: _of_k(rng, p, fixed_k[next(turn) % len(fixed_k)], most)
        )
        chosen = {"k": tuple(fixed_k)}
    header = header_of(
        "dgemm",
        seed,
        sizes=sizes,
        rows=len(triples),
        highest_product=f"{highest_product:g}",
        most=most,
        **chosen,
        bit_generator="PCG64",
    )
    return Design(header, ("kind", "m", "n", "k"), tuple(("dgemm", *triple) for triple in shuffled(rng, triples)))


def _independent(rng: np.random.Generator, most: Triple, highest: float) -> Triple:
    for _ in range(_MOST_DRAWS):
        m, n, k = (int(rng.integers(1, bound + 1)) for bound in most)
        if m * n * k <= highest:
            return m, n, k
    raise DesignError(f"found no m, n, k up to {most} with a product up to {highest:g}; raise it")


def _groups(
    rng: np.random.Generator, count: int, each: int, highest: float, group: Callable[[float], list[Triple]]
) -> list[Triple]:
    products = stratified_uniform(rng, max(1, round(count / each)), 1, int(highest))
    return [triple for product in products for triple in group(float(product))]


def _of_product(rng: np.random.Generator, product: float, most: Triple) -> list[Triple]:
    """The orders, within the bounds, of three sizes with about this product: the first up to its cubic root, the second
    up to the square root of what is left."""
    for _ in range(_MOST_DRAWS):
        a = round(rng.uniform(1, product ** (1 / 3)))
        b = round(rng.uniform(1, (product / a) ** 0.5))
        orders = permutations_within((a, b, max(1, round(product / (a * b)))), most)
        if orders:
            return orders
    raise DesignError(f"found no m, n, k up to {most} with the product {product:g}; raise the bounds")


def _of_k(rng: np.random.Generator, product: float, k: int, most: Triple) -> list[Triple]:
    area = max(1.0, product / k)
    for _ in range(_MOST_DRAWS):
        a = round(rng.uniform(1, area**0.5))
        b = max(1, round(area / a))
        orders = [(m, n, k) for m, n in sorted({(a, b), (b, a)}) if m <= most[0] and n <= most[1]]
        if orders:
            return orders
    raise DesignError(f"found no m, n up to {most[:2]} with k = {k} and the product {product:g}; raise the bounds")
