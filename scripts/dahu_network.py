"""The network of the shipped platforms of Dahu, from the published calibrations and the ring between full nodes."""

import math
from pathlib import Path
from typing import Any

import yaml

from scripts.dgemm_calibrations import rows_of

#: In the names of networks that were measured between idle nodes.
IDLE = "optimistic"
#: Sizes at which the durations of the ring are the wait for the receiver's probe.
PLATEAU_BYTES = (16_000, 64_000)
#: Seconds per byte of a piece whose durations do not grow with the size.
MIN_SLOPE = 1e-15


def dahu_network(source: dict[str, Any], reference: Path) -> dict[str, Any]:
    """The network of one of the Dahu files; its latency factors are for a route latency of 0.10 µs as fitted.

    One of idle nodes, whose large messages were not measured, gets what ping-pongs of them cost, and what messages cost
    where ranks compute between their probes for them; in one of loaded nodes they cost what others do.
    """
    remote, local = source["remote"], source["local"]
    thresholds = {key: source["thresholds"][key] for key in ("eager_max_bytes", "detached_max_bytes")}
    classes, busy = {}, {}
    for which, file, link_class, route_latency_s in (
        ("local", "loopback", local, local["link"]["latency_s"]),
        ("remote", "remote", remote, 1e-7),
    ):
        nominal = segments(link_class, route_latency_s, thresholds)
        idle = ping_pong_segments(reference / "network_fit" / f"pingpong_{file}.csv.gz", nominal)
        deviation = transfer_deviation(reference, which, idle)
        quiet = idle if IDLE in source["name"] else nominal
        classes[which] = {"segments": quiet, "discrepancy_relative_sd": deviation}
        busy[which] = {
            "segments": busy_segments(reference / "network_fit" / f"ringrong_{file}.csv", quiet)
            if IDLE in source["name"]
            else quiet,  # all messages were measured so
            # one calibration only: assumed to vary as messages between idle cores of a node do
            "discrepancy_relative_sd": classes["local"]["discrepancy_relative_sd"],
        }
    return {
        "flow_factor": "bound",
        "node_link": {"bandwidth_Bps": remote["link"]["bandwidth_Bps"]},
        "loopback": {
            "shared": False,
            "bandwidth_Bps": local["link"]["bandwidth_Bps"],
            **classes["local"],
            "busy": busy["local"],
        },
        "remote": {**classes["remote"], "busy": busy["remote"]},
        "costs": {f"{call}_s": source["costs"][f"{call}_s"] or 0.0 for call in ("iprobe", "test", "wtime")},
    }


def segments(link_class: dict[str, Any], route_latency_s: float, thresholds: dict[str, int]) -> list[dict[str, Any]]:
    """The segments of a link class: absolute values on the union of all breakpoints."""
    overheads = link_class["overheads"] or {}
    pieces = [link_class["bandwidth_factor"], link_class["latency_factor"], *overheads.values()]
    starts = {piece["above_bytes"] for listed in pieces for piece in listed} | set(thresholds.values())
    result = []
    for start in sorted(starts):
        protocol = "eager" if start < thresholds["eager_max_bytes"] else "rendezvous"
        if protocol == "rendezvous" and start < thresholds["detached_max_bytes"]:
            protocol = "detached"
        segment = {
            "above_bytes": start,
            "protocol": protocol,
            "latency_s": tidy(in_force(link_class["latency_factor"], start)["factor"] * route_latency_s),
            "bandwidth_Bps": tidy(
                in_force(link_class["bandwidth_factor"], start)["factor"] * link_class["link"]["bandwidth_Bps"]
            ),
        }
        for operation in ("send", "isend", "receive"):
            if operation in overheads:
                piece = in_force(overheads[operation], start)
                segment[operation] = [piece["intercept_s"], piece["per_byte_s"]]
        result.append(segment)
    return result


def busy_segments(path: Path, idle: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What messages cost where ranks compute between their probes, from the ring between full nodes.

    In that ring (thesis, section 8.7) each rank calls dgemm between two MPI_Iprobe. Its durations are there and back:
    half of those of 256 MiB is what the thesis shows for MPI_Recv. From 16 kB to 64 kB they do not depend on the size,
    and spread over the length of a dgemm: they are the wait for the receiver's next probe, which the engine simulates.
    The mean of that wait, over what the message takes between idle nodes, is taken off the pieces that are fitted to
    the larger messages. Up to 64 kB the segments are those of idle nodes.
    """
    rows = one_way(path)
    waits = [seconds - one_way_s(idle, size) for size, seconds in rows if PLATEAU_BYTES[0] < size <= PLATEAU_BYTES[1]]
    return measured_segments(rows, idle, math.fsum(waits) / len(waits))


def ping_pong_segments(path: Path, nominal: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What messages above 64 kB cost, from the durations of ping-pongs there and back; below, the segments given."""
    return measured_segments(one_way(path), nominal)


def measured_segments(
    rows: list[tuple[int, float]], known: list[dict[str, Any]], wait_s: float = 0.0
) -> list[dict[str, Any]]:
    """The segments `known` up to 64 kB, and above pieces fitted to (bytes, seconds) of messages, less `wait_s` each."""
    from lepaute import fit

    large = [(size, seconds) for size, seconds in rows if size > PLATEAU_BYTES[1]]
    line = fit.segment([size for size, _ in large], [seconds for _, seconds in large], objective="log")
    starts = [PLATEAU_BYTES[1], *(int(size) for size in line.breakpoints)]
    last = in_force(known, PLATEAU_BYTES[1])
    return [segment for segment in known if segment["above_bytes"] < PLATEAU_BYTES[1]] + [
        {
            **last,
            "above_bytes": start,
            "latency_s": max(0.0, float(f"{piece.intercept - wait_s:.6g}")),
            "bandwidth_Bps": float(f"{1.0 / max(piece.slope, MIN_SLOPE):.6g}"),
        }
        for start, piece in zip(starts, line.segments, strict=True)
    ]


def one_way(path: Path) -> list[tuple[int, float]]:
    """(bytes, seconds) of each row of a table of messages there and back, with the columns size and duration."""
    return [(int(float(row["size"])), float(row["duration"]) / 2) for row in rows_of(path)]


def one_way_s(listed: list[dict[str, Any]], size_bytes: int) -> float:
    """Seconds of a message alone, overheads included."""
    segment = in_force(listed, size_bytes - 1)
    calls = math.fsum(segment[call][0] + segment[call][1] * size_bytes for call in ("send", "receive"))
    return float(calls + segment["latency_s"] + size_bytes / segment["bandwidth_Bps"])


def transfer_deviation(reference: Path, which: str, pieces: list[dict[str, Any]]) -> float:
    """Relative standard deviation of the time of large messages between two calibrations of idle nodes.

    Those are the pieces given and the calibration of August 2020. Root mean square of the logarithm of their ratio,
    over sizes from 64 kB to 16 MB (a panel, a part of a swap), divided by the square root of 2: the ratio is a
    difference of two.
    """
    path = reference / "dahu" / "network" / "dahu_large_idle_2020-08.yaml"
    other = yaml.safe_load(path.read_text(encoding="utf-8"))[which]["effective"]
    sizes = [64_001 * 2 ** (step / 8) for step in range(65)]
    squares = [math.log(effective_s(pieces, size) / effective_s(other, size)) ** 2 for size in sizes]
    return float(f"{math.sqrt(math.fsum(squares) / len(squares) / 2):.2g}")


def effective_s(pieces: list[dict[str, Any]], size_bytes: float) -> float:
    """Seconds of the transfer of a message alone by the absolute values that the file lists."""
    piece = in_force(pieces, int(size_bytes) - 1)
    return float(piece.get("latency_s", piece.get("latency_one_link_s")) + size_bytes / piece["bandwidth_Bps"])


def in_force(pieces: list[dict[str, Any]], above_bytes: int) -> dict[str, Any]:
    """The piece that holds for sizes just above `above_bytes`."""
    return [piece for piece in pieces if piece["above_bytes"] <= above_bytes][-1]


def tidy(value: float, digits: int = 15) -> float:
    """`value` with so many digits; the last ones are rounding of the product."""
    return float(f"{value:.{digits}g}")
