"""The toy studies of a master's thesis (capacity planning by simulation of HPL, section 5.2), by ready studies.

    .venv/bin/python validation/thesis_studies.py [--only components|topology]

Fixed before any result was looked at:

* machine: 512 nodes of one core on a fat tree 2;16,32;1,16;1,1; dgemm and dtrsm at 1 Gflop/s without noise, every other
  kernel free, as there; links of 10 Gbit/s and 24 us each (2 or 4 of them on a route);
* NB and P x Q are not stated: NB 128, 16 x 32, other parameters the defaults of lepaute.Hpl; all messages in one
  segment, rendezvous from 64 KiB on;
* goals: the direction of each published effect, and its size within a factor of 1.5: speed x 10 and / 10 at N = 100,000
  (4.7 times faster, 8.7 times slower), latency / 10 and x 10 at N = 50,000 (1.5 faster, 3.7 slower); at 10 Mbit/s and
  N = 50,000, one top switch against 16 (3 times slower), random against sequential mapping with 16 (1.5 to 2.5 times
  slower, that is 1.94 within a factor of 1.29); bandwidth x 10 and / 10: "little to no impact", at most 10 %.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from lepaute import Platform
from lepaute.platform import dump_platform
from lepaute.study.ready import Subject, components, rank_mapping
from lepaute.study.running import run_study
from lepaute.study.schema import Study

FACTOR = 1.5
LITTLE = 1.1
#: Published times over those of the base.
COMPONENTS = {
    (100_000, "speed x 10"): 1 / 4.7,
    (100_000, "speed / 10"): 8.7,
    (50_000, "latency / 10"): 1 / 1.5,
    (50_000, "latency x 10"): 3.7,
}


def machine(bandwidth_bps: float) -> Platform:
    """The machine, with links so fast."""
    segment = {"latency_s": 0.0, "bandwidth_Bps": bandwidth_bps / 8.0}
    segments = [
        {"above_bytes": 0, "protocol": "detached", **segment},
        {"above_bytes": 65_536, "protocol": "rendezvous", **segment},
    ]
    kernels = [
        {"kernel": "dgemm", "pieces": [{"mean": {"mnk": 2e-9}}]},
        {"kernel": "dtrsm", "pieces": [{"mean": {"mnk": 1e-9}}]},
    ]
    return Platform.model_validate(
        {
            "name": "toy-512",
            "nodes": {"count": 512, "cores": 1},
            "kernels": kernels,
            "network": {
                "node_link": {"bandwidth_Bps": bandwidth_bps / 8.0},
                "loopback": {"bandwidth_Bps": 1e10},
                "remote": {"segments": segments},
            },
            "topology": {
                "kind": "fat-tree",
                "parameters": "2;16,32;1,16;1,1",
                "levels": [{"latency_s": 24e-6}, {"latency_s": 24e-6}],
            },
        }
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["components", "topology"])
    only = parser.parse_args().only
    met = True
    with tempfile.TemporaryDirectory() as folder:
        if only in (None, "components"):
            met = shown_components(Path(folder) / "fast.yaml") and met
        if only in (None, "topology"):
            met = shown_topology(Path(folder) / "slow.yaml") and met
    return 0 if met else 1


def subject(path: Path, bandwidth_bps: float, **more: Any) -> Subject:
    platform = machine(bandwidth_bps)
    dump_platform(platform, path)
    return Subject(str(path), platform, {"nb": 128, "grid": "16x32", "n": 50_000}, runs=1, **more)


def shown_components(path: Path) -> bool:
    """Components times and over 10."""
    times = times_of(components(subject(path, 1e10, sizes=(50_000, 100_000))))
    met = True
    for (n, scenario), time_s in times.items():
        if scenario == "as it is":
            continue
        ours = time_s / times[n, "as it is"]
        published = COMPONENTS.get((n, scenario))
        if published is not None:
            good = 1 / FACTOR <= ours / published <= FACTOR and (ours > 1) == (published > 1)
            print(f"N = {n}, {scenario}: {ours:.3f} times as long, published {published:.3f}: {verdict(good)}")
        elif scenario.startswith("bandwidth"):
            good = 1 / LITTLE <= ours <= LITTLE
            print(f"N = {n}, {scenario}: {ours:.3f} times as long, published little to no impact: {verdict(good)}")
        else:
            good = True
            print(f"N = {n}, {scenario}: {ours:.3f} times as long")
        met = met and good
    return met


def shown_topology(path: Path) -> bool:
    """Top switches and mapping at 10 Mbit/s."""
    times = times_of(rank_mapping(subject(path, 1e7), draws=1))
    whole, one = (times[tree, "sequential"] for tree in ("whole tree", "one top switch"))
    ratio, mapped = one / whole, times["whole tree", "random"] / whole
    good = 3 / FACTOR <= ratio <= 3 * FACTOR
    print(f"10 Mbit/s, one top switch against 16: {ratio:.2f} times as long, published 3: {verdict(good)}")
    few = times["one top switch", "random"] / one
    print(f"10 Mbit/s, random against sequential mapping with one top switch: {few:.2f}")
    also = 1.5 <= mapped <= 2.5
    print(f"10 Mbit/s, random against sequential mapping: {mapped:.2f}, published 1.5 to 2.5: {verdict(also)}")
    return good and also


def times_of(study: Study) -> dict[tuple[Any, Any], float]:
    """Times by (n or scenario, scenario or order)."""
    run = run_study(study, scheduler="threads", progress=lambda what, _: print(what, file=sys.stderr, flush=True))
    keys = ("n", "scenario") if "n" in study.factors else ("scenario", "order")
    return {(each.trial.point[keys[0]], each.trial.point[keys[1]]): each["time_s"] for each in run.outcomes}


def verdict(good: bool) -> str:
    return "met" if good else "NOT MET"


if __name__ == "__main__":
    sys.exit(main())
