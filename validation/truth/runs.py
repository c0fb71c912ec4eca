"""Further runs of HPL on a made-up machine, each on another day."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lepaute import fit
from lepaute.measure.archive import Archive
from lepaute.simulate import Hpl, predict
from lepaute.simulate.platform import Platform
from lepaute.simulate.prediction.prediction import Spread
from truth import law as laws
from truth.law import Effects, Law

#: Days of runs have numbers from here on; blocks of the calibration have smaller ones.
FIRST_DAY = 1000
#: When runs take place, in lengths of the calibration: it ended at 1.
LATEST = 11.0
#: The link of a node is as wide as that of a core, so that flows of both cores share it.
SHARED_BPS = 1e12
UNSHARED = {"shared": False, "bandwidth_Bps": SHARED_BPS, "segments": None}


def true_runs_s(hpl: Hpl, law: Law, effects: Effects, nodes: int, runs: int, rng: np.random.Generator) -> list[float]:
    """Times of runs of HPL, ranks on the cores one after the other.

    What the engine has no layer for is constant during a run here and multiplies the coefficients of each core: the
    factors of process, start, day and core, the drift at the time of the run, and the mean of the slow change along the
    process. Noise and outliers of single calls and of messages are drawn by the engine.
    """
    times = []
    for run in range(runs):
        start = effects.start() + float(effects.drift(np.array([rng.uniform(1.0, LATEST)]))[0])
        factors = {
            (node, core): float(np.exp(start + effects.process(FIRST_DAY + run, node, core) + effects.wander().mean()))
            for node in range(nodes)
            for core in range(2)
        }
        platform = true_platform(law, factors, effects.of_messages(), nodes)
        times.append(predict(hpl, platform, runs=1, seed=int(rng.integers(2**31))).run_list[0].time_s)
    return times


def true_platform(law: Law, factors: dict[tuple[int, int], float], message_factor: float, nodes: int) -> Platform:
    """The machine on one day, exactly: no layer of uncertainty but the noise of single calls and messages.

    factors : on the durations of kernels, by (node, core)
    """
    remote = messages(law, "remote" if nodes > 1 else "local", message_factor)
    loopback = UNSHARED | (messages(law, "local", message_factor) if nodes > 1 else {})
    link_Bps = 1.0 / (law.line("remote")[1] * message_factor) if nodes > 1 else SHARED_BPS
    return truth([_kernel(law, kernel, factors) for kernel in law.mean], nodes, 2, link_Bps, loopback, remote)


def fitted(path: Path) -> Platform:
    """The platform of an archive, which is removed."""
    platform, _ = fit.platform_and_models(Archive.open(path), "made-up")
    path.unlink()
    return platform


def columns_of(spread: Spread, times: np.ndarray) -> dict[str, object]:
    """Of a table: what was predicted, and what the true runs took."""
    true = {"true_mean_s": float(times.mean()), "true_sd_s": float(times.std(ddof=1)), "runs": len(times)}
    return {"predicted_s": spread.mean, "low_s": spread.low, "high_s": spread.high, **true}


def truth(
    kernels: list[dict[str, object]],
    nodes: int,
    cores: int,
    link_Bps: float,
    loopback: Mapping[str, object],
    remote: Mapping[str, object],
) -> Platform:
    """The platform of a truth: its kernels, and the segments of its links."""
    costs = {"iprobe_s": laws.IPROBE_S, "test_s": laws.TEST_S, "wtime_s": laws.WTIME_S}
    link = {"bandwidth_Bps": link_Bps}
    return Platform.model_validate(
        {
            "name": "truth",
            "nodes": {"count": nodes, "first_number": 1, "cores": cores, "cpus": cores},
            "kernels": kernels,
            "network": {"node_link": link, "loopback": loopback, "remote": remote, "costs": costs},
        }
    )


def piece(
    law: Law, where: Mapping[str, Any], mean: Mapping[str, float], sd: Mapping[str, float], rows: list[list[float]]
) -> dict[str, object]:
    """A piece of a kernel, with the noise of single calls as a mixture; rows: node, core, and its own mean and sd."""
    parts = zip(law.modes.weight, law.modes.mean, law.modes.sd, strict=True)
    modes = [{"weight": float(weight), "mean": float(mean), "sd": float(sd)} for weight, mean, sd in parts]
    return {
        "where": where or None,
        "mean": dict(mean),
        "noise": {"kind": "mixture", "sd": dict(sd), "modes": modes},
        "per_cpu": {"columns": ["node", "cpu", *mean, *(f"sd:{term}" for term in sd)], "rows": rows},
    }


def _kernel(law: Law, kernel: str, factors: dict[tuple[int, int], float]) -> dict[str, object]:
    pieces = []
    for highest, terms in law.mean[kernel]:
        mean = {term: law.growth * value for term, value in terms.items()}
        sd = {term: law.relative_sd * value for term, value in mean.items()}
        sd["1"] = sd.get("1", 0.0) + law.constant_s
        rows = [
            [node + 1.0, float(core), *(factor * value for value in (*mean.values(), *sd.values()))]
            for (node, core), factor in factors.items()
        ]
        pieces.append(piece(law, {"k": [0, int(highest)]} if np.isfinite(highest) else {}, mean, sd, rows))
    return {"kernel": kernel, "pieces": pieces, "crowding": law.crowding(kernel) or None}


def messages(law: Law, link: str, factor: float) -> dict[str, object]:
    """The segments of a link, and those of datatypes with gaps."""
    return {"segments": segments(law, link, factor), "noncontiguous": segments(law, link, factor, laws.GAPS)}


def segments(law: Law, link: str, factor: float, gaps: float = 1.0) -> list[dict[str, object]]:
    """The segments of a link; gaps: factor of the bytes above the limit, of datatypes with gaps."""
    latency, per_byte = law.line(link)
    noise = {"modes": [{"weight": w, "mean": float(m), "sd": s} for w, m, s in law.message_modes()]}
    send, receive = ([factor * value for value in pair] for pair in (laws.SEND, laws.RECEIVE))
    return [
        {
            "above_bytes": 0,
            "protocol": "eager",
            "latency_s": factor * latency,
            "bandwidth_Bps": 1.0 / (factor * per_byte),
            "send": send,
            "isend": send,
            "receive": receive,
            "noise": noise,
        },
        {
            "above_bytes": laws.EAGER_BYTES,
            "protocol": "rendezvous",
            "latency_s": laws.RENDEZVOUS_S * factor * latency,
            "bandwidth_Bps": 1.0 / (factor * gaps * per_byte),
            "isend": [send[0], 0.0],
            "noise": noise,
        },
    ]
