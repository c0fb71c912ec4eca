"""The tables of observations and their columns: name, type, unit and role of each, declared here and nowhere else.

What a column is follows from its declaration, never from its values. A column is a factor, and tested, where it is
declared so: here, or as a column of the experiment's own design. A column that the measuring side adds to a table
changes nothing in a fit until it is declared.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lepaute.errors import FitError

if TYPE_CHECKING:
    import pandas

KERNELS = "observations/kernels.parquet"
P2P = "observations/p2p.parquet"
SEMANTICS = "observations/semantics.parquet"
RING = "observations/ring.parquet"
FLOWS = "observations/flows.parquet"
SENTINELS = "observations/sentinels.parquet"

#: Levels of a factor; a column with more is no factor even where it is declared one.
MOST_LEVELS = 20

#: size: of a call or message. process: which process a row is from. time: when, and how long. factor: a condition whose
#: effect is tested. note: bookkeeping.
Role = Literal["size", "process", "time", "factor", "note"]


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column.

    least     : of a number, checked in every table of a calibration; None: not checked
    complete  : a text that every row of a calibration has
    reference : level that others are compared with; "": the first, see `level_order`
    varied    : of a process, a factor all the same where the experiment's own design has it
    """

    name: str
    type: Literal["integer", "real", "text", "flag"]
    unit: str
    role: Role
    least: float | None = None
    complete: bool = False
    reference: str = ""
    varied: bool = False


_ANY = float("-inf")

COLUMNS: tuple[Column, ...] = (
    Column("m", "integer", "1", "size", least=0.0),
    Column("n", "integer", "1", "size", least=0.0),
    Column("k", "integer", "1", "size", least=0.0),
    Column("size_bytes", "integer", "B", "size", least=0.0),
    Column("kernel", "text", "", "size", complete=True),
    Column("operation", "text", "", "size", complete=True),
    Column("archive", "integer", "1", "process"),
    Column("host", "text", "", "process", complete=True),
    Column("node", "text", "", "process"),
    Column("peer", "text", "", "process"),
    Column("link", "text", "", "process", complete=True),
    Column("probe", "text", "", "process", complete=True),
    Column("cpu", "integer", "1", "process", least=-1.0),  # -1: a probe that was not pinned
    Column("core", "integer", "1", "process"),
    Column("rank", "integer", "1", "process", least=0.0),
    Column("block", "integer", "1", "process", least=0.0),
    Column("attempt", "integer", "1", "process", least=0.0),
    Column("process", "integer", "1", "process"),
    Column("active_cores", "integer", "1", "process", least=1.0),
    Column("active_socket_cores", "integer", "1", "process", least=1.0),
    Column("threads", "integer", "1", "process", least=1.0, varied=True),
    Column("start_s", "real", "s", "time", least=_ANY),
    Column("duration_s", "real", "s", "time", least=0.0),
    Column("recorded_s", "real", "s", "time"),
    Column("clock_cost_s", "real", "s", "time", least=0.0),
    Column("date", "text", "", "time"),
    Column("content", "text", "", "factor", reference="random"),
    Column("warm", "integer", "1", "factor", reference="0"),
    Column("pinning", "text", "", "factor", reference="pinned"),
    Column("scheduling", "text", "", "factor", reference="other"),
    Column("kind", "text", "", "note"),
    Column("design_row", "integer", "1", "note", least=_ANY),
    Column("position", "integer", "1", "note", least=_ANY),
    Column("order", "integer", "1", "note"),
    Column("started_s", "real", "s", "time"),
    Column("disturbed", "flag", "", "note"),
    Column("machine_changed", "text", "", "note"),
    Column("replication", "integer", "1", "note"),
    Column("seed", "integer", "1", "note"),
    Column("wanted_core", "integer", "1", "note"),
    Column("seen_on_cpu", "integer", "1", "note"),
)
BY_NAME = {column.name: column for column in COLUMNS}

#: Columns without which a table of a calibration cannot be fitted.
NEEDED: dict[str, tuple[str, ...]] = {
    KERNELS: (
        *("design_row", "position", "kernel", "m", "n", "k", "start_s", "duration_s", "rank", "cpu", "block", "probe"),
        "clock_cost_s",
    ),
    P2P: ("operation", "size_bytes", "duration_s", "clock_cost_s"),
    SEMANTICS: ("test", "size_bytes", "backlog", "outcome", "patience_ms", "rank"),
    RING: ("operation", "condition", "size_bytes", "role", "call", "found", "duration_s", "clock_cost_s"),
    FLOWS: (
        *("call", "host", "peer", "link", "ranks", "design_row", "size_bytes", "start_s", "duration_s", "clock_cost_s"),
    ),
    SENTINELS: (
        *("m", "n", "k", "start_s", "duration_s", "cpu", "block", "host", "disturbed", "clock_cost_s"),
        *("order", "started_s"),
    ),
}


def names_of(role: Role) -> tuple[str, ...]:
    """The declared columns of a role, in the order of the declarations."""
    return tuple(column.name for column in COLUMNS if column.role == role)


def check_columns(frame: "pandas.DataFrame", table: str, source: object = None) -> None:
    """Raises FitError where a table of a calibration lacks a needed column; source: the table as messages name it."""
    for column in NEEDED.get(table, ()):
        if column not in frame.columns:
            raise FitError(f"{source or table} lacks the column {column}; the archive is not a calibration")


def factors_of(table: "pandas.DataFrame", design: Sequence[str] | None = ()) -> tuple[str, ...]:
    """The factors of a table that have two to MOST_LEVELS levels, in the order of its columns.

    design : columns of the design that the observations were made by, which declares its factors; None: there is no
             design (a job that records as it likes, a table from elsewhere), so that every column that is not declared
             and is no time or frequency by its name counts as a factor of the user's
    """
    factors = []
    for name in map(str, table.columns):
        column = BY_NAME.get(name)
        if column is not None:
            is_factor = column.role == "factor" or (column.varied and design is not None and name in design)
        else:
            is_factor = not name.endswith(("_s", "_hz")) if design is None else name in design
        if is_factor and 2 <= table[name].nunique() <= MOST_LEVELS:
            factors.append(name)
    return tuple(factors)
