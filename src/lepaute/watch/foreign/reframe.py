"""ReFrame: its performance logs, or its results database, by the content of the file."""

from typing import TYPE_CHECKING

from lepaute.watch.foreign.reframe_database import read_reframe_database
from lepaute.watch.foreign.reframe_perflog import is_reframe_perflog, read_reframe_perflog
from lepaute.watch.foreign.source import Source

if TYPE_CHECKING:
    import pandas as pd


def is_reframe(source: Source) -> bool:
    """Whether it is a log, or a database; there is no other format with databases."""
    return source.is_database or is_reframe_perflog(source)


def read_reframe(source: Source, cluster: str, node: str) -> "pd.DataFrame":
    """The factor values of either; arguments and errors as theirs."""
    read = read_reframe_database if source.is_database else read_reframe_perflog
    return read(source, cluster, node)
