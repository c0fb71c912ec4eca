"""Tables of sizes and durations from elsewhere: output of the OSU and Intel MPI benchmarks, CSV."""

from lepaute.fit.duration_tables.reading import read_durations
from lepaute.fit.duration_tables.table import DurationTable

__all__ = ["DurationTable", "read_durations"]
