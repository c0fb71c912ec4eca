"""Designs of version 0.1: a library that changes its draws, or a change of ours, must not change what a seed gives."""

import hashlib
from collections.abc import Callable

import pytest

from lepaute.measure.design import (
    Design,
    blocks,
    collective_design,
    dgemm_design,
    fractional,
    full_factorial,
    hpl_step_design,
    latin_hypercube,
    log_uniform,
    log_uniform_product,
    memory_design,
    mix,
    p2p_design,
    ring_design,
    sample,
    uniform,
)

FACTORS = {
    "size_bytes": log_uniform(1, 1 << 30),
    "ratio": uniform(0.0, 1.0),
    "operation": ["send", "recv", 'a "third", one'],
    ("m", "n", "k"): log_uniform_product(1e3, 1e9, most=(8000, 8000, 2048)),
}
LEVELS = {"size_bytes": [1, 1024, 1 << 20], "operation": ["send", "recv"], "x": [0.1, 1e-300]}


def digest(design: Design) -> str:
    """Of the file without the line that names the version."""
    lines = [line for line in design.to_csv().splitlines() if "version=" not in line]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda: full_factorial(LEVELS, replications=3, seed=1), "8010cecc6f82a2df"),
        (lambda: full_factorial(LEVELS, replications=2, blocks=3, seed=2**64 - 1), "542ad287c34d02c4"),
        (lambda: sample(FACTORS, count=50, seed=1), "4af065d650fadf8e"),
        (lambda: latin_hypercube(FACTORS, count=50, seed=1), "ec2667238f712358"),
        (lambda: fractional({name: [0, 1] for name in "abcdef"}, count=16, seed=1), "2a5bca4fd7fd7a59"),
        (lambda: fractional({name: [0, 1, 2] for name in "abcd"}, count=12, seed=1), "7cdc659be786cbd3"),
        (
            lambda: blocks(mix(full_factorial(LEVELS, seed=1), p2p_design(1), seed=1), count=2, seed=1),
            "26bc8bc463fee365",
        ),
        (lambda: memory_design(1), "548c4831b52a5fe5"),
        (lambda: collective_design(1), "e08c0c6c2183c39e"),
        (lambda: dgemm_design(1), "951bf7a7f81af35f"),
        (lambda: hpl_step_design(1), "de1f929ce3bab3d6"),
        (lambda: p2p_design(1), "aed25c72986ff9ad"),
        (lambda: ring_design(1, ranks=4), "b86c47d06e027c0e"),
    ],
)
def test_a_seed_gives_the_table_that_it_always_gave(made: Callable[[], Design], expected: str) -> None:
    assert digest(made()) == expected
