"""`lepaute watch test`: which machines have changed, which may have, and which say nothing."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lepaute.cli.output_options import Force
from lepaute.cli.watch_store import AsJson, Cluster, Nodes, Place, end_of, opened, start_of

if TYPE_CHECKING:
    import pandas as pd

    from lepaute.watch import Watch
    from lepaute.watch.open_regressions import OpenRegressions

Factors = Annotated[
    list[str] | None,
    typer.Option("--factor", help="a factor, or several tested as one vector, as 'a & b'; every factor unless given"),
]
Windows = Annotated[str, typer.Option("--window", metavar="R,...", help="test the mean of the latest R jobs")]
Confidence = Annotated[
    float, typer.Option("--confidence", help="of a single test; p-values below 1 minus it are suspicious")
]
Pooled = Annotated[bool, typer.Option("--pooled", help="with a covariance common to all machines of a cluster")]
#: A test below this is evidence by itself: one of a million by chance.
STRONG = 1e-6
Csv = Annotated[Path | None, typer.Option("--csv", help="write every test to this file, one row each")]


def run_tests(
    store: Place = None,
    node: Nodes = None,
    cluster: Cluster = None,
    factor: Factors = None,
    window: Windows = "1,5",
    confidence: Confidence = 0.9999,
    pooled: Pooled = False,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="DATE", help="show suspicious tests from this date on; default: the last 7 days of data"
        ),
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="DATE", help="ignore jobs after this date")] = None,
    level: Annotated[
        float | None,
        typer.Option("--level", help="accepted share of false alarms; 0.05, fixed by the first test"),
    ] = None,
    least_change: Annotated[
        float | None,
        typer.Option("--least-change", help="smallest relative change worth an alarm; 0.002, fixed by the first test"),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="all reports, in full")] = False,
    csv: Csv = None,
    force: Force = False,
    as_json: AsJson = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="exit status 1 for a recent test of p < 1e-6 as well, confirmed or not")
    ] = False,
) -> int:
    """Tests new jobs and reports the machines that changed; exit status 1 while a regression is open.

    A regression is an alarm of a procedure that bounds the share of false alarms over all machines, factors and days.
    It is open until the machine is back or an event explains it. A suspicious test is a single one: among thousands,
    some always are.
    """
    from lepaute.cli.watch_tests_text import summary_text
    from lepaute.kit.outputs import check_outputs
    from lepaute.watch.notices.notice import few_machines, notices, unconfirmed_changes
    from lepaute.watch.report.summary import OF_VERDICTS, summarise
    from lepaute.watch.values import plain

    check_outputs({"--csv": csv}, force=force)
    since_s, until_s = start_of(since, "--since"), end_of(until, "--until")
    with opened(store) as watch:
        values = chosen_values(watch, node, cluster, until_s)
        judged, new = _judged(watch, level, least_change, until_s)
        verdicts = watch.test(
            nodes=sorted(values["node"].unique()),
            factors=vectors_of(factor),
            windows=windows_of(window),
            confidence=confidence,
            pooled=pooled,
            until_s=until_s,
            columns=OF_VERDICTS if csv is None else None,
            standing=judged.rows,
        )
        verdicts = of_machines(verdicts, values)
    open_here = judged.of_nodes(pairs_of(values))
    said = [
        *notices(values, judged.changelog),
        *unconfirmed_changes(judged, pairs_of(values)),
        *few_machines(open_here.values, judged.changelog),
    ]
    found = summarise(verdicts, values, open_here.rows, said, level=1.0 - confidence, since_s=since_s)
    if csv is not None:
        write_csv(csv, verdicts)
    if as_json:
        print(json.dumps({**plain(found), "new_alarms": new}, indent=2))
    else:
        print(summary_text(found, everything=everything))
    strong = any(each.p_value < STRONG for each in found.suspicions)
    return 1 if found.regressions or (strict and strong) else 0


def vectors_of(texts: list[str] | None) -> list[tuple[str, ...]] | None:
    """The factors that --factor gives, None for all; raises InputError for an empty name."""
    from lepaute.cli.watch_store import check_text
    from lepaute.errors import InputError

    if texts is None:
        return None
    vectors = []
    for text in texts:
        names = tuple(name.strip() for name in str(check_text(text, "--factor")).split("&"))
        if not all(names):
            raise InputError(f"--factor is {text[:80]!r}; give a factor, or several as 'a & b'")
        vectors.append(names)
    return vectors


def windows_of(text: str) -> tuple[int, ...]:
    """The numbers of --window; raises InputError for what is none."""
    from lepaute.kit.quantities import numbers_of

    return numbers_of(text, "--window")


def chosen_values(watch: "Watch", nodes: str | None, cluster: str | None, until_s: float | None) -> "pd.DataFrame":
    """The factor values of the nodes and the cluster that are meant.

    Raises InputError where there are none, or none of a node that is named.
    """
    from lepaute.cli.watch_store import check_text
    from lepaute.errors import InputError
    from lepaute.watch.named_nodes import known_text, nodes_named

    values = watch.store.values(cluster=check_text(cluster, "--cluster"), until_s=until_s)
    if values.empty:
        where = f" of cluster {cluster[:80]}" if cluster else ""
        raise InputError(f"the store has no factor values{where}; `lepaute watch ingest` adds some")
    if nodes is None:
        return values
    pairs = pairs_of(values)
    found = nodes_named(pairs, nodes, cluster)
    if unknown := [name for name, of in found.items() if not of]:
        raise InputError(f"the store has no node {', '.join(unknown)[:80]}; {known_text(pairs)}")
    meant = {node for of in found.values() for node in of}
    keys = values["cluster"] + "\n" + values["node"]
    return values[keys.isin([f"{of}\n{name}" for of, name in meant])].reset_index(drop=True)


def pairs_of(values: "pd.DataFrame") -> "list[tuple[str, str]]":
    """The (cluster, node) of a table."""
    return list(values[["cluster", "node"]].drop_duplicates().itertuples(index=False, name=None))


def of_machines(rows: "pd.DataFrame", values: "pd.DataFrame") -> "pd.DataFrame":
    """The rows of nodes that the values have, or of all of a cluster: names may be those of another cluster, too."""
    from lepaute.watch.changelog import ALL

    kept = {f"{cluster}\n{name}" for cluster, node in pairs_of(values) for name in (node, ALL)}
    return rows[(rows["cluster"] + "\n" + rows["node"]).isin(kept)].reset_index(drop=True)


def write_csv(path: Path, rows: "pd.DataFrame") -> None:
    """Writes the table whole."""
    from lepaute.kit.files import write_whole

    write_whole(path, rows.to_csv(index=False).encode())


def _judged(
    watch: "Watch", level: float | None, least_change: float | None, until_s: float | None
) -> "tuple[OpenRegressions, list[dict[str, Any]]]":
    """What is open by all nodes, and the alarms of days that are recorded now: of all days, whatever was asked for."""
    from dataclasses import replace

    from lepaute.watch.alarms.procedure import check_settings, record_alarms, settings_of
    from lepaute.watch.open_regressions import open_regressions

    given = {"level": level, "least_change": least_change}
    settings = replace(settings_of(watch.store), **{name: value for name, value in given.items() if value is not None})
    check_settings(watch.store, settings)
    whole = open_regressions(watch.store, settings=settings)
    new = record_alarms(watch.store, whole.judged)
    found = whole if until_s is None else open_regressions(watch.store, settings=settings, until_s=until_s)
    rows: list[dict[str, Any]] = json.loads(new.to_json(orient="records"))
    return found, rows
