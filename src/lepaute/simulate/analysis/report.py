"""An analysis in words, as tables of text, and as an object for JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy

from lepaute.kit.json_values import finite_json
from lepaute.kit.tables import shown_table
from lepaute.kit.text import counted, folded, in_common_unit, percent, ranks_text, seconds, size_text
from lepaute.simulate.analysis import critical_path as course
from lepaute.simulate.analysis.analysing import Analysis
from lepaute.simulate.analysis.efficiency import Efficiencies
from lepaute.simulate.analysis.regions import Region
from lepaute.simulate.trace.report import headline, node_name
from lepaute.simulate.trace.traffic import Pairs

#: Pieces of a path that are at a rank, not between two.
AT_RANK = (course.COMPUTES, course.CALLS, course.NO_CORE, course.SLEEPS)
_MAX_ROWS = 6
#: Of the ranks' time: causes of less waiting are in the table alone.
_MIN_SHARE = 0.0005
FACTORS = (
    ("parallel efficiency", "parallel"),
    ("  load balance", "load_balance"),
    ("  communication efficiency", "communication"),
    ("    serialisation", "serialisation"),
    ("    transfer", "transfer"),
    ("    core availability", "core_availability"),
)


class Table(NamedTuple):
    """groups : of columns in seconds, which have a unit together"""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    groups: Sequence[Sequence[int]] = ()

    def shown(self, most_rows: int | None = None) -> tuple[list[str], list[list[object]]]:
        """Columns and cells of the first rows."""
        return in_common_unit(self.columns, self.rows[:most_rows], *self.groups)


def facts_of(analysis: Analysis) -> list[tuple[str, str]]:
    """What the answer rests on, for the lines below it."""
    trace, path = analysis.trace, analysis.path
    pieces = path.seconds_by(path.piece)
    by_rank = path.seconds_by(path.rank, where=numpy.isin(path.piece, AT_RANK))
    parts = ", ".join(f"{_share(time_s, path.length_s)} {course.PIECES[piece]}" for (piece,), time_s in pieces.items())
    busiest = next(iter(by_rank), None)
    at = "" if busiest is None else f"; {_share(by_rank[busiest], path.length_s)} is on rank {busiest[0]}"
    causes: dict[str, float] = {}
    for entry in analysis.waits.by_cause(trace):
        causes[entry["cause"]] = causes.get(entry["cause"], 0.0) + entry["time_s"]
    total_s = max(float(analysis.breakdown.by_rank_s.sum()), 1e-300)
    by_share = [(name, time_s / total_s) for name, time_s in causes.items() if time_s >= _MIN_SHARE * total_s]
    shares = [f"{name} {percent(share)}" for name, share in by_share]
    waiting = ", ".join([f"{shares[0]} of the ranks' time", *shares[1:]]) if shares else "hardly any"
    sent = analysis.pairs
    operations = sum(use.operations for use in analysis.collectives)
    moved = f"{counted(int(sent.messages.sum()), 'message')} of {size_text(float(sent.size_bytes.sum()))} in all"
    return [
        ("run", f"{headline(trace)}: {seconds(analysis.runtime_s)} on {ranks_text(len(trace.ranks))}"),
        ("path", f"critical path of {seconds(path.length_s)}: {parts}{at}"),
        ("waiting", waiting),
        ("traffic", f"{moved}; {counted(operations, 'collective operation')}"),
    ]


def tables_text(analysis: Analysis, width: int, *, details: bool) -> str:
    """The tables for a terminal of so many columns, without details long ones of times by their first rows."""
    parts = []
    for table in tables_of(analysis):
        more = 0 if details or not table.groups else len(table.rows) - _MAX_ROWS
        text = shown_table(*table.shown(_MAX_ROWS if more > 1 else None), width)
        parts.append(f"{folded(table.title, width)}\n{text}{f'{chr(10)}({more} more: --details)' if more > 1 else ''}")
    return "\n\n".join(parts)


def tables_of(analysis: Analysis) -> list[Table]:
    """What there is to say, most important first; without those that would be empty."""
    made = [
        efficiency_table(analysis),
        *path_tables(analysis),
        *waiting_tables(analysis),
        *traffic_tables(analysis),
        _regions_table("Computing by region: how evenly ranks share it", "region", analysis.phases),
        _regions_table("Computing by kernel, own code by the call after it", "computing", analysis.computing),
    ]
    return [table for table in made if table.rows]


def efficiency_table(analysis: Analysis) -> Table:
    """The factors, each of which is the product of those below it, further to the right."""
    columns = [analysis.efficiencies, *([analysis.on] if analysis.on else [])]
    rows: list[list[str]] = [
        [name, *(percent(getattr(of, field) if getattr(of, field) is not None else numpy.nan) for of in columns)]
        for name, field in FACTORS
        if field != "core_availability" or any((of.core_availability or 1.0) < 1.0 for of in columns)
    ]
    rows.append(["run time", *(seconds(of.runtime_s) for of in columns)])
    rows.append(["  on an ideal network", *("-" if of.ideal_s is None else seconds(of.ideal_s) for of in columns)])
    return Table("Efficiencies, each the product of those under it", ("", *(of.of for of in columns)), rows)


def path_tables(analysis: Analysis) -> list[Table]:
    path, trace = analysis.path, analysis.trace
    at_rank, moving, met = (
        numpy.isin(path.piece, AT_RANK),
        path.piece == course.MESSAGE,
        path.piece == course.COLLECTIVE,
    )
    links = (path.origin, path.receiver)
    parts = [
        ("by what it goes through", ("what",), path.seconds_by(course.activities(path, trace))),
        ("by rank: computing and calls", ("rank",), path.seconds_by(path.rank, where=at_rank)),
        ("by link: messages", ("from rank", "to rank"), path.seconds_by(*links, where=moving)),
        ("in collective operations, by who came last", ("rank",), path.seconds_by(path.origin, where=met)),
    ]
    node_of = numpy.array(trace.metadata.get("nodes") or ())
    if len(numpy.unique(node_of)) > 1 and moving.any() and max(map(numpy.max, links)) < len(node_of):
        between = path.seconds_by(*node_of[numpy.stack(links)], where=moving)
        named = {tuple(node_name(trace, node) for node in ends): time_s for ends, time_s in between.items()}
        parts.append(("by link of nodes: messages", ("from node", "to node"), named))
    tables = []
    for title, heads, times in parts:
        rows = [(*key, time_s, _share(time_s, path.length_s)) for key, time_s in times.items()]
        tables.append(Table(f"Critical path {title}", (*heads, "time", "of the path"), rows, ((len(heads),),)))
    return tables


def waiting_tables(analysis: Analysis) -> list[Table]:
    waits, trace = analysis.waits, analysis.trace
    total_s = float(analysis.breakdown.by_rank_s.sum())
    by_cause = [(*entry.values(), _share(entry["time_s"], total_s)) for entry in waits.by_cause(trace)]
    heads = ("cause", "call", "calls", "ranks", "time", "of all time")
    tables = [Table("Wait states, as Scalasca names them", heads, by_cause, ((4,),))]
    all_s = float(waits.time_s.sum())
    for title, keys in (("Ranks that wait", waits.rank), ("Ranks that are waited for", waits.whom)):
        rows = []
        for entry in waits.by_rank(keys):
            rank, mostly = "not known" if entry["rank"] < 0 else entry["rank"], next(iter(entry["by_cause_s"]))
            rows.append((rank, entry["time_s"], _share(entry["time_s"], all_s), mostly))
        columns = ("rank", "waiting", "of all waiting", "most of it")
        tables.append(Table(title, columns, rows, ((1,),)))
    return tables


def traffic_tables(analysis: Analysis) -> list[Table]:
    trace, nodes = analysis.trace, analysis.nodes
    heads = ("messages", "bytes", "mean size", "time")

    def rows_of(pairs: Pairs) -> list[tuple[Any, ...]]:
        rows = (entry.values() for entry in pairs.to_list("sender", "receiver"))
        return [
            (sender, receiver, f"{count:,}", size_text(size), size_text(size / max(count, 1)), time_s)
            for sender, receiver, count, size, time_s in rows
        ]

    tables = []
    if nodes is not None and len(numpy.unique(trace.metadata["nodes"])) > 1:
        between = [(*(node_name(trace, node) for node in row[:2]), *row[2:]) for row in rows_of(nodes)]
        tables.append(Table("Messages between nodes", ("from node", "to node", *heads), between, ((5,),)))
    title = "Messages between ranks; time: from each send to the end of its receive"
    tables.append(Table(title, ("from", "to", *heads), rows_of(analysis.pairs), ((5,),)))
    uses = [
        (
            of.call,
            "-" if of.members < 0 else of.members,
            of.operations,
            size_text(of.size_bytes),
            of.time_s,
            of.waiting_s,
        )
        for of in analysis.collectives
    ]
    columns = ("operation", "ranks", "operations", "bytes of all ranks", "time", "waiting")
    tables.append(Table("Collective operations", columns, uses, ((4, 5),)))
    return tables


def _regions_table(title: str, head: str, regions: Sequence[Region]) -> Table:
    used = [region for region in regions if region.useful_s.any()]
    rows = [(of.name, float(of.useful_s.sum()), percent(of.load_balance), of.excess_s, of.slowest) for of in used]
    return Table(title, (head, "all ranks", "load balance", "max - mean", "slowest rank"), rows, ((1,), (3,)))


def _share(time_s: float, of_s: float) -> str:
    return percent(time_s / of_s if of_s > 0 else 0.0)


def analysis_dict(analysis: Analysis) -> dict[str, Any]:
    """All of it for JSON; seconds and bytes."""
    path, waits, trace = analysis.path, analysis.waits, analysis.trace
    moving, met = path.piece == course.MESSAGE, path.piece == course.COLLECTIVE
    links = path.seconds_by(path.origin, path.receiver, where=moving)
    columns: list[Efficiencies] = [analysis.efficiencies, *([analysis.on] if analysis.on else [])]
    document = {
        "answer": analysis.sentence,
        "run": {"headline": headline(trace), "ranks": trace.ranks, "time_s": analysis.runtime_s},
        "efficiencies": [of.to_dict() for of in columns],
        "late": analysis.late,
        "critical_path": {
            "length_s": path.length_s,
            "pieces_s": {course.PIECES[piece]: time_s for (piece,), time_s in path.seconds_by(path.piece).items()},
            "activities_s": {
                name: time_s for (name,), time_s in path.seconds_by(course.activities(path, trace)).items()
            },
            "ranks": [
                {"rank": rank, "time_s": time_s}
                for (rank,), time_s in path.seconds_by(path.rank, where=numpy.isin(path.piece, AT_RANK)).items()
            ],
            "links": [
                {"sender": sender, "receiver": receiver, "time_s": time_s}
                for (sender, receiver), time_s in links.items()
            ],
            "last_in_collectives": [
                {"rank": rank, "time_s": time_s} for (rank,), time_s in path.seconds_by(path.origin, where=met).items()
            ],
        },
        "wait_states": {
            "time_s": float(waits.time_s.sum()),
            "causes": waits.by_cause(trace),
            "waiting_ranks": waits.by_rank(waits.rank),
            "causing_ranks": waits.by_rank(waits.whom),
            "pairs": [
                {"rank": rank, "whom": whom, "time_s": time_s}
                for (rank, whom), time_s in waits.seconds_by(waits.rank, waits.whom).items()
            ],
        },
        "communication": {
            "ranks": analysis.pairs.to_list("sender", "receiver"),
            "nodes": None if analysis.nodes is None else analysis.nodes.to_list("sender", "receiver"),
            "collectives": [asdict(use) for use in analysis.collectives],
        },
        "regions": [region.to_dict() for region in analysis.phases],
        "computing": [region.to_dict() for region in analysis.computing],
        "warnings": analysis.caveats,
    }
    return dict(finite_json(document))
