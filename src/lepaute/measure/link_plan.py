"""The plan of the messages between nodes: which pairs in which block, at which distance, with how many flows. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lepaute.measure.layout import ALL
from lepaute.measure.plan import FLOWS, P2P, RING, Place, PlannedRun, Room, Scale, design_of
from lepaute.measure.schedulers.types import Switches


@dataclass(frozen=True, slots=True)
class Link:
    """A run of messages between two nodes, rank 0 on the first; distance: see `Switches`.

    turn: links of one block and turn share no node, nor, where they leave a switch, that switch: they run side by side
    """

    run: PlannedRun
    first: str
    second: str
    distance: str | None
    turn: int


def plan_links(scale: Scale, seed: int, nodes: Sequence[Place], limits: Room, switches: Switches) -> list[Link]:
    """The runs of messages between pairs of nodes, drawn anew in each block; of each pair in an order drawn too.

    Every block has pairs of each distance: as many as there are without a node in two of them, and across switches
    without a switch in two.
    A pair measures messages between two ranks, a ring of all cores, and several flows at once: in each block one flow,
    as many as there are cores, and a number in between.
    """
    links = []
    for block, block_seed in enumerate(np.random.SeedSequence([seed, 1]).spawn(scale.blocks)):
        rng = np.random.default_rng(block_seed)
        for turn, pairs in enumerate(_turns(nodes, switches, rng)):
            for first, second in pairs:
                # (probe, beginning of its name, cores) of the runs of a pair in a block
                each = min(len(first.layout.cores), len(second.layout.cores))
                shared = first.machine == second.machine
                # Two names of one machine have half of its cores each.
                room = each // 2 if shared else each
                counts = flow_counts(room)
                between = [int(rng.choice(counts[1:-1]))] if len(counts) > 2 else []
                flows = dict.fromkeys([1, *between, counts[-1]])
                drafts = [
                    (P2P, P2P, pair_cores(first, second)),
                    (RING, RING, pair_cores(first, second) if shared else (*range(each), *range(each))),
                    *((FLOWS, f"{FLOWS}{count}", _flow_cores(count, room, shared)) for count in flows),
                ]
                seeds = [int(value) for value in rng.integers(0, 2**31, size=len(drafts))]
                for index in rng.permutation(len(drafts)):
                    probe, name, cores = drafts[index]
                    design = design_of(scale, probe, seeds[index], limits, len(cores))
                    label = f"{name}_{first.name}_{second.name}"
                    run = PlannedRun(block, label, probe, cores, seeds[index], design, ALL if probe == RING else "")
                    links.append(Link(run, first.name, second.name, switches.distance(first.name, second.name), turn))
    return links


def pair_cores(first: Place, second: Place) -> tuple[int, int]:
    """A core on each of two nodes, not the same one where both are one machine."""
    return 0, 1 if second.machine == first.machine else 0


def flow_counts(cores: int) -> list[int]:
    """1, 2, 4 ... and all: the numbers of flows between nodes of this many cores that are worth a look."""
    return [*(1 << power for power in range(cores.bit_length()) if 1 << power < cores), cores]


def _turns(nodes: Sequence[Place], switches: Switches, rng: np.random.Generator) -> list[list[tuple[Place, Place]]]:
    """Pairs that run side by side, one list after the other."""
    order = [nodes[index] for index in rng.permutation(len(nodes))]
    by_switch: dict[int | None, list[Place]] = {}
    for node in order:
        by_switch.setdefault(switches.of(node.name), []).append(node)
    same = [pair for members in by_switch.values() for pair in zip(members[::2], members[1::2], strict=False)]
    # One node of each switch; the order of the switches is drawn as well.
    ends = [members[0] for switch, members in by_switch.items() if switch is not None]
    place = {node.name: number for number, node in enumerate(nodes)}
    turns = []
    for pairs in (same, list(zip(ends[::2], ends[1::2], strict=False))):
        turns += _apart([(one, other) if place[one.name] < place[other.name] else (other, one) for one, other in pairs])
    return turns


def _apart(pairs: Sequence[tuple[Place, Place]]) -> list[list[tuple[Place, Place]]]:
    """The same pairs, those that share a machine under several names one after the other."""
    turns: list[list[tuple[Place, Place]]] = []
    for pair in pairs:
        mine = {node.machine for node in pair}
        for turn in turns:
            if mine.isdisjoint(node.machine for other in turn for node in other):
                turn.append(pair)
                break
        else:
            turns.append([pair])
    return turns


def _flow_cores(count: int, room: int, shared: bool) -> tuple[int, ...]:
    """Cores on either node, evenly spread over those there are."""
    cores = [number * room // count for number in range(count)]
    return (*cores, *((core + room for core in cores) if shared else cores))
