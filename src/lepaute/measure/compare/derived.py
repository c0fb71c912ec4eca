"""What times stand for: bandwidth and message rate of streams, overlap, and the rank that has a difference."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING

import pandas

from lepaute.kit.text import counted, exact_seconds, exact_size, seconds, significant
from lepaute.measure.archive import mpi_campaign
from lepaute.measure.compare.factor_effects import effect_sentences
from lepaute.measure.compare.wording import order_sentence
from lepaute.measure.comparison.cases import NONBLOCKING, OVERLAPPED, STREAM_MESSAGES, STREAMS, name_of, plain_operation

if TYPE_CHECKING:
    from lepaute.measure.archive import Archive
    from lepaute.measure.archive.mpi_campaign import CampaignFacts, LibraryFacts
    from lepaute.measure.compare.comparison import Comparison
    from lepaute.measure.compare.verdicts import Verdict

#: A rank has the difference where the others have at most this share of its own.
OTHERS = 0.5
_RANK = ["library", "operation", "form", "size_bytes", "rank"]


@dataclass(frozen=True, slots=True)
class SlowRank:
    """For an operation whose times differ, in how many of its rows which rank alone has the difference.

    rank    : None if all ranks have it alike in most rows
    node    : its name, or that of the node whose ranks alone have it, all of them; empty on one machine
    excess_s: by which the slower library takes longer on it, at most, in the row of size_bytes; others_s: on others
    """

    operation: str
    form: str
    rank: int | None
    rows: int
    all_rows: int
    slower: str
    size_bytes: int
    excess_s: float
    others_s: float
    node: str = ""

    def __str__(self) -> str:
        name = name_of(self.operation, self.form)
        rows = f"{self.rows} of the {counted(self.all_rows, 'row')} shown to differ"
        if self.rank is None and not self.node:
            return (
                f"{name}: all ranks take longer alike in {rows}: a rank that is late and those that wait for it look "
                "the same here; operations from a root (bcast, scatter) tell them apart"
            )
        where = f"rank {self.rank}" if self.rank is not None else "every rank"
        where += f" on {self.node}" if self.node else ""
        others = f"other ranks by {seconds(self.others_s)}" if self.others_s > 0 else "the other ranks do not"
        return (
            f"{name}: {where} takes longer in {rows} ({self.slower} by {seconds(self.excess_s)} at "
            f"{exact_size(self.size_bytes)}), {others}"
        )


def derived_lines(found: "Comparison") -> list[str]:
    """Sentences on what the table does not show."""
    of_factors = effect_sentences(found.effects)
    if of_factors:
        levels = [(row.operation.partition(", ")[2], [row]) for row in found.verdicts]
        of_factors.append(order_sentence("the level of a factor", levels, found.left, found.right))
    return [*of_factors, *_streams(found), *_overlaps(found), *map(str, slow_ranks(found))]


def _streams(found: "Comparison") -> list[str]:
    """Bandwidth and message rate of each stream."""
    lines = []
    for row in found.verdicts:
        if (operation := plain_operation(row.operation)) in STREAMS:
            messages = STREAM_MESSAGES * (1 + STREAMS.index(operation))
            sides = [
                f"{label} {significant(messages * row.size_bytes / time_s / 1e6)} MB/s, "
                f"{significant(messages / time_s / 1e3)} thousand messages/s"
                for label, time_s in ((found.left, row.left_s), (found.right, row.right_s))
            ]
            lines.append(f"{row.operation} of {exact_size(row.size_bytes)}, each pair: {'; '.join(sides)}")
    return lines


def _overlaps(found: "Comparison") -> list[str]:
    """The share of a nonblocking operation that is over when the work beside it is, 0 to 100 %."""
    alone = {(row.operation, row.size_bytes): row for row in found.verdicts if row.form == NONBLOCKING}
    work_s = max((archive.compute_s for archive in found.archives), default=0.0)
    lines = []
    for row in found.verdicts:
        pure = alone.get((row.operation, row.size_bytes))
        if row.form == OVERLAPPED and pure is not None and work_s > 0:
            times = ((found.left, pure.left_s, row.left_s), (found.right, pure.right_s, row.right_s))
            sides = [f"{label} {100 * overlap(pure_s, total_s, work_s):.0f} %" for label, pure_s, total_s in times]
            name = name_of(row.operation, NONBLOCKING)
            work = f"{exact_seconds(work_s)} of work"
            lines.append(f"{name} of {exact_size(row.size_bytes)} overlaps with {work}: {', '.join(sides)}")
    return lines


def overlap(pure_s: float, total_s: float, work_s: float) -> float:
    """Share of the time of an operation that passes while the work is done, 0 to 1.

    pure_s: of the operation alone; total_s: with the work between start and wait
    """
    return min(1.0, max(0.0, 1 - (total_s - work_s) / pure_s)) if pure_s > 0 else 0.0


def times_of_ranks(
    chosen: Sequence[str],
    libraries: "dict[str, LibraryFacts]",
    campaigns: Iterable[tuple["Archive", "CampaignFacts"]],
    over_sessions: bool,
    ranks: int,
) -> pandas.DataFrame:
    """`mpi_campaign.rank_times` of the chosen libraries, by their labels of the comparison; medians over sessions."""
    tables: list[pandas.DataFrame] = []
    for campaign, about in campaigns:
        labels = {
            libraries[label].label: label
            for label in chosen
            if over_sessions or any(library is libraries[label] for library in about.libraries)
        }
        if labels:
            table = mpi_campaign.rank_times(campaign, ranks)
            tables.append(table[table["library"].isin(labels)].replace({"library": labels}))
    if over_sessions:
        return pandas.concat(tables).groupby(_RANK, observed=True).median().reset_index()
    return pandas.concat(tables, ignore_index=True) if tables else no_rank_times()


def no_rank_times() -> pandas.DataFrame:
    times = ("own_s", "begin_s", "end_s", "begin_low_s", "end_low_s", "begin_high_s", "end_high_s")
    return pandas.DataFrame(columns=[*_RANK, *times])


def slow_ranks(found: "Comparison") -> tuple[SlowRank, ...]:
    """One of each operation and form of which a row was shown to differ."""
    table = found.rank_times.set_index(_RANK)["own_s"].sort_index() if len(found.rank_times) else None
    rows: dict[tuple[str, str], list[SlowRank]] = {}
    for row in found.verdicts:
        if table is not None and row.decision.is_shown:
            slow = _slow_rank(row, found, table)
            if slow is not None:
                rows.setdefault((row.operation, row.form), []).append(slow)
    result = []
    for each in rows.values():
        # Of as many rows, one that names a rank tells more, then one that names a node.
        most = max(sorted(set(map(_place, each))), key=lambda place: sum(_place(row) == place for row in each))
        of_it = [row for row in each if _place(row) == most]
        result.append(replace(max(of_it, key=lambda row: row.excess_s), rows=len(of_it), all_rows=len(each)))
    return tuple(result)


def _place(row: SlowRank) -> tuple[bool, bool, int, str]:
    return row.rank is None, not row.node, row.rank or 0, row.node


def _slow_rank(one: "Verdict", found: "Comparison", table: "pandas.Series[float]") -> SlowRank | None:
    slower, faster = (found.right, found.left) if one.outcome == "left faster" else (found.left, found.right)
    try:
        sides: list[pandas.Series[float]] = [table.xs((label, *one.row)) for label in (slower, faster)]
        excess = (sides[0] - sides[1]).sort_values(ascending=False)
    except KeyError:
        return None
    if len(excess) < 2 or not isfinite(excess.iloc[0]) or excess.iloc[0] <= 0:
        return None
    worst, others = float(excess.iloc[0]), float(excess.iloc[1])
    rank: int | None = int(excess.index[0])
    node = found.nodes[int(excess.index[0])] if found.nodes else ""
    if others > OTHERS * worst:
        rank = None
        mine = [value for each, value in excess.items() if node and found.nodes[int(str(each))] == node]
        rest = [value for each, value in excess.items() if node and found.nodes[int(str(each))] != node]
        if len(mine) > 1 and rest and max(rest) <= OTHERS * min(mine):
            others = float(max(rest))
        else:
            node = ""
    return SlowRank(one.operation, one.form, rank, 1, 1, slower, one.size_bytes, worst, max(0.0, others), node)
