"""Runs the tests of the core and of the package, and counts both in the last line: `N passed, N failed, N skipped`.

Every skip is listed with its reason. The exit status is 1 where a test failed, where a suite ended badly, or where no
test ran at all. Arguments are passed on to pytest (`scripts/run_tests.py tests/unit -k platform`).
"""

import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
CORE_TESTS = ROOT / "build" / "core" / "core_tests"


@dataclass
class Tally:
    """What became of the tests; failures and errors are both failures."""

    passed: int = 0
    failed: int = 0
    skips: list[str] = field(default_factory=list)

    def line(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {len(self.skips)} skipped"


def main(pytest_arguments: list[str]) -> int:
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="lepaute-tests-") as scratch:
        core_report = Path(scratch, "core.xml")
        core = [str(CORE_TESTS), "--gtest_brief=1", f"--gtest_output=xml:{core_report}"]
        run_suite("core_tests", core, core_report, tally)
        python_report = Path(scratch, "python.xml")
        pytest = [sys.executable, "-m", "pytest", "-q", f"--junitxml={python_report}", *pytest_arguments]
        run_suite("pytest", pytest, python_report, tally)
    for skip in tally.skips:
        print("skipped:", skip)
    if not tally.passed and not tally.failed:
        print("no test ran")
    print(tally.line(), flush=True)
    return 0 if tally.passed and not tally.failed else 1


def run_suite(name: str, command: list[str], report: Path, tally: Tally) -> None:
    """Runs one suite and adds its report to `tally`; a suite that ends badly without a failed test counts as one."""
    failed_before = tally.failed
    print(f"== {name}", flush=True)
    try:
        status = subprocess.run(command, cwd=ROOT, check=False).returncode
    except OSError as error:
        print(f"{name}: {error}")
        status = 2
    if report.exists():
        add_report(report, tally)
    if status != 0 and tally.failed == failed_before:
        print(f"{name} ended with status {status}, though no test of it is reported as failed")
        tally.failed += 1


def add_report(report: Path, tally: Tally) -> None:
    """Adds the test cases of a JUnit report, of pytest or of GoogleTest, to `tally`."""
    for case in ElementTree.parse(report).getroot().iter("testcase"):
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
