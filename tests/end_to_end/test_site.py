"""The site of the documentation builds without a warning, needs no network, fits a telephone, and can be searched."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support_limits import ran

from scripts.check_links import faults, pages_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
#: One of each kind.
KINDS = (
    "index.html", "howto/index.html", "reference/commands/index.html", "reference/commands/predict.html",
    "reference/python/predictions.html", "reference/formats/platform.html", "reference/exit_statuses.html",
    "contributing.html", "search.html",
)  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, built from nothing."""
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    done = ran([*words, "-d", str(folder / "doctrees"), str(ROOT / "docs"), str(folder / "pages")])
    assert done.returncode == 0, done.stderr
    return folder / "pages"


@contextmanager
def opened(browser: "Browser", width: int = 1400, mode: str = "light") -> "Iterator[Page]":
    """A tab without a network; asserts at the end that it asked for nothing but files, and complained of nothing."""
    context = browser.new_context(viewport={"width": width, "height": 900}, offline=True, color_scheme=mode)
    tab = context.new_page()
    complaints, requests = list[str](), list[str]()
    tab.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("request", lambda request: requests.append(request.url))
    yield tab
    assert complaints == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    context.close()


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_the_web(site: Path) -> None:
    assert len(pages_of(site)) > 40
    assert faults(site) == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b.html#there">1</a><a href="b.html#not">2</a><a href="c.html">3</a><a href="https://x.org">4</a>'
        '<script src="https://x.org/s.js"></script>'
    )
    (tmp_path / "b.html").write_text('<p id="there"></p>')
    assert faults(tmp_path) == [
        "a.html: b.html#not: no such place on that page",
        "a.html: c.html: no such file",
        "a.html: https://x.org/s.js: is loaded from the web",
    ]


def test_a_reader_sees_what_the_files_of_a_page_are_called(site: Path) -> None:
    page = (site / "tutorials/tune_hpl.html").read_text(encoding="utf-8")
    names = re.findall(r'<p class="file-name"><code[^>]*><span class="pre">([^<]+)</span></code></p>', page)
    assert names == ["effects.yaml", "blocks.yaml"]


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("mode", ["light", "dark"])
def test_no_page_is_wider_than_the_window(site: Path, browser: "Browser", width: int, mode: str) -> None:
    with opened(browser, width, mode) as tab:
        for name in KINDS:
            tab.goto((site / name).as_uri())
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, name
            assert tab.evaluate("document.documentElement.dataset.theme") == mode
            ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (sum(map(int, ground.strip("rgba()").split(",")[:3])) < 200) == (mode == "dark"), ground


def test_the_search_finds_an_option_and_a_name_without_a_network(site: Path, browser: "Browser") -> None:
    with opened(browser) as tab:
        for word, page in (("memory-fraction", "commands/predict.html"), ("read_durations", "python/fit.html")):
            tab.goto(f"{(site / 'search.html').as_uri()}?q={word}")
            tab.wait_for_selector(f"#search-results a[href*='{page}']")
