"""Scripts around the tests, pages as programs, and the page of the architecture."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from support_documents import MalformedPage, Page, matched, read_page, same_line

from lepaute.measure.schedulers import SCHEDULERS

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


def test_errors_and_suites_without_a_report_count_as_failures_and_every_skip_has_its_reason(
    script: ModuleType, tmp_path: Path
) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    tally = script.Tally()
    script.add_report("pytest", report, tally)
    assert tally.line() == "1 passed, 2 failed, 2 skipped"
    assert tally.skips == ["Philox.IsDisabled: disabled in its source", "tests.unit.test_probe: no MPI here"]
    tally = script.Tally()
    script.run_suite("core_tests", [str(tmp_path / "missing")], tmp_path / "none.xml", tally)
    script.run_suite("pytest", ["false"], tmp_path / "none.xml", tally)
    assert tally.line() == "0 passed, 2 failed, 0 skipped"


TEXTS = Path(__file__).parents[1] / "data" / "texts"
PAGE = (TEXTS / "documents_page.txt").read_text()


def page_of(text: str, folder: Path) -> Page:
    path = folder / "page.md"
    path.write_text(text, encoding="utf-8")
    return read_page(path)


def test_the_blocks_of_a_page_are_those_that_run(tmp_path: Path) -> None:
    page = page_of(PAGE, tmp_path)
    assert [(block.kind, len(block.steps)) for block in page.blocks] == [
        ("file", 1), ("console", 2), ("console", 1), ("python", 1)
    ]  # fmt: skip
    file, console, measured, python = page.blocks
    assert (file.name, file.steps[0].code) == ("a/one.yaml", "x: 1\n")
    assert [step.shown for step in console.steps] == [("x: 1",), ("two",)]
    assert console.steps[1].code == "printf '%s\\n' \\\ntwo"
    assert (measured.needs, measured.numbers_differ) == ({"machine"}, True)
    assert (python.steps[0].code, python.steps[0].shown) == ("x = 3\nprint(x)\n", ("3",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```console\nls\n```\n", "page.md:1: a block of console begins with a command"),
        (
            "<!-- run: fast -->\n```console\n$ ls\n```\n",
            "page.md:2: 'fast' is none of: machine, nodes, long, numbers differ, output differs",
        ),
        ("```bash\nls\n```\n", "page.md:1: a block of bash"),
        ("<!-- run: machine -->\n```text\n3\n```\n", "page.md:2: a block of text does not run"),
    ],
)
def test_a_block_that_says_nothing_that_runs_is_refused_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(MalformedPage, match=message):
        page_of(text, tmp_path)


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("takes 100 s", "takes 101 s", True),
        ("takes 100 s", "takes 103 s", False),
        ("takes 100 s", "took 100 s", False),
        ("3 nodes", "4 nodes", False),
        ("error 0.1 %", "error 0.2 %", True),  # one unit in the last decimal
        ("error 0.1 %", "error 0.3 %", False),
        ("error -3.0 %", "error 3.0 %", False),
        ("node7 is slow", "node8 is slow", False),
        ("since 2026-02-10", "since 2026-02-11", False),
        ("1,000 rows", "1,010 rows", True),
        ("1,000 rows", "9,000 rows", False),
        ("1e-8", "1.01e-8", True),
        ("1e-8", "1e-7", False),
        ("a      b", "a b", True),
        ("id 8f2a4570", "id 9a2a4571", True),
        ("about 3 s on 2 workers", "about 5 s on 1 worker", True),
        ("lepaute 0.1.0", "lepaute 0.2.0.dev3", True),
        ("wrote /tmp/a/b.csv", "wrote /home/jane/c.csv", True),
    ],
)
def test_numbers_are_compared_within_two_percent_and_words_exactly(shown: str, printed: str, same: bool) -> None:
    assert same_line(shown, printed) is same
    assert same_line(printed, shown) is same


def test_three_dots_stand_for_any_lines() -> None:
    assert matched(("a", "...", "d"), ["a", "b", "c", "d"]) == [0, None, 3]
    assert matched(("a", "..."), ["a"]) == [0, None]
    assert matched(("...", "b", "..."), ["b", "b", "c"]) is not None
    assert matched(("a", "...", "e"), ["a", "b", "c", "d"]) is None
    assert matched((), ["a"]) is None
    assert matched(("a", ""), ["a"]) == [0]


ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "lepaute"
DESIGN = ROOT / "docs" / "design"
ARCHITECTURE = (DESIGN / "architecture.md").read_text(encoding="utf-8")


def test_every_package_is_in_the_table() -> None:
    stated = set(re.findall(r"^\| `([\w/]+)` \| [^|]+ \|$", ARCHITECTURE, re.MULTILINE))
    packages = {path.name for path in SOURCES.iterdir() if (path / "__init__.py").is_file()}
    assert packages <= stated
    assert all((SOURCES / package / "__init__.py").is_file() for package in stated)


def test_no_other_file_asks_for_the_name_of_a_scheduler() -> None:
    """Another scheduler is a module and a line in the registry, only while nobody else decides by names."""
    names = "|".join(scheduler for scheduler in SCHEDULERS if scheduler != "local")  # also a word for other things
    name = re.compile(rf'(?:==|!=|\bin\b|\bnot in\b)\s*\(?"({names})"')
    asking = [
        f"{path.relative_to(SOURCES)}: {line.strip()}"
        for path in SOURCES.rglob("*.py")
        if "schedulers" not in path.parts
        for line in path.read_text().splitlines()
        if name.search(line)
    ]
    assert not asking


def test_files_that_the_page_names_exist() -> None:
    named = set(re.findall(r"`([\w/]+(?:\.(?:py|cpp|md)|/))`", ARCHITECTURE)) - {"cli/COMMAND.py"}
    assert len(named) > 15
    places = (SOURCES, *(SOURCES / package for package in ("simulate", "measure", "watch")), ROOT)
    assert [name for name in sorted(named) if not any((place / name).exists() for place in places)] == []


def test_the_index_has_the_records_of_every_subject() -> None:
    """Their titles are those of the pages' headings, which Sphinx lists."""
    pages = {f"decisions/{page.stem}" for page in (DESIGN / "decisions").glob("*.md")}
    lines = (DESIGN / "index.md").read_text(encoding="utf-8").splitlines()
    assert sorted(pages) == sorted(line for line in lines if line.startswith("decisions/"))
