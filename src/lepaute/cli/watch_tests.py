"""`lepaute watch test` and `replay`: which machines have changed, and what would have been said on each day."""

import json
import re
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from lepaute.cli.options import DETAILS_HELP, FORCE_HELP, Details, argument, option, page_option
from lepaute.cli.terminal import BAR_AFTER_S, json_text, progress_bar, say
from lepaute.cli.watch_store import DATE, NODES_HELP, Place, check_text, date_of, end_of, opened, stage
from lepaute.errors import InputError
from lepaute.kit.files import write_atomic
from lepaute.kit.json_values import finite_json
from lepaute.kit.later import later, pd
from lepaute.kit.options import SHARE, option_field
from lepaute.kit.outputs import check_outputs
from lepaute.kit.printable import terminal_columns
from lepaute.kit.quantities import numbers_of
from lepaute.kit.report.page import check_page_name, write_report
from lepaute.kit.text import counted

if TYPE_CHECKING:
    from lepaute.cli import watch_answer
    from lepaute.watch import Watch, kept
    from lepaute.watch import open_regressions as regressions
    from lepaute.watch import values as watch_values
    from lepaute.watch.alarms import procedure
    from lepaute.watch.alarms.procedure import AlarmSettings
    from lepaute.watch.judging import judge as tests_of_jobs
    from lepaute.watch.report import findings as findings_module
    from lepaute.watch.report import summary as summaries
    from lepaute.watch.report.summary import Summary
else:
    watch_answer = later("lepaute.cli.watch_answer")
    procedure = later("lepaute.watch.alarms.procedure")
    tests_of_jobs = later("lepaute.watch.judging.judge")
    regressions = later("lepaute.watch.open_regressions")
    findings_module, kept = later("lepaute.watch.report.findings"), later("lepaute.watch.kept")
    summaries = later("lepaute.watch.report.summary")
    watch_values = later("lepaute.watch.values")

#: A test below this is evidence by itself: one of a million by chance.
STRONG = 1e-6


@dataclass(frozen=True)
class TestOptions:
    """What is tested, and where the tests go."""

    node: str | None = option_field(None, NODES_HELP, metavar="SET")
    cluster: str | None = option_field(None, "only this cluster", metavar="NAME")
    factor: list[str] | None = option_field(None, "a factor, or several as one vector, as 'a & b'; default: every one")
    windows: tuple[int, ...] = option_field(
        "1,5", "test the mean of the latest R jobs", name="window", metavar="R,...", quantity=numbers_of
    )
    confidence: float = option_field("99.99%", "confidence of a test: p-values below 1 - SHARE are flagged", **SHARE)
    pooled: bool = option_field(False, "pool the covariance over all machines of a cluster")
    csv: Path | None = option_field(None, "write every test to this file, one row each")
    force: bool = option_field(False, FORCE_HELP)
    as_json: bool = option_field(False, "one JSON object on standard output", name="json")

    def __post_init__(self) -> None:
        check_outputs({"--csv": self.csv}, force=self.force)

    @property
    def asked(self) -> tuple[object, ...]:
        """What decides the tests."""
        return self.node, self.cluster, self.vectors, self.windows, self.confidence, self.pooled

    @property
    def vectors(self) -> list[tuple[str, ...]] | None:
        """Of factors, None for every factor by itself; raises InputError for one that is none."""
        return None if self.factor is None else tests_of_jobs.vectors_asked([_vector_of(text) for text in self.factor])

    def arguments(self) -> dict[str, Any]:
        """Those of a replay; raises InputError for an empty name of a factor."""
        return {"factors": self.vectors, "windows": self.windows, "confidence": self.confidence, "pooled": self.pooled}

    def write(self, verdicts: "pd.DataFrame") -> None:
        """Every test, where that was asked for."""
        if self.csv is not None:
            write_atomic(self.csv, verdicts.to_csv(index=False).encode())


def _vector_of(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in str(check_text(text, "--factor")).split("&"))
    if not all(names):
        raise InputError(f"--factor is {text[:80]!r}; give a factor, or several as 'a & b'")
    return names


@dataclass(frozen=True)
class ReportOptions:
    """What is reported, and what is a false alarm."""

    since_s: float | None = option_field(None, "suspicious tests from this date on; default: the last 7 days", **DATE)
    until_s: float | None = option_field(None, "ignore jobs after this date", metavar="DATE", quantity=end_of)
    level: float | None = option_field(None, "accepted share of false alarms; 5%, fixed by the first test", **SHARE)
    least_change: float | None = option_field(
        None, "smallest relative change worth an alarm; 0.2%, fixed by the first test", **SHARE
    )
    details: bool = option_field(False, DETAILS_HELP)
    strict: bool = option_field(False, "exit status 1 for a recent test of p < 1e-6 as well, confirmed or not")


def run_tests(
    tested: TestOptions,
    options: ReportOptions,
    files: Annotated[list[Path] | None, argument("FILE...", "added first; without a store tested, not kept")] = None,
    store: Place = None,
) -> int:
    """Tests new jobs and reports the machines that changed; exit status 1 while a regression is open.

    Else it is 4 where a machine is unlike its peers, 3 where a change for the worse is not confirmed yet, and 2 where
    nothing can be said of any machine. A regression is an alarm of a procedure that bounds the share of false alarms
    over all machines, factors and days. It is open until the machine is back or an event explains it. A suspicious
    test is a single one: among thousands, some always are.
    """
    from lepaute.watch.store.tables import OBSERVED, SAID

    read_as: list[str] = []
    with opened(store, files or (), read_as) as watch:
        settings = _settings(watch, options)
        asked = tested.asked, options.since_s, options.until_s, watch_values.day_of(time.time())
        before = kept.kept_object(("summary", watch.store.state(SAID), settings, asked)) if tested.csv is None else None
        if before is not None:
            summary, new = before, list[dict[str, Any]]()
        else:
            observed = watch.store.state(OBSERVED)
            summary, new = _tested(watch, tested, options, settings)
            if watch.store.state(OBSERVED) == observed:  # nothing came in meanwhile
                kept.keep_object(("summary", watch.store.state(SAID), settings, asked), summary)
    if tested.as_json:
        fields = {"verdict": summary.verdict, **finite_json(summary), "new_alarms": new}
        print(json_text(fields | ({"read_as": read_as} if files else {})))
    else:
        text = watch_answer.tested_text(summary, settings.level, terminal_columns(), details=options.details)
        loud = re.split(r"[:,;]| in | of ", text, maxsplit=1)[0]
        say(text, meaning=watch_answer.MEANING.get(summary.verdict, "doubtful"), loud=loud)
        for table in read_as:
            say(f"  read    {table}; other columns: --mapping of watch ingest", 10)
    strong = any(suspicion.p_value < STRONG for suspicion in summary.suspicions)
    return 1 if options.strict and strong else summaries.EXIT_STATUS[summary.verdict]


def _settings(watch: "Watch", options: ReportOptions) -> "AlarmSettings":
    """Of the alarms, as asked for; raises InputError where those of the store are others."""
    given = {name: value for name in ("level", "least_change") if (value := getattr(options, name)) is not None}
    settings = replace(procedure.settings_of(watch.store.alarm_days()), **given)
    procedure.check_settings(watch.store, settings)
    return settings


def _tested(
    watch: "Watch", tested: TestOptions, options: ReportOptions, settings: "AlarmSettings"
) -> "tuple[Summary, list[dict[str, Any]]]":
    """What there is to say, and the alarms of days that are recorded now: of all days, whatever was asked for."""
    from lepaute.watch.judging.recorded_tests import Selection
    from lepaute.watch.notices.notice import least_seen, notices, unconfirmed_changes, worth_a_look

    with progress_bar(BAR_AFTER_S) as tell:
        every = regressions.packed_values(watch.store)
        values = chosen_values(every, tested.node, tested.cluster, options.until_s)
        progress = stage(tell, "judging days", 0.0, 0.5)
        judged = regressions.open_regressions(watch.store, settings=settings, progress=progress, values=every)
        recorded = procedure.record_alarms(watch.store, judged.judged)
        new: list[dict[str, Any]] = json.loads(recorded.to_json(orient="records"))
        if options.until_s is not None:
            until = every[every["started_s"] < options.until_s]
            judged = regressions.open_regressions(watch.store, settings=settings, values=until)
        del every
        nodes = watch_values.nodes_of(values)
        selection = Selection(
            None if tested.node is None and tested.cluster is None else sorted({node for _, node in nodes}),
            tested.windows,
            tested.confidence,
            tested.pooled,
            None,
            options.until_s,
            standing=judged.rows,
            columns=findings_module.VERDICT_COLUMNS if tested.csv is None else None,
            values=None if tested.pooled else values,
        )
        progress, level = stage(tell, "testing jobs", 0.5, 0.9), 1.0 - tested.confidence
        if tested.csv is None:
            findings = list(findings_module.findings_of(watch, tested.vectors, selection, nodes, progress))
        else:
            parts = watch.tests(tested.vectors, selection, progress)
            # names may be those of another cluster, too
            asked = [part[watch_values.is_of(part, nodes)].reset_index(drop=True) for part in parts]
            whole = tests_of_jobs.with_log10(tests_of_jobs.joined(asked))
            tested.write(whole)
            findings = [findings_module.findings_in(whole, level)]
        open_here = judged.of_nodes(nodes)
        clusters = {cluster for cluster, _ in nodes}
        named = {*nodes, *((cluster, "") for cluster in clusters)}
        sentences = [
            *(notice for notice in notices(judged.values, judged.changelog) if (notice.cluster, notice.node) in named),
            *unconfirmed_changes(judged, nodes),
            *least_seen(judged, clusters),
        ]
        looks = worth_a_look(open_here)
        summary = summaries.summarise(findings, values, open_here.rows, sentences, looks, since_s=options.since_s)
    return summary, new


def chosen_values(
    every: "pd.DataFrame", nodes: str | None, cluster: str | None, until_s: float | None
) -> "pd.DataFrame":
    """The factor values, of all of a store, of the nodes and the cluster that are meant, of jobs before until_s.

    Raises InputError where there are none, or none of a node that is named.
    """
    from lepaute.watch.named_nodes import known_text, nodes_named

    values = every
    if check_text(cluster, "--cluster") is not None:
        values = values[values["cluster"] == cluster]
    if until_s is not None:
        values = values[values["started_s"] < until_s]
    if values.empty:
        where = f" of cluster {cluster[:80]}" if cluster else ""
        raise InputError(f"the store has no factor values{where}; `lepaute watch ingest` adds some")
    if nodes is None:
        return values
    known = watch_values.nodes_of(values)
    named = nodes_named(known, nodes, cluster)
    if unknown := [name for name, of in named.items() if not of]:
        raise InputError(f"the store has no node {', '.join(unknown)[:80]}; it has {known_text(known)}")
    return values[watch_values.is_of(values, {pair for pairs in named.values() for pair in pairs})]


def replay(
    tested: TestOptions,
    store: Place = None,
    since: Annotated[str | None, option("first day to show", metavar="DATE")] = None,
    until: Annotated[str | None, option("last day to show", metavar="DATE")] = None,
    report: Annotated[Path | None, page_option("a page: what would have been found, and when")] = None,
    details: Details = False,
) -> None:
    """Replays the store day by day: each day is judged by what was measured and logged up to it.

    Nothing is recorded. The regressions of an evening are those that `lepaute watch test` would have named then.
    """
    from lepaute.watch.judging.replay import replay as replay_days
    from lepaute.watch.report.history import days_of, evenings_of
    from lepaute.watch.report.replay_page import Replayed, page

    check_page_name(report)
    if report is not None:
        check_outputs({"--csv": tested.csv, "--report": report}, force=tested.force)
    first = None if since is None else date_of(since, "--since")
    last = None if until is None else date_of(until, "--until")
    with opened(store) as watch, progress_bar(BAR_AFTER_S) as tell:
        every = regressions.packed_values(watch.store)
        values = chosen_values(every, tested.node, tested.cluster, None)
        nodes = watch_values.nodes_of(values)
        known = regressions.open_regressions(
            watch.store,
            values=every if until is None else every[every["started_s"] < end_of(until, "--until")],
            progress=stage(tell, "judging days", 0.0, 0.3),
        )
        false_alarms = procedure.settings_of(watch.store.alarm_days()).level
        verdicts = replay_days(
            values,
            known.changelog,
            **tested.arguments(),
            since=first,
            until=last,
            progress=stage(tell, "testing jobs", 0.3, 0.6),
        )
        evenings = evenings_of(known, first, last, stage(tell, "asking each evening", 0.6))
        news = {day: regressions.rows_of(rows, nodes) for day, rows in evenings.items()}
    still_open = known.of_nodes(nodes).reports
    days = days_of(verdicts, news, level=1.0 - tested.confidence)
    tested.write(verdicts)
    tests = int((verdicts["missing"] == 0).sum())
    what = f"{counted(len(nodes), 'node')}, {counted(values['factor'].nunique(), 'factor')}"
    replayed = Replayed(days, still_open, tests, false_alarms, 1.0 - tested.confidence, what)
    if report is not None:
        write_report(report, lambda: page(replayed), replayed.to_dict)
    if tested.as_json:
        print(json_text({"verdicts": len(verdicts), **replayed.to_dict()}))
    else:
        print(watch_answer.replayed_text(days, still_open, tests, false_alarms, terminal_columns(), details=details))
