"""Predictions of the native engine in a process of their own, so that its CPU time and its memory are nobody else's.

    python native_run.py '{"hpl": {...}, "platform": NAME, "set": {...}, "noise": true, "seeds": [1, 2]}'

`nodes`: of each rank, else the platform's in order; `runs`: from each seed on, else one. Prints one JSON object:
times_s, one for each run, and messages, one for each seed; cpu_s of the predictions (user and system; without the start
of the process), peak_rss_bytes of the process.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from lepaute.simulate import Hpl, Layers, predict
from lepaute.simulate.machine.mapping import Mapping, Slot
from lepaute.simulate.platform import load_platform
from lepaute.simulate.platform.io import override


def run(asked: dict[str, Any]) -> dict[str, Any]:
    layers = Layers() if asked["noise"] else Layers.only()
    platform = override(load_platform(asked["platform"]), asked["set"])
    hpl = Hpl(**asked["hpl"])
    nodes, runs = asked.get("nodes", ()), asked.get("runs", 1)
    mapping = Mapping(slots=tuple(Slot(node, nodes[:rank].count(node)) for rank, node in enumerate(nodes)) or None)
    began_s = time.process_time()
    found = [
        predict(
            hpl, platform, seed=seed, layers=layers, applied=asked["set"], mapping=mapping, runs=runs, fidelity="full"
        )
        for seed in asked["seeds"]
    ]
    return {
        "cpu_s": time.process_time() - began_s,
        "times_s": [run.time_s for prediction in found for run in prediction.run_list],
        "messages": [prediction.simulation.messages for prediction in found],
        "peak_rss_bytes": peak_rss_bytes(),
    }


def peak_rss_bytes() -> int:
    """Of this process since it began to run Python; what getrusage says begins with the memory of its parent."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return 1024 * int(status.split("VmHWM:")[1].split(maxsplit=1)[0])


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
