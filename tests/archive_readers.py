"""All that the command line does with an archive of a stranger, in one call, for the fuzzer."""

import contextlib
import io
import shutil
from pathlib import Path

from lepaute.errors import LepauteError
from lepaute.measure.archive import Archive
from lepaute.measure.archive.comparison import compare, comparison_json, comparison_lines
from lepaute.measure.archive.extraction import extract
from lepaute.measure.archive.ro_crate import check_crate
from lepaute.measure.archive.screen import LINES, WIDTH, first_screen
from lepaute.measure.archive.setups import Setup, setup_of

#: How far a mutant came.
REFUSED, OPENED = "refused when opened", "opened"


def read_everything(path: Path, other: Setup, folder: Path, known: frozenset[str]) -> str:
    """Shows, verifies, compares, reads the tables of and extracts an archive; REFUSED or OPENED.

    known: names of members that are not worth extracting again, all but a few (a file costs a millisecond)

    Every step may refuse with a LepauteError, one line of which every character is printable; anything else that is
    raised goes through. Asserts that nothing printed is a terminal's command and that nothing is written outside.
    """
    try:
        archive = Archive.open(path)
    except LepauteError as problem:
        _assert_plain(str(problem))
        return REFUSED
    lines = first_screen(archive)
    assert len(lines) <= LINES
    for line in lines:
        _assert_plain(line)
        assert len(line) <= WIDTH
    with _refusing():
        check_crate(archive)
    setup = setup_of(archive)
    comparison = compare(other, setup)
    for everything in (False, True):
        for line in comparison_lines(comparison, setup.unread, everything=everything):
            _assert_plain(line)
    comparison_json(comparison)
    for name in archive.members():
        if name.endswith((".parquet", ".csv")):
            with _refusing(), contextlib.redirect_stderr(io.StringIO()):
                archive.table(name)
    shutil.rmtree(folder, ignore_errors=True)
    with _refusing():
        new = [name for name in archive.members() if name not in known]
        extract(archive, folder / "inside", [*new, *list(archive.members())[:3]])
    assert {entry.name for entry in folder.glob("*")} <= {"inside"}
    return OPENED


@contextlib.contextmanager
def _refusing():  # type: ignore[no-untyped-def]
    try:
        yield
    except LepauteError as problem:
        _assert_plain(str(problem))


def _assert_plain(line: str) -> None:
    assert line.isprintable(), repr(line)[:300]
