"""Runs the tests of the core and of the package, and counts both in the last line: `N passed, N failed, N skipped`.

Every skip is listed with its reason. The exit status is 1 where a test failed, where a suite ended badly, or where no
test ran at all. Arguments are passed on to pytest (`scripts/run_tests.py tests/unit -k platform`).

The Python tests run in lanes side by side (tests/conftest.py): those that build and run MPI programs, one after the
other; those of experiments on nodes, one after the other; and, at low priority on all processors, those that compute.

How long each lane and the slowest tests took is printed. The seconds of each file that computes are written to
`build/test_durations.csv`; copied to `tests/durations.csv` they decide the order of the files, the longest first.
"""

import contextlib
import csv
import os
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
CORE_TESTS = ROOT / "build" / "core" / "core_tests"
WORKERS = max(2, min(8, os.cpu_count() or 1))
#: Lane -> options of its pytest. What measures or waits goes before what only computes: these tests take what is left
#: of the processors, a file at a time, the longest first (tests/durations.csv).
LANES = {
    "machine": (),
    "nodes": (),
    "computing": ("-n", str(WORKERS), "--dist=loadfile", "--no-loadscope-reorder"),
}
BEHIND = "computing"
NICE = 10
#: Of pytest, where the arguments select no test of a lane.
NO_TESTS_COLLECTED = 5
#: A worker has one processor; a BLAS that takes all of them slows the others and gains little on small matrices.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
#: An interpreter that dies says where; none compiles again what another has compiled. Fonts are listed for this
#: checkout: the list in the user's cache may name those of an environment that is gone.
OF_INTERPRETERS = {
    "PYTHONFAULTHANDLER": "1",
    "PYTHONDONTWRITEBYTECODE": "",
    "MPLCONFIGDIR": str(ROOT / "build" / "matplotlib"),
}
DURATIONS = ROOT / "build" / "test_durations.csv"
SLOWEST = 10


@dataclass
class Tally:
    """What became of the tests; failures and errors are both failures."""

    passed: int = 0
    failed: int = 0
    skips: list[str] = field(default_factory=list)
    #: Of every test that ran: lane, file or suite, name, seconds.
    durations: list[tuple[str, str, str, float]] = field(default_factory=list)

    def line(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {len(self.skips)} skipped"


def main(pytest_arguments: list[str]) -> int:
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="lepaute-tests-") as scratch:
        core_report = Path(scratch, "core.xml")
        core = [str(CORE_TESTS), "--gtest_brief=1", f"--gtest_output=xml:{core_report}"]
        run_suite("core_tests", core, core_report, tally)
        run_lanes(Path(scratch), pytest_arguments, tally)
    show_durations(tally)
    for skip in tally.skips:
        print("skipped:", skip)
    if not tally.passed and not tally.failed:
        print("no test ran")
    print(tally.line(), flush=True)
    return 0 if tally.passed and not tally.failed else 1


def run_lanes(scratch: Path, pytest_arguments: list[str], tally: Tally) -> None:
    """Runs the lanes of the Python tests at once; the first prints as it goes, the others when they have ended."""
    print(f"== pytest, lanes {', '.join(LANES)}", flush=True)
    running: dict[str, tuple[subprocess.Popen[bytes], Path]] = {}
    try:
        for lane, options in LANES.items():
            log = scratch / f"{lane}.log"
            with log.open("wb") as output:
                stdout = output if running else None
                report = f"--junitxml={scratch / f'{lane}.xml'}"
                running[lane] = (started(lane, [report, *options, *pytest_arguments], stdout), log)
        for lane, (process, log) in running.items():
            status = process.wait()
            print(f"== lane {lane} ended", flush=True)
            print(log.read_text(errors="replace"), end="", flush=True)
            count_suite(lane, 0 if status == NO_TESTS_COLLECTED else status, scratch / f"{lane}.xml", tally)
    finally:
        if BEHIND in running and (process := running[BEHIND][0]).poll() is None:
            process.send_signal(signal.SIGINT)  # a Ctrl-C reaches the others, but no session of its own


def started(lane: str, options: list[str], output: IO[bytes] | None) -> "subprocess.Popen[bytes]":
    """The pytest of a lane."""
    behind = lane == BEHIND
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", f"--lane={lane}", *options],
        cwd=ROOT,
        env={**os.environ, **OF_INTERPRETERS, **(ONE_THREAD if behind else {})},
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=behind,
        preexec_fn=go_behind if behind else None,  # noqa: PLW1509 - this process has one thread
    )


def go_behind() -> None:
    """Lets all others go first, also where the kernel shares processors between sessions before it looks at priorities:
    the ranks that a test starts in a session of their own would get no more than this one."""
    os.nice(NICE)
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(NICE))


def run_suite(name: str, command: list[str], report: Path, tally: Tally) -> None:
    """Runs one suite and adds its report to `tally`."""
    print(f"== {name}", flush=True)
    try:
        status = subprocess.run(command, cwd=ROOT, check=False).returncode
    except OSError as error:
        print(f"{name}: {error}")
        status = 2
    count_suite(name, status, report, tally)


def count_suite(name: str, status: int, report: Path, tally: Tally) -> None:
    """Adds the report of a suite to `tally`; a suite that ended badly without a failed test counts as one."""
    failed_before = tally.failed
    if report.exists():
        add_report(name, report, tally)
    if status != 0 and tally.failed == failed_before:
        print(f"{name} ended with status {status}, though no test of it is reported as failed")
        tally.failed += 1


def add_report(suite: str, report: Path, tally: Tally) -> None:
    """Adds the test cases of a JUnit report, of pytest or of GoogleTest, to `tally`."""
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        tally.durations.append((suite, case.get("classname", ""), case.get("name", ""), float(case.get("time") or 0.0)))
        name = f"{case.get('classname', '')}.{case.get('name', '')}".lstrip(".")
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            tally.failed += 1
        elif skipped is not None:
            reason = " ".join((skipped.get("message") or skipped.text or "no reason given").split())
            tally.skips.append(f"{name}: {reason.removeprefix(f'{ROOT}/')}")
        elif case.get("status") == "notrun":
            tally.skips.append(f"{name}: disabled in its source")
        else:
            tally.passed += 1


def show_durations(tally: Tally) -> None:
    """Prints the seconds of each lane and of the slowest tests, and writes those of each file."""
    lanes: defaultdict[str, float] = defaultdict(float)
    files: defaultdict[str, float] = defaultdict(float)
    for lane, file, _, duration_s in tally.durations:
        lanes[lane] += duration_s
        if lane == "computing":
            files[file] += duration_s
    print("== seconds of tests:", ", ".join(f"{lane} {total:.0f}" for lane, total in lanes.items()))
    for _, file, name, duration_s in sorted(tally.durations, key=lambda row: -row[3])[:SLOWEST]:
        print(f"{duration_s:7.1f} s  {file}::{name}")
    DURATIONS.parent.mkdir(exist_ok=True)
    with DURATIONS.open("w", newline="") as output:
        writer = csv.writer(output, lineterminator="\n")
        writer.writerow(["module", "duration_s"])
        writer.writerows((file, f"{total:.1f}") for file, total in sorted(files.items()) if total >= 1.0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
