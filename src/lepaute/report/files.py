"""Reports on disk: a page to read, or an object of the same content for programs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lepaute.errors import InputError
from lepaute.kit.files import check_output, write_whole

SUFFIXES = (".html", ".json")


def check_page_name(path: Path | None) -> None:
    """Raises InputError where the name of a page that was asked for is not one."""
    if path is not None and path.suffix.lower() != ".html":
        raise InputError(f"--report {path}: the name of a page must end in .html; --json prints the data")


def write_report(path: Path, page: Callable[[], str], content: Callable[[], dict[str, Any]]) -> None:
    """Writes the page where the name ends in .html, the content as a JSON object where it ends in .json.

    Raises InputError for another suffix, or where the file cannot be written; nothing is computed then.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: the name of a report must end in .html (a page) or .json (data)")
    check_output(path)
    is_page = path.suffix.lower() == ".html"
    write_whole(path, page() if is_page else json.dumps(content(), indent=2, allow_nan=False) + "\n")
