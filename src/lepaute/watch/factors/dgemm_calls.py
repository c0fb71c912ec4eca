"""The calls of dgemm that a run timed, processor by processor: what performance and regressions are taken from.

Of a calibration those of the probe `dgemm`, with the usual contents, of processes of one thread, while all cores
computed; HPL's own calls have other sizes on other machines and are left out. A run of the probe that other load
disturbed was made again; the last one counts, so that each size is there once a core and block whatever was made again.
Of an experiment all rows that are calls of dgemm: of tables with the columns m, n, k and duration_s those whose
`kernel` or `kind` is dgemm, or all of a table whose name begins with dgemm.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lepaute.errors import FitError
from lepaute.fit.numeric import Floats
from lepaute.fit.observations.calibrations import ACTIVE, THREADS, with_loads
from lepaute.fit.observations.columns import KERNELS, Place, check_durations, checked_table
from lepaute.fit.observations.factors import usual_conditions
from lepaute.watch.factors.archived_run import PLACES, ArchivedRun
from lepaute.watch.factors.sizes import cells_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

DGEMM, SIZE, DURATION = "dgemm", ("m", "n", "k"), "duration_s"


@dataclass(frozen=True, slots=True)
class DgemmCalls:
    """The calls on one processor of a node, vectors of shape (calls,); durations less the cost of the clock."""

    node: str
    cpu: int
    m: Floats
    n: Floats
    k: Floats
    duration_s: Floats
    conditions: "Mapping[str, str]"

    @property
    def flop(self) -> Floats:
        """Floating-point operations of each call: 2 m n k."""
        return 2.0 * self.m * self.n * self.k

    def __len__(self) -> int:
        return len(self.duration_s)


def dgemm_calls(run: ArchivedRun) -> tuple[DgemmCalls, ...]:
    """By node and processor; none where no dgemm was timed.

    Raises FitError, one line, for a table that cannot be.
    """
    return run.once("dgemm calls", lambda: _calls(run))


def _calls(run: ArchivedRun) -> tuple[DgemmCalls, ...]:
    if run.is_calibration:
        frame, load = _of_calibration(run)
    else:
        frame, load = _of_experiment(run), {}
    if frame is None or len(frame) == 0:
        return ()
    frame = _with_cpu(run, frame)
    varied = [name for name in run.design_columns if name in frame and name not in (*SIZE, *PLACES)]
    columns = [*SIZE, *(name for name in ("content", "warm") if name in frame and name not in varied), *varied]
    found = []
    for (node, cpu), rows in frame.groupby(["node", "socket"], sort=True):
        m, n, k = (rows[letter].to_numpy(np.float64) for letter in SIZE)
        conditions = {**run.blas(str(node)), **load, "sizes of dgemm": cells_text(rows, columns)}
        found.append(DgemmCalls(str(node), int(str(cpu)), m, n, k, _less_clock(rows), conditions))
    return tuple(found)


def _of_calibration(run: ArchivedRun) -> "tuple[pd.DataFrame | None, dict[str, str]]":
    if KERNELS not in run.archive.members():
        return None, {}
    table = checked_table(run.archive, KERNELS)
    names = table["probe"].astype(str) == DGEMM
    frame = with_loads(usual_conditions(table[names & (table["kernel"].astype(str) == DGEMM)])).copy()
    if len(frame) == 0:
        return None, {}
    nodes = run.nodes_of(frame)
    if nodes is None:
        raise FitError(f"{run.archive.path}: {KERNELS} does not name the nodes of its rows; measure again")
    frame["node"] = nodes
    frame = frame[frame[THREADS] == frame[THREADS].min()]
    frame = frame[frame[ACTIVE] == frame.groupby("node")[ACTIVE].transform("max")]
    if "attempt" in frame:
        last = frame.groupby(["node", "block", "cpu"])["attempt"].transform("max")
        frame = frame[frame["attempt"] == last]
    return frame, {"threads of a process": str(int(frame[THREADS].min()))}


def _of_experiment(run: ArchivedRun) -> "pd.DataFrame | None":
    import pandas as pd

    parts = []
    for member in run.tables():
        table = run.archive.table(member)
        if not {*SIZE, DURATION} <= set(table.columns):
            continue
        kind = next((name for name in ("kernel", "kind") if name in table), None)
        own = member.rpartition("/")[2].startswith(DGEMM)
        rows = table[table[kind].astype(str) == DGEMM] if kind else table if own else table.iloc[:0]
        if len(rows) == 0:
            continue
        for column in (*SIZE, DURATION):
            check_durations(rows, Place(run.archive.path, member), column)
        nodes = run.nodes_of(rows)
        if nodes is None:
            raise FitError(f"{run.archive.path}: {member} does not name the nodes of its rows; record a column `node`")
        parts.append(rows.assign(node=nodes))
    if not parts:
        return None
    frame = pd.concat(parts, ignore_index=True)
    usual = usual_conditions(frame)
    return usual if len(usual) else frame


def _with_cpu(run: ArchivedRun, frame: "pd.DataFrame") -> "pd.DataFrame":
    """The rows with the number of their processor, those of no work left out."""
    import pandas as pd

    name = next((name for name in ("pu", "cpu", "core") if name in frame), None)
    threads = pd.Series(-1, index=frame.index) if name is None else pd.to_numeric(frame[name], errors="coerce")
    pairs = pd.DataFrame({"node": frame["node"], "thread": threads.fillna(-1).astype(np.int64)})
    known = pairs.drop_duplicates()
    sockets = {(node, thread): run.cpu_of(node, thread) for node, thread in known.itertuples(index=False, name=None)}
    socket = [sockets[pair] for pair in pairs.itertuples(index=False, name=None)]
    work = np.flatnonzero((frame[list(SIZE)].to_numpy(np.float64) > 0).all(axis=1))
    return frame.assign(socket=socket).iloc[work]


def _less_clock(rows: "pd.DataFrame") -> Floats:
    duration: Floats = rows[DURATION].to_numpy(np.float64)
    if "clock_cost_s" in rows:
        duration = np.maximum(duration - rows["clock_cost_s"].to_numpy(np.float64), 0.0)
    return duration
