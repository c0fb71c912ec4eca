"""SMPI's settings as segments of message sizes: its tables and thresholds."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from lepaute.errors import InputError
from lepaute.platform.network_model import Costs
from lepaute.platform.simgrid.latency import ENVELOPE_BYTES
from lepaute.platform.simgrid.quantities import time_s, whole_number

Protocol = Literal["eager", "detached", "rendezvous"]

#: What SimGrid 3.32 takes where a file says nothing (smpimain --help).
DEFAULTS: Mapping[str, str] = {
    "smpi/bw-factor": "65472:0.940694;15424:0.697866;9376:0.58729;5776:1.08739;3484:0.77493;1426:0.608902;"
    "732:0.341987;257:0.338112;0:0.812084",
    "smpi/lat-factor": "65472:11.6436;15424:3.48845;9376:2.59299;5776:2.18796;3484:1.88101;1426:1.61075;"
    "732:1.9503;257:1.95341;0:2.01467",
    "smpi/os": "0:0:0",
    "smpi/ois": "0:0:0",
    "smpi/or": "0:0:0",
    "smpi/async-small-thresh": "0",
    "smpi/send-is-detached-thresh": "65536",
    "smpi/iprobe": "1e-4",
    "smpi/test": "1e-4",
    "smpi/wtime": "1e-8",
}
#: Other names that SimGrid reads.
ALIASES: Mapping[str, str] = {
    "smpi/bw_factor": "smpi/bw-factor",
    "smpi/lat_factor": "smpi/lat-factor",
    "smpi/async_small_thresh": "smpi/async-small-thresh",
    "smpi/async_small_thres": "smpi/async-small-thresh",
    "smpi/send_is_detached_thresh": "smpi/send-is-detached-thresh",
    "smpi/send_is_detached_thres": "smpi/send-is-detached-thresh",
}


@dataclass(frozen=True, slots=True)
class Row:
    """What holds for messages of more than `above_bytes`, up to the next row; overheads are (intercept, per byte)."""

    above_bytes: int
    bandwidth_factor: Decimal
    latency_factor: Decimal
    send: tuple[float, float]
    isend: tuple[float, float]
    receive: tuple[float, float]
    protocol: Protocol


def rows(values: Mapping[str, str], where: Mapping[str, str], *, with_envelope: bool) -> tuple[Row, ...]:
    """The tables as one, with a row wherever one of them has a threshold; the first begins at 0.

    values, where : of each setting, its value and the beginning of a message about it
    with_envelope : the thresholds of factors are those of messages with their envelope, as SMPI takes them; else they
                    are taken as those of messages, which is how calibrated files are written
    Raises InputError.
    """
    shift = ENVELOPE_BYTES if with_envelope else 0
    tables = {
        name: _table(values[name], where[name], shift if name.endswith("factor") else 0)
        for name in ("smpi/bw-factor", "smpi/lat-factor", "smpi/os", "smpi/ois", "smpi/or")
    }
    starts = {start for table in tables.values() for start in table}
    eager_from = whole_number(values["smpi/async-small-thresh"], where["smpi/async-small-thresh"])
    detached_from = whole_number(values["smpi/send-is-detached-thresh"], where["smpi/send-is-detached-thresh"])
    for threshold in (eager_from, detached_from):
        if 0 < threshold < 2**31 - 1 and not starts & {threshold, threshold - 1}:
            starts.add(threshold - 1)
    return tuple(
        Row(
            start,
            _at(tables["smpi/bw-factor"], start, (Decimal(1),))[0],
            _at(tables["smpi/lat-factor"], start, (Decimal(1),))[0],
            _overhead(tables["smpi/os"], start),
            _overhead(tables["smpi/ois"], start),
            _overhead(tables["smpi/or"], start),
            # more than `start` bytes are at least start + 1
            "eager" if start + 1 < eager_from else "detached" if start + 1 < detached_from else "rendezvous",
        )
        for start in sorted(starts | {0})
    )


def costs(values: Mapping[str, str], where: Mapping[str, str]) -> Costs:
    """The times of MPI_Iprobe, MPI_Test and MPI_Wtime.  Raises InputError."""
    iprobe, test, wtime = (
        float(time_s(values[name], where[name])) for name in ("smpi/iprobe", "smpi/test", "smpi/wtime")
    )
    return Costs(iprobe_s=iprobe, test_s=test, wtime_s=wtime)


Table = dict[int, tuple[Decimal, ...]]


def _table(text: str, where: str, shift: int) -> Table:
    if ":" not in text and ";" not in text:
        return {0: (time_s(text, where),)}
    table: Table = {}
    for entry in text.split(";"):
        if not entry.strip():
            continue
        start, *values = entry.split(":")
        threshold = whole_number(start, f"{where}: a threshold")
        if not values:
            raise InputError(f"{where}: the entry {entry!r} has no value; write threshold:value")
        table[max(threshold - shift, 0)] = tuple(time_s(value, f"{where}: a value") for value in values)
    return table


def _at(table: Table, start: int, otherwise: tuple[Decimal, ...]) -> tuple[Decimal, ...]:
    below = [threshold for threshold in table if threshold <= start]
    return table[max(below)] if below else otherwise


def _overhead(table: Table, start: int) -> tuple[float, float]:
    values = (*_at(table, start, ()), Decimal(0), Decimal(0))
    return float(values[0]), float(values[1])
