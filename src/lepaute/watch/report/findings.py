"""What the tests of a vector of factors say: which are suspicious, and which machines cannot be tested yet."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lepaute.stats.expanding import Booleans
from lepaute.watch.changelog import ALL, Changelog
from lepaute.watch.judging import recorded_tests as recorded
from lepaute.watch.judging.judge import AND
from lepaute.watch.kept import keep_state, kept_state
from lepaute.watch.store.rows import row_keys
from lepaute.watch.store.tables import VERDICTS
from lepaute.watch.values import DAY_S, MACHINE, WHOLE_NODE, Node, is_of, is_packed

if TYPE_CHECKING:
    from lepaute.watch import Watch
    from lepaute.watch.judging.recorded_tests import Selection

#: Columns of verdicts that findings are made of.
VERDICT_COLUMNS = (
    *("cluster", "node", "cpu", "job", "started_s", "stratum", "factor", "r", "outlier", "p_value", "direction"),
    "missing",
)
_SERIES = [*MACHINE, "stratum", "factor"]


@dataclass(frozen=True, slots=True)
class Findings:
    """Findings of whole series, or of what came later than `earlier` findings; texts are not packed.

    suspects : tests below the level, outliers left out, in the order of the tests; `position`: that of the job among
               those of its series that were tested by themselves, -1 if it was not
    waiting  : the latest job of each machine and factor, by the smallest window, where it cannot be tested; by date
    tested   : how many jobs of each series were tested by themselves
    tests    : how many could be made
    """

    suspects: pd.DataFrame
    waiting: pd.DataFrame
    tested: Mapping[tuple[Any, ...], int]
    tests: int

    def unexplained(self, standing: pd.DataFrame) -> pd.DataFrame:
        """The suspects that no regression explains, and no earlier job of the same window."""
        suspects = self.suspects[~_explained(self.suspects, standing)]
        return suspects[~_repeats_earlier_job(suspects)]


def findings_in(verdicts: pd.DataFrame, level: float, earlier: Findings | None = None) -> Findings:
    """Findings in verdicts with VERDICT_COLUMNS, all windows of a factor together; level : of suspect p-values.

    earlier : of the jobs of the same series before them
    """
    if earlier is not None and verdicts.empty:
        return earlier
    made = (verdicts["missing"] == 0).to_numpy(np.bool_)
    suspects = verdicts[made & (verdicts["p_value"] < level).to_numpy(np.bool_) & ~verdicts["outlier"].to_numpy(bool)]
    single = verdicts[[*_SERIES, "started_s", "job"]][made & (verdicts["r"] == 1).to_numpy(np.bool_)]
    series = row_keys(single, _SERIES)
    order = np.lexsort((row_keys(single, ["job"]), single["started_s"].to_numpy(), series))
    single, series = single.iloc[order], series[order]
    begin = np.flatnonzero(np.diff(series, prepend=-2))
    names = list(single[_SERIES].iloc[begin].itertuples(index=False, name=None))
    count = np.diff(np.append(begin, len(series)))
    tested = dict(earlier.tested) if earlier is not None else {}
    before = np.array([tested.get(name, 0) for name in names], np.int64)
    position = np.arange(len(series)) + np.repeat(before - begin, count)
    tested |= dict(zip(names, (before + count).tolist(), strict=True))
    shared = single["job"].isin(suspects["job"].unique()).to_numpy(np.bool_)
    jobs = single.loc[shared, [*_SERIES, "job"]].itertuples(index=False, name=None)
    place = dict(zip(jobs, position[shared].tolist(), strict=True))
    of_suspects = suspects[[*_SERIES, "job"]].itertuples(index=False, name=None)
    suspects = _unpacked(suspects.assign(position=[place.get(job, -1) for job in of_suspects]))
    latest, tests = _latest(verdicts), int(made.sum())
    waiting = _unpacked(latest[latest["missing"] > 0])
    if earlier is not None:
        windows = list(dict.fromkeys(verdicts["r"]))
        suspects = pd.concat([earlier.suspects, suspects])
        suspects = suspects.assign(window=[windows.index(r) for r in suspects["r"]])
        suspects = suspects.sort_values(["window", *MACHINE, "started_s", "job"], ignore_index=True).drop(
            columns="window"
        )
        if len(earlier.waiting):
            key = [*MACHINE, "factor"]
            later = set(latest[key].itertuples(index=False, name=None))
            still = [machine not in later for machine in earlier.waiting[key].itertuples(index=False, name=None)]
            waiting = pd.concat([earlier.waiting[still], waiting]).sort_values(["started_s", *MACHINE])
        tests += earlier.tests
    return Findings(suspects, waiting, tested, tests)


def findings_of(
    watch: "Watch",
    factors: Sequence[tuple[str, ...]] | None,
    selection: "Selection",
    nodes: Sequence[Node],
    progress: Callable[[float], None],
) -> Iterator[Findings]:
    """Findings of each vector of factors of each cluster, as `Watch.tests` tests them.

    nodes : (cluster, node) that are of interest: names may be those of another cluster, too
    What was found of days that are over is kept, with what it rests on: values, events, settings, recorded verdicts.
    """
    store, log, values = watch.store, watch.changelog(), selection.values
    cases = recorded.factors_to_test(store, factors)
    of = {case: _basis(case, log, selection, nodes) for case in cases}
    since_s, earlier = dict[recorded.Vector, float](), dict[recorded.Vector, Findings]()
    today_s = np.inf
    if values is not None:
        there, today_s = store.state((VERDICTS,)), float(values["started_s"].max() // DAY_S * DAY_S)
        for case in cases:
            state = kept_state(of[case], values)
            if state is not None and state[0] == there:
                _, since_s[case], earlier[case] = state
    over = dict(earlier)
    level = 1.0 - selection.confidence
    tests = recorded.vector_tests(store, log, cases, selection, since_s)
    for number, case in enumerate(cases, 1):
        findings, part = earlier.get(case), next(tests)
        if part is not None:
            part = part if selection.nodes is None else part[is_of(part, nodes)]
            is_over = (part["started_s"] < today_s).to_numpy(np.bool_)
            past, today = part[is_over], part[~is_over]
            del part  # of hundreds of thousands of rows
            over[case] = findings_in(past, level, findings)
            findings = findings_in(today, level, over[case])
        if findings is not None:
            yield findings
        progress(number / len(cases))
    next(tests, None)  # which records what is new
    if values is not None:
        there = store.state((VERDICTS,))
        for case, findings in over.items():
            keep_state(of[case], values, today_s, (there, today_s, findings))


def _basis(
    case: "recorded.Vector", changelog: Changelog, selection: "Selection", nodes: Sequence[Node]
) -> tuple[object, ...]:
    """Basis of findings besides values and recorded verdicts."""
    regressions = []
    if selection.standing is not None:
        of_factors = selection.standing["factor"].isin(case[1])
        regressions = selection.standing.loc[of_factors, [*_SERIES, "changed_s"]].to_dict("records")
    return "findings", case, selection.windows, selection.confidence, selection.until_s, nodes, changelog, regressions


def _latest(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The latest job of each machine and factor, by the smallest window; by date."""
    single = np.flatnonzero((verdicts["r"] == verdicts["r"].min()).to_numpy())
    rows = verdicts[[*MACHINE, "factor", "started_s"]].iloc[single]
    key, started_s = row_keys(rows, [*MACHINE, "factor"]), rows["started_s"].to_numpy()
    order = np.lexsort((started_s, key))
    last = np.sort(order[np.flatnonzero(np.diff(key[order], append=-2))])  # of each in time
    return verdicts.iloc[single[last[np.argsort(started_s[last], kind="stable")]]]


def _explained(suspects: pd.DataFrame, standing: pd.DataFrame) -> Booleans:
    """Which of the tests are of a machine and one of its factors that a regression is of, from its change on."""
    since: dict[tuple[str, str, int, str], float] = {}
    for row in standing.to_dict("records"):
        key = (row["cluster"], row["node"], int(row["cpu"]), row["factor"])
        since[key] = min(row["changed_s"], since.get(key, np.inf))
    rows = suspects[[*MACHINE, "factor", "started_s"]].itertuples(index=False, name=None)
    explained = [
        any(
            since.get(machine, np.inf) <= started_s
            for name in factor.split(AND)
            for machine in ((cluster, node, cpu, name), (cluster, ALL, WHOLE_NODE, name))
        )
        for cluster, node, cpu, factor, started_s in rows
    ]
    return np.array(explained, dtype=np.bool_)


def _repeats_earlier_job(suspects: pd.DataFrame) -> Booleans:
    """Which of the tests of several jobs are suspicious for an earlier job of the window, suspicious by itself."""
    series = suspects[_SERIES].itertuples(index=False, name=None)
    rows = list(zip(series, suspects["position"], suspects["r"], strict=True))
    alone = {(name, at) for name, at, r in rows if r == 1}
    return np.array(
        [
            r > 1 and (name, at) not in alone and any((name, at - back) in alone for back in range(1, r))
            for name, at, r in rows
        ],
        dtype=np.bool_,
    )


def _unpacked(rows: pd.DataFrame) -> pd.DataFrame:
    """Texts as texts: findings are few, and categories are those of one store at one time."""
    packed = {name: rows[name].cat for name in rows.columns if is_packed(rows[name])}
    rows = rows.assign(**{name: of.categories.take(of.codes.to_numpy()) for name, of in packed.items()})
    return rows.reset_index(drop=True)
