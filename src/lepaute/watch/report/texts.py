"""Machines and changes as all reports write them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lepaute.watch.nodes_text import nodes_text
from lepaute.watch.values import WHOLE_NODE

if TYPE_CHECKING:
    from lepaute.watch.report.summary import Change
    from lepaute.watch.values import Machine


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
