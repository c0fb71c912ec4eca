"""Suspects in words: who, how much slower, and what to do."""

from collections.abc import Sequence

from lepaute.kit.text import percent, seconds, significant, with_interval
from lepaute.simulate.trace import Trace
from lepaute.simulate.trace.gantt import ranges_text
from lepaute.simulate.trace.report import node_name
from lepaute.study.slow_job.course import ASLEEP, COLLECTIVE, COMPUTE, MESSAGE, NO_CORE
from lepaute.study.slow_job.shares import Estimate
from lepaute.study.slow_job.suspects import EVERYWHERE, LINK, NODE, OPERATION, RANK, SITE, Group, Suspect

#: Characters of the names of nodes of ranks that a sentence has.
LONGEST_PLACE = 60
#: By part and axis, what to do.
ADVICE = {
    (COMPUTE, EVERYWHERE): "ask what changed in the program, its input or compiler; else in all nodes (clock, power)",
    (COMPUTE, SITE): "look at what changed there, in the code or its input",
    (COMPUTE, NODE): "run `lepaute watch run`, or a node test, there; look at its clock, temperature and memory",
    (COMPUTE, RANK): "see what else runs on its core and next to it; test the node",
    (NO_CORE, ""): "see what else runs there, and whether ranks are bound to cores of their own",
    (ASLEEP, ""): "look at its files, and at their server",
    (MESSAGE, EVERYWHERE): "look at the network and at MPI's settings",
    (MESSAGE, LINK): "test the link and its switch",
    (MESSAGE, NODE): "test the node's network adapter and cable",
    (COLLECTIVE, EVERYWHERE): "look at the network, at MPI's version and settings",
    (COLLECTIVE, OPERATION): "see which algorithm MPI chooses: its version, tuning file and settings",
}


def advice_of(group: Group) -> str:
    """What to do about a group that takes longer."""
    return ADVICE.get((group.part, group.axis)) or ADVICE[group.part, ""]


def place_text(trace: Trace, group: Group) -> str:
    """Where the pieces of a group ran: node n17, rank 4 (node n17), between n1 and n2; nothing of all ranks."""
    nodes = trace.metadata.get("nodes") or []
    if group.axis == RANK:
        where = " and ".join(dict.fromkeys(_node(trace, nodes[rank]) for rank in group.place if rank < len(nodes)))
        who = f"rank{'s' * (len(group.place) > 1)} {ranges_text(group.place)}"
        return f"{who} ({where})" if 0 < len(where) <= LONGEST_PLACE else who
    if group.axis == NODE:
        return _node(trace, group.place[0])
    if group.axis == LINK:
        low, high = group.place
        if low == high:
            return f"within {_node(trace, low)}"
        return f"between {node_name(trace, low)} and {node_name(trace, high)}"
    return ""


def _node(trace: Trace, node: int) -> str:
    name = node_name(trace, node)
    return name if name.startswith("node ") else f"node {name}"


def group_text(trace: Trace, group: Group) -> str:
    """The group as a subject, where it is another explanation: computing of node n17."""
    what = group.name or {COMPUTE: "computing", MESSAGE: "messages"}.get(group.part, group.part)
    place = place_text(trace, group)
    if not place:
        return what if group.name else f"{what} everywhere"
    return f"{what} {place}" if group.axis == LINK else f"{what} of {place}"


def sentence_of(trace: Trace, suspect: Suspect, on_ranks: Sequence[int], since: str) -> str:
    """Node n17 computes 12 % slower on all of its 4 ranks since 09:40."""
    group, place = suspect.group, place_text(trace, suspect.group)
    when = f" {since}" if since else ""
    if group.part in (NO_CORE, ASLEEP):
        usual = suspect.usual_s
        doing = "waits for a core" if group.part == NO_CORE else "sleeps, or waits for files"
        who = place or "every rank"
        text = f"{who} {doing} {seconds(usual + suspect.extra_s)}, usually {seconds(usual)}{when}"
    elif group.part == COMPUTE and group.axis in (NODE, RANK):
        verb = "compute" if group.axis == RANK and len(group.place) > 1 else "computes"
        text = f"{place} {verb} {ratio_text(suspect.ratio, 'slower')}{_on(on_ranks, group)}{when}"
    elif group.part == COMPUTE:
        text = f"{group.name or 'computing'} takes {ratio_text(suspect.ratio)} on all ranks{when}"
    else:
        subject = group.name or ("messages" if group.part == MESSAGE else group.part)
        where = "" if group.axis == OPERATION else " everywhere" if not place else f" {place}"
        if group.axis == NODE:
            where = f" of {place}"
        verb = "takes" if group.name else "take"
        text = f"{subject}{where} {verb} {ratio_text(suspect.ratio)}{when}"
    return text if group.name and text.startswith(group.name) else text[:1].upper() + text[1:]


def _on(ranks: Sequence[int], group: Group) -> str:
    if group.axis == RANK or not ranks:
        return ""
    return f" on rank{'s' * (len(ranks) > 1)} {ranges_text(ranks)}"


def ratio_text(ratio: float, more: str = "longer") -> str:
    """12 % longer, or 2.5 times as long."""
    return f"{significant(100 * (ratio - 1), 2)} % {more}" if ratio < 2 else f"{significant(ratio, 2)} times as long"


def share_text(share: Estimate) -> str:
    """14.0 % (95 %: 11.2 to 16.9 %), 4.11 times the usual time (95 %: 4.02 to 4.20), or without an interval."""
    value, low, high = share.value, share.low, share.high
    if value < 1:
        return percent(value) if low is None or high is None else with_interval(100 * value, 100 * low, 100 * high, "%")
    figure, *bounds = (significant(end) for end in (value, low, high) if end is not None)
    return f"{figure} times the usual time{f' (95 %: {bounds[0]} to {bounds[-1]})' if bounds else ''}"
