"""What to measure: tables of measurements in the shuffled order in which they will run.

A design is drawn once from a seed, written down, and only then executed: the same seed gives the
same file byte for byte. This package knows no machine and no program; it makes tables.
"""

from lepaute.design.dgemm import dgemm_design
from lepaute.design.hpl_step import hpl_step_design
from lepaute.design.p2p import p2p_design
from lepaute.design.table import Design, read_design, write_design

__all__ = ["Design", "dgemm_design", "hpl_step_design", "p2p_design", "read_design", "write_design"]
