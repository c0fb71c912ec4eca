"""Tests of send-completion semantics on one site: rounds of the probe, each chosen by the answers of those before."""

import csv
from collections.abc import Callable

from lepaute.design import semantics_design
from lepaute.errors import EnvironmentProblem
from lepaute.measure.calibration.attempt import Attempts, Site
from lepaute.measure.calibration.entries import RawFile
from lepaute.measure.experiment.workspace import Workspace
from lepaute.measure.nodes.channel import NodeLost
from lepaute.measure.plan import SEMANTICS, PlannedRun
from lepaute.measure.send_completion_search import MOST_ROUNDS, next_tests, silent_tests
from lepaute.stats.send_completion import HUNG, Row, semantic_limits

#: Limits are sought up to this size: no library was seen to send more without asking.
MOST_BYTES = 16 << 20


def search(
    maker: Attempts,
    workspace: Workspace,
    site: Site,
    cores: tuple[int, int],
    seed: int,
    warn: Callable[[str], None],
    *,
    silence: bool,
) -> None:
    """Makes rounds until the limits are known; those of an interrupted session count.

    A round in which a test hangs ends there, by the probe's own guard, and the search goes on: a test that hangs is an
    answer. Any other failure of the probe is a warning, and ends the search.
    silence: also which sends return while the receiver makes no call of MPI
    Raises NodeLost with a node of the site.
    """
    peers = "_".join(about.name for about in site.measured[1:])
    incomplete = "the send-completion semantics remain unknown"
    for _ in range(MOST_ROUNDS):
        rows, done, begun = _answers(workspace, site)
        tests = next_tests(rows, MOST_BYTES) or (silent_tests(rows) if silence and not done else [])
        if not tests:
            if undecided := semantic_limits(rows).undecided_bytes:
                sizes = ", ".join(map(str, undecided[:5])) + (", ..." if len(undecided) > 5 else "")
                warn(
                    f"the send-completion semantics are not known at {sizes} bytes, since the machine was busy; "
                    "the limit is taken to be below"
                )
            return
        name = f"{SEMANTICS}{begun}_{site.name}_{peers}" if peers else f"{SEMANTICS}{begun}"
        run = PlannedRun(0, name, SEMANTICS, cores, seed, semantics_design(seed + begun, tests))
        try:
            maker.make(run, 0, site)
        except NodeLost:
            raise
        except EnvironmentProblem as problem:
            if _hung(_answers(workspace, site)[0]) == _hung(rows):
                warn(f"{incomplete}: {problem}")
                return
        if len(_answers(workspace, site)[0]) == len(rows):
            warn(f"{incomplete}: probe {name} answered nothing")
            return
    warn(f"{incomplete} in {MOST_ROUNDS} rounds: the answers contradict each other")


def _hung(rows: list[Row]) -> int:
    return sum(outcome == HUNG for _, _, outcome, _ in rows)


def _answers(workspace: Workspace, site: Site) -> tuple[list[Row], bool, int]:
    """Those of rank 0 without a backlog until now, whether silence has been tested, and how many rounds were begun."""
    rows: list[Row] = []
    done, begun = False, 0
    peers = [about.name for about in site.measured[1:]]
    for entry in workspace.noted(RawFile):
        if entry.probe != SEMANTICS or entry.node != site.name or not entry.member.endswith(".r0.csv"):
            continue
        if (entry.link == "remote") != bool(peers) or (peers and entry.peer != peers[0]):
            continue
        begun += 1
        path = workspace.folder / entry.member
        text = path.read_text(errors="replace") if path.is_file() else ""
        text = text[: text.rfind("\n") + 1]  # the last line may be cut short where the controller was killed
        for row in csv.DictReader(line for line in text.splitlines() if not line.startswith("#")):
            done |= row["test"] == "silent"
            if row["backlog"] == "0":
                rows.append((int(row["size_bytes"]), row["test"], row["outcome"], int(row["patience_ms"])))
    return rows, done, begun
