"""What tests of every kind share, and the lanes in which `scripts/run_tests.py` runs them side by side."""

import csv
import json
import os
import shlex
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from support_limits import HANG_S

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from lepaute.measure.probes import Probes
    from lepaute.measure.verify.real_run import HplProgram
    from lepaute.simulate.platform import Platform

pytest_plugins = ["farms.fixtures", "long_tests"]

#: Lane -> the mark of its tests; those of no mark need a processor and nothing else.
LANES = {"machine": "machine", "nodes": "nodes", "computing": None}


# How long an example takes says how busy the machine is, and nothing about the law.
settings.register_profile("lepaute", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("lepaute")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--lane", choices=LANES, help="only the tests of this lane (they run one after the other)")


def pytest_configure() -> None:
    # A shell starts background jobs with Ctrl-C ignored, and programs inherit that: tests that send it would wait.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Of a lane with a mark, a file that does not name it is not even imported: that takes longer than some lanes."""
    mark = LANES.get(config.getoption("--lane"))
    is_test = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    return True if mark and is_test and f"mark.{mark}" not in collection_path.read_text(encoding="utf-8") else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    lane = config.getoption("--lane")
    if lane is None:
        return
    kept = [item for item in items if lane_of(item) == lane]
    config.hook.pytest_deselected(items=[item for item in items if lane_of(item) != lane])
    if lane == "computing":
        taken_s = durations_s()
        kept.sort(key=lambda item: -taken_s.get(item.nodeid.split(".py::")[0].replace("/", "."), 0.0))
    items[:] = kept


def durations_s() -> dict[str, float]:
    """Module -> seconds that its tests took when `durations.csv` was written; the longest start first."""
    with Path(__file__).with_name("durations.csv").open(newline="") as file:
        return {row["module"]: float(row["duration_s"]) for row in csv.DictReader(file)}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = (report for key in ("failed", "error") for report in terminalreporter.getreports(key))
    failed = {report.nodeid: "--long all " if "long" in getattr(report, "keywords", ()) else "" for report in reports}
    for nodeid, option in sorted(failed.items()):
        terminalreporter.write_line(f"to see it alone: .venv/bin/python -m pytest {option}{shlex.quote(nodeid)}")


def lane_of(item: pytest.Item) -> str:
    return next((lane for lane, mark in LANES.items() if mark and item.get_closest_marker(mark)), "computing")


def patient(opened: Callable[..., Any]) -> Callable[..., Any]:
    """Opens the same, which waits for HANG_S for what happens on a page."""

    def opened_patiently(**options: object) -> Any:
        found = opened(**options)
        found.set_default_timeout(1000 * HANG_S)
        return found

    return opened_patiently


@pytest.fixture
def output_of(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command line: what it prints on standard output."""
    from lepaute.cli.main import main

    def output(*words: object, status: int = 0) -> str:
        capsys.readouterr()
        assert main([*map(str, words)]) == status
        return capsys.readouterr().out

    return output


@pytest.fixture
def json_of(output_of: Callable[..., str]) -> Callable[..., Any]:
    return lambda *words, **status: json.loads(output_of(*words, **status))


@pytest.fixture
def refusal_of(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command line that is refused: the line on standard error, which is all that it prints."""
    from lepaute.cli.main import main

    def refusal(*words: object) -> str:
        capsys.readouterr()
        assert main([*map(str, words)]) == 2
        output, line = capsys.readouterr()
        assert (output, line.count("\n")) == ("", 1)
        return line

    return refusal


@pytest.fixture(scope="session")
def dahu() -> "Platform":
    from lepaute.simulate.platform import load_platform

    return load_platform("dahu")


@pytest.fixture(scope="session")
def built() -> "Probes":
    """The probes, built in the cache; the source of HPL may be out of reach where tests run."""
    from lepaute.errors import EnvironmentProblem
    from lepaute.measure.probes import build_probes

    try:
        return build_probes()
    except EnvironmentProblem as problem:
        pytest.skip(f"the probes cannot be built here: {problem}")


@pytest.fixture(scope="session")
def real_hpl() -> "HplProgram":
    """The driver around the real HPL; without network and cache it cannot be built."""
    from lepaute.errors import EnvironmentProblem
    from lepaute.measure.verify.real_run import build_program

    try:
        return build_program()
    except EnvironmentProblem as problem:
        pytest.skip(f"the real HPL cannot be built here: {problem}")


@pytest.fixture(scope="session")
def two_cores() -> tuple[int, int]:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("messages want two cores")
    return cores[0], cores[1]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Runs command lines on the files of the tables of effects."""
    from effects.lines import write_files
    from hostile.refusals import serving

    with serving(tmp_path_factory.mktemp("in"), tmp_path_factory.mktemp("server"), write_files) as started:
        yield started


@pytest.fixture(scope="session")
def clock_code(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The C of clock models and offsets, compiled."""
    from support_clocks import clock_library

    return clock_library(tmp_path_factory.mktemp("clocks"))


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """Opens pages, without a window."""
    from playwright.sync_api import sync_playwright

    program = Path("/usr/bin/chromium")  # Debian's
    if not program.exists():
        pytest.skip(f"there is no {program}")
    with sync_playwright() as playwright:
        # In a container there is no sandbox to be had.
        running = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"], timeout=1000 * HANG_S)
        running.new_context, running.new_page = patient(running.new_context), patient(running.new_page)
        yield running
        running.close()
