"""Checks that every link, picture, style and script in a folder of pages leads to a file and place in that folder.

Sphinx checks the links that it makes itself; this reads the finished pages, whatever made them, and refuses what a page
would load from a network.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: What a browser loads by itself, by element and attribute; an address of the web there needs a network.
LOADED = {("img", "src"), ("script", "src"), ("link", "href"), ("source", "src"), ("iframe", "src")}
#: Relations of <link> that name a page and load nothing.
NAMED = {"canonical", "index", "search", "next", "prev", "author", "copyright"}


class Page(HTMLParser):
    """The places of a page that links can name, and what it links to or loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids = {""}
        self.links: list[tuple[str, bool]] = []  # address, whether it is loaded
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called for each element."""
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        for name in ("href", "src"):
            if name in values and tag != "base":
                loaded = (tag, name) in LOADED and values.get("rel") not in NAMED
                self.links.append((values[name], loaded))


def pages_of(site: Path) -> list[Path]:
    """The pages, without those that a theme has among its styles and scripts."""
    return [path for path in sorted(site.rglob("*.html")) if "_static" not in path.relative_to(site).parts]


def faults(site: Path) -> list[str]:
    """A line for each link of the pages below `site` that leads nowhere, or that loads something from the web."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in pages_of(site)}
    found = []
    for path, page in pages.items():
        for address, is_loaded in page.links:
            problem = _problem(path, address, pages, is_loaded=is_loaded)
            if problem:
                found.append(f"{path.relative_to(site)}: {address}: {problem}")
    return found


def _problem(path: Path, address: str, pages: dict[Path, Page], *, is_loaded: bool) -> str:
    parts = urlsplit(address)
    if parts.scheme == "data":
        return ""
    if parts.scheme or parts.netloc:
        return "is loaded from the web" if is_loaded else ""
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.exists():
        return "no such file"
    place = unquote(parts.fragment)
    if place and target in pages and place not in pages[target].ids:
        return "no such place on that page"
    return ""


if __name__ == "__main__":
    lines = faults(Path(sys.argv[1]).resolve())
    print("\n".join(lines[:50]), end="\n" if lines else "")
    print(f"docs: {len(lines)} dead links" if lines else f"docs: {sys.argv[1]}/index.html; all links are valid")
    sys.exit(1 if lines else 0)
