"""The pages of the documentation and the examples' README: their commands run, and print what is shown."""

import re
import shlex
from pathlib import Path

import pytest
from support_documents import MalformedPage, pages, parts, read_page, unlike
from support_run import run_lepaute
from support_running_documents import Session, pictures, run_blocks

from lepaute.measure.archive import Archive

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
    with Session(tmp_path) as session:
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


ROOT = Path(__file__).parent.parent.parent
README = ROOT / "examples" / "experiments" / "README.md"


def documented_command(script: str) -> list[str]:
    """The words of the first command of the README that runs the script here."""
    (line, *_) = [line for line in README.read_text().splitlines() if line.startswith("    lepaute") and script in line]
    return shlex.split(line)[1:]


def general(lines: list[str]) -> list[str]:
    """Without what differs from run to run: times, and the host's name."""
    return [re.sub(r"^\S+: |machine, \S+$|: \S+$|\([0-9.e-]+ s\)", "", line.strip()) for line in lines]


def test_memory_copy_runs_as_documented_and_says_what_is_documented(tmp_path: Path) -> None:
    words = documented_command("memory_copy.py")
    done = run_lepaute(*[str(ROOT / word) if word.endswith(".py") else word for word in words], folder=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = README.read_text().split("The first says, times aside:")[1].split("and leaves")[0]
    wanted = [line for line in shown.splitlines() if line.strip()]
    said = [line for line in done.stderr.splitlines() if "warning" not in line]
    assert general(said[:5]) == general(wanted[:5])
    assert general(said[-1:]) == general(wanted[-2:-1])
    assert done.stdout.strip() == wanted[-1].strip()
    table = Archive.open(tmp_path / "copy.zip").table("observations/observations.parquet")
    assert table.groupby("size_bytes")["duration_s"].median().gt(0).sum() == 8
