"""The tables of observations of a calibration and their columns: each is declared here and nowhere else.

The calibration writes what is declared as of a run, the fits read and check what they need, the page of formats shows
all. What a column is follows from its declaration, never from its values. A column is a factor, and tested, where it is
declared so: here, or as a column of the experiment's own design. Undeclared columns change nothing in a fit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lepaute.kit.later import pandas

KERNELS = "observations/kernels.parquet"
P2P = "observations/p2p.parquet"
RING = "observations/ring.parquet"
FLOWS = "observations/flows.parquet"
SEMANTICS = "observations/semantics.parquet"
SENTINELS = "observations/sentinels.parquet"
TABLES = (KERNELS, P2P, RING, FLOWS, SEMANTICS, SENTINELS)
_OF_KERNELS, _OF_MESSAGES = (KERNELS, SENTINELS), (P2P, RING, FLOWS, SEMANTICS)
_TIMED = (KERNELS, P2P, RING, FLOWS, SENTINELS)
#: Levels of a factor; a column with more is no factor even where it is declared one.
MAX_LEVELS = 20
LONGEST_S = 7 * 86400.0
#: More than any node has: cores are numbered through over all nodes.
MAX_CORES = 1 << 20
#: size: of a call or message. process: which process a row is from. time: when, and how long. factor: a condition whose
#: effect is tested. note: bookkeeping. None: in the tables of a calibration alone; an experiment may call a factor so.
Role = Literal["size", "process", "time", "factor", "note"] | None
_ANY = float("-inf")


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column.

    meaning   : for the page of formats, where the name does not say it
    needed    : tables that cannot be fitted without it
    of_run    : tables whose rows have it from their run: a field of `calibration.entries.RawFile`, or its outcome
    absent    : what the fits take for kernels in archives that lack it
    least     : of a number, checked in every table of a calibration; None: not checked;  most: of one that is checked
    complete  : a text that every row of a calibration has
    reference : level that others are compared with; "": the first, see `level_order`
    """

    name: str
    type: Literal["integer", "real", "text", "flag"]
    unit: str
    role: Role
    meaning: str = ""
    needed: tuple[str, ...] = ()
    of_run: tuple[str, ...] = ()
    absent: int | bool | None = None
    least: float | None = None
    complete: bool = False
    reference: str = ""
    most: float = 2.0**53  # a larger real is not known to one


COLUMNS: tuple[Column, ...] = (
    Column("m", "integer", "1", "size", needed=_OF_KERNELS, least=0.0),
    Column("n", "integer", "1", "size", needed=_OF_KERNELS, least=0.0),
    Column("k", "integer", "1", "size", needed=_OF_KERNELS, least=0.0),
    Column("size_bytes", "integer", "B", "size", needed=_OF_MESSAGES, least=0.0),
    Column("kernel", "text", "", "size", needed=(KERNELS,), complete=True),
    Column("operation", "text", "", "size", needed=(P2P, RING), complete=True),
    Column("archive", "integer", "1", "process"),
    Column("host", "text", "", "process", needed=(FLOWS, SENTINELS), of_run=TABLES, complete=True),
    Column("node", "text", "", "process"),
    Column("peer", "text", "", "process", "node at the other end of messages", needed=(FLOWS,), of_run=_OF_MESSAGES),
    Column("link", "text", "", "process", "local or remote", needed=(FLOWS,), of_run=_OF_MESSAGES, complete=True),
    Column("probe", "text", "", "process", needed=(KERNELS,), of_run=_OF_KERNELS, complete=True),
    Column("cpu", "integer", "1", "process", "core, the first of several, by the platform's number; -1: not pinned",
           needed=_OF_KERNELS, least=-1.0, most=MAX_CORES - 1.0),
    Column("core", "integer", "1", "process"),
    Column("rank", "integer", "1", "process", needed=(KERNELS, SEMANTICS), least=0.0),
    Column("block", "integer", "1", "process", needed=_OF_KERNELS, of_run=TABLES, least=0.0),
    Column("attempt", "integer", "1", "process", "0: the first in its block", of_run=TABLES, absent=0, least=0.0),
    Column("process", "integer", "1", "process"),
    Column("active_cores", "integer", "1", "process",
           "cores of the node that did the same work at once, its own included",
           of_run=_OF_KERNELS, absent=1, least=1.0),
    Column("active_socket_cores", "integer", "1", "process", "those of them on the socket of `cpu`",
           of_run=_OF_KERNELS, absent=1, least=1.0),
    Column("threads", "integer", "1", "process", "of BLAS, of the process", of_run=_OF_KERNELS, absent=1, least=1.0),
    Column("start_s", "real", "s", "time", needed=(KERNELS, FLOWS, SENTINELS), least=_ANY),
    Column("duration_s", "real", "s", "time", needed=_TIMED, least=0.0, most=LONGEST_S),
    Column("recorded_s", "real", "s", "time"),
    Column("clock_cost_s", "real", "s", "time", "of the clock, in each duration", needed=_TIMED, least=0.0),
    Column("date", "text", "", "time"),
    Column("content", "text", "", "factor", reference="random"),
    Column("warm", "integer", "1", "factor", reference="0"),
    Column("pinning", "text", "", "factor", reference="pinned"),
    Column("scheduling", "text", "", "factor", reference="other"),
    Column("kind", "text", "", "note"),
    Column("design_row", "integer", "1", "note", needed=(KERNELS, FLOWS), least=_ANY),
    Column("position", "integer", "1", "note", "step of HPL in its design row", needed=(KERNELS,), least=_ANY),
    Column("order", "integer", "1", "note", "of the sentinels of a node", needed=(SENTINELS,)),
    Column("started_s", "real", "s", "time", "since the epoch, by the controller's clock", needed=(SENTINELS,)),
    Column("disturbed", "flag", "", "note", "by other programs", needed=(SENTINELS,), of_run=TABLES, absent=False),
    Column("slow", "flag", "", "note", "the machine was slow, by its own speed", of_run=TABLES, absent=False),
    Column("machine_changed", "text", "", "note"),
    Column("replication", "integer", "1", "note"),
    Column("seed", "integer", "1", "note"),
    Column("wanted_core", "integer", "1", "note"),
    Column("seen_on_cpu", "integer", "1", "note"),
    Column("pu", "integer", "1", None, "hardware thread that the process was bound to, as the system numbers them"),
    Column("options", "text", "", None, "of HPL, of the step, where they were drawn"),
    Column("distance", "text", "", None, "between cores, or nodes, by layout or switches", of_run=_OF_MESSAGES),
    Column("round", "integer", "1", None, "of the search for the limits of sends", of_run=(SEMANTICS,)),
    Column("test", "text", "", None, needed=(SEMANTICS,)),
    Column("backlog", "integer", "1", None, needed=(SEMANTICS,)),
    Column("outcome", "text", "", None, needed=(SEMANTICS,)),
    Column("patience_ms", "integer", "ms", None, needed=(SEMANTICS,)),
    Column("condition", "text", "", None, "of the passive ranks", needed=(RING,)),
    Column("role", "text", "", None, needed=(RING,)),
    Column("call", "text", "", None, needed=(RING, FLOWS)),
    Column("found", "integer", "1", None, "whether the call of MPI_Iprobe found the message", needed=(RING,)),
    Column("ranks", "integer", "1", None, needed=(FLOWS,)),
)  # fmt: skip

#: Columns whose names mean the same in every table, also of an experiment.
COLUMNS_BY_NAME = {column.name: column for column in COLUMNS if column.role is not None}
#: Columns without which a table of a calibration cannot be fitted.
NEEDED = {table: tuple(column.name for column in COLUMNS if table in column.needed) for table in TABLES}
#: What the fits take where the table of kernels lacks a column; in journals of interrupted calibrations, too.
ABSENT = {column.name: column.absent for column in COLUMNS if column.absent is not None}


def columns_of_run(table: str) -> tuple[str, ...]:
    """The columns that the rows of a table have from their run."""
    return tuple(column.name for column in COLUMNS if table in column.of_run)


def names_of(role: Role) -> tuple[str, ...]:
    """The declared columns of a role, in the order of the declarations."""
    return tuple(column.name for column in COLUMNS if column.role == role)


def factors_of(table: "pandas.DataFrame", design: Sequence[str] | None = ()) -> tuple[str, ...]:
    """The factors of a table that have two to MAX_LEVELS levels, in the order of its columns.

    design : columns of the design that the observations were made by, which are factors whatever they are called, but
             for sizes; None: there is none (a job that records as it likes, a table from elsewhere), so that every
             column that is not declared and is no time or frequency by its name counts as a factor
    """

    def is_factor(name: str) -> bool:
        column = COLUMNS_BY_NAME.get(name)
        if column is not None and column.role == "factor":
            return True
        if design is None:
            return column is None and not name.endswith(("_s", "_hz"))
        return name in design and (column is None or column.role != "size" or column.type == "text")

    return tuple(at for at in map(str, table.columns) if is_factor(at) and 2 <= table[at].nunique() <= MAX_LEVELS)
