"""What groups of machines share is taken off before the machines are judged, and is judged by itself.

Groups are those of an inventory, chassis, racks, switches, or are found where it says nothing of a fleet: the machines
of a cluster, factor and stratum. `stats.group_effects` says how; here is which, and on which days.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lepaute.stats import group_effects
from lepaute.stats.change_evidence import ANCHOR_VALUES, MAX_RHO, ChangeEvidence
from lepaute.stats.expanding import Booleans, Floats, Integers
from lepaute.watch.changelog import Inventory

#: Days so far on which groups, shares and wanders are looked at, anew after each quarter more.
LOOKS = frozenset(int(24 * 1.25**power) for power in range(48))
#: Shares and widths that differ by less are left as they are.
SAME_SHARE, SAME_WIDTH = 0.1, 1.2
#: A machine with so much evidence of a change says nothing of what others share, or how they wander.
SUSPECTED = 10.0
#: Kind of what has no name: groups that are found.
FOUND = "found"


@dataclass(frozen=True, slots=True)
class Layer:
    """Groups of one kind in each fleet, whose effects are taken off after those of the layers before.

    group : of each stream, numbers from 0, -1 for none; share : of the others' median that is taken off, of each stream
    names : of each group: kind and name
    """

    group: Integers
    share: Floats
    names: tuple[str, ...]

    def of(self, streams: Integers) -> "Layer":
        """The same of some streams, among which are all groups."""
        return Layer(self.group[streams], self.share[streams], self.names)


def layers_of(
    deviations: Floats, fleet: Integers, nodes: Sequence[tuple[str, str]], inventory: Inventory, changed: Booleans
) -> tuple[Layer, ...]:
    """The groups whose machines share something, by their deviations so far from all that is known of each.

    deviations : shape (rounds, streams), NaN if there is none; fleet : of each stream, shape (streams,)
    nodes : (cluster, node) of each stream; changed : whose level seems to have changed, who have no say
    """
    found: list[list[tuple[Integers, Integers, float, list[str]]]] = []
    for number in range(int(fleet.max()) + 1):
        streams = np.flatnonzero(fleet == number)
        if len(streams) < group_effects.MIN_PEERS:
            continue
        its_nodes = [nodes[i] for i in streams.tolist()]
        for place, part in enumerate(_of_fleet(deviations[:, streams], its_nodes, inventory, changed[streams])):
            if place == len(found):
                found.append([])
            found[place].append((streams, *part))
    return tuple(_joined(parts, len(fleet)) for parts in found)


def wander_left(
    deviations: Floats, layers: tuple[Layer, ...], fleet: Integers, rho: Floats, changed: Booleans
) -> Floats:
    """The variance of what wanders in each stream though all layers are taken off, shape (streams,); 0 for none.

    deviations, changed : as for `layers_of`; rho : the correlation of neighbours that is known of, of each stream
    Each group by itself: one that is wrong shows, and who is in none wanders as groups do.
    """
    variance, of_groups = np.zeros(len(fleet)), np.zeros(len(fleet))
    part: Integers = fleet.astype(np.int64)
    for layer in layers:
        whole, others = group_effects.medians(deviations, layer.group)
        total, count = np.nansum(np.square(whole), axis=0), np.isfinite(whole).sum(axis=0)
        for number in np.unique(fleet[layer.group >= 0]):
            streams = fleet == number
            inside = np.unique(layer.group[streams & (layer.group >= 0)])
            inside = inside[count[inside] > 0]  # a group may be silent so far
            if len(inside):
                of_groups[streams & (layer.group < 0)] = float(np.mean(total[inside] / count[inside]))
        deviations = deviations - layer.share * np.nan_to_num(others)
        part = np.unique(np.stack([part, layer.group]), axis=1, return_inverse=True)[1]
    scale = group_effects.limited(deviations)[1]
    deviations = np.where(changed, np.nan, deviations)
    for number in range(int(part.max()) + 1):
        streams = part == number
        if np.bincount(fleet)[fleet[streams][0]] >= group_effects.MIN_PEERS:
            variance[streams] = scale[streams] ** 2 * group_effects.hidden_wander(deviations[:, streams], rho[streams])
    return np.maximum(variance, of_groups)


def alike(layers: tuple[Layer, ...], others: tuple[Layer, ...]) -> bool:
    """Whether the groups are the same, and their shares nearly."""
    return len(layers) == len(others) and all(
        one.names == other.names
        and bool((one.group == other.group).all() and (np.abs(one.share - other.share) <= SAME_SHARE).all())
        for one, other in zip(layers, others, strict=True)
    )


def _joined(parts: list[tuple[Integers, Integers, float, list[str]]], streams: int) -> Layer:
    group: Integers = np.full(streams, -1, np.int64)
    share = np.zeros(streams)
    names: list[str] = []
    for chosen, number, its_share, its_names in parts:
        group[chosen] = np.where(number >= 0, number + len(names), -1)
        share[chosen] = its_share
        names += its_names
    return Layer(group, share, tuple(names))


def _of_fleet(
    deviations: Floats, nodes: list[tuple[str, str]], inventory: Inventory, changed: Booleans
) -> list[tuple[Integers, float, list[str]]]:
    """Groups, share and names of each kind that has a share, the kind with the largest groups first."""
    known = [_known_groups(kind, nodes, inventory) for kind in inventory.groups]
    known = [(group, names) for group, names in known if names]
    if not known:
        place = {node: number for number, node in enumerate(dict.fromkeys(nodes))}
        of_node: Integers = np.array([place[each] for each in nodes], dtype=np.int64)
        group, share = group_effects.found_groups(deviations, of_node, changed)
        members = [sorted({nodes[i][1] for i in np.flatnonzero(group == each)}) for each in range(int(group.max()) + 1)]
        return [(group, share, [f"{FOUND} {'/'.join(names)}" for names in members])] if share > 0 else []
    layers = []
    for group, names in sorted(known, key=lambda each: len(each[1]) / max(1, int((each[0] >= 0).sum()))):
        share = group_effects.share_of(np.where(changed, np.nan, deviations), group)
        if share > 0:
            layers.append((group, share, names))
            deviations = deviations - share * np.nan_to_num(group_effects.others_on_days(deviations, group))
    return layers


def _known_groups(kind: str, nodes: list[tuple[str, str]], inventory: Inventory) -> tuple[Integers, list[str]]:
    """Groups of the inventory that can say something of a machine: of some streams, but not of all."""
    of_stream = [inventory.group_of(kind, *node) for node in nodes]
    names = sorted(
        {name for name in of_stream if name is not None and of_stream.count(name) > group_effects.MIN_OTHERS}
    )
    if not names or of_stream.count(names[0]) == len(nodes):
        return np.full(len(nodes), -1, np.int64), []
    number = {name: place for place, name in enumerate(names)}
    return np.array([number.get(name or "", -1) for name in of_stream], np.int64), [f"{kind} {name}" for name in names]


def within_stretches(values: Floats, stretch: Integers) -> Floats:
    """The values less the mean of their stretch, NaN in those that are too short; both of shape (rounds, streams)."""
    rest = np.full(values.shape, np.nan)
    for number in range(int(stretch.max(initial=0)) + 1):
        inside = np.isfinite(values) & (stretch == number)
        count = inside.sum(axis=0)
        mean = np.where(inside, values, 0.0).sum(axis=0) / np.maximum(count, 1)
        rest = np.where(inside & (count >= ANCHOR_VALUES), values - mean, rest)
    return rest


class GroupEffects:
    """The effects of the groups of some layers, round by round, and the evidence that the level of one changed."""

    def __init__(self, layers: tuple[Layer, ...], rounds: int) -> None:
        self.layers = layers
        self.first = np.cumsum([0, *(len(layer.names) for layer in layers)])
        self.members = [np.flatnonzero(layer.group == each) for layer in layers for each in range(len(layer.names))]
        self.names = [name for layer in layers for name in layer.names]
        # a mixture of wander and noise hides its correlation from the differences of neighbours
        self.state = ChangeEvidence.start(len(self.members), least_rho=MAX_RHO)
        self.effects = np.full((rounds, len(self.members)), np.nan)
        self._off = [np.zeros(len(layer.group)) for layer in layers]

    def put_among(self, streams: Integers, layers: tuple[Layer, ...]) -> None:
        """From now on it is of further streams, which are in no group; streams: the places of those that it was of."""
        self.members = [streams[group] for group in self.members]
        off = [np.zeros(len(layer.group)) for layer in layers]
        for every, own in zip(off, self._off, strict=True):
            every[streams] = own
        self.layers, self._off = layers, off

    def take(self, round_index: int, deviations: Floats, allowed: Floats) -> Floats:
        """Corrections taken off the value of each stream, by the deviations of the round from what the fleet shares.

        allowed : changes up to this are none, of each stream
        Where too few others have a value, it is what was taken off last.
        """
        rest = deviations
        for place, layer in enumerate(self.layers):
            whole, others = group_effects.medians(rest, layer.group)
            self.effects[round_index, self.first[place] : self.first[place + 1]] = whole
            known = np.isfinite(others)
            self._off[place] = np.where(known, layer.share * np.where(known, others, 0.0), self._off[place])
            rest = rest - self._off[place]
        self.state.update(self.effects[round_index], least=np.array([allowed[group].mean() for group in self.members]))
        return np.asarray(np.sum(self._off, axis=0), dtype=np.float64)

    def changed(self, evidence: float) -> Booleans:
        """The streams of groups with so much evidence of a change, shape (streams,)."""
        found = np.zeros(len(self.layers[0].group), np.bool_)
        for number in np.flatnonzero(self.state.evidence() >= evidence):
            found[self.members[number]] = True
        return found

    def restarted(self, streams: Integers) -> list[int]:
        """The groups all of whose machines begin anew."""
        anew = set(streams.tolist())
        return [number for number, each in enumerate(self.members) if anew.issuperset(each.tolist())]
