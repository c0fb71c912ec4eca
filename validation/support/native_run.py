"""Predictions of the native engine in a process of their own, so that its CPU time and its memory are nobody else's.

    python native_run.py '{"hpl": {...}, "platform": NAME, "set": {...}, "noise": true, "seeds": [1, 2]}'

Prints one JSON object: times_s and messages, one for each seed; cpu_s of the predictions (user and system; without the
start of the process), peak_rss_bytes of the process.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from lepaute.simulate import Hpl, Layers, predict
from lepaute.simulate.platform import load_platform
from lepaute.simulate.platform.io import override


def run(asked: dict[str, Any]) -> dict[str, Any]:
    layers = Layers() if asked["noise"] else Layers.only()
    platform = override(load_platform(asked["platform"]), asked["set"])
    hpl = Hpl(**asked["hpl"])
    began_s = time.process_time()
    found = [
        predict(hpl, platform, runs=1, seed=seed, layers=layers, applied=asked["set"], fidelity="full")
        for seed in asked["seeds"]
    ]
    return {
        "cpu_s": time.process_time() - began_s,
        "times_s": [prediction.run_list[0].time_s for prediction in found],
        "messages": [prediction.simulation.messages for prediction in found],
        "peak_rss_bytes": peak_rss_bytes(),
    }


def peak_rss_bytes() -> int:
    """Of this process since it began to run Python; what getrusage says begins with the memory of its parent."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return 1024 * int(status.split("VmHWM:")[1].split(maxsplit=1)[0])


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
