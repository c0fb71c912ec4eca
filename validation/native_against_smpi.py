"""The native engine against HPL's own code under SMPI, on the same platform.

Fixed before any result was looked at:

* platform: dahu-2020-01 with network.flow_factor=scale, as SMPI uses its factors, and without the second state of
  messages, which SMPI does not have; the parameters are those of lepaute.Hpl, NB = 128;
* A: no noise, 64 ranks 8 x 8, N = 5000: all broadcasts, swaps, depth 0 and 1 (36 cases); B: nine shapes of 16 to 64
  ranks, N = 2000 to 10,000 (54); C: all layers, seeds 1 to 3, means compared, 8 x 8 (16); D: 1024 ranks, N = 10,000 and
  20,000 (5);
* E, F (since November 2026): every shape of 16 and 64 ranks, 1 x R to R x 1, N = 2000, NB of two blocks a rank, four
  pairs of broadcast and swap, on nodes that the grid fills and others, these on both descriptions of the network (120,
  168);
* difference: time of the native engine / time under SMPI - 1; goals: mean absolute difference at most 0.5 % (2 % until
  November 2026), in each group 2 %, none above 5 %, none of E and F above 1 %; as many messages in every run. A run
  without noise and with look-ahead is chaotic: tiny changes move it by 0.2 to 2 %.

Never judged, added later: network.sharing=exact, which is how SMPI shares links. An emulation is made again only where
its inputs changed (smpi_inputs). Needs SimGrid and HPL's source (make setup); group D takes ten minutes.
"""

import hashlib
import json
import resource
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy
import pandas
from support.report import Goal, at_most, finish, markdown, options_of, replace_section, run_main, say, write_atomic

from lepaute import Hpl, Platform, load_platform
from lepaute.measure.hpl_source import SHA256, unpack_source
from lepaute.simulate import Layers, predict
from lepaute.simulate.apps.hpl.emulation import build_hpl_smpi
from lepaute.simulate.apps.hpl.parameters import BROADCASTS, SWAPS
from lepaute.simulate.machine.core import wiring
from lepaute.simulate.machine.mapping import Mapping
from lepaute.simulate.platform.io import override
from lepaute.simulate.platform.simgrid import export_xml, holds_loopback
from lepaute.simulate.smpi.building import build_library
from lepaute.simulate.smpi.emulate import Smpi
from lepaute.simulate.smpi.process import Limits
from lepaute.simulate.smpi.request import Files, Folding, request_text

PLATFORM = "dahu-2020-01"
#: The same machine, whose messages cost all what they cost when receivers compute between their probes.
LOADED = "dahu-2020-01-loaded"
#: What SMPI does: shares times factors, and one state for all messages.
SETTINGS = {"network.flow_factor": "scale", "network.loopback.busy": "null", "network.remote.busy": "null"}
EXACT = {"network.sharing": "exact"}
SHAPES = ((4, 4), (2, 8), (1, 16), (6, 6), (6, 8), (4, 16), (16, 4), (32, 2), (2, 32))
#: Of groups E and F, by the number of ranks: NB, with which 1 x R and R x 1 have two blocks a rank, as grids of 1000
#: ranks have; cores of a node that the grid's rows and columns fill, and of one that they do not.
NARROW = {16: (64, 4, 6), 64: (16, 16, 12)}
ALGORITHMS = (("1ring", "binary-exchange"), ("1ring-modified", "spread-roll"), ("2ring", "mix"),
              ("2ring-modified", "binary-exchange"))  # fmt: skip
LIMITS = Limits(timeout_s=3600.0, stall_s=300.0)
NATIVE_LIMIT_S = 600.0


@dataclass(frozen=True, slots=True)
class SmpiCase:
    """HPL to be run by both engines; noise: all layers of uncertainty, else none; seeds: with spaces between."""

    group: str
    n: int
    p: int
    q: int
    depth: int
    bcast: str = "2ring"
    swap: str = "binary-exchange"
    noise: bool = False
    seeds: str = "1"
    nb: int = 128
    cores: int = 32
    platform: str = PLATFORM

    @property
    def hpl(self) -> Hpl:
        """Its parameters; the others are HPL's usual ones, those of lepaute.Hpl."""
        return Hpl(n=self.n, nb=self.nb, p=self.p, q=self.q, depth=self.depth, bcast=self.bcast, swap=self.swap)

    @property
    def layers(self) -> Layers:
        return Layers() if self.noise else Layers.only()

    @property
    def name(self) -> str:
        noise = ", noise" if self.noise else ""
        where = f", {self.cores} a node" if self.cores != 32 else ""
        where += ", loaded" if self.platform == LOADED else ""
        return f"{self.p} × {self.q}, N = {self.n:,}, depth {self.depth}, {self.bcast}, {self.swap}{noise}{where}"

    @property
    def settings(self) -> dict[str, str]:
        """Of the platform, for both engines."""
        return SETTINGS | ({"nodes.cores": str(self.cores)} if self.cores != 32 else {})


def cases_of(groups: str) -> list[SmpiCase]:
    """The cases of the groups whose letters are in `groups`, as the study was fixed."""
    every: list[SmpiCase] = []
    every += [SmpiCase("A", 5000, 8, 8, depth, bcast, swap)
              for bcast in BROADCASTS for swap in SWAPS for depth in (0, 1)]  # fmt: skip
    every += [SmpiCase("B", n, p, q, depth) for p, q in SHAPES for n in (2000, 5000, 10000) for depth in (0, 1)]
    every += [SmpiCase("C", n, 8, 8, depth, bcast, swap, noise=True, seeds="1 2 3")
              for n in (5000, 10000) for depth in (0, 1)
              for bcast in ("1ring-modified", "2ring") for swap in ("binary-exchange", "spread-roll")]  # fmt: skip
    every += [
        SmpiCase("D", 10000, 32, 32, 0),
        SmpiCase("D", 10000, 32, 32, 1),
        SmpiCase("D", 10000, 32, 32, 1, "long", "spread-roll"),
        SmpiCase("D", 20000, 32, 32, 1, noise=True),
        SmpiCase("D", 20000, 32, 32, 0),
    ]
    for group, ranks in (("E", 16), ("F", 64)):
        nb, filled, unfilled = NARROW[ranks]
        every += [SmpiCase(group, 2000, 1 << p, ranks >> p, depth, bcast, swap, nb=nb, cores=cores, platform=platform)
                  for cores, platform in ((filled, PLATFORM), (unfilled, PLATFORM), (unfilled, LOADED))
                  for p in range(ranks.bit_length()) for depth in (0, 1) for bcast, swap in ALGORITHMS]  # fmt: skip
    return [case for case in every if case.group in groups]


def emulation_inputs(case: SmpiCase, platform: Platform, program: Path) -> str:
    """A digest of all that an emulation depends on: the program, simblas, and the files that SMPI and simblas read.

    An emulation takes minutes, so one that was made from the same is not made again.
    """
    nowhere = Path("/")
    request = request_text(
        platform, Mapping().cores(platform, case.hpl.ranks), seed=0, layers=case.layers, folding=Folding(huge=False),
        files=Files(nowhere, nowhere),
    )  # fmt: skip
    xml = export_xml(platform, wiring(platform), tables=holds_loopback(platform)).text
    parts = (program.parent.name, build_library().name, request, xml, *case.hpl.on().emulation(0)[1])
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


#: What an engine says of a case: times_s and messages, one for each seed, and cpu_s (user and system; without the start
#: of Python on the native side, with SimGrid's start on the other) and peak_rss_bytes of all.
Said = dict[str, Any]


def emulated(case: SmpiCase, platform: Platform, program: Path) -> Said:
    """HPL's own code under SMPI, a process for each seed."""
    before_s = _children_s()
    runs = [
        predict(case.hpl, platform, runs=1, seed=seed, layers=case.layers, engine=Smpi(program, limits=LIMITS))
        for seed in map(int, case.seeds.split())
    ]
    return {
        "times_s": [run.run_list[0].time_s for run in runs],
        "messages": [run.simulation.messages for run in runs],
        "cpu_s": _children_s() - before_s,
        "peak_rss_bytes": max(run.simulation.peak_rss_bytes for run in runs),
    }


def native(case: SmpiCase, settings: dict[str, str] | None = None) -> Said:
    """The native engine in a process of its own; settings : of the platform, beside those of both."""
    hpl = {name: getattr(case, name) for name in ("n", "nb", "p", "q", "depth", "bcast", "swap")}
    asked = {
        "hpl": hpl,
        "platform": case.platform,
        "set": case.settings | (settings or {}),
        "noise": case.noise,
        "seeds": [int(seed) for seed in case.seeds.split()],
    }
    worker = Path(__file__).parent / "support" / "native_run.py"
    done = subprocess.run(
        [sys.executable, "-P", str(worker), json.dumps(asked)], capture_output=True, text=True, check=True,
        timeout=NATIVE_LIMIT_S,
    )  # fmt: skip
    return dict(json.loads(done.stdout))


def mean_s(said: Said) -> float:
    return sum(said["times_s"]) / len(said["times_s"])


def _children_s() -> float:
    """User and system time of the processes that have ended."""
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


STUDY = "native_against_smpi"
MEAN_LIMIT_PERCENT, GROUP_LIMIT_PERCENT, EACH_LIMIT_PERCENT, NARROW_LIMIT_PERCENT = 0.5, 2.0, 5.0, 1.0
GROUPS = {
    "A": "64 ranks, all broadcasts and swaps",
    "B": "16 to 64 ranks, shapes of the grid",
    "C": "64 ranks, all layers of uncertainty",
    "D": "1024 ranks",
    "E": "16 ranks, every shape",
    "F": "64 ranks, every shape",
}
LETTERS = "".join(GROUPS)
#: Causes, each shown by an experiment that takes it away.
FOUND = """On 32 × 32 ranks the difference is the engine's default link sharing: with `--set network.sharing=exact`
0.1 % remain, with noise 0.4 %. Of the 15 shapes of 16 and 64 ranks beyond 1 %, all on the network of loaded nodes with
12 (one: 6) ranks a node, which rows do not fill, six are link sharing too; of the other nine, the largest 2 × 32 with
1ring and binary exchange (−3.8 %), the cause is not found.
"""
OWN = {"--groups": {"default": LETTERS, "help": "letters of the groups to run; the others stay as they are"}}


def main() -> int:
    options = options_of(__doc__, (), own=OWN)
    table = options.table(STUDY)
    if not options.summarise:
        compare(table, [case for case in cases_of(options.own.groups) if not options.quick or case.n == 2000])
    frame = pandas.read_csv(table, dtype={"seeds": str, "smpi_times_s": str, "native_times_s": str})
    replace_section(options.output / "speed.md", STUDY, speed_text(frame))
    return finish(options, STUDY, frame, judged(frame), text(frame))


def compare(table: Path, cases: list[SmpiCase]) -> None:
    """Runs the cases, and writes the table after each of them; rows of other cases of the study stay in it.

    Ends the program where the two engines do not send as many messages: then they do not run the same program.
    """
    program = build_hpl_smpi(unpack_source, SHA256)
    old_rows = pandas.read_csv(table, dtype={"seeds": str}).to_dict("records") if table.is_file() else []
    rows = {case_of(row): row for row in old_rows}
    for at, case in enumerate(cases):
        platform = override(load_platform(case.platform), case.settings)
        inputs, old = emulation_inputs(case, platform, program), rows.get(case)
        if old is None or old["smpi_inputs"] != inputs:
            row = columns_of("smpi", emulated(case, platform, program)) | {"smpi_inputs": inputs}
        else:
            row = {name: value for name, value in old.items() if name.startswith("smpi_")}
        row |= columns_of("native", native(case))
        if row["native_messages"] != row["smpi_messages"]:
            sys.exit(
                f"{case.name}: the native engine sends {row['native_messages']} messages, HPL's own code "
                f"{row['smpi_messages']}; they do not run the same program"
            )
        row["exact_s"] = mean_s(native(case, EXACT))
        for engine, prefix in (("native", ""), ("exact", "exact_")):
            row[f"{prefix}difference_percent"] = 100.0 * (row[f"{engine}_s"] / row["smpi_s"] - 1.0)
        rows[case] = asdict(case) | row
        ordered = [rows[case] for case in cases_of(LETTERS) if case in rows]
        write_atomic(table, pandas.DataFrame(ordered).to_csv(index=False).encode())
        say(
            f"[{at + 1}/{len(cases)}] {case.group} {case.name}: SMPI {row['smpi_s']:.6f} s, native "
            f"{row['native_s']:.6f} s, {row['difference_percent']:+.2f} % (exact sharing "
            f"{row['exact_difference_percent']:+.2f} %)"
        )


def columns_of(engine: str, said: Said) -> dict[str, Any]:
    """What an engine says of a case, as the table has it."""
    return {
        f"{engine}_s": mean_s(said),
        f"{engine}_messages": sum(said["messages"]),
        **{f"{engine}_{name}": said[name] for name in ("cpu_s", "peak_rss_bytes")},
        f"{engine}_times_s": " ".join(map(repr, said["times_s"])),
    }


def case_of(row: dict[str, Any]) -> SmpiCase:
    """The case of a row of the table."""
    return SmpiCase(**{field.name: row[field.name] for field in fields(SmpiCase)})


def judged(frame: pandas.DataFrame) -> list[Goal]:
    size = frame["difference_percent"].abs()
    same = frame["smpi_messages"] == frame["native_messages"]
    groups = [
        at_most(f"mean absolute difference, {name}", GROUP_LIMIT_PERCENT, size[frame["group"] == group].mean())
        for group, name in GROUPS.items()
    ]
    return [
        Goal("cases", f"{len(cases_of(LETTERS))}", f"{len(frame)}", len(frame) == len(cases_of(LETTERS))),
        at_most("mean absolute difference, all", MEAN_LIMIT_PERCENT, size.mean()),
        at_most("largest absolute difference", EACH_LIMIT_PERCENT, size.max()),
        at_most(
            "largest of the groups of every shape", NARROW_LIMIT_PERCENT, size[frame["group"].isin(["E", "F"])].max()
        ),
        Goal("cases with as many messages on both sides", "all", f"{same.sum()} of {len(frame)}", bool(same.all())),
        *groups,
    ]


def text(frame: pandas.DataFrame) -> str:
    rows = [summary(GROUPS[group], part) for group, part in frame.groupby("group")]
    rows.append(summary("all", frame))
    header = ("", "cases", "mean", "mean absolute", "largest", "worst case", "mean absolute, exact sharing")
    return f"""## The native engine against HPL's own code under SMPI

`dahu-2020-01` with `network.flow_factor=scale` and one state of the network, NB = 128 (64 and 16 for every shape):
the native engine, which reimplements HPL's algorithm, and HPL's own source under SMPI with simblas; both
use the same kernel models and platform file. Difference: time of the native engine / time under SMPI − 1
(`validation/native_against_smpi.py`). CPU time of both: [speed](speed.md).

{{goals}}

{markdown(header, rows)}

{{cases}}

{FOUND}
"""


def summary(name: str, part: pandas.DataFrame) -> tuple[str, ...]:
    differences = part["difference_percent"]
    worst = part.loc[differences.abs().idxmax()].to_dict()
    return (
        name,
        f"{len(part)}",
        f"{differences.mean():+.2f} %",
        f"{differences.abs().mean():.2f} %",
        f"{worst['difference_percent']:+.2f} %",
        case_of(worst).name,
        f"{part['exact_difference_percent'].abs().mean():.2f} %",
    )


def speed_text(frame: pandas.DataFrame) -> str:
    """The section of docs/evidence/speed.md."""
    ratio = frame["smpi_cpu_s"] / frame["native_cpu_s"]
    middle = numpy.exp(numpy.log(ratio).mean())
    return f"""## The native engine against SMPI

    .venv/bin/python validation/native_against_smpi.py

The same runs of HPL on the same platform with both ([differences](accuracy_emulation.md)): over all {len(frame)} cases
SMPI takes {ratio.min():.0f} to {ratio.max():.0f} times as much CPU time, with a geometric mean of {middle:.0f}
([{STUDY}.csv](data/{STUDY}.csv)).
"""


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # or SMPI would go on alone
    run_main(main)
