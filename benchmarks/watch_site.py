"""What the daily loop of a watch costs for 656 processors and 300 jobs, and how fast its pages open.

    .venv/bin/python benchmarks/watch_site.py [--days 300] [--nodes 328]

Fixed before any result was looked at. Data: those of watch_scale.py, 328 nodes of two processors, a job a day, four
factors, 787,200 values. The store has all days but the last, tested. The loop is then what cron runs: ingest the last
day, test, alert (a Prometheus file), site; each a process of the command line.

Goals: the loop in 20 s of CPU time, each process below 700 MB; no page above 5 MB with the data it loads; each page
drawn within 2 s of its opening in a headless Chromium (median of five, a fresh page each time).
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from watch_scale import FACTORS, changelog, values

LEPAUTE = ("-m", "lepaute.cli.main", "watch")
LOOP_S, MEMORY_GB, PAGE_MB, OPEN_S = 20.0, 0.7, 5.0, 2.0


def command(*words: object, folder: Path) -> tuple[float, float]:
    """CPU time and memory (GB) of a process of Python."""
    program = [sys.executable, *map(str, words)]
    environment = {**os.environ, "LEPAUTE_HOME": str(folder / "cache")}
    process = subprocess.Popen(
        program, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    _, status, usage = os.wait4(process.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 1):  # 1: there are regressions
        raise SystemExit(f"{' '.join(map(str, words))}: {process.stderr.read() if process.stderr else ''}")
    return usage.ru_utime + usage.ru_stime, 1024 * usage.ru_maxrss / 1e9


def opened_s(page: Path, ready: str) -> float:
    """Median time from opening a page to its plots."""
    from playwright.sync_api import sync_playwright

    times = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for _ in range(5):
            tab = browser.new_page(viewport={"width": 1280, "height": 900})
            began = time.perf_counter()
            tab.goto(f"file://{page}")
            tab.wait_for_selector(ready, state="attached")
            tab.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))")
            times.append(time.perf_counter() - began)
            tab.close()
        browser.close()
    return median(times)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=int, default=300)
    parser.add_argument("--nodes", type=int, default=328)
    parser.add_argument("--loop", action="store_true", help="without opening the pages")
    parser.add_argument("--ingest", metavar="STORE", help="the last day, in this process")
    options = parser.parse_args()
    import lepaute as lp

    if options.ingest:
        with lp.watch.open(options.ingest) as watch:
            watch.store.add_values(values(options.nodes, options.days - 1, 1, FACTORS))
        return 0
    met = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with lp.watch.open(folder / "store") as watch:
            watch.add_changelog(changelog(options.days))
            for first in range(0, options.days - 1, 10):
                watch.store.add_values(values(options.nodes, first, min(10, options.days - 1 - first), FACTORS))
        command(*LEPAUTE, "test", "--store", "store", folder=folder)
        loop = {
            "ingest": [
                str(Path(__file__).resolve()),
                "--ingest",
                "store",
                "--days",
                options.days,
                "--nodes",
                options.nodes,
            ],
            "test": [*LEPAUTE, "test", "--store", "store"],
            "alert": [*LEPAUTE, "alert", "--prometheus", "watch.prom", "--store", "store"],
            "site": [*LEPAUTE, "site", "-o", "site", "--store", "store"],
        }
        print(
            f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}\n\n| step | CPU s | GB |\n| --- | --- | --- |"
        )
        total_s = 0.0
        for step, words in loop.items():
            cpu_s, memory_gb = command(*words, folder=folder)
            total_s += cpu_s
            met &= memory_gb < MEMORY_GB
            print(f"| {step} | {cpu_s:.1f} | {memory_gb:.2f} |", flush=True)
        met &= total_s < LOOP_S
        print(f"| all | {total_s:.1f} (goal {LOOP_S:g}) | goal {MEMORY_GB:g} |\n")
        if options.loop:
            return 0 if met else 1
        site = folder / "site"
        pages = {
            "index.html": (site / "index.html", "table.sortable th button"),
            "nodes.html": (site / "nodes.html", "table.sortable th button"),
            "a factor": (next(site.glob("factor-*.html")), "#places canvas"),
            "a node": (next(site.glob("node-*.html")), "#evolution[data-drawn]"),
            "an event": (next(site.glob("event-*.html")), "table.sortable th button"),
        }
        print("| page | MB with its data | opens in s |\n| --- | --- | --- |")
        for title, (page, ready) in pages.items():
            data = site / "data" / f"{page.stem}.js"
            size_mb = (page.stat().st_size + (data.stat().st_size if data.exists() else 0)) / 1e6
            took_s = opened_s(page, ready)
            met &= size_mb < PAGE_MB and took_s < OPEN_S
            print(f"| {title} | {size_mb:.2f} | {took_s:.2f} |", flush=True)
        whole = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
        print(f"\n{len(list(site.glob('*.html')))} pages, {whole / 1e6:.0f} MB; goals {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
