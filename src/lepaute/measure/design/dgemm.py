"""Designs of dgemm calls: products spread over decades, other laws, the sizes of an application, conditions.

The laws cover m, n and k evenly in another sense each, and lead to different models: a fit is only as good as the sizes
it saw are like those it will be asked for (`dgemm_calls_design` takes them from the application).
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import product

import numpy as np

from lepaute.errors import DesignError
from lepaute.measure.design.columns import DeclaredColumn, Value, shortened
from lepaute.measure.design.generators import arranged
from lepaute.measure.design.sizes import (
    Triple,
    permutations_within,
    shuffled,
    stratified_log_uniform,
    stratified_uniform,
    triple_of_product,
)
from lepaute.measure.design.table import Design, probe_design

COLUMNS = ("kind", "m", "n", "k")
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
#: Calls of every general table of `lepaute design dgemm`, by which two are compared (thesis, section 8.2.2).
SAME_CALLS: tuple[Triple, ...] = ((1, 1, 1), (2048, 2048, 2048))
#: Laws of the sizes (Cornebize, thesis, sections 8.2.2 and 8.4.3).
KINDS = ("independent", "product", "fixed-k")
_MAX_DRAWS = 100_000
#: m, n, k, how often an application calls dgemm so, and the seconds that it spends in these calls.
SizeInUse = tuple[int, int, int, float, float]
#: Of the rows with an application's sizes, the share drawn by time; the others are drawn by number of calls.
BY_TIME = 0.5
#: What every operand of dgemm holds where a design does not say: what the models are fitted to.
RANDOM = "random"
#: Columns of the conditions, in a design and in the observations made of it.
CONTENT, WARM = "content", "warm"
MAX_MASKED_BITS = 53
_CONTENT = re.compile(r"random|sequential|constant(?::-?[0-9]{1,6}(?:\.[0-9]{1,12})?)?|masked:([0-9]{1,2})")


def dgemm_design(
    seed: int,
    *,
    products: int = 60,
    product_range: tuple[float, float] = (1e3, 1.3e9),
    most: Triple = (8000, 8000, 2048),
    fixed: Sequence[Triple] = HPL_TUPLES,
    same_calls: bool = False,
) -> Design:
    """Fully shuffled dgemm calls.

    products     : how many products m*n*k, one in each stratum of equal width in the logarithm
    product_range: their lowest and highest value
    most         : largest m, n, k; permutations and fixed tuples that exceed it are left out
    fixed        : tuples measured in every design besides, so that blocks can be compared call by call
    same_calls   : SAME_CALLS as well
    """
    rng = np.random.default_rng(seed)
    triples = [
        permutation
        for target in stratified_log_uniform(rng, products, *product_range)
        for permutation in permutations_within(triple_of_product(rng, target, most), most)
    ]
    within = _within((*SAME_CALLS * same_calls, *fixed), most)
    rows = [("dgemm", *triple) for triple in shuffled(rng, triples + within)]
    return probe_design(
        "dgemm", seed, COLUMNS, rows, products=products, product_range=product_range, most=most, fixed=len(within)
    )


def dgemm_sizes_design(
    seed: int,
    sizes: str,
    *,
    count: int = 360,
    highest_product: float = 1.3e9,
    most: Triple = (8000, 8000, 2048),
    fixed_k: Sequence[int] = (128,),
    same_calls: bool = False,
) -> Design:
    """Fully shuffled dgemm calls of one of KINDS.

    independent : m, n and k each uniform from 1 to its bound in `most`, drawn again while the product is too high
    product     : the product uniform up to the highest, one in each of equally wide strata, then sizes that make it,
                  in all orders that respect the bounds
    fixed-k     : the same with k one of `fixed_k`, in turn, and m and n in both orders
    count       : rows, about; those with the product drawn come in groups of its orders
    same_calls  : with SAME_CALLS
    Raises DesignError for another kind, or bounds that admit no row.
    """
    if sizes not in KINDS:
        raise DesignError(f"sizes are {sizes!r}; they are one of {', '.join(KINDS)}")
    if count < 1 or min(most) < 1 or not 1 <= highest_product < math.inf:
        raise DesignError(f"cannot draw {count} calls of m, n, k up to {most} and products up to {highest_product:g}")
    rng = np.random.default_rng(seed)
    chosen: dict[str, object] = {}

    def groups(each: int, orders: Callable[[float, int], list[Triple]]) -> list[Triple]:
        targets = stratified_uniform(rng, max(1, round(count / each)), 1, int(highest_product))
        return [triple for number, target in enumerate(targets) for triple in orders(float(target), number)]

    if sizes == "independent":
        triples = [_independent(rng, most, highest_product) for _ in range(count)]
    elif sizes == "product":
        triples = groups(6, lambda target, _: _of_product(rng, target, most))
    else:
        impossible = [k for k in fixed_k if not 1 <= k <= min(most[2], highest_product)]
        if impossible or not fixed_k:
            raise DesignError(f"k is {impossible or 'missing'}; it is from 1 to {most[2]}")
        triples = groups(2, lambda target, number: _of_k(rng, target, fixed_k[number % len(fixed_k)], most))
        chosen = {"k": tuple(fixed_k)}
    arguments = {"sizes": sizes, "rows": len(triples), "highest_product": f"{highest_product:g}", "most": most}
    rows = [("dgemm", *triple) for triple in shuffled(rng, triples + _within(SAME_CALLS * same_calls, most))]
    return probe_design("dgemm", seed, COLUMNS, rows, **arguments, **chosen)


def _within(fixed: Sequence[Triple], most: Triple) -> list[Triple]:
    return [triple for triple in fixed if all(size <= bound for size, bound in zip(triple, most, strict=True))]


def _independent(rng: np.random.Generator, most: Triple, highest: float) -> Triple:
    for _ in range(_MAX_DRAWS):
        m, n, k = (int(rng.integers(1, bound + 1)) for bound in most)
        if m * n * k <= highest:
            return m, n, k
    raise DesignError(f"found no m, n, k up to {most} with a product up to {highest:g}; raise it")


def _of_product(rng: np.random.Generator, target: float, most: Triple) -> list[Triple]:
    """The orders, within the bounds, of three sizes with about this product: the first up to its cubic root, the second
    up to the square root of what is left."""
    for _ in range(_MAX_DRAWS):
        a = round(rng.uniform(1, target ** (1 / 3)))
        b = round(rng.uniform(1, (target / a) ** 0.5))
        orders = permutations_within((a, b, max(1, round(target / (a * b)))), most)
        if orders:
            return orders
    raise DesignError(f"found no m, n, k up to {most} with the product {target:g}; raise the bounds")


def _of_k(rng: np.random.Generator, target: float, k: int, most: Triple) -> list[Triple]:
    area = max(1.0, target / k)
    for _ in range(_MAX_DRAWS):
        a = round(rng.uniform(1, area**0.5))
        b = max(1, round(area / a))
        orders = [(m, n, k) for m, n in sorted({(a, b), (b, a)}) if m <= most[0] and n <= most[1]]
        if orders:
            return orders
    raise DesignError(f"found no m, n up to {most[:2]} with k = {k} and the product {target:g}; raise the bounds")


def dgemm_calls_design(
    seed: int, calls: Sequence[SizeInUse], *, rows: int = 400, about: Mapping[str, object] | None = None
) -> Design:
    """Fully shuffled dgemm calls, sizes drawn from those of an application.

    Half of the rows by share of the time, which is what a prediction must get right in sum; half by share of the calls,
    which is what it must get right where many small ones follow each other. Each half is spread evenly over the sizes,
    put in order of their product (systematic sampling), so that no part of the range is missed by bad luck.

    calls : sizes in use; those with a parameter below 1 are no calls and are left out
    about : further keys of the header: what the sizes are for
    Raises DesignError when there is no size, or there are fewer than two rows to draw.
    """
    used = sorted(
        ((m, n, k, often, time_s) for m, n, k, often, time_s in calls if min(m, n, k) >= 1 and often > 0),
        key=lambda size: (size[0] * size[1] * size[2], size[:3]),
    )
    if not used:
        raise DesignError("the application calls dgemm with no size; there is nothing to measure")
    if rows < 2:
        raise DesignError(f"cannot draw {rows} rows, half by time and half by calls; draw two or more")
    rng = np.random.default_rng(seed)
    by_time = round(rows * BY_TIME)
    chosen = _systematic(rng, [size[4] for size in used], by_time)
    chosen += _systematic(rng, [size[3] for size in used], rows - by_time)
    table = shuffled(rng, [("dgemm", *used[index][:3]) for index in chosen])
    arguments = {**(about or {}), "rows": rows, "rows_by_time": by_time, "distinct_sizes": len(used)}
    return probe_design("dgemm", seed, COLUMNS, table, **arguments)


def _systematic(rng: np.random.Generator, weights: Sequence[float], count: int) -> list[int]:
    """`count` positions, each in proportion to its weight: every (sum / count)-th unit from a random start."""
    weight = np.array(weights)
    if float(weight.sum()) <= 0:
        weight = np.ones(len(weight))
    edges = np.cumsum(weight) / float(weight.sum())
    at = (np.arange(count) + rng.random()) / count
    return [int(index) for index in np.minimum(np.searchsorted(edges, at, side="right"), len(weight) - 1)]


def with_conditions(
    design: Design,
    *,
    contents: Sequence[str] = (RANDOM,),
    warm: Sequence[int] = (0,),
    replications: int = 1,
    blocks: int | None = None,
    seed: int,
) -> Design:
    """Every row of a dgemm design under every combination of the conditions, in a random order of its own.

    contents: random (uniform in [-0.5, 0.5)), constant (all 0.5) or constant:VALUE, sequential (from -0.5 to 0.5 over
              the pool that operands are taken from), or masked:BITS: random numbers of 53 bits whose BITS lowest are 0
    warm    : 0 for operands at a random place of a large pool, 1 for operands that an untimed call has just used
    blocks  : see `lepaute.measure.design.blocks`
    Raises DesignError for a content that no probe knows and for a design of another kind.
    """
    for content in contents:
        match = _CONTENT.fullmatch(content)
        if not match or (match[1] is not None and int(match[1]) > MAX_MASKED_BITS):
            raise DesignError(
                f"content is {shortened(content)!r}; it is random, constant, constant:VALUE, sequential, or "
                f"masked:BITS with BITS from 0 to {MAX_MASKED_BITS}"
            )
    if any(value not in (0, 1) for value in warm):
        raise DesignError(f"warm is {shortened(str(list(warm)))}; its levels are 0 (a random place) and 1 (just used)")
    for what, levels in ((CONTENT, contents), (WARM, warm)):
        if not levels or len(set(levels)) != len(levels):
            raise DesignError(f"{what} has {len(levels)} levels, {len(set(levels))} of them different; give each once")
    if design.columns != COLUMNS:
        raise DesignError(f"conditions belong to dgemm, and the design has {shortened(','.join(design.columns), 200)}")
    names = (*COLUMNS, CONTENT, WARM)
    columns = [DeclaredColumn(name, "text" if name in ("kind", CONTENT) else "int") for name in names]
    rows: list[tuple[Value, ...]] = [(*row, content, at) for row, content, at in product(design.rows, contents, warm)]
    arguments = {f"dgemm.{key}": text for key, text in design.header.items()}
    arguments |= {CONTENT: ",".join(contents), WARM: ",".join(map(str, warm))}
    return arranged("dgemm", seed, columns, rows, arguments=arguments, replications=replications, blocks=blocks)


def content_design(
    seed: int, *, sizes: Sequence[Triple], contents: Sequence[str], warm: Sequence[int] = (0,), replications: int = 1
) -> Design:
    """The same few products under every combination of the conditions, `replications` times, fully shuffled."""
    plain = Design({"generator": "lepaute design dgemm"}, COLUMNS, tuple(("dgemm", *triple) for triple in sizes))
    return with_conditions(plain, contents=contents, warm=warm, replications=replications, seed=seed)
