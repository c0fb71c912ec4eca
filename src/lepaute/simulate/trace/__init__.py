"""What ran when on which rank: the one format that recordings and simulations share, and its pictures.

This package imports nothing of ours but the exceptions, `kit` and `report`; everybody may import it. Its heavy packages
are loaded by the functions that need them.
"""

from lepaute.simulate.trace.reading import read_trace
from lepaute.simulate.trace.table import CATEGORIES, KINDS, Trace, trace_of_columns, write_trace

__all__ = ["CATEGORIES", "KINDS", "Trace", "read_trace", "trace_of_columns", "write_trace"]
