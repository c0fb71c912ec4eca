"""The calls of dgemm of a node test: the same sizes in each block, in an order drawn anew."""

from dataclasses import dataclass

import numpy as np

from lepaute.design import Design, dgemm_design
from lepaute.design.columns import DECLARATION
from lepaute.design.provenance import header_of
from lepaute.design.sizes import Triple

#: Largest m, n, k; and memory for the operands of each core, with room to move in.
MOST: Triple = (3000, 3000, 2048)
OPERAND_BYTES = 320 << 20


@dataclass(frozen=True, slots=True)
class Scale:
    """products, product_range, fixed: as of `dgemm_design`; most_blocks: more than any machine has time for."""

    products: int
    product_range: tuple[float, float]
    fixed: tuple[Triple, ...]
    most_blocks: int


#: Some 480 sizes, which take a core of 40 Gflop/s 12 s; `dgemm_2048_rate_flops` is taken of the calls of 2048.
FULL = Scale(80, (1e3, 8e9), ((2048, 2048, 2048),), 60)
QUICK = Scale(6, (1e3, 1e7), ((256, 256, 256),), 2)


def node_test_design(seed: int, scale: Scale, order_seed: int) -> Design:
    """Blocks of the same sizes, each shuffled for itself.

    seed      : of the sizes: results of other sizes are not compared
    order_seed: of the order of the calls
    """
    sizes = dgemm_design(
        seed, products=scale.products, product_range=scale.product_range, most=MOST, fixed=scale.fixed
    ).rows
    rng = np.random.default_rng(order_seed)
    rows = tuple(
        (*sizes[index], block) for block in range(scale.most_blocks) for index in rng.permutation(len(sizes)).tolist()
    )
    header = header_of("node test", seed, order_seed=order_seed, products=scale.products, most=MOST)
    header |= {"product_range": f"{scale.product_range}", DECLARATION: "kind:text,m:int,n:int,k:int,block:int"}
    return Design(header, ("kind", "m", "n", "k", "block"), rows)
