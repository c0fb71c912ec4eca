"""A factor of a cluster in one line: how many CPUs stand out, how badly, and since when."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lepaute.watch.changelog import ALL
from lepaute.watch.report.summary import recent_s
from lepaute.watch.site.read import FactorRows
from lepaute.watch.values import day_of

if TYPE_CHECKING:
    import datetime as dt

    from lepaute.watch.report.summary import Regression


@dataclass(frozen=True, slots=True)
class FactorSummary:
    """regressed : machines of open regressions; suspicious : with a suspicious test, of any window, in the latest days

    tested, machines : of all; least_p : of these days, None: none was tested; change : since when the latest regression
    """

    cluster: str
    factor: str
    regressed: int
    suspicious: int
    tested: int
    machines: int
    least_p: float | None
    change: "dt.date | None"
    last: "dt.date"

    @property
    def verdict(self) -> str:
        return (
            "regressed" if self.regressed else "suspicious" if self.suspicious else "fine" if self.tested else "too few"
        )

    @property
    def state(self) -> str:
        """The class of its colour."""
        return {"regressed": "serious", "suspicious": "notable", "fine": "fine"}.get(self.verdict, "unable")


def summary_of(factor: FactorRows, reports: "Iterable[Regression]") -> FactorSummary:
    rows = factor.rows
    mine = [
        each for each in reports if each.cluster == factor.cluster and factor.name in {c.factor for c in each.changes}
    ]
    last_s = float(rows["started_s"].max())
    recent = rows[(rows["started_s"] >= recent_s(last_s)) & rows["p_value"].notna() & ~rows["outlier"]]
    low = factor.suspects[factor.suspects["started_s"] >= recent_s(last_s)]
    every = rows[["node", "cpu"]].drop_duplicates()
    regressed = {machine[1:] for each in mine for machine in each.machines}
    return FactorSummary(
        factor.cluster,
        factor.name,
        len(every) if any(node == ALL for node, _ in regressed) else len(regressed),
        len(low[["node", "cpu"]].drop_duplicates()),
        len(recent[["node", "cpu"]].drop_duplicates()),
        len(every),
        float(recent["p_value"].min()) if len(recent) else None,
        max((each.since for each in mine), default=None),
        day_of(last_s),
    )
