"""Writes the generated part of docs/reference before Sphinx looks for pages, and removes what is there no longer.

A page that is the same as before keeps its date, so that Sphinx builds only what has changed.
"""

from pathlib import Path
from typing import Any

from command_pages import command_pages
from markdown_text import Pages
from python_pages import python_pages
from schema_pages import schema_pages
from status_page import status_pages

#: Below docs/reference; git ignores them.
FOLDERS = ("commands", "formats", "python")


def all_pages() -> Pages:
    """Path below docs/reference -> text, of all that is generated."""
    return command_pages() | python_pages() | schema_pages() | status_pages()


def write(folder: Path, pages: Pages) -> None:
    """Makes `folder` have these pages and no others in FOLDERS."""
    for name in FOLDERS:
        for path in (folder / name).rglob("*"):
            if path.is_file() and str(path.relative_to(folder)) not in pages:
                path.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("builder-inited", lambda app: write(Path(app.srcdir) / "reference", all_pages()))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
