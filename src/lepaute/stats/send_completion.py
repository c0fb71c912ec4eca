"""Send-completion semantics by message size, from single tests of which any may err: verdicts, and the limits.

Semantics of a message, by the names of the literature on simulated MPI:
asynchronous: MPI_Send returns before a receive is posted, and MPI_Isend has copied the data
detached    : MPI_Send returns before a receive is posted, though MPI_Isend has copied nothing: the transfer waits
synchronous : MPI_Send waits for the receive
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

import pandas

#: (size_bytes, test, outcome, patience_ms); tests are `deadlock`, `corruption`, `silent`.
Row = tuple[int, str, str, int]

#: Outcomes that show a send completing without its receiver; all others show that it does not.
PASSED = frozenset({"returned", "copied"})
#: The outcome of any test that had to be ended.
HUNG = "hung"
OUTCOMES = PASSED | {"blocked", "changed", HUNG}
#: A size is decided when one answer leads by this many: one odd answer among them changes nothing.
LEAD = 3
#: A size that is not decided after this many answers does now this, now that.
MAX_ANSWERS = 15


class Verdict(Enum):
    """What the answers to a test of one size come to; OPEN: too few as yet, BOTH: now one, now the other."""

    PASSES = "passes"
    FAILS = "fails"
    BOTH = "both"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class SemanticLimits:
    """Largest sizes up to which every size has a semantics: 0 for none, inf for all that were tested.

    asynchronous_up_to_bytes: the data are copied, and MPI_Send returns without a receive
    detached_up_to_bytes    : MPI_Send returns without a receive; never below the former
    unattended_up_to_bytes  : MPI_Send always returned while the receiver made no call of MPI; None if not tested
    tested_up_to_bytes      : largest size that was tested, 0 if none was
    undecided_bytes         : sizes whose answers differ however often they are asked, or that
                              fail though larger ones pass
    Between a limit and the next larger tested size nothing is known; only unattended sends leave such gaps in the end.
    """

    asynchronous_up_to_bytes: float
    detached_up_to_bytes: float
    unattended_up_to_bytes: float | None
    tested_up_to_bytes: int
    undecided_bytes: tuple[int, ...] = ()


def rows_of(frame: pandas.DataFrame) -> list[Row]:
    """The answers in observations/semantics.parquet that the limits follow from: of rank 0, without a backlog."""
    mine = frame[(frame["rank"] == 0) & (frame["backlog"] == 0)]
    columns = (mine[name].tolist() for name in ("size_bytes", "test", "outcome", "patience_ms"))
    return [(int(size), str(test), str(outcome), int(wait)) for size, test, outcome, wait in zip(*columns, strict=True)]


def semantic_limits(rows: Iterable[Row]) -> SemanticLimits:
    """The limits that the answers come to; see rows_of()."""
    answers = list(rows)
    by_test = {test: verdicts(answers, test) for test in ("deadlock", "corruption", "silent")}
    silent = {
        size: Verdict.BOTH if verdict is Verdict.OPEN else verdict for size, verdict in by_test.pop("silent").items()
    }
    returning, copying = bracket(by_test["deadlock"])[0], bracket(by_test["corruption"])[0]
    return SemanticLimits(
        asynchronous_up_to_bytes=min(returning, copying),
        detached_up_to_bytes=returning,
        unattended_up_to_bytes=bracket(silent)[0] if silent else None,
        tested_up_to_bytes=max((size for size, *_ in answers), default=0),
        undecided_bytes=tuple(sorted({size for sizes in by_test.values() for size in _undecided(sizes)})),
    )


def verdicts(rows: Iterable[Row], test: str) -> dict[int, Verdict]:
    """By size, in rising order, what the answers to one test come to.

    A send that returned has done so, but one that blocks may have been kept from its core for longer than the patience:
    of answers against a size only those of its longest patience count. One ended after seconds counts as LEAD.
    """
    passed, failed, longest = Counter[int](), Counter[int](), dict[int, int]()
    for size, name, outcome, patience_ms in rows:
        if name != test:
            continue
        if patience_ms > longest.get(size, 0):
            longest[size], failed[size] = patience_ms, 0
        passed[size] += outcome in PASSED
        if outcome == HUNG:
            failed[size] += LEAD
        else:
            failed[size] += outcome not in PASSED and patience_ms == longest[size]
    return {size: _verdict(passed[size], failed[size]) for size in sorted(longest)}


def bracket(verdicts_by_size: Mapping[int, Verdict]) -> tuple[float, float]:
    """(largest size that passes with all smaller ones, smallest size that does not), by verdicts in rising order.

    Open sizes count as not there. (0, b) when the smallest does not pass, (inf, inf) when all pass, (0, inf) without.
    """
    known = [(size, verdict) for size, verdict in verdicts_by_size.items() if verdict is not Verdict.OPEN]
    low: float = 0
    for size, verdict in known:
        if verdict is not Verdict.PASSES:
            return low, size
        low = size
    return (math.inf, math.inf) if known else (0, math.inf)


def _undecided(verdicts_by_size: Mapping[int, Verdict]) -> set[int]:
    """No library takes longer for less: what fails below a size that passes was kept waiting by something else."""
    largest = max((size for size, verdict in verdicts_by_size.items() if verdict is Verdict.PASSES), default=0)
    return {
        size
        for size, verdict in verdicts_by_size.items()
        if verdict is Verdict.BOTH or (verdict is Verdict.FAILS and size < largest)
    }


def _verdict(passed: int, failed: int) -> Verdict:
    if abs(passed - failed) >= LEAD:
        return Verdict.PASSES if passed > failed else Verdict.FAILS
    return Verdict.BOTH if passed + failed >= MAX_ANSWERS else Verdict.OPEN
