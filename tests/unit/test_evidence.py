"""The pages of docs/evidence: what is generated is current, what they show is there, and none is a log again."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "validation"))

import what_to_trust  # noqa: E402
from support.evidence import DATA, EVIDENCE, PAGES, read_goals  # noqa: E402
from support_documents import pages  # noqa: E402

MAX_WORDS = 24_000
MAX_OTHER_WORDS = 60_000


def test_what_to_trust_is_what_the_committed_tables_say() -> None:
    page = (EVIDENCE / "index.md").read_text(encoding="utf-8")
    found = re.search(
        r"<!-- begin what_to_trust: generated, do not edit -->\n(.*?)\n<!-- end what_to_trust -->", page, re.DOTALL
    )
    assert found.group(1) == what_to_trust.section(EVIDENCE / DATA), "run validation/what_to_trust.py"


def test_every_section_of_a_script_is_on_the_page_that_the_script_writes() -> None:
    for page, studies in PAGES.items():
        text = (EVIDENCE / f"{page}.md").read_text(encoding="utf-8")
        assert tuple(re.findall(r"<!-- begin (\w+): generated", text)) == studies


def test_every_goal_that_a_page_shows_as_missed_is_in_the_table_of_goals() -> None:
    missed = {(row["study"], row["what"]) for row in read_goals(EVIDENCE / DATA / "goals.csv") if row["met"] == "NO"}
    for page, studies in PAGES.items():
        text = (EVIDENCE / f"{page}.md").read_text(encoding="utf-8")
        for study in studies:
            section = text.split(f"<!-- begin {study}: ")[1].split(f"<!-- end {study} -->")[0]
            tables = re.findall(r"^\|  \|.*\| met \|$(?:\n\|.*\|$)+", section, re.MULTILINE)
            rows = [line for table in tables for line in table.splitlines() if line.endswith("| NO |")]
            shown = {row.split("|")[1].strip() for row in rows}
            assert shown == {what for of, what in missed if of == study}


@pytest.mark.parametrize("page", sorted(EVIDENCE.glob("*.md")), ids=lambda page: page.stem)
def test_tables_pictures_and_pages_that_a_page_links_are_there(page: Path) -> None:
    for target in re.findall(r"\]\(((?:data/|\.\./images/)[^)#]+|\w+\.md)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).is_file(), target


def test_the_pages_stay_short_enough_to_be_read() -> None:
    texts = [page.read_text(encoding="utf-8").replace("|", " ") for page in EVIDENCE.glob("*.md")]
    assert sum(len(text.split()) for text in texts) <= MAX_WORDS


def test_all_other_pages_stay_short_enough_too() -> None:
    """By what is written by hand: commands, their outputs and files, in fenced blocks, do not count."""
    others = [page for page in [*pages(), ROOT / "CONTRIBUTING.md"] if EVIDENCE not in page.parents]
    texts = [page.read_text(encoding="utf-8").replace("|", " ") for page in others]
    assert len(texts) > 50
    written = [re.sub(r"^( *)(```|~~~).*?^\1\2$", "", text, flags=re.MULTILINE | re.DOTALL) for text in texts]
    assert sum(len(text.split()) for text in written) <= MAX_OTHER_WORDS
