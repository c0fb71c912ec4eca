"""What a calibration writes down: the entries of its journals, and the observations made of its raw files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, ClassVar

import pandas

from lepaute.kit.json_values import ABSENT_IF_NONE
from lepaute.kit.text import counted
from lepaute.measure import observation_columns as columns
from lepaute.measure.experiment.entries import Content, Entry
from lepaute.measure.experiment.workspace import Workspace
from lepaute.measure.machine_load import disturbance_warnings
from lepaute.measure.plan import FLOWS, P2P, RING, SEMANTICS
from lepaute.measure.raw_files import read_raw
from lepaute.measure.sentinel import SENTINEL

#: What identifies an attempt: node, block, name of the run, number.
Key = tuple[str, int, str, int]


class _OfAttempt(Entry):
    __slots__ = ()
    node: str
    block: int
    name: str
    attempt: int

    @property
    def key(self) -> Key:
        return self.node, self.block, self.name, self.attempt


@dataclass(frozen=True, slots=True)
class RawFile(_OfAttempt):
    """A raw file that was begun, and the attempt it belongs to.

    node: where the run takes place, which for messages is the node of rank 0; host: where this file's rank runs
    link: local or remote; peer: the node at the other end of the messages; both only of messages
    round: of the search for the limits of sends
    core : that this file's rank runs on, the first where it has several threads
    Its other fields, and those that have their names, are columns: `columns_of_run`.
    """

    JOURNAL: ClassVar[str] = "raw_files"
    #: Of journals that older versions wrote.
    ABSENT: ClassVar[Mapping[str, Any]] = {"core": 0, "distance": "", **columns.ABSENT}
    member: str
    node: str
    host: str
    name: str
    block: int
    probe: str
    attempt: int
    core: int
    active_cores: int
    active_socket_cores: int
    threads: int
    distance: str
    round: int | None = field(default=None, metadata=ABSENT_IF_NONE)
    link: str | None = field(default=None, metadata=ABSENT_IF_NONE)
    peer: str | None = field(default=None, metadata=ABSENT_IF_NONE)


@dataclass(frozen=True, slots=True)
class AttemptEntry(_OfAttempt):
    """An attempt that ended: a line of blocks.json.

    start: ISO 8601 by the node's clock; start_s by its monotonic clock, started_s since the epoch by the controller's
    load, threads: of the planned run
    disturbed: other programs used the machine; causes: what they did; more: the load of the machine meanwhile
    """

    JOURNAL: ClassVar[str] = "blocks"
    node: str
    peer: str | None
    block: int
    name: str
    attempt: int
    probe: str
    run_cores: tuple[int, ...]
    load: str
    threads: int
    seed: int
    start: str
    start_s: float
    started_s: float
    wall_s: float
    disturbed: bool
    causes: tuple[str, ...]
    more: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SlowRun(_OfAttempt):
    """An attempt that met a slow machine, by its own speed; causes: which witnesses say so, and what they saw."""

    JOURNAL: ClassVar[str] = "slow"
    node: str
    block: int
    name: str
    attempt: int
    causes: tuple[str, ...]


#: Tables that a probe has of its own; all others are of kernels.
_TABLES = {P2P: columns.P2P, RING: columns.RING, FLOWS: columns.FLOWS, SEMANTICS: columns.SEMANTICS}
_TABLES |= {SENTINEL: columns.SENTINELS}


def order_of(name: str) -> int:
    """The number of a sentinel, from 0 on each node, by the name of its run."""
    return int(name.removeprefix(SENTINEL))


def tables(workspace: Workspace) -> Iterator[tuple[str, pandas.DataFrame]]:
    """The tables `kernels`, `p2p`, `ring`, `flows`, `semantics` and `sentinels`, each if there are rows.

    A last line that was cut short is left out.
    """
    attempts = {entry.key: entry for entry in workspace.noted(AttemptEntry)}
    slow = {entry.key for entry in workspace.noted(SlowRun)}
    frames: dict[str, list[pandas.DataFrame]] = {table: [] for table in columns.TABLES}
    for entry in workspace.noted(RawFile):
        frame, header = read_raw(workspace.folder / entry.member)
        if frame.empty:  # a rank whose turn did not come
            continue
        table = _TABLES.get(entry.probe, columns.KERNELS)
        # A probe knows the hardware threads it is bound to, the platform the cores that they belong to.
        frame["pu"], frame["cpu"] = frame["cpu"], entry.core
        outcome = {"disturbed": entry.key in attempts and attempts[entry.key].disturbed, "slow": entry.key in slow}
        for column in columns.columns_of_run(table):
            frame[column] = outcome[column] if column in outcome else getattr(entry, column)
        frame["clock_cost_s"] = float(header.get("clock_cost_s", "0"))
        if entry.probe == SENTINEL:
            if entry.key not in attempts:  # it was broken off
                continue
            frame["order"], frame["started_s"] = order_of(entry.name), attempts[entry.key].started_s
        if "hpl_options" in header:
            frame["options"] = header["hpl_options"]
        frames[table].append(frame)
    for table, parts in frames.items():
        if parts:
            yield PurePosixPath(table).stem, pandas.concat(parts, ignore_index=True)


def warnings(workspace: Workspace) -> list[str]:
    # Send-completion semantics are no durations: other load slows the search down, its answer stays right.
    # A disturbed sentinel is not made again, and tells what it shall.
    runs: dict[tuple[str, int, str], list[bool | Sequence[str]]] = {}
    for entry in workspace.noted(AttemptEntry):
        if entry.probe not in (SEMANTICS, SENTINEL):
            runs.setdefault((entry.node, entry.block, entry.name), []).append(entry.causes or entry.disturbed)
    slow = [entry for entry in workspace.noted(SlowRun) if entry.attempt == 0]
    told = disturbance_warnings(runs.values(), "probe runs", "blocks.json")
    if slow:
        witnesses = sorted({cause.partition(":")[0] for entry in slow for cause in entry.causes})
        again = sum(len(runs[entry.key[:3]]) > 1 for entry in slow)
        each = "each was" if again == len(slow) else f"{again} of them were"
        told.append(
            f"{len(slow)} of {counted(len(runs), 'probe run')} met a slow machine ({', '.join(witnesses)}; slow.json); "
            f"{each} measured once more"
        )
    return told


#: What the archive of a calibration holds.
CALIBRATION = Content("calibration", ("blocks", "raw_files", "slow", "further", "precision"), tables, warnings)
