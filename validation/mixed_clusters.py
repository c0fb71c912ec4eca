"""HPL on clusters of two generations of nodes: the native engine against HPL's own code under SMPI.

Fixed before any result was looked at:

* platform: dahu-2020-01 with the settings of native_against_smpi.py (network.flow_factor=scale, one state of messages),
  four nodes of 8 cores in two groups of two; the older: kernels as they are, a link of half the bandwidth; the newer:
  kernels 1.5 times as fast, the link as it is. No layers of uncertainty;
* A: 32 ranks, 4 x 8, 8 x 4 and 2 x 16, N = 2000 and 5000, NB = 128, depth 0 and 1, 2ring with binary exchange and
  modified 1ring with spread-roll, each with the older and with the newer nodes first (48 cases);
* B: older nodes of 4 cores: 24 ranks, 4 x 6 and 3 x 8, else as A with N = 5000 (16); C: links of the older nodes that
  add 5 us to each message, else as A with 4 x 8 and N = 5000 (8);
* difference: time of the native engine / time under SMPI - 1; goals: mean absolute difference of each group at most
  2 %, none above 5 %, as many messages in every run.
"""

from itertools import product
from typing import Any, NamedTuple

import pandas
from native_against_smpi import LIMITS, SETTINGS
from support.report import Goal, Options, at_most, run_study, say

from lepaute import Hpl, Platform, load_platform
from lepaute.measure.hpl_source import SHA256, unpack_source
from lepaute.simulate import Layers, predict
from lepaute.simulate.apps.hpl.emulation import build_hpl_smpi
from lepaute.simulate.platform.io import override
from lepaute.simulate.smpi.emulate import Smpi

GROUPS = {"A": "kernels and links", "B": "cores too", "C": "latencies too"}
MEAN_PERCENT, LARGEST_PERCENT = 2.0, 5.0
ALGORITHMS = (("2ring", "binary-exchange"), ("1ring-modified", "spread-roll"))


class Case(NamedTuple):
    """A run of HPL; older_first: which group has the first ranks."""

    group: str
    p: int
    q: int
    n: int
    depth: int
    bcast: str
    swap: str
    older_first: bool

    @property
    def hpl(self) -> Hpl:
        return Hpl(n=self.n, nb=128, p=self.p, q=self.q, depth=self.depth, bcast=self.bcast, swap=self.swap)

    @property
    def platform(self) -> Platform:
        cores = ", cores: 4" * (self.group == "B")
        latency = ", latency_s: 5.0e-6" * (self.group == "C")
        width = 0.5 * load_platform("dahu-2020-01").network.node_link.bandwidth_Bps
        older = f"{{name: older, nodes: 2{cores}, link: {{bandwidth_Bps: {width!r}{latency}}}}}"
        newer = "{name: newer, nodes: 2, speed: 1.5}"
        groups = f"[{older}, {newer}]" if self.older_first else f"[{newer}, {older}]"
        four = override("dahu-2020-01", SETTINGS | {"nodes.count": "4", "nodes.cores": "8"})
        return override(four, {"groups": groups})


def cases() -> list[Case]:
    both = (False, True)
    made = [
        Case("A", p, q, n, depth, *algorithms, first)
        for (p, q), n, depth, algorithms, first in product(
            ((4, 8), (8, 4), (2, 16)), (2000, 5000), (0, 1), ALGORITHMS, both
        )
    ]
    for group, shapes in (("B", ((4, 6), (3, 8))), ("C", ((4, 8),))):
        made += [
            Case(group, p, q, 5000, depth, *algorithms, first)
            for (p, q), depth, algorithms, first in product(shapes, (0, 1), ALGORITHMS, both)
        ]
    return made


def compared(options: Options) -> pandas.DataFrame:
    """A row a case; those that are in the table already are not run again."""
    program = build_hpl_smpi(unpack_source, SHA256)
    path = options.table("mixed_clusters")
    old = pandas.read_csv(path).to_dict("records") if path.is_file() else []
    known = {(row["platform_sha256"], *(row[name] for name in Case._fields)): row for row in old}
    rows: list[dict[str, Any]] = []
    for case in [case for case in cases() if not options.quick or case.n == 2000]:
        platform = case.platform
        row = known.get((platform.sha256, *case))
        if row is None:
            said = {
                name: predict(case.hpl, platform, runs=1, seed=1, layers=Layers.only(), **how)
                for name, how in (("smpi", {"engine": Smpi(program, limits=LIMITS)}), ("native", {"fidelity": "full"}))
            }
            row = case._asdict() | {"platform_sha256": platform.sha256}
            for name, prediction in said.items():
                row |= {f"{name}_s": prediction.run_list[0].time_s, f"{name}_messages": prediction.simulation.messages}
            row["difference_percent"] = 100.0 * (row["native_s"] / row["smpi_s"] - 1.0)
        rows.append(row)
        options.write("mixed_clusters", pandas.DataFrame(rows))
        say(f"{case}: SMPI {row['smpi_s']:.6f} s, native {row['native_s']:.6f} s, {row['difference_percent']:+.2f} %")
    return pandas.DataFrame(rows)


def judged(frame: pandas.DataFrame) -> list[Goal]:
    size = frame["difference_percent"].abs()
    same = int((frame["smpi_messages"] == frame["native_messages"]).sum())
    return [
        Goal("cases with as many messages on both sides", f"{len(cases())}", f"{same}", same == len(cases())),
        *(
            at_most(f"mean absolute difference, {name}", MEAN_PERCENT, size[frame["group"] == group].mean())
            for group, name in GROUPS.items()
        ),
        at_most("largest absolute difference", LARGEST_PERCENT, size.max()),
    ]


TEXT = """## HPL on nodes of two generations under SMPI

The native engine against HPL's own code on [groups](../reference/platform_file.md#groups-of-nodes) of nodes
(`validation/mixed_clusters.py`): kernels 1 : 1.5 and links 1 : 2, unlike cores too, latencies too.

{goals}

{cases}
"""


if __name__ == "__main__":
    run_study(compared, judged, TEXT)
