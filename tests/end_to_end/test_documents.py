"""The pages of the documentation: their blocks run, and print what the pages show.

After a change of what commands print: scripts/documents.py PAGE..., and read the difference.
"""

from pathlib import Path

import pytest
from support_documents import MalformedPage, pages, parts, read_page, unlike
from support_running_documents import Session, pictures, run_blocks

MARKS = {
    "computing": [],
    "machine": [pytest.mark.machine],
    "nodes": [pytest.mark.nodes],
    "long": [pytest.mark.machine, pytest.mark.long],
}
#: Of these pages one part takes ten to thirty seconds; shorter pages have commands of the same kinds.
LONG = {
    f"docs/tutorials/{part}"
    for part in (
        "machine_that_does_not_exist.md-computing",
        "own_program.md-machine",
        "tune_hpl.md-computing",
        "watch_a_cluster.md-computing",
    )
}


def cases() -> list[object]:
    """(page, part) with the marks of the part; a page that cannot be read has its test, which says why."""
    found = []
    for path in pages():
        try:
            page = read_page(path)
            names = [*parts(page)]
        except MalformedPage:
            names = ["computing"]
            page = None
        name = page.name if page else path.name
        for part in names:
            more = [pytest.mark.long] if f"{name}-{part}" in LONG else []
            found.append(pytest.param(path, part, marks=[*MARKS[part], *more], id=f"{name}-{part}"))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("path", "part"), cases())
def test_the_blocks_of_a_page_print_what_the_page_shows(path: Path, part: str, tmp_path: Path) -> None:
    page = read_page(path)
    with Session(tmp_path, examples=not page.copies_examples) as session:
        ran = run_blocks(parts(page)[part], session)
        wrong = [text for text in (unlike(*one) for one in ran) if text is not None]
    assert not wrong, "\n".join([f"{page.name}, to be written anew by scripts/documents.py:", *wrong])


def test_every_picture_of_a_page_is_there() -> None:
    missing = [
        f"{page.name}: {picture}"
        for page in map(read_page, pages())
        for picture in pictures(page)
        if not picture.is_file()
    ]
    assert not missing
