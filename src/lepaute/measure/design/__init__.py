"""What to measure: tables of measurements in the shuffled order in which they will run.

A design is drawn once from a seed, written down, and only then executed: the same seed gives the
same file byte for byte. This package knows no machine and no program; it makes tables.
"""

from lepaute.measure.design.dgemm import (
    content_design,
    dgemm_calls_design,
    dgemm_design,
    dgemm_sizes_design,
    with_conditions,
)
from lepaute.measure.design.factors import log_spaced, log_uniform, log_uniform_product, uniform, uniform_product
from lepaute.measure.design.fraction import fractional
from lepaute.measure.design.generators import blocks, full_factorial, latin_hypercube, mix, sample
from lepaute.measure.design.hpl_step import hpl_step_design
from lepaute.measure.design.memory import memory_design
from lepaute.measure.design.messages import collective_design, flow_design, p2p_design, ring_design, semantics_design
from lepaute.measure.design.table import Design, read_design, write_design

__all__ = [
    "Design",
    "blocks",
    "collective_design",
    "content_design",
    "dgemm_calls_design",
    "dgemm_design",
    "dgemm_sizes_design",
    "flow_design",
    "fractional",
    "full_factorial",
    "hpl_step_design",
    "latin_hypercube",
    "log_spaced",
    "log_uniform",
    "log_uniform_product",
    "memory_design",
    "mix",
    "p2p_design",
    "read_design",
    "ring_design",
    "sample",
    "semantics_design",
    "uniform",
    "uniform_product",
    "with_conditions",
    "write_design",
]


def __dir__() -> list[str]:
    return sorted([*__all__, "__doc__", "__file__", "__name__", "__path__"])
