"""Reports on disk."""

import json
from pathlib import Path

from lepaute.errors import InputError
from lepaute.fit.diagnostics.diagnosis import Diagnosis
from lepaute.kit.files import check_output, write_whole

SUFFIXES = (".html", ".json")


def check_report_name(path: Path) -> None:
    """Raises InputError where the name of a report does not say which kind it is."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: a report is .html, for a person, or .json, for a program; name it so")


def write_report(diagnosis: Diagnosis, path: str | Path) -> None:
    """Writes a diagnosis: a page where the name ends in .html, an object of the same content where it ends in .json.

    Raises InputError for another suffix or a folder that is not there.
    """
    target = Path(path)
    check_report_name(target)
    check_output(target)
    if target.suffix.lower() == ".json":
        text = json.dumps(diagnosis.to_dict(), indent=2, allow_nan=False) + "\n"
    else:
        from lepaute.fit.report.page import page

        names = ", ".join(archive["file"] for archive in diagnosis.archives)
        text = page(diagnosis, f"Fit of {names}")
    write_whole(target, text)
