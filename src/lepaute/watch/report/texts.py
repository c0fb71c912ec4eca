"""Machines and changes as all reports write them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lepaute.kit.text import counted
from lepaute.watch.nodes_text import nodes_text
from lepaute.watch.values import WHOLE_NODE

if TYPE_CHECKING:
    from lepaute.watch.notices.absences import Absence
    from lepaute.watch.report.summary import Change, Suspicion
    from lepaute.watch.values import Machine

#: From so many nodes on, one cause is likelier than many.
MANY_NODES = 3
_STATES = {"failed": "failed", "aborted": "aborted", "missing": "never reported"}


def machines_text(machines: "Sequence[Machine]") -> str:
    """Nodes, and which CPUs of them where these are not all of a kind."""
    cluster = machines[0][0]
    nodes = {node for _, node, _ in machines}
    text = nodes_text(cluster, nodes)
    cpus = sorted({cpu for *_, cpu in machines})
    if cpus == [WHOLE_NODE]:
        return text
    if len(nodes) == 1:
        return f"{text} cpu {', '.join(map(str, cpus))}"
    return f"{text} ({len(machines)} CPUs)"


def change_text(change: "Change") -> str:
    """A factor and what became of it: dgemm_rate_flops -5.2 % (-5.4 to -5.0)."""
    if change.size != change.size:
        return f"{change.factor} {('is unlike the others', 'higher', 'lower')[change.direction]}"
    return f"{change.factor} {100.0 * change.size:+.1f} %"


def suspicion_text(each: "Suspicion", changes: "Sequence[Change]", more: int = 0) -> str:
    """When, where, what of these changes (and so many more), and the least p-value."""
    days = len(each.dates)
    when = f"{days} days, {each.dates[0]} to {each.dates[-1]}" if days > 1 else f"{each.dates[0]}"
    cause = ": many nodes at once, possibly one cause" if len(set(each.nodes)) >= MANY_NODES else ""
    what = "; ".join(map(change_text, changes)) + (f"; and {more} more" if more else "")
    return f"{when}  {machines_text(each.machines)}: {what}, p = {each.p_value:.1g}{cause}"


def absence_text(each: "Absence") -> str:
    """Since when there is no value, though others reported, and how the latest jobs ended."""
    name = machines_text(each.machines)
    since = "never had a value" if each.last is None else f"no value since {each.last}"
    failed = f"; its last {counted(each.jobs, 'job')} {_STATES.get(each.state, each.state)}" if each.jobs else ""
    others = f"; others reported on {counted(each.days, 'day')} since" if each.days else ""
    return f"{name}: {since}{others}{failed}"
