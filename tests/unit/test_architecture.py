"""The page of the architecture tells the truth: the packages and files that it names, the decisions."""

import re
from pathlib import Path

from lepaute.measure.schedulers import SCHEDULERS

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "lepaute"
DESIGN = ROOT / "docs" / "design"
PAGE = (DESIGN / "architecture.md").read_text(encoding="utf-8")


def test_every_package_is_in_the_table() -> None:
    stated = set(re.findall(r"^\| `([\w/]+)` \| [^|]+ \|$", PAGE, re.MULTILINE))
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
    named = set(re.findall(r"`([\w/]+(?:\.(?:py|cpp|md)|/))`", PAGE)) - {"cli/COMMAND.py"}
    assert len(named) > 15
    places = (SOURCES, *(SOURCES / package for package in ("simulate", "measure", "watch")), ROOT)
    assert [name for name in sorted(named) if not any((place / name).exists() for place in places)] == []


def test_the_index_has_the_records_of_every_subject() -> None:
    """Their titles are those of the pages' headings, which Sphinx lists."""
    pages = {f"decisions/{page.stem}" for page in (DESIGN / "decisions").glob("*.md")}
    lines = (DESIGN / "index.md").read_text(encoding="utf-8").splitlines()
    assert sorted(pages) == sorted(line for line in lines if line.startswith("decisions/"))
