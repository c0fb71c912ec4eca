"""What tests ask of pages: their elements, and how a browser without a network shows them."""

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser


class Elements(HTMLParser):
    """Names and links of a page, its pictures by their attributes, and its tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.ids, self.links, self.tags = list[str](), list[str](), list[str]()
        self.images = list[dict[str, str]]()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        self.ids += [values["id"]] if "id" in values else []
        self.links += [values["href"]] if tag == "a" else []
        self.images += [values] if tag in ("svg", "img") else []


def text_of(page: str) -> str:
    """What a reader sees of a page, with common blanks: no tag, no style, no script."""
    bare = re.sub(r"<(style|script)\b.*?</\1>|<[^>]*>", "", page, flags=re.DOTALL)
    return unescape(bare).replace("\u00a0", " ")


def widths_offline(browser: "Browser", page_file: Path, width: int, pictures: str = "svg") -> list[float]:
    """Widths of the pictures; asserts that the page loads nothing else, complains of nothing and fits the width."""
    context = browser.new_context(viewport={"width": width, "height": 900}, offline=True)
    tab = context.new_page()
    complaints, requests = list[str](), list[str]()
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("request", lambda request: requests.append(request.url))
    tab.goto(page_file.as_uri())
    assert complaints == []
    assert [url for url in requests if not url.startswith("data:")] == [page_file.as_uri()]
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    drawn = "[...document.querySelectorAll('.scroll:has(svg.drawn)')].map(e => getComputedStyle(e, '::before').content)"
    assert {"scroll sideways" in hint for hint in tab.evaluate(drawn)} <= {width < 560}, (
        "a picture says that it scrolls"
    )
    boxes: list[float] = tab.evaluate(
        f"[...document.querySelectorAll('{pictures}')].map(s => s.getBoundingClientRect().width)"
    )
    context.close()
    return boxes
