"""`make check`: most errors, in a minute on two cores. `make test` and `make lint` find the others.

The form of everything, types, the core's tests, and on all processors those tests of Python that take little time or
belong to what was changed: to what differs from the last commit, or to the last commit where nothing does. The tests
import the package from `src/`, so nothing is installed for them: the extension module in the folder in which
`make setup` built it is brought up to date and linked into `src/lepaute/`. Arguments are passed on to pytest.
"""

import csv
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import limits

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
#: Modules of tests that take as long are left to `make test`, unless they or what they import was changed.
LONG_MODULE_S = 2.0
DURATIONS = ROOT / "tests" / "durations.csv"
IMPORTED = re.compile(r"^\s*(?:from|import) (lepaute[\w.]*)(?: import ([\w, ]+))?", re.MULTILINE)
LIMIT_S = 90.0


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


def within_limits() -> Outcome:
    failures, notes = limits.check(ROOT, strict=False)
    return Outcome("limits", not failures, "\n".join(failures), "; ".join(notes))


def changed_files() -> set[str]:
    """Paths in the checkout that differ from the last commit, or that it changed where none does."""
    git = ["git", "-C", str(ROOT)]
    differ = text_of([*git, "diff", "--name-only", "HEAD"]) + text_of([*git, "ls-files", "-o", "--exclude-standard"])
    return set((differ or text_of([*git, "diff", "--name-only", "HEAD~1", "HEAD"])).splitlines())


def text_of(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def left_out() -> list[str]:
    """The modules of tests that take long and have nothing to do with what was changed, as paths."""
    changed = changed_files()
    modules = {
        path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for path in changed
        if path.startswith("src/") and path.endswith(".py")
    }
    with DURATIONS.open(newline="") as file:
        long = [row["module"] for row in csv.DictReader(file) if float(row["duration_s"]) >= LONG_MODULE_S]
    paths = [f"{module.replace('.', '/')}.py" for module in long]
    return [path for path in paths if path not in changed and not modules & imported_by(ROOT / path)]


def imported_by(path: Path) -> set[str]:
    """Modules of the package that a file imports, and the names that it imports from them, which may be modules."""
    found = set()
    for module, names in IMPORTED.findall(path.read_text() if path.exists() else ""):
        found |= {module, *(f"{module}.{name.strip()}" for name in names.split(","))}
    return found


def python_tests(arguments: list[str]) -> Outcome:
    words = ["-q", "--no-header", "--tb=short", "-n", str(os.cpu_count() or 1), "--dist=loadfile"]
    words += ["-m", "not slow and not machine and not long"]
    if not arguments:
        words += [f"--ignore={path}" for path in left_out()]
    command = [sys.executable, "-m", "pytest", *words, *(arguments or TESTS)]
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
    within_limits,
)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
