"""What simblas and folding cost, against a program that was prepared for SMPI by hand.

    .venv/bin/python benchmarks/smpi_overhead.py [--pairs 9] [--output docs]

One program (smpi_overhead.c: LU without pivoting) in two builds with the same control flow. By hand: the kernels are
macros that call SMPI's own smpi_execute() with the seconds that the model gives, the matrix is SMPI_SHARED_MALLOC; it
runs under plain SMPI on the exported platform. And as it was written: BLAS and malloc, emulated with simblas. Both run
on 64 nodes of exascale-like (one rank each, dgemm and dtrsm of one speed, flow_factor scale), in turn; CPU time (user
and system) of SimGrid's process. The ratio is the median over the pairs; the simulated times must agree within 0.1 %.

Fixed before: the sizes in CASES, settings of SMPI in HAND_SETTINGS, goal: ratio at most 1.1. Writes a section of
docs/evidence/speed.md; exits 1 where the goal is missed, 2 where the two do not simulate the same.
"""

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "validation"))

from support.report import EVIDENCE, markdown, replace_section  # noqa: E402

from lepaute.errors import LepauteError  # noqa: E402
from lepaute.kit.quantities import value_in  # noqa: E402
from lepaute.simulate import Layers  # noqa: E402
from lepaute.simulate.platform import Platform, load_platform  # noqa: E402
from lepaute.simulate.platform.io import override  # noqa: E402
from lepaute.simulate.platform.simgrid import export_xml, host_name  # noqa: E402
from lepaute.simulate.smpi.building import compilers, find_simgrid  # noqa: E402
from lepaute.simulate.smpi.emulate import Options, emulate_run  # noqa: E402
from lepaute.simulate.smpi.process import Limits, run_watched  # noqa: E402
from lepaute.simulate.smpi.request import Folding  # noqa: E402

P, Q = 8, 8
CASES = ((2048, 32, 40), (8192, 64, 20), (32768, 128, 5))  # N, NB, times: from many messages to much memory
GOAL, AGREEMENT = 1.10, 1e-3
LIMITS = Limits(timeout_s=300.0)
FLAGS = ("-O2", "-std=gnu11")
PLATFORM = "exascale-like"
OVERRIDES = {"nodes.count": str(P * Q), "nodes.cores": "1", "nodes.cpus": "1", "network.flow_factor": "scale"}
#: What a careful user sets (docs/concepts/emulation.md says why), and what smpirun does by itself.
HAND_SETTINGS = {
    "network/model": "SMPI",
    "smpi/privatization": "dlopen",
    "smpi/simulate-computation": "no",
    "smpi/cpu-threshold": "0",
    "smpi/wtime": "0",
    "smpi/display-timing": "no",
    "smpi/shared-malloc-blocksize": str(2 << 20),
    "contexts/stack-size": "1024",
    "contexts/guard-size": "1",
}
NO_NOISE = Layers.only()
VALUE = r"^time: (\S+)$"


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one run: simulated seconds, CPU seconds (user and system) and most resident memory of SimGrid's process."""

    simulated_s: float
    cpu_s: float
    peak_rss_bytes: int


def built(folder: Path, platform: Platform) -> tuple[Path, Path]:
    """The program by hand, and as it was."""
    mean = platform.kernel("dgemm").pieces[0].mean
    source = Path(__file__).with_suffix(".c")
    model = (f"-DSECONDS_A_PRODUCT={mean['mnk']!r}", f"-DSECONDS_A_CALL={mean['1']!r}")
    by_hand, as_it_was = folder / "by_hand", folder / "as_it_was"
    for argv in (
        [find_simgrid().smpicc, *FLAGS, "-DHAND_MADE", *model, source, "-o", by_hand],
        [compilers() / "mpicc", *FLAGS, source, "-o", as_it_was],
    ):
        subprocess.run([str(word) for word in argv], check=True, timeout=120)
    return by_hand, as_it_was


def run_by_hand(program: Path, arguments: list[str], platform: Platform, folder: Path) -> Cost:
    """Under SMPI as smpirun starts it."""
    (folder / "platform.xml").write_text(export_xml(platform).text, encoding="utf-8")
    (folder / "hostfile").write_text("".join(f"{host_name(platform, node)}\n" for node in range(P * Q)))
    settings = HAND_SETTINGS | {"smpi/np": str(P * Q), "smpi/hostfile": str(folder / "hostfile")}
    options = [f"--cfg={name}:{value}" for name, value in settings.items()]
    ended = run_watched(
        [str(find_simgrid().smpimain), str(program), *options, "--log=root.thresh:error",
         str(folder / "platform.xml"), *arguments],
        environment={}, folder=folder, limits=Limits(300.0, 300.0), progress_file=folder / "none",
    )  # fmt: skip
    if ended.status:
        sys.exit(f"the program made by hand ended with status {ended.status}: {' '.join(ended.stderr[-3:])}")
    return Cost(value_in(ended.stdout, VALUE), ended.cpu_s, ended.peak_rss_bytes)


def run_as_it_was(program: Path, arguments: list[str], platform: Platform) -> Cost:
    options = Options(computing="untimed", folding=Folding(64 << 10), limits=LIMITS, value_pattern=VALUE)
    ended = emulate_run(program, arguments, platform, P * Q, layers=NO_NOISE, options=options)
    return Cost(ended.time_s, ended.cpu_s, ended.peak_rss_bytes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--output", type=Path, default=EVIDENCE, help="folder of the pages")
    options = parser.parse_args()
    platform = override(load_platform(PLATFORM), OVERRIDES)
    rows, met = [], True
    with tempfile.TemporaryDirectory(prefix="lepaute-bench-") as temporary:
        folder = Path(temporary)
        by_hand, as_it_was = built(folder, platform)
        for n, nb, times in CASES:
            arguments = [str(n), str(nb), str(P), str(Q), str(times)]
            hand, ours = [], []
            for pair in range(options.pairs):
                for mine in (pair % 2 == 0, pair % 2 == 1):
                    if mine:
                        ours.append(run_as_it_was(as_it_was, arguments, platform))
                    else:
                        hand.append(run_by_hand(by_hand, arguments, platform, folder))
            agreement = ours[0].simulated_s / hand[0].simulated_s - 1.0
            ratios = sorted(one.cpu_s / other.cpu_s for one, other in zip(ours, hand, strict=True))
            met = met and median(ratios) <= GOAL
            rows.append(
                (
                    f"N = {n:,}, NB = {nb}, {times} times",
                    f"{hand[0].simulated_s:.6f}",
                    f"{100.0 * agreement:+.4f} %",
                    f"{median(cost.cpu_s for cost in hand):.2f}",
                    f"{median(cost.cpu_s for cost in ours):.2f}",
                    f"{median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})",
                    f"{max(cost.peak_rss_bytes for cost in hand) / 1e6:.0f}",
                    f"{max(cost.peak_rss_bytes for cost in ours) / 1e6:.0f}",
                )
            )
            print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
            if abs(agreement) > AGREEMENT:
                print(f"the two builds do not simulate the same: {100 * agreement:+.3f} %", file=sys.stderr)
                return 2
    header = (
        *("case", "simulated, s", "difference", "by hand, CPU s", "simblas, CPU s"),
        *("ratio, median (all)", "by hand, MB", "simblas, MB"),
    )
    section = f"""## simblas and folding against SMPI by hand

    .venv/bin/python benchmarks/smpi_overhead.py --pairs {options.pairs}

An LU factorisation without pivoting on 64 ranks, as often as the table says: prepared by hand for SMPI (macros with
`smpi_execute`, `SMPI_SHARED_MALLOC`, blocks of 2 MiB), and unmodified (BLAS and malloc) under simblas. {options.pairs}
alternating pairs, CPU time of SimGrid's process; memory: maximum resident set size, in which SMPI's shared pages count
once per mapping. Goal: a ratio of at most {GOAL:g}: {"reached" if met else "NOT reached"}. simblas charges the
kernels between two messages as one sleep, and does not touch the pages that it folds.

{markdown(header, rows)}
"""
    replace_section(options.output / "speed.md", "smpi_overhead", section)
    print(section)
    return 0 if met else 1


if __name__ == "__main__":
    try:
        status = main()
    except LepauteError as problem:
        print(f"{Path(sys.argv[0]).name}: {problem}", file=sys.stderr)
        status = 2
    sys.exit(status)
