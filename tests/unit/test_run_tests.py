"""The script that counts the tests: what it counts as what."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "run_tests.py"

REPORT = """<testsuites><testsuite>
  <testcase classname="Philox" name="GivesThePublishedVectors" status="run" result="completed"/>
  <testcase classname="Philox" name="IsDisabled" status="notrun" result="suppressed"/>
  <testcase classname="tests.unit" name="test_breaks"><failure message="no"/></testcase>
  <testcase classname="tests.unit" name="test_cannot_start"><error message="fixture"/></testcase>
  <testcase classname="tests.unit" name="test_probe"><skipped message="no MPI here"/></testcase>
</testsuite></testsuites>"""


def module_of(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def script() -> ModuleType:
    return module_of(SCRIPT)


def test_errors_count_as_failures_and_every_skip_has_its_reason(script: ModuleType, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    tally = script.Tally()
    script.add_report("pytest", report, tally)
    assert tally.line() == "1 passed, 2 failed, 2 skipped"
    assert tally.skips == ["Philox.IsDisabled: disabled in its source", "tests.unit.test_probe: no MPI here"]


def test_a_suite_that_dies_without_a_report_is_a_failure(script: ModuleType, tmp_path: Path) -> None:
    tally = script.Tally()
    script.run_suite("core_tests", [str(tmp_path / "missing")], tmp_path / "none.xml", tally)
    script.run_suite("pytest", ["false"], tmp_path / "none.xml", tally)
    assert tally.line() == "0 passed, 2 failed, 0 skipped"
