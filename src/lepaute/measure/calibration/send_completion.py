"""Send-completion semantics on one site: rounds of the probe, each chosen by the answers of those before."""

import math
from collections.abc import Callable, Mapping, Sequence

from lepaute.errors import EnvironmentProblem
from lepaute.measure.calibration.attempt import Attempts, Site
from lepaute.measure.calibration.entries import RawFile
from lepaute.measure.design import semantics_design
from lepaute.measure.experiment.workspace import Workspace
from lepaute.measure.nodes.channel import NodeLost
from lepaute.measure.plan import SEMANTICS, PlannedRun
from lepaute.measure.raw_files import rows_of, whole_lines
from lepaute.stats.send_completion import HUNG, LEAD, MAX_ANSWERS, Row, Verdict, bracket, semantic_limits, verdicts

#: A test: name, size_bytes, backlog, patience_ms.
Test = tuple[str, int, int, int]

#: Points that a round puts between the largest size that passes and the smallest that does not.
POINTS = 15
#: How long a send may take to return in the search. On a busy machine a rank can be kept from its core for longer, so
#: that the smallest size that blocks is tried again with a patience that no rank is kept waiting for.
PATIENCE_MS, LONG_PATIENCE_MS = 20, 100
#: Whether a send needs the receiver's attention depends in some libraries on what was sent before, so no limit of it is
#: sought to the byte: powers of two, in one start, in random order.
SILENT_PATIENCE_MS = 10
#: Messages in a row that nobody takes: more than the pool for a pair of ranks held in the libraries seen (19 to 127).
BACKLOG = 255
#: No search takes longer: 15 points make 2^24 sizes one in six rounds; then limits are confirmed, or move.
MAX_ROUNDS = 20


def next_tests(rows: Sequence[Row], most_bytes: int) -> list[Test]:
    """The tests of the next round, empty when both limits are known; each size as often as one round can decide it.

    rows      : all answers of rank 0 until now, those with a backlog left out
    most_bytes: largest size that is tested
    First comes what is copied, whose answers cost no waiting; sends mostly return up to the same size.
    """
    copying = [row for row in rows if row[1] == "corruption"]
    test, sizes = "corruption", _wanted(copying, most_bytes, range(0, 31, 2))
    if not sizes:
        test, returning = "deadlock", [row for row in rows if row[1] == "deadlock"]
        hint, _ = bracket(verdicts(copying, "corruption"))
        sizes = _wanted(returning, most_bytes, range(0, 31, 4), hint)
    return [(test, size, 0, patience_ms) for size, patience_ms in sizes.items() for _ in range(LEAD)]


def silent_tests(rows: Sequence[Row]) -> list[Test]:
    """When the search is over: which sends that need no receive return while the receiver is silent, and how many.

    Powers of two up to the largest size that returns, and that size; a byte and that size also with a backlog. LEAD
    times each, one start of the probe. None if no send returns without its receive.
    """
    low, _ = bracket(verdicts(rows, "deadlock"))
    largest = max((size for size, test, *_ in rows if test == "deadlock" and size <= low), default=0)
    if not largest:
        return []
    sizes = sorted({*(1 << power for power in range(largest.bit_length())), largest})
    kinds = [(size, 0) for size in sizes] + [(size, BACKLOG) for size in sorted({1, largest})]
    return [("silent", size, backlog, SILENT_PATIENCE_MS) for size, backlog in kinds for _ in range(LEAD)]


def _wanted(rows: Sequence[Row], most_bytes: int, powers: range, hint: float | None = None) -> dict[int, int]:
    """Sizes to test, and the patience of each, by all answers to one test.

    powers: of two, that the search begins with
    hint  : where the limit is likely to be; None: this test knows no waiting, so what fails need not be confirmed
    """
    verdict_of_size = verdicts(rows, rows[0][1] if rows else "")
    if not verdict_of_size:
        first = dict.fromkeys([*(1 << power for power in powers if 1 << power < most_bytes), most_bytes], PATIENCE_MS)
        if hint is not None and 1 <= hint < most_bytes:
            first |= {int(hint): PATIENCE_MS, int(hint) + 1: LONG_PATIENCE_MS}
        return first
    low, high = bracket(verdict_of_size)
    # Answers that differ were most likely those of a rank that was kept from its core.
    doubtful = [size for size, verdict in verdict_of_size.items() if verdict is Verdict.OPEN and size < high]
    if _fails_below_one_that_passes(int(high) if math.isfinite(high) else 0, verdict_of_size, rows):
        doubtful.append(int(high))
    again = dict.fromkeys(doubtful, LONG_PATIENCE_MS)
    if math.isinf(high):
        return again
    between = [size for size in _points(int(low), int(high)) if size not in verdict_of_size]
    patient = any(row[0] == high and (row[2] == HUNG or row[3] >= LONG_PATIENCE_MS) for row in rows)
    if not between and not again and hint is not None and not patient:
        return {int(high): LONG_PATIENCE_MS}
    return again | dict.fromkeys(between, PATIENCE_MS)


def _fails_below_one_that_passes(size: int, verdict_of_size: Mapping[int, Verdict], rows: Sequence[Row]) -> bool:
    """Whether `size` fails and a larger one passes, or it is the smallest of all: as after a stall, in which all of its
    tests fell. Never where it has been asked as often as is worth it, or does now this, now that.
    """
    larger_passes = any(verdict is Verdict.PASSES and other > size for other, verdict in verdict_of_size.items())
    asked = sum(row[0] == size for row in rows)
    return verdict_of_size.get(size) is Verdict.FAILS and (larger_passes or size == 1) and asked < MAX_ANSWERS


def _points(low: int, high: int) -> list[int]:
    """Up to POINTS sizes between low and high, none where they are neighbours."""
    if high - low - 1 <= POINTS:
        return list(range(low + 1, high))
    return [round(low + (high - low) * step / (POINTS + 1)) for step in range(1, POINTS + 1)]


#: Limits are sought up to this size: no library was seen to send more without asking.
MAX_BYTES = 16 << 20


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
    answer. Any other failure of the probe is a warning; a second one in a row ends the search.
    silence: also which sends return while the receiver makes no call of MPI
    Raises NodeLost with a node of the site.
    """
    peers = "_".join(about.name for about in site.measured[1:])
    incomplete = "the send-completion semantics remain unknown"
    failed = False
    for _ in range(MAX_ROUNDS):
        rows, done, begun = _answers(workspace, site)
        tests = next_tests(rows, MAX_BYTES) or (silent_tests(rows) if silence and not done else [])
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
                if failed:
                    warn(f"{incomplete}: {problem}")
                    return
                warn(f"{name} failed and was repeated: {problem}")
                failed = True
                continue
        failed = False
        if len(_answers(workspace, site)[0]) == len(rows):
            warn(f"{incomplete}: probe {name} answered nothing")
            return
    warn(f"{incomplete} in {MAX_ROUNDS} rounds: the answers contradict each other")


def _hung(rows: list[Row]) -> int:
    return sum(outcome == HUNG for _, _, outcome, _ in rows)


def _answers(workspace: Workspace, site: Site) -> tuple[list[Row], bool, int]:
    """Rank 0's answers without a backlog until now, whether silence has been tested, and how many rounds were begun."""
    rows: list[Row] = []
    done, begun = False, 0
    peers = [about.name for about in site.measured[1:]]
    for entry in workspace.noted(RawFile):
        if entry.probe != SEMANTICS or entry.node != site.name or not entry.member.endswith(".r0.csv"):
            continue
        if (entry.link == "remote") != bool(peers) or (peers and entry.peer != peers[0]):
            continue
        begun += 1
        for row in rows_of(whole_lines(workspace.folder / entry.member)):
            done |= row["test"] == "silent"
            if row["backlog"] == "0":
                rows.append((int(row["size_bytes"]), row["test"], row["outcome"], int(row["patience_ms"])))
    return rows, done, begun
