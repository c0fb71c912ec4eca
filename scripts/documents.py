#!/usr/bin/env python3
"""Runs pages of the documentation and writes into them what their blocks print: scripts/documents.py PAGE...

    PYTHONPATH=src:tests .venv/bin/python scripts/documents.py docs/start.md docs/tutorials/*.md

Pictures of a page that its commands write are copied to where the page's link has them; of a page of HTML with the same
name, or of the first page of a folder with it, a picture is taken. `--check` writes nothing. `--part computing` leaves
out what needs a compiler and MPI. Without a page: all.
"""

import argparse
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests")]

from support_documents import NEEDS, Block, Page, Step, pages, parts, read_page, rewritten, unlike  # noqa: E402
from support_running_documents import Session, pictures, run_blocks  # noqa: E402

WIDTH_PX = 1000
HEIGHT_PX = 1100


def main() -> int:
    parser = argparse.ArgumentParser(description="runs pages and writes what they print into them")
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--check", action="store_true", help="say what differs, write nothing")
    parser.add_argument("--part", choices=("computing", *NEEDS), default="long", help="how much of a page runs")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends what pages have started
    return max([run_page(path.resolve(), arguments.part, arguments.check) for path in arguments.pages or pages()])


def run_page(path: Path, wanted: str, check: bool) -> int:
    """1 where something differs from what the page shows."""
    page = read_page(path)
    order = ("computing", *NEEDS)
    runnable = [part for part in parts(page) if order.index(part) <= order.index(wanted)]
    if not runnable:
        return 0
    outputs: dict[Step, list[str]] = {}
    differences = 0
    with tempfile.TemporaryDirectory() as place, Session(Path(place), examples=not page.copies_examples) as session:
        began_s = before_s = time.monotonic()
        for block, step, printed, status in run_blocks(parts(page)[runnable[-1]], session):
            now_s = time.monotonic()
            differences += _told(page, block, step, printed, status, now_s - before_s)
            outputs[step] = printed
            before_s = now_s
        print(f"{page.name}: {before_s - began_s:.1f} s, {len(outputs)} steps, {differences} differ", flush=True)
        if not check:
            path.write_text("".join(f"{line}\n" for line in rewritten(page, outputs).lines), encoding="utf-8")
            for picture in pictures(page):
                copy_picture(session.folder, picture)
    return 1 if differences else 0


def _told(page: Page, block: Block, step: Step, printed: list[str], status: int, took_s: float) -> int:
    wrong = unlike(block, step, printed, status)
    if wrong is not None or took_s > 3:
        print(f"{page.name}: {took_s:.1f} s, {wrong or step.code.strip()}", flush=True)
    return 1 if wrong is not None else 0


def copy_picture(folder: Path, picture: Path) -> None:
    """From the folder in which a page ran; a picture that no command of the page writes stays as it is."""
    drawn = sorted(folder.glob(picture.name)) + sorted(folder.glob(f"*/{picture.name}"))
    stem = folder / picture.stem
    written = [page for page in (Path(f"{stem}.html"), stem / "index.html", stem / "report.html") if page.is_file()]
    picture.parent.mkdir(parents=True, exist_ok=True)
    if drawn:
        shutil.copyfile(drawn[0], picture)
    elif written and picture.suffix == ".png":
        photograph(written[0], picture)


def photograph(page: Path, picture: Path) -> None:
    """The first screen of a page of HTML."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": WIDTH_PX, "height": HEIGHT_PX})
        tab.goto(page.as_uri())
        tab.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
