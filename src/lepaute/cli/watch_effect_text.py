"""What `lepaute watch events effect` prints: for each factor all machines together, then those that changed."""

from typing import TYPE_CHECKING, Any

from lepaute.kit.text import counted
from lepaute.watch.report.summary import machines_text

if TYPE_CHECKING:
    import pandas as pd

#: Machines of a factor without --all.
MOST = 8
#: A machine changed if its corrected p-value is below it.
LEVEL = 0.05


def effect_text(found: "pd.DataFrame", *, everything: bool = False) -> str:
    """found : as watch.proposals.planned_change.before_after gives it."""
    lines = []
    for (cluster, factor), rows in found.groupby(["cluster", "factor"], sort=True):
        machines: list[dict[Any, Any]] = rows[rows["node"] != ""].to_dict("records")
        changed = [row for row in machines if row["p_adjusted"] < LEVEL]
        few = sum(row["missing"] > 0 for row in machines)
        title = f"{cluster} {factor}: {len(changed)} of {counted(len(machines) - few, 'CPU')} changed"
        lines.append(f"{title}; {few} with too few jobs" if few else title)
        lines += [f"  all together {_change(row)}" for row in rows[rows["node"] == ""].to_dict("records")]
        shown = sorted(machines if everything else changed, key=lambda row: -abs(row["change"]))
        limit = len(shown) if everything else MOST
        lines += [
            f"  {machines_text([(row['cluster'], row['node'], row['cpu'])])} {_change(row)}" for row in shown[:limit]
        ]
        if len(shown) > limit:
            lines.append(f"  and {len(shown) - limit} more; --all")
    return "\n".join(lines)


def _name(row: dict[Any, Any]) -> str:
    return machines_text([(row["cluster"], row["node"], int(row["cpu"]))])


def _change(row: dict[Any, Any]) -> str:
    if row["missing"] > 0:
        return f"needs {counted(row['missing'], 'more job')}"
    percents = [f"{100.0 * row[name]:+.2f}" for name in ("change", "low", "high")]
    return f"{percents[0]} % (95 %: {percents[1]} to {percents[2]}), p = {row['p_adjusted']:.1g}"
