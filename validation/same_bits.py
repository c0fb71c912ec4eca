"""Are results the same to the last bit, whatever compiled the core and whatever processor runs it?

It needs g++; clang-16, QEMU (qemu-user), g++-aarch64-linux-gnu and libgtest-dev where they are installed: the table
says what was skipped. Twenty-five minutes on two cores. Fixed before any result was looked at:

* cases: below, seeds 1 to 3, run by same_bits.cpp;
* builds: gcc and clang, -O2 and -O3; gcc -O3 with AVX2 and FMA; on this processor and an emulated one without AVX, with
  one thread and two; gcc 12 to 14 and clang 16 to 20, -O2, here; gcc for aarch64 on an emulated one;
* compared: a digest of all figures of each rank, kernel and traced call with gcc -O2, one thread, here; a run that
  fails differs. Beside it the tests of the core on aarch64, tests/golden on the emulated processor with one core and
  all, and what Python computes of a prediction (support/python_bits.py);
* no difference is allowed. That one would be seen: exp, log and pow of the C library, which picks variants by
  processor, are called 19,999 times each, and whether any result differs is stated.
"""

import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from shutil import which
from typing import Any, get_args

import pandas
from support.report import ROOT, Goal, finish, markdown, options_of, run_main, say

import lepaute as lp
from lepaute.simulate.apps.hpl.parameters import Broadcast, Swap
from lepaute.simulate.apps.own.laying import Laying
from lepaute.simulate.machine.core import machine_of
from lepaute.simulate.platform import load_platform, override

SEEDS = (1, 2, 3)
#: Ranks are dealt to so many nodes in turn, so that messages stay on a node, leave it, and share its link.
DEALT_OVER = 5
WINDOWS_STEPS = 320


@dataclass(frozen=True, slots=True)
class Case:
    """One simulation.

    fields : of the parameters, in the driver's words
    platform : a shipped one, with these settings
    noise : the kind of the kernels' noise in the place of half-normal
    """

    name: str
    fields: Mapping[str, object]
    ranks: int
    application: str = "hpl"
    platform: str = "dahu-2020-01"
    settings: Mapping[str, str] = field(default_factory=dict)
    noise: str = ""
    topology: str = ""
    without: str = ""
    trace: bool = False
    dealt_over: int = DEALT_OVER


def hpl(name: str, n: int = 2400, nb: int = 64, grid: tuple[int, int] = (3, 4), **more: object) -> Case:
    """A run of HPL; `more`: fields of the parameters, and those of Case."""
    own = {key: more.pop(key) for key in tuple(more) if key in Case.__slots__}
    p, q = grid
    return Case(name, {"n": n, "nb": nb, "p": p, "q": q} | more, p * q, **own)  # type: ignore[arg-type]


def stencil(name: str, **more: object) -> Case:
    """A run of the stencil on 4 x 3 x 2 processes."""
    usual = {"grid": "4 3 2", "cells": "120 96 64", "iterations": 20, "cell_time_s": 2e-9, "noise_relative_sd": 0.02}
    return Case(name, usual | more, 24, "stencil")


class Calls(lp.Application):
    """Calls of all kinds, in an order of its own for each `which`."""

    ranks: int = 24
    which: int = 0
    from_any: bool = False
    unit = lp.Cost(1e-5, error=0.1, noise=0.2)

    def run(self, me: Any) -> Iterator[Any]:
        draws = random.Random(self.which)
        row = yield me.split(me.rank % 3)
        for _ in me.steps(10):
            shift, size = draws.randrange(1, me.size), draws.choice((8, 3000, 200_000))
            to, source = (me.rank + shift) % me.size, (me.rank - shift) % me.size
            yield me.compute(self.unit, 1 + (me.rank * 7 + shift) % 5)
            got = yield me.irecv(None if self.from_any else source, 3)
            sent = yield me.isend(to, size, 3)
            yield me.compute("dgemm", 64, 64, 64)
            yield me.waitall([got, sent])
            yield me.exchange([((me.rank + by) % me.size, size) for by in (1, -1, 5, -5)])
            yield me.isend(to, 100, 4)
            yield me.probe(None if self.from_any else source, 4)
            yield me.receive(source, 4)
            yield me.bcast(size, shift)
            yield row.allreduce(size, draws.choice(("ring", "binomial", "recursive-doubling")))
            yield row.alltoall(size // 8, draws.choice(("pairwise", "bruck")))
            yield row.allgather(800)
            yield me.reduce(size)
            yield me.gather(800, 2)
            yield me.scatter(800, 3)
            yield me.barrier()


def program(name: str, which: int, **more: object) -> Case:
    """A program of calls of all kinds."""
    return Case(name, {"which": which, **more}, 24, "program")


BROADCASTS, SWAPS = get_args(Broadcast), get_args(Swap)
CASES = (
    *(
        hpl(f"{bcast}, {swap}, depth {depth}", bcast=bcast, swap=swap, depth=depth)
        for place, bcast in enumerate(BROADCASTS)
        for swap, depth in zip(SWAPS, (place % 3, (place + 1) % 3, (place + 2) % 3), strict=True)
    ),
    *(
        hpl(f"{pfact}, {rfact}, nbmin {nbmin}, ndiv {ndiv}", pfact=pfact, rfact=rfact, nbmin=nbmin, ndiv=ndiv)
        for pfact, rfact, nbmin, ndiv in (("left", "crout", 4, 3), ("right", "left", 8, 2), ("crout", "right", 1, 4))
    ),
    *(
        hpl(f"L1 {l1}, U {u}, {swap}", l1=l1, u=u, swap=swap)
        for l1, u, swap in (
            ("no-transposed", "transposed", "binary-exchange"),
            ("transposed", "no-transposed", "spread-roll"),
            ("no-transposed", "no-transposed", "mix"),
        )
    ),
    hpl("column-major, 8 x 8", n=2000, grid=(8, 8), pmap="column"),
    hpl("spread-roll without equilibration", swap="spread-roll", equil=0),
    hpl("mix, threshold 128", swap="mix", swap_threshold=128),
    hpl("alignment 64, L copied", align=64, copy_l=1),
    hpl("pivots in the first row", pivots="first-row"),
    *(hpl(f"{p} x {q}", grid=(p, q)) for p, q in ((1, 1), (1, 7), (7, 1), (5, 3))),
    hpl("one node", dealt_over=1),
    hpl("32 nodes, one rank each", grid=(4, 8), dealt_over=32),
    hpl("Dahu of April 2019", n=2000, grid=(4, 8), platform="dahu-2019-04"),
    hpl("loaded network, long broadcast", bcast="long", platform="dahu-2020-01-loaded"),
    hpl("stampede-like", n=6000, nb=256, grid=(4, 8), platform="stampede-like", dealt_over=32),
    hpl("exascale-like, 16 x 16, spread-roll", n=8000, nb=512, grid=(16, 16), platform="exascale-like", dealt_over=32,
        swap="spread-roll"),
    hpl("32 x 32", n=8000, nb=128, grid=(32, 32), dealt_over=32),
    *(hpl(f"sampled, {swap}", n=WINDOWS_STEPS * 64, grid=(2, 3), sampled=1, swap=swap) for swap in SWAPS[:2]),
    *(
        hpl(f"exact sharing, {bcast}", grid=(4, 8), settings={"network.sharing": "exact"}, bcast=bcast)
        for bcast in ("2ring", "long")
    ),
    hpl("flow factor scale", settings={"network.flow_factor": "scale"}),
    hpl("shared loopback", settings={"network.loopback.shared": "true"}),
    hpl("slow links", settings={"network.node_link.bandwidth_Bps": "1e9"}),
    hpl("slow links, exact", settings={"network.node_link.bandwidth_Bps": "1e9", "network.sharing": "exact"}),
    *(hpl(f"{noise} noise", noise=noise) for noise in ("normal", "lognormal")),
    hpl("noise alone", without="coefficients days discrepancy network extrapolation"),
    hpl("all but the noise", without="noise"),
    hpl("traced", grid=(2, 3), trace=True),
    hpl("torus 4 x 4 x 2", grid=(4, 8), topology="torus 4 4 2", dealt_over=32),
    hpl("fat tree", grid=(4, 8), topology="fat-tree 8 4 1 2 1 1", dealt_over=32),
    hpl("dragonfly, exact", grid=(4, 8), topology="dragonfly 2 2 2 2 4 2 2", dealt_over=32,
        settings={"network.sharing": "exact"}),
    *(stencil(f"stencil, {allreduce}", allreduce=allreduce) for allreduce in
      ("none", "binomial", "recursive-doubling", "ring")),
    stencil("stencil, open box, wide halo", periodic=0, halo=2),
    stencil("stencil, memory", cell_bytes=48, node_memory_Bps=1.2e11, allreduce_values=1000),
    *(program(f"program {which}", which) for which in range(3)),
    program("program, from any", 3, from_any=True),
)  # fmt: skip


def write_cases(folder: Path, cases: Sequence[Case]) -> Path:
    """Writes the machines and the file of the cases; returns the file."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for number, case in enumerate(cases):
        platform = override(load_platform(case.platform), case.settings)
        machine_of_case = machine_of(platform)
        own = Calls(**case.fields) if case.application == "program" else None  # type: ignore[arg-type]
        if own is not None:
            machine_of_case.kernels = [*machine_of_case.kernels, *own.on(platform).kernels.make()]
        text = machine_of_case.text()
        if case.noise:
            text = text.replace("half-normal", case.noise)
        machine = folder / f"{number}.machine"
        machine.write_text(text, encoding="utf-8")
        lines += case_lines(case, machine, platform.nodes.cores)
        lines += [] if own is None else program_lines(own)
    path = folder / "cases.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def program_lines(application: lp.Application) -> list[str]:
    """What its ranks do, in the driver's words."""
    laying = Laying(application, 1)
    laid = laying.lay()
    ops, lists, groups, _ = laying.listed()

    def words(*values: object) -> str:
        return " ".join(map(str, values))

    return [
        words("kernels", *laid.parameters.kernels),
        *(["by_date"] if laid.parameters.by_date else []),
        *(words("op", *op[:8]) for op in ops),
        *(words("list", len(numbers), *numbers, *sizes) for numbers, sizes in lists),
        *(words("communicator", *group) for group in groups),
        *(
            words("rank", len(track.ops), *track.ops, *(number for part in track.parts for number in part))
            for track in laying.tracks
        ),
    ]


def case_lines(case: Case, machine: Path, cores_per_node: int) -> list[str]:
    """One case in the driver's words."""
    cores = [(rank % case.dealt_over) * cores_per_node + rank // case.dealt_over for rank in range(case.ranks)]
    return [
        f"case {case.name}",
        f"application {case.application}",
        f"machine {machine}",
        f"cores {' '.join(map(str, cores))}",
        f"seeds {' '.join(map(str, SEEDS))}",
        *(f"set {name} {value}" for name, value in case.fields.items() if case.application != "program"),
        *([f"topology {case.topology}"] if case.topology else []),
        *([f"without {case.without}"] if case.without else []),
        *(["trace all"] if case.trace else []),
    ]


FOLDER = ROOT / "build" / "same_bits"
EMULATOR, EMULATED = "qemu-x86_64", "Nehalem"
HERE, WITHOUT_AVX = "this one", "emulated, without AVX"
#: Another kind of processor: its emulator with where its C library is, and how to compile for it.
AARCH64 = "aarch64"
AARCH64_EMULATOR = ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")
CROSS = (
    *("-DCMAKE_SYSTEM_NAME=Linux", f"-DCMAKE_SYSTEM_PROCESSOR={AARCH64}"),
    *("-DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc", "-DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++"),
)
GOOGLETEST = Path("/usr/src/googletest")
RUN_ON = tuple(product((HERE, WITHOUT_AVX), (1, 2)))  # processor, threads
QUICK_CASES = 4


@dataclass(frozen=True, slots=True)
class Build:
    """A way to compile the core; the first compiler that is there is taken."""

    name: str
    compilers: tuple[str, ...]
    optimisation: str
    needs_avx: bool = False
    here_only: bool = False
    aarch64: bool = False

    def compiler(self) -> str | None:
        return next(filter(None, map(which, self.compilers)), None)

    @property
    def folder(self) -> Path:
        return FOLDER / re.sub(r"\W+", "-", self.name)


GCC, CLANG = ("g++",), ("clang++", *(f"clang++-{version}" for version in range(22, 15, -1)))
BUILDS = (
    Build("gcc -O2", GCC, "-O2"),
    Build("gcc -O3", GCC, "-O3"),
    Build("clang -O2", CLANG, "-O2"),
    Build("clang -O3", CLANG, "-O3"),
    Build("gcc -O3 -mavx2 -mfma", GCC, "-O3 -mavx2 -mfma", needs_avx=True),
    *(Build(f"gcc {version} -O2", (f"g++-{version}",), "-O2", here_only=True) for version in range(12, 15)),
    *(Build(f"clang {version} -O2", (f"clang++-{version}",), "-O2", here_only=True) for version in range(16, 21)),
    Build("gcc -O2, aarch64", ("aarch64-linux-gnu-g++",), "-O2", aarch64=True),
)


@dataclass(frozen=True, slots=True)
class Output:
    """What the driver printed: the line about the processor, and the results by run."""

    processor: dict[str, str]
    results: dict[str, str]


def main() -> int:
    options = options_of(__doc__, ())
    cases = CASES[:QUICK_CASES] if options.quick else CASES
    path = write_cases(FOLDER / "cases", cases)
    rows: list[dict[str, object]] = []
    reference: Output | None = None
    libraries = set()
    for build in BUILDS:
        driver, problem = built(build)
        for processor, threads in RUN_ON:
            emulator = () if processor == HERE else AARCH64_EMULATOR if build.aarch64 else (EMULATOR, "-cpu", EMULATED)
            why = problem or skipped(build, processor)
            output = None if driver is None or why else run(driver, emulator, threads, path)
            reference = reference or output
            about = {"build": build.name, "processor": processor, "threads": threads}
            rows.append(about | compared(reference, output, why))
            if output is not None:
                libraries.add(output.processor["library"])
            say(*rows[-1].values(), sep=", ")
    goals = [Goal("runs that differ", "none", *judged(rows))]
    if not options.quick:
        goals += [golden(cores) for cores in (1, os.cpu_count() or 1)]
        goals.append(aarch64_tests())
    goals.append(python_bits())
    frame = pandas.DataFrame(rows)
    library = "differ" if len(libraries) > 1 else "are the same here"
    return finish(options, "same_bits", frame, goals, text_of(rows, len(cases), library, reference), None)


def built(build: Build) -> tuple[Path | None, str]:
    """The driver, or why there is none."""
    compiler = build.compiler()
    if compiler is None:
        return None, f"skipped: no {build.compilers[0]}"
    how = CROSS if build.aarch64 else (f"-DCMAKE_CXX_COMPILER={compiler}",)
    how = (*how, f"-DLEPAUTE_OPTIMISATION={build.optimisation}", "-DLEPAUTE_SAME_BITS=ON")
    compile_in(build.folder, ROOT, "same_bits", *how)
    return build.folder / "same_bits", ""


def compile_in(folder: Path, sources: Path, target: str, *configuration: str) -> None:
    """Configures and builds a target with CMake; ends the program where that fails."""
    configure = ["cmake", "-S", str(sources), "-B", str(folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
    for argv in ([*configure, *configuration], ["cmake", "--build", str(folder), "--target", target]):
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            say(done.stdout, done.stderr)
            raise SystemExit(f"{' '.join(argv)} failed")


def skipped(build: Build, processor: str) -> str:
    """Why the build is not run there; empty where it is."""
    if build.aarch64:
        if processor == HERE:
            return "cannot run there"
        return "" if which(AARCH64_EMULATOR[0]) else f"skipped: no {AARCH64_EMULATOR[0]}"
    if processor == HERE:
        has_avx = "avx2" in Path("/proc/cpuinfo").read_text(encoding="utf-8")
        return "skipped: this processor has no AVX2" if build.needs_avx and not has_avx else ""
    if build.needs_avx:
        return "cannot run there"
    if build.here_only:
        return "not run there"
    return "" if which(EMULATOR) else f"skipped: no {EMULATOR}"


def run(driver: Path, emulator: Sequence[str], threads: int, cases: Path) -> Output:
    argv = [*emulator, str(driver), str(threads), str(cases)]
    output = parsed(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    if emulator and output.processor["avx"] != "0":
        raise SystemExit(f"{EMULATOR} -cpu {EMULATED} does not hide AVX")
    return output


def parsed(printed: str) -> Output:
    first, *lines = printed.splitlines()
    words = first.split()
    results = dict(line.split(": ", maxsplit=1) for line in lines)
    return Output(dict(zip(words[::2], words[1::2], strict=True)), results)


def differing(reference: Mapping[str, str], others: Mapping[str, str]) -> list[str]:
    """The runs whose results are not those of the reference, or that failed in either."""
    return [
        name
        for name in {**reference, **others}
        if name not in reference or reference[name] != others.get(name) or " failed" in name
    ]


def compared(reference: Output | None, output: Output | None, why: str) -> dict[str, object]:
    if reference is None or output is None:
        return {"runs": 0, "different": 0, "first": why}
    names = differing(reference.results, output.results)
    for name in names[:3]:
        say(f"{name}\n  {reference.results.get(name)}\n  {output.results.get(name)}")
    return {"runs": len(output.results), "different": len(names), "first": names[0] if names else ""}


def judged(rows: Sequence[Mapping[str, object]]) -> tuple[str, bool]:
    """How many runs of how many differ, and whether none does."""
    runs, different = (sum(int(str(row[key])) for row in rows) for key in ("runs", "different"))
    return f"{different} of {runs}", different == 0


def golden(cores: int) -> Goal:
    """The pinned predictions of the installed package on the emulated processor."""
    what = f"pinned predictions, {EMULATED}, {cores} core{'s'[: cores > 1]}"
    if which(EMULATOR) is None:
        return Goal(what, "all equal", f"skipped: no {EMULATOR}", True)
    allowed = sorted(os.sched_getaffinity(0))[:cores]
    argv = [EMULATOR, "-cpu", EMULATED, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/golden"]
    done = subprocess.run(
        argv, cwd=ROOT, capture_output=True, text=True, check=False,
        preexec_fn=lambda: os.sched_setaffinity(0, allowed),
    )  # fmt: skip
    last = (done.stdout.strip().splitlines() or ["no output"])[-1]
    if done.returncode:
        say(done.stdout[-4000:], done.stderr[-1000:])
    return Goal(what, "all equal", re.sub(r" in .*", "", last), done.returncode == 0)


def aarch64_tests() -> Goal:
    """The tests of the core on an emulated aarch64, with a GoogleTest that is compiled for it."""
    what = f"tests of the core, {AARCH64}"
    for needed in (AARCH64_EMULATOR[0], "aarch64-linux-gnu-g++", str(GOOGLETEST)):
        if which(needed) is None and not Path(needed).is_dir():
            return Goal(what, "all pass", f"skipped: no {needed}", True)
    folder, library = BUILDS[-1].folder, FOLDER / "googletest"
    compile_in(library / "build", GOOGLETEST, "install", *CROSS, f"-DCMAKE_INSTALL_PREFIX={library}")
    compile_in(folder, ROOT, "core_tests", *CROSS, f"-DCMAKE_PREFIX_PATH={library}", "-DLEPAUTE_TESTS=ON")
    argv = [*AARCH64_EMULATOR, str(folder / "core_tests"), "--gtest_brief=1"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        say(done.stdout[-4000:], done.stderr[-1000:])
    count = re.search(r"PASSED\s*\]\s*(\d+ tests)", done.stdout)
    return Goal(what, "all pass", f"{count[1]} passed" if count else "none passed", done.returncode == 0)


def python_bits() -> Goal:
    """What Python computes of a prediction, on both processors."""
    what = "numbers that Python computes, both processors"
    if which(EMULATOR) is None:
        return Goal(what, "equal", f"skipped: no {EMULATOR}", True)
    argv = [sys.executable, str(ROOT / "validation" / "support" / "python_bits.py")]
    here, emulated = (
        subprocess.run([*more, *argv], capture_output=True, text=True, check=True).stdout.splitlines()
        for more in ([], [EMULATOR, "-cpu", EMULATED])
    )
    say(*here, *emulated, sep="\n")
    equal = sum(one == other for one, other in zip(here, emulated, strict=True))
    return Goal(what, "equal", f"{equal} of {len(here)} kinds equal", equal == len(here))


def text_of(rows: Sequence[Mapping[str, object]], cases: int, library: str, reference: Output | None) -> str:
    has = "" if reference is not None and reference.processor["avx"] + reference.processor["fma"] == "11" else " not"
    cells = [f"{row['different']} of {row['runs']}" if row["runs"] else str(row["first"]) for row in rows]
    header = [f"{where}, {count} thread{'s'[: count > 1]}" for where, count in RUN_ON]
    lines = [(build.name, *cells[at * len(RUN_ON) :][: len(RUN_ON)]) for at, build in enumerate(BUILDS)]
    return (
        "## The same bits whatever compiles and runs the core\n\n"
        f"    .venv/bin/python validation/same_bits.py\n\n{cases} small simulations of HPL, the stencil and "
        "programs that were laid down, with three seeds each. A run differs if any figure (time, messages, bytes; "
        "of a rank, a kernel, a traced call) differs in a bit from that of gcc -O2 with one thread. Of the package: "
        "the tests of `tests/golden`, predictions with all options on all shipped platforms; and intervals, "
        "factors of days and drifts, which Python computes. The C "
        f"library's own exp, log and pow {library} on the two processors, of which this one has{has} AVX and FMA."
        "\n\n{goals}\n\n" + markdown(("build", *header), lines)
    )


if __name__ == "__main__":
    run_main(main)
