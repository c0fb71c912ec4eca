"""A weakness is planted in what each command is given: first line, exit status, JSON and page say it alike."""

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from long_tests import long_but
from support_comparisons import BLOCKS, campaign

from lepaute.cli.main import main
from lepaute.simulate.platform import load_platform

SMALL = Path(__file__).parent.parent / "data" / "platforms" / "small.yaml"
CHECK = "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=  1234.0000000 ...... "
Words = list[str]


def campaigns(blocks: int = BLOCKS, allowed: str = "5%", sessions: int = 1) -> Callable[[Path], Words]:
    def words(folder: Path) -> Words:
        for number in range(sessions):
            campaign(folder / f"{number}.zip", blocks=blocks, session=number)
        return ["compare", *map(str, sorted(folder.glob("*.zip"))), "--fail-if-slower", allowed]

    return words


def outputs(runs: int) -> Callable[[Path], Words]:
    """Of the OSU benchmark: the second library takes 200 times as long, or about."""

    def words(folder: Path) -> Words:
        for name, factor in (("a", 1.0), ("b", 200.0)):
            tables = ["# OSU MPI Allreduce Latency Test v7.4", "# Size       Avg Latency(us)"]
            lines = [*tables, *(f"{size} {factor * (20 + size / 100):.2f}" for size in (4, 8, 16))]
            texts = ["\n".join(lines).replace("8 ", f"8 {run}", 1) for run in range(1, runs + 1)]
            (folder / f"{name}.txt").write_text("\n".join([*texts, ""]))
        return ["compare", f"a={folder / 'a.txt'}", f"b={folder / 'b.txt'}", "--fail-if-slower", "5%"]

    return words


def assumed(folder: Path, platform: str | Path = "dahu") -> str:
    """A platform with a part that was measured elsewhere."""
    content = load_platform(platform).model_dump(mode="json", exclude_none=True)
    content["assumed"] = [{"what": "messages", "source": "another machine"}]
    (folder / "assumed.yaml").write_text(yaml.safe_dump(content))
    return str(folder / "assumed.yaml")


def results(times_s: dict[float, str], *options: str, copied: bool = False) -> Callable[[Path], Words]:
    """An HPL.out: seconds of each run of one case, and what its residual check says."""

    def words(folder: Path) -> Words:
        lines = [
            f"WR11C2R4        4000   128     1     1 {time_s:18.2f} {42.7 / time_s:22.4e}\n{CHECK}{check}\n"
            for time_s, check in times_s.items()
        ]
        (folder / "HPL.out").write_text("".join(lines))
        platform = assumed(folder) if copied else "dahu"
        return ["verify", "hpl", "-p", platform, "--results", str(folder / "HPL.out"), *options]

    return words


def study(
    n: int, platform: str | Path = "dahu", runs: int = 4, grid: str = "1x1", copied: bool = False
) -> Callable[[Path], Words]:
    def words(folder: Path) -> Words:
        on = assumed(folder, platform) if copied else str(platform)
        base = {"platform": on, "application": {"name": "hpl", "n": n, "nb": 124, "grid": grid}}
        levels = {"nb": {"path": "application.nb", "levels": [124, 120]}}
        content = {"question": "whatif", "base": base, "factors": levels, "whatif": {"factor": "nb", "base": 124}}
        (folder / "s.yaml").write_text(yaml.safe_dump(content | {"runs": runs}))
        return ["study", "whatif", str(folder / "s.yaml"), "-o", str(folder / "s")]

    return words


def replayed(members: int) -> Callable[[Path], Words]:
    """Of a program of no MPI library: of three ranks, all have Bruck's allgather, of four each another reduction."""

    def words(folder: Path) -> Words:
        call = "allgather 8 8" if members == 3 else "reduce 8 0 0"
        calls = "".join(f"{rank} init\n{rank} {call}\n{rank} finalize\n" for rank in range(members))
        (folder / "t.txt").write_text(calls)
        base = {"platform": str(SMALL), "application": {"name": "trace", "recording": str(folder / "t.txt")}}
        levels = {"latency": {"path": "scale.latency", "levels": [1, 2]}}
        content = {"question": "whatif", "base": base, "factors": levels, "whatif": {"factor": "latency", "base": 1}}
        (folder / "s.yaml").write_text(yaml.safe_dump(content | {"runs": 4}))
        return ["study", "whatif", str(folder / "s.yaml"), "-o", str(folder / "s")]

    return words


def sizes(scatter: float, *options: str) -> Callable[[Path], Words]:
    """Twelve sizes on two lines, every other one off by a share."""

    def words(folder: Path) -> Words:
        times = [(2**k, (10 + 2**k / 100 + 30 * (k > 8)) * (1 + scatter * (-1) ** (k // 2))) for k in range(2, 14)]
        rows = "".join(f"{size},{time_us * 1e-6}\n" for size, time_us in times)
        (folder / "t.csv").write_text(f"size_bytes,duration_s\n{rows}")
        return ["segment", str(folder / "t.csv"), *options]

    return words


class Planted(NamedTuple):
    """What a command is given, and what it has to say: exit status, in its first line, decision, weakness, colour."""

    words: Callable[[Path], Words]
    status: int
    said: str
    decision: str
    cause: str | None
    colour: str


CASES = {
    "compare, nothing": Planted(campaigns(12, "60%"), 0, "openmpi is faster in 1", "for", None, "fine"),
    "compare, slower": Planted(campaigns(12, "5%"), 1, "openmpi is faster in 1", "for", None, "fine"),
    "compare, too few": Planted(campaigns(4, "60%"), 3, "not tested: 3 mpiruns of", "unknown", "too few", "unable"),
    "outputs, too few": Planted(outputs(1), 3, "200 times as long as a; not tested", "unknown", "too few", "unable"),
    "outputs, nothing": Planted(outputs(5), 1, "a is faster in 3, b in 0", "for", None, "fine"),
    "sessions, too few": Planted(campaigns(sessions=2), 3, "not tested: 2 sessions", "unknown", "too few", "unable"),
    "results, nothing": Planted(results({1.65: "PASSED"}), 0, "is as expected", "for", None, "fine"),
    "results, copied": Planted(
        results({1.65: "PASSED"}, copied=True), 0, "is as expected", "for", "copied", "fine"
    ),
    "results, slower and copied": Planted(
        results({9.0: "PASSED"}, copied=True), 1, "is slow: 9.00 s, 5.5 times as long", "against", "copied", "notable"
    ),
    "results, slower": Planted(results({9.0: "PASSED"}), 1, "is slow: 9.00 s, 5.5 times", "against", None, "notable"),
    "results, failed": Planted(results({1.4: "FAILED"}), 1, "and is not compared", "unknown", "failed", "unable"),
    "results, one failed": Planted(
        results({1.4: "PASSED", 1.5: "FAILED"}), 1, "is no valid result; the others", "unknown", "failed", "unable"
    ),
    "results, too few": Planted(
        results({1.4: "PASSED"}, "--runs", "1"), 3, "cannot be judged: a single", "unknown", "too few", "unable"
    ),
    "results, tolerance": Planted(
        results({1.7: "PASSED"}, "--tolerance", "1%"), 1, "is as expected", "for", None, "fine"
    ),
    "whatif, outside": Planted(study(1000), 0, "not comparable, at", "unknown", "outside", "unable"),
    "whatif, partly outside": Planted(
        study(2000, grid="2x2"), 0, "nb 120 cannot be told", "undecided", "partly outside", "notable"
    ),
    "whatif, copied": Planted(study(2000, SMALL, copied=True), 0, "nb", "undecided", "copied", "notable"),
    "replay, approximated": Planted(replayed(4), 0, "latency", "for", "approximated", "fine"),
    "replay, nothing": Planted(replayed(3), 0, "latency", "for", None, "fine"),
    "whatif, too few": Planted(study(2000, SMALL, runs=1), 0, "one run: no interval", "unknown", "too few", "unable"),
    "segment, nothing": Planted(sizes(0.001), 0, "1 breakpoint, after", "for", None, "fine"),
    "segment, scattered": Planted(sizes(0.4), 0, "No breakpoint can be proven", "undecided", None, "notable"),
    "segment, asked for": Planted(
        sizes(0.4, "--breakpoints", "1"), 0, "these data do not prove so many", "undecided", None, "notable"
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("planted", long_but(CASES, "outputs, too few", "results, failed", "segment, asked for"))
def test_first_line_status_json_and_page_say_it_alike(planted, tmp_path, json_of, output_of):
    case = CASES[planted]
    words = case.words(tmp_path)
    is_study = words[0] == "study"
    report = tmp_path / ("s/report.html" if is_study else "r.html")
    lines = output_of(*words, *([] if is_study else ["--report", str(report)]), status=case.status).splitlines()
    assert case.said in " ".join(lines[:3])
    page = report.read_text()
    assert re.findall(r'<p class="verdict ?([^"]*)">', page) == [case.colour]
    told = json_of(*[*words, "--resume", "--json"] if is_study else [*words, "--json"], status=case.status)
    (told,) = told.get("tables", [told])
    assert told["decision"] == case.decision
    causes = {weakness["cause"] for weakness in told["weaknesses"]}
    assert causes >= {case.cause} - {None}
    assert causes == set() or case.cause, "no weakness that was not planted"
    worded = ("too few", "partly outside") if is_study else ()  # the page counts the configurations
    texts = [weakness["text"] for weakness in told["weaknesses"] if weakness["cause"] not in worded]
    shown = unescape(re.sub("</?span[^>]*>", "", page)).replace("\u00a0", " ")
    assert all(text in shown for text in texts)
    differences = [found for each in told.get("comparisons", ()) for found in each["differences"].values()]
    assert not any(found["told_apart"] for found in differences if found["decision"] != "for")


def test_a_node_with_a_job_or_with_none_of_late_is_unknown(tmp_path, json_of, output_of):
    store = ["--store", str(tmp_path / "store")]
    (tmp_path / "m.yaml").write_text(
        "cluster: {value: c}\nnode: node\ndate: date\nfactors:\n  hpl_rate_flops: {column: gflops, unit: Gflop/s}\n"
    )
    for days in (1, 30):
        why = f"no node has had a value since 2025-04-{days:02}, for "
        rows = [f"2025-04-{day + 1:02},w{at},{60 + (7 * day + at) % 5 / 10}" for day in range(days) for at in range(9)]
        (tmp_path / f"{days}.csv").write_text("\n".join(["date,node,gflops", *rows, ""]))
        ingest = ["watch", "ingest", str(tmp_path / f"{days}.csv"), "--mapping", str(tmp_path / "m.yaml"), *store]
        assert main(ingest) == 0
        assert output_of("watch", "health", "w7", *store, status=2).startswith(f"w7: unknown ({why}")
        (node,) = json_of("watch", "health", "w7", *store, "--json", status=2)["nodes"]
        assert (node["verdict"], node["reason"].startswith(why)) == ("unknown", True)
