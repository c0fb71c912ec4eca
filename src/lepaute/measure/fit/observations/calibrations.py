"""The archives that are fitted together: calibrations of the same nodes, cores, loads, and which runs count."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas

from lepaute.errors import FitError
from lepaute.measure.archive import Archive, Archives, listed
from lepaute.measure.fit.numeric import Booleans, Floats, Integers
from lepaute.measure.observation_columns import ABSENT

#: What all nodes of a platform have in common.
_ALIKE = ("cpu_model", "node_cores")
#: Columns that tell the load of a row. Archives of versions before 0.11 lack them: there the name of the probe tells.
ACTIVE, ACTIVE_ON_SOCKET, THREADS = LOAD = ("active_cores", "active_socket_cores", "threads")
#: Probes of earlier versions in which two cores computed; one did in all others.
OF_TWO_CORES = frozenset({"hpl_steps_2x1", "hpl_steps_1x1_pair"})
#: What tells apart the runs of one probe on a core in a block, in archives that have several.
_OF_PROBE = ("active_cores", "threads")
#: Blocks with an undisturbed run of a probe that are enough to do without its disturbed ones.
ENOUGH_BLOCKS = 3
#: Shares of cores are told apart by this many digits.
DIGITS = 6


def calibrations(archives: Archives) -> list[Archive]:
    """One or several archives, or their files, as a list. Raises FitError if one is no calibration or is given
    twice, or they or their nodes are not alike."""
    given = [Archive.open(archive) for archive in listed(archives)]
    if not given:
        raise FitError("no archive to fit; give at least one")
    seen: dict[str, Archive] = {}
    for archive in given:
        about, first = archive.about, given[0].about
        if about.kind != "calibration":
            raise FitError(
                f"{archive.path}: is not a calibration (kind: {about.kind}); give what `lepaute calibrate` wrote"
            )
        if archive.id in seen:  # its calls would count as twice as many
            raise FitError(f"{archive.path}: is the same calibration as {seen[archive.id].path}; give each once")
        seen[archive.id] = archive
        for key in ("host", "cpu_model"):
            if getattr(about, key) != getattr(first, key):
                raise FitError(
                    f"{archive.path}: {key} is {getattr(about, key)}, that of {given[0].path} is "
                    f"{getattr(first, key)}; fit machines one by one"
                )
        if hosts_of(archive) != hosts_of(given[0]):
            raise FitError(f"{archive.path}: measured other nodes than {given[0].path}; fit them one by one")
        if about.blas.core != first.blas.core:
            raise FitError(
                f"{archive.path}: BLAS kernels {about.blas.core}, those of {given[0].path} are "
                f"{first.blas.core}; calibrate again with one setting"
            )
        _check_alike(archive)
    return given


def hosts_of(archive: Archive) -> tuple[str, ...]:
    """The nodes that were measured, in the order of the platform's; archives of older versions have one."""
    return tuple(archive.about.machines) or (archive.about.host,)


def seen_hosts(hosts: tuple[str, ...], frames: Sequence[pandas.DataFrame]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Nodes among several: those with kernel observations, and those without: a node may be lost before it has any.

    Raises FitError if no node has any.
    """
    if len(hosts) < 2:
        return hosts, ()
    seen = {str(host) for frame in frames if "host" in frame.columns for host in frame["host"].unique()}
    if not seen & set(hosts):
        raise FitError("the archives hold no kernel observations of their nodes; calibrate again")
    return tuple(host for host in hosts if host in seen), tuple(host for host in hosts if host not in seen)


def _check_alike(archive: Archive) -> None:
    machines = archive.about.machines
    for key in (*_ALIKE, "blas"):
        values = {
            name: machine.blas.core if key == "blas" else getattr(machine, key) for name, machine in machines.items()
        }
        first = next(iter(values.items()), None)
        for name, value in values.items():
            if first is not None and value != first[1]:
                raise FitError(
                    f"{archive.path}: {key} of {name} is {value}, that of {first[0]} is {first[1]}; the nodes of a "
                    "platform are all alike: fit machines one by one"
                )


@dataclass(frozen=True, slots=True)
class NodeShape:
    """The socket of each core of a node, by its number; nodes of a calibration are all alike."""

    socket: tuple[int, ...]

    @property
    def sockets(self) -> int:
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
        result: Integers = table[np.where((core >= 0) & (core < len(self.socket)), core, len(self.socket))]
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
        return np.round(np.clip(np.where(others > 0, computing / np.maximum(others, 1), 0.0), 0.0, 1.0), DIGITS)


def shape_of(archives: Sequence[Archive]) -> NodeShape:
    """The shape of the nodes that the archives measured: one socket where they do not tell, or sockets are unequal.

    Raises FitError if they differ.
    """
    shapes = {(0,) * archive.about.node_cores for archive in archives if archive.about.node_cores}
    shapes |= {_sockets(machine) for archive in archives for machine in archive.about.machines.values()}
    known = sorted(shapes - {()})
    if len({shape for shape in known if len(set(shape)) > 1}) > 1:
        raise FitError("the cores of the nodes are laid out differently; fit machines one by one")
    if known:
        shape = NodeShape(max(known, key=lambda shape: (len(set(shape)), len(shape))))
        return shape if shape.even_sockets else NodeShape((0,) * len(shape.socket))
    return NodeShape(
        (0,) * (1 + max((core for archive in archives for core in archive.about.cores or (0,)), default=0))
    )


def _sockets(machine: object) -> tuple[int, ...]:
    """The socket of each core where the archive says so, sockets from 0 in the order of cores; () where not."""
    names = tuple(getattr(getattr(machine, "layout", None), "socket", ()))
    order = list(dict.fromkeys(names))
    return tuple(order.index(name) for name in names)


def with_loads(frame: pandas.DataFrame) -> pandas.DataFrame:
    """The table of kernels with the columns ABSENT, LOAD among them; where one lacks it has what ABSENT says, or where
    the name of the probe does."""
    missing: dict[str, Any] = {column: value for column, value in ABSENT.items() if column not in frame.columns}
    if active := missing.keys() & {ACTIVE, ACTIVE_ON_SOCKET}:
        uses_two_cores: Booleans = frame["probe"].astype(str).isin(OF_TWO_CORES).to_numpy()
        missing |= dict.fromkeys(active, np.where(uses_two_cores, 2, 1))
    return frame.assign(**missing) if missing else frame


def probe_under_load(table: pandas.DataFrame) -> "pandas.Series[str]":
    """Names of probes that tell loads and threads apart: "hpl_steps_1x1 on 16 cores", "dgemm on 16 cores, 8 threads".

    A probe that was only made under one load, with one thread, keeps its name.
    """
    names = table["probe"].astype(str)
    several = (table.groupby(names)[ACTIVE].transform("nunique") > 1).to_numpy()
    threaded = (table[THREADS] > 1).to_numpy()
    cores: pandas.Series[str] = " on " + table[ACTIVE].astype(str) + " core" + np.where(table[ACTIVE] > 1, "s", "")
    named = names.where(~(several | threaded), names + cores)
    return named.where(~threaded, named + ", " + table[THREADS].astype(str) + " threads")


def _enough_blocks(blocks: int) -> int:
    """How many of `blocks` blocks must have an undisturbed run of a probe: 3, or half of them where there are fewer."""
    return ENOUGH_BLOCKS if blocks >= ENOUGH_BLOCKS else (blocks + 1) // 2


def without_disturbed(
    frames: Sequence["pandas.DataFrame"], by: tuple[str, ...]
) -> tuple[list["pandas.DataFrame"], tuple[str, ...]]:
    """The observations less the rows of disturbed runs, wherever a probe can do without them.

    frames : tables of one kind (kernels or p2p) of several archives, with the columns `block` and `by`; a table without
             the column `disturbed`, from an older version, counts as undisturbed throughout
    by     : columns that distinguish the probes: ("probe", "cpu") for kernels; none where all rows are of one probe

    A probe can do without its disturbed runs when it has an undisturbed one in at least `_enough_blocks` of its blocks,
    the blocks of all archives together. Returns new tables in the order of `frames`, and in alphabetical order the
    names of the probes that could not, such as "dgemm 0" ("p2p" where `by` is empty): of these all rows are kept. The
    durations do not matter: to leave out what is slow would bias the models. A probe under several loads counts as
    several, named with its cores and threads.
    Raises FitError when there are disturbed rows and a column is missing.
    """
    if not any(_is_disturbed(frame).any() for frame in frames):
        return list(frames), ()
    if "probe" in by and all(set(_OF_PROBE) <= set(frame.columns) for frame in frames):
        by = (*by, *_OF_PROBE)  # a probe is made under several loads in a block
    columns = [*by, "block"]
    parts = []
    for number, frame in enumerate(frames):
        missing = [column for column in columns if column not in frame.columns]
        if missing:
            raise FitError(f"the observations lack the column {missing[0]}; the archive is not a calibration")
        parts.append(frame.loc[:, columns].assign(archive=number, disturbed=_is_disturbed(frame)).drop_duplicates())
    # (name of the probe) -> (blocks it ran in, those with an undisturbed run)
    seen: dict[str, tuple[set[tuple[int, int]], set[tuple[int, int]]]] = {}
    for row in pandas.concat(parts, ignore_index=True).to_dict("records"):
        every, quiet = seen.setdefault(" ".join(str(row[column]) for column in by) or "p2p", (set(), set()))
        place = (int(row["archive"]), int(row["block"]))
        every.add(place)
        if not row["disturbed"]:
            quiet.add(place)
    short = {name for name, (every, quiet) in seen.items() if len(quiet) < _enough_blocks(len(every))}
    return [_kept(frame, by, short) for frame in frames], tuple(sorted(short))


def _is_disturbed(frame: "pandas.DataFrame") -> "pandas.Series[bool]":
    if "disturbed" in frame.columns:
        return frame["disturbed"].astype(bool)
    return pandas.Series(ABSENT["disturbed"], index=frame.index, dtype=bool)


def _kept(frame: "pandas.DataFrame", by: tuple[str, ...], short: set[str]) -> "pandas.DataFrame":
    quiet = ~_is_disturbed(frame)
    if not by:
        return frame if short else frame.loc[quiet]
    names = frame[by[0]].astype(str)
    for column in by[1:]:
        names = names + " " + frame[column].astype(str)
    return frame.loc[quiet | names.isin(short)]
