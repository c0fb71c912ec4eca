"""`make check`: most errors, in three minutes on two cores. `make test` and `make lint` find the others.

The form of everything, types, the core's tests, and those tests of Python that take little time, on all processors. The
tests import the package from `src/`, so nothing is installed for them: the extension module in the folder in which
`make setup` built it is brought up to date and linked into `src/lepaute/`. Arguments are passed on to pytest.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import size

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".venv" / "bin"
PACKAGE = ROOT / "src" / "lepaute"
EXTENSION = f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
CORE_TESTS = ROOT / "build" / "core"
CXX_FOLDERS = ("core", "probes", "simblas", "scripts")
CXX_SUFFIXES = {".cpp", ".hpp", ".c", ".h"}
TESTS = (
    *("tests/unit", "tests/laws", "tests/golden", "tests/end_to_end/test_predict_dat.py"),
    # Of the slower ones those that see what no other test does: the life of an experiment, and what start-up imports.
    "tests/end_to_end/test_run_experiment.py::test_a_failed_experiment_says_why_in_the_first_screen_of_its_archive",
    "tests/end_to_end/test_calibrate_predict.py::test_predict_loads_no_heavy_package",
)
#: bash reads one script; what follows are its arguments.
SHELL_SYNTAX = "for script in scripts/*.sh .ci/run; do bash -n $script || failed=1; done; ! ((failed))"
LIMIT_S = 200.0


@dataclass(frozen=True)
class Outcome:
    """Of one check. `output` is printed where it failed, `note` where it passed."""

    name: str
    passed: bool
    output: str = ""
    note: str = ""


def main(pytest_arguments: list[str]) -> int:
    began_s = time.monotonic()
    outcomes = []

    def show(outcome: Outcome) -> None:
        outcomes.append(outcome)
        verdict = "ok" if outcome.passed else "FAILED"
        print(f"{time.monotonic() - began_s:5.1f} s  {outcome.name}: {outcome.note or verdict}", flush=True)
        if not outcome.passed:
            print(outcome.output.rstrip(), flush=True)

    show(extension_module())
    if not (PACKAGE / EXTENSION).exists():
        return 1
    with ThreadPoolExecutor(2) as lanes:
        tests = lanes.submit(lambda: show(python_tests(pytest_arguments)))
        for outcome in lanes.map(lambda check: check(), FORM):
            show(outcome)
        tests.result()
    failed = [outcome.name for outcome in outcomes if not outcome.passed]
    elapsed_s = time.monotonic() - began_s
    print(f"check: failed: {', '.join(failed)}" if failed else "check: all passed", f"in {elapsed_s:.0f} s")
    if elapsed_s > LIMIT_S and not pytest_arguments:
        print("Longer than usual: the first run after make setup, another user of the machine, or tests for @slow")
    return 1 if failed else 0


def extension_module() -> Outcome:
    """Brings the extension module up to date and links it into src/, where it was built in this checkout."""
    name = "extension module"
    target = PACKAGE / EXTENSION
    built = sorted(ROOT.glob(f"build/cp*/{EXTENSION}"))
    if not built:
        if target.exists():
            return Outcome(name, passed=True, note=f"{target.relative_to(ROOT)} as it is, it was not built here")
        return Outcome(name, passed=False, output="not built in this checkout: run make setup")
    outcome = run(name, ["cmake", "--build", str(built[0].parent), "--target", "_core"])
    if target.is_symlink() or not target.exists():
        target.unlink(missing_ok=True)
        target.symlink_to(os.path.relpath(built[0], PACKAGE))
    return outcome


def core_tests() -> Outcome:
    name = "tests of the core"
    if not (CORE_TESTS / "build.ninja").exists():
        return Outcome(name, passed=True, note="skipped, scripts/build_core_tests.sh was not run (make test does)")
    outcome = run(name, ["scripts/build_core_tests.sh"])
    return run(name, [str(CORE_TESTS / "core_tests"), "--gtest_brief=1"]) if outcome.passed else outcome


def clang_format() -> Outcome:
    name = "clang-format"
    program = shutil.which("clang-format-16") or shutil.which("clang-format")
    if program is None:
        return Outcome(name, passed=True, note="skipped, not installed (make lint installs it)")
    files = [path for folder in CXX_FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in CXX_SUFFIXES]
    return run(name, [program, "--dry-run", "-Werror", *map(str, files)])


def python_tests(arguments: list[str]) -> Outcome:
    words = ["-q", "--no-header", "--tb=short", "-m", "not slow and not machine", "-n", str(os.cpu_count() or 1)]
    command = [sys.executable, "-m", "pytest", *words, "--dist=loadfile", *(arguments or TESTS)]
    source = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    return run("tests of Python", command, {"PYTHONPATH": source, "OMP_NUM_THREADS": "1"}, last_line_is_note=True)


def run(
    name: str, command: list[str], environment: Mapping[str, str] | None = None, *, last_line_is_note: bool = False
) -> Outcome:
    """Runs one command in the checkout's root and keeps what it prints."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    passed = done.returncode == 0
    note = done.stdout.rstrip().rsplit("\n", 1)[-1] if passed and last_line_is_note else ""
    return Outcome(name, passed, done.stdout, note)


#: Short ones first; beside them run the tests of Python.
FORM: tuple[Callable[[], Outcome], ...] = (
    lambda: run("ruff check", [str(TOOLS / "ruff"), "check", "--quiet", "."]),
    lambda: run("ruff format", [str(TOOLS / "ruff"), "format", "--check", "--quiet", "."]),
    lambda: run("shell scripts", ["bash", "-c", SHELL_SYNTAX]),
    clang_format,
    lambda: run("mypy --strict src", [str(TOOLS / "mypy"), "--no-error-summary"]),
    core_tests,
    lambda: Outcome("size", passed=True, note="; ".join(size.warnings(ROOT))),
)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
