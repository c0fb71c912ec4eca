"""Reports on disk."""

import json
import os
from pathlib import Path

from lepaute.errors import InputError
from lepaute.fit.diagnostics.diagnosis import Diagnosis

SUFFIXES = (".html", ".json")


def check_report_file(path: Path) -> None:
    """Raises InputError where no report can be written to `path`; for before the measurement or the fit."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: a report is .html, for a person, or .json, for a program; name it so")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; make it first")


def write_report(diagnosis: Diagnosis, path: str | Path) -> None:
    """Writes a diagnosis: a page where the name ends in .html, an object of the same content where it ends in .json.

    Raises InputError for another suffix or a folder that is not there.
    """
    target = Path(path)
    check_report_file(target)
    if target.suffix.lower() == ".json":
        text = json.dumps(diagnosis.to_dict(), indent=2, allow_nan=False) + "\n"
    else:
        from lepaute.fit.report.page import page

        names = ", ".join(archive["file"] for archive in diagnosis.archives)
        text = page(diagnosis, f"Fit of {names}")
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(target)
