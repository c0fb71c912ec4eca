"""The observations of a calibration: all rows of its raw files, with what is known of the attempt each came from."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lepaute.measure.calibration.entries import AttemptEntry, RawFile
from lepaute.measure.calibration.repetition import disturbance_warning
from lepaute.measure.calibration.sentinels import order_of
from lepaute.measure.experiment.content import Content
from lepaute.measure.experiment.workspace import Workspace
from lepaute.measure.plan import FLOWS, P2P, RING, SEMANTICS
from lepaute.measure.probes import read_raw
from lepaute.measure.sentinel import SENTINEL

if TYPE_CHECKING:
    import pandas

#: Columns that tell the attempt, for kernels and for messages.
_OF_KERNELS = ("block", "attempt", "disturbed", "host", "probe", "active_cores", "active_socket_cores", "threads")
_OF_MESSAGES = ("block", "attempt", "disturbed", "host", "link", "peer", "distance")
#: Tables that a probe has of its own; all others are of kernels. Of the search for limits also which round it was.
_TABLES = {
    P2P: ("p2p", _OF_MESSAGES),
    RING: ("ring", _OF_MESSAGES),
    FLOWS: ("flows", _OF_MESSAGES),
    SEMANTICS: ("semantics", (*_OF_MESSAGES, "round")),
    SENTINEL: ("sentinels", _OF_KERNELS),
}
_KERNELS = ("kernels", _OF_KERNELS)


def tables(workspace: Workspace) -> "Iterator[tuple[str, pandas.DataFrame]]":
    """The tables `kernels`, `p2p`, `ring`, `flows`, `semantics` and `sentinels`, each if there are rows.

    A last line that was cut short is left out.
    """
    import pandas

    attempts = {entry.key: entry for entry in workspace.noted(AttemptEntry)}
    disturbed = {key: entry.disturbed for key, entry in attempts.items()}
    names = ("kernels", "p2p", "ring", "flows", "semantics", "sentinels")
    frames: dict[str, list[pandas.DataFrame]] = {name: [] for name in names}
    for entry in workspace.noted(RawFile):
        frame, header = read_raw(workspace.folder / entry.member)
        if frame.empty:  # a rank whose turn did not come
            continue
        table, columns = _TABLES.get(entry.probe, _KERNELS)
        # A probe knows the hardware threads it is bound to, the platform the cores that they belong to.
        frame["pu"], frame["cpu"] = frame["cpu"], entry.core
        for column in columns:
            frame[column] = disturbed.get(entry.key, False) if column == "disturbed" else getattr(entry, column)
        frame["clock_cost_s"] = float(header.get("clock_cost_s", "0"))
        if entry.probe == SENTINEL:
            if entry.key not in attempts:  # it was broken off
                continue
            frame["order"], frame["started_s"] = order_of(entry.name), attempts[entry.key].started_s
        if "hpl_options" in header:
            frame["options"] = header["hpl_options"]
        frames[table].append(frame)
    for name, parts in frames.items():
        if parts:
            yield name, pandas.concat(parts, ignore_index=True)


def warnings(workspace: Workspace) -> list[str]:
    """What the archive shall say of disturbed runs."""
    # Send-completion semantics are no durations: other load slows the search down, its answer stays right.
    # A disturbed sentinel is not made again, and tells what it shall.
    entries = [entry for entry in workspace.noted(AttemptEntry) if entry.probe not in (SEMANTICS, SENTINEL)]
    warning = disturbance_warning(entries)
    return [warning] if warning else []


#: What the archive of a calibration holds.
CALIBRATION = Content("calibration", ("blocks",), tables, warnings)
