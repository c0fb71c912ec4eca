"""What else computed while a call was timed: loads, threads, and how the cores of a node lie."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lepaute.errors import FitError
from lepaute.fit.numeric.arrays import Booleans, Floats, Integers

if TYPE_CHECKING:
    import pandas

    from lepaute.archive import Archive

#: Columns that tell the load of a row: cores of the node that did the same work, those of them on the row's socket, and
#: the threads of its process. An archive of versions before 0.11 lacks them: there the name of the probe tells.
ACTIVE, ACTIVE_ON_SOCKET, THREADS = LOAD = ("active_cores", "active_socket_cores", "threads")
#: Probes of earlier versions in which two cores computed; one did in all others.
OF_TWO_CORES = frozenset({"hpl_steps_2x1", "hpl_steps_1x1_pair"})
#: Shares of cores are told apart by so many digits.
DIGITS = 6


@dataclass(frozen=True, slots=True)
class NodeShape:
    """The socket of each core of a node, by its number; nodes of a calibration are all alike."""

    socket: tuple[int, ...]

    @property
    def sockets(self) -> int:
        """How many sockets there are."""
        return len(set(self.socket))

    @property
    def even_sockets(self) -> int | None:
        """Their number where each has as many cores, numbered consecutively; None otherwise, or where there is one."""
        each = len(self.socket) // max(self.sockets, 1)
        consecutive = [core // each for core in range(len(self.socket))] if each else []
        return self.sockets if self.sockets > 1 and list(self.socket) == consecutive else None

    def socket_of(self, core: Integers) -> Integers:
        """The socket of each core, shape of core; 0 for cores that are not known."""
        table = np.append(np.array(self.socket, dtype=np.int64), 0)
        known = (core >= 0) & (core < len(self.socket))
        result: Integers = table[np.where(known, core, len(self.socket))]
        return result

    def shares(self, core: Integers, active: Integers, active_on_socket: Integers, threads: Integers) -> Floats:
        """Share of the other cores of a row's socket that compute, of the node's where its threads span sockets.

        core : the first one of the process; all of shape (rows,)
        """
        first, last = self.socket_of(core), self.socket_of(core + threads - 1)
        on_socket = np.bincount(np.array(self.socket, dtype=np.int64), minlength=int(first.max(initial=0)) + 1)
        inside = (first == last) & (threads <= on_socket[first]) & (self.sockets > 1)
        computing = np.where(inside, active_on_socket, active) - threads
        others = np.where(inside, on_socket[first], len(self.socket)) - threads
        share = np.where(others > 0, computing / np.maximum(others, 1), 0.0)
        return np.round(np.clip(share, 0.0, 1.0), DIGITS)


def shape_of(archives: "Sequence[Archive]") -> NodeShape:
    """The shape of the nodes that the archives measured: one socket where they do not tell, or where sockets differ in
    size.

    Raises FitError where they differ.
    """
    shapes = {_shape_of_facts(archive) for archive in archives}
    shapes |= {_sockets(machine) for archive in archives for machine in archive.about.machines.values()} - {None}
    known = sorted(shape for shape in shapes if shape)
    if len({shape for shape in known if len(set(shape)) > 1}) > 1:
        raise FitError("the cores of the nodes are laid out differently; fit machines one by one")
    if known:
        shape = NodeShape(max(known, key=lambda shape: (len(set(shape)), len(shape))))
        return shape if shape.even_sockets else NodeShape((0,) * len(shape.socket))
    return NodeShape(
        (0,) * (1 + max((core for archive in archives for core in archive.about.cores or (0,)), default=0))
    )


def _shape_of_facts(archive: "Archive") -> tuple[int, ...] | None:
    return (0,) * archive.about.node_cores if archive.about.node_cores else None


def _sockets(machine: object) -> tuple[int, ...] | None:
    """The socket of each core where the archive says so, sockets numbered from 0 in the order of cores."""
    layout = getattr(machine, "layout", None)
    names = tuple(getattr(layout, "socket", ()))
    order = list(dict.fromkeys(names))
    return tuple(order.index(name) for name in names) or None


def with_loads(frame: "pandas.DataFrame") -> "pandas.DataFrame":
    """The table with the columns LOAD; those that are absent are taken from the names of probes."""
    missing = [column for column in LOAD if column not in frame.columns]
    if not missing:
        return frame
    two: Booleans = frame["probe"].astype(str).isin(OF_TWO_CORES).to_numpy()
    active = np.where(two, 2, 1)
    return frame.assign(**{column: 1 if column == THREADS else active for column in missing})


def probe_under_load(table: "pandas.DataFrame") -> "pandas.Series[str]":
    """Names of probes that tell loads and threads apart: "hpl_steps_1x1 on 16 cores", "dgemm on 16 cores, 8 threads".

    A probe that was only made under one load, with one thread, keeps its name.
    """
    names = table["probe"].astype(str)
    several = (table.groupby(names)[ACTIVE].transform("nunique") > 1).to_numpy()
    threaded = (table[THREADS] > 1).to_numpy()
    cores: pandas.Series[str] = " on " + table[ACTIVE].astype(str) + " core" + np.where(table[ACTIVE] > 1, "s", "")
    named = names.where(~(several | threaded), names + cores)
    return named.where(~threaded, named + ", " + table[THREADS].astype(str) + " threads")
