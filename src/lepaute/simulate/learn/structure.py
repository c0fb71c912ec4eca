"""One structure for all ranks of all recordings: loops and calls, some of which a rank may leave out.

The folded sequences of ranks differ where calls are conditional, such as a message over the border of a grid. They are
aligned, the longest first, as texts are compared: what matches becomes one place, all else one that some ranks have.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from lepaute.errors import InputError
from lepaute.simulate.learn.folding import Folded, fold
from lepaute.simulate.learn.reading import Calls

#: A structure of more places is none: what repeats itself has been folded.
MAX_PLACES = 3000
#: Loops are the same where so much of the smaller one's body is in the other.
_MIN_OVERLAP = 0.5


@dataclass(eq=False)
class Place:
    """A place of the structure: a call, or a loop of places.

    signature : of a call what all its occurrences have in common: code, communicator, and site or tag
    children  : of a loop;  events: of a call, indices into all calls of all recordings, in order
    depth     : loops around it;  number: of a call among all places
    """

    signature: tuple[Any, ...] | None
    children: list["Place"] = field(default_factory=list)
    events: NDArray[Any] = field(default_factory=lambda: numpy.zeros(0, "int64"))
    depth: int = 0
    number: int = -1

    @property
    def is_loop(self) -> bool:
        return self.signature is None

    def calls(self) -> Iterator["Place"]:
        """All calls in it, in order."""
        if not self.is_loop:
            yield self
        for child in self.children:
            yield from child.calls()

    def places(self) -> Iterator["Place"]:
        yield self
        for child in self.children:
            yield from child.places()


@dataclass
class Structure:
    """Places at the top, and what is known of all calls.

    recording, rank : of every call of all recordings, one after another
    turns : shape (calls, depth): iterations of the loops around a call, the outermost first; -1 beyond
    values : by name the columns of `Calls`, joined
    """

    recordings: list[Calls]
    root: Place
    recording: NDArray[Any]
    rank: NDArray[Any]
    turns: NDArray[Any]
    values: dict[str, NDArray[Any]]

    @property
    def ranks(self) -> NDArray[Any]:
        """Number of ranks of every recording."""
        return numpy.array([calls.ranks for calls in self.recordings])

    def renumber(self) -> None:
        """Numbers of places and depths of loops after a change."""
        for child in self.root.children:
            _set_depth(child, 0)
        numbers = numpy.full(len(self.rank), -1)
        for number, place in enumerate(self.root.calls()):
            place.number = number
            numbers[place.events] = number
        self.values["number"] = numbers

    def unroll(self, loop: Place, count: int) -> None:
        """Writes a loop's body out so many times: its iterations differ by no rule."""
        parent = next(place for place in self.root.places() if any(child is loop for child in place.children))
        at = next(at for at, child in enumerate(parent.children) if child is loop)
        events = numpy.concatenate([call.events for call in loop.calls()])
        copies = [self._iteration(loop, child, turn) for turn in range(count) for child in loop.children]
        self.turns[events, loop.depth : -1] = self.turns[events, loop.depth + 1 :]
        self.turns[events, -1] = -1
        parent.children[at : at + 1] = copies
        self.renumber()

    def _iteration(self, loop: Place, place: Place, turn: int) -> Place:
        chosen = place.events[self.turns[place.events, loop.depth] == turn]
        return Place(place.signature, [self._iteration(loop, child, turn) for child in place.children], chosen)

    def split(self, loop: Place, periods: NDArray[Any]) -> None:
        """Makes two loops of one, the inner one with `periods` iterations in each recording."""
        events, at = numpy.concatenate([call.events for call in loop.calls()]), loop.depth
        self.turns = numpy.concatenate((self.turns, numpy.full((len(self.turns), 1), -1, dtype="int32")), axis=1)
        turn, period = self.turns[events, at].copy(), periods[self.recording[events]]
        self.turns[events, at + 1 :] = self.turns[events, at:-1]
        self.turns[events, at], self.turns[events, at + 1] = turn // period, turn % period
        loop.children = [Place(None, loop.children)]
        self.renumber()


def structure_of(recordings: Sequence[Calls]) -> Structure:
    """The structure of recordings; raises InputError where calls do not repeat themselves."""
    recording = numpy.concatenate([numpy.full(len(calls), at) for at, calls in enumerate(recordings)])
    rank = numpy.concatenate([calls.rank for calls in recordings])
    offsets = numpy.cumsum([0, *(calls.ranks for calls in recordings)])
    sequence = offsets[recording] + rank
    signatures, symbols = _signatures(recordings)
    folded = fold(symbols, sequence)
    if len(folded.top) > MAX_PLACES * int(offsets[-1]):
        raise InputError(_irregular(recordings, folded))
    shapes, shape_of = _shapes(folded, int(offsets[-1]))
    merger = _Merger(folded, signatures)
    root = merger.merge(shapes)
    if sum(1 for _ in root.places()) > MAX_PLACES:
        raise InputError(_irregular(recordings, folded))
    local, turns = _nodes(folded)
    width = max((len(nodes) for nodes in merger.nodes), default=0) + 1
    table = numpy.full(len(shapes) * width, -1)
    places: list[Place] = []
    for which, nodes in enumerate(merger.nodes):
        for at, place in enumerate(nodes):
            if not place.is_loop:
                if place.number < 0:
                    place.number = len(places)
                    places.append(place)
                table[which * width + at] = place.number
    number = table[shape_of[sequence] * width + local]
    order = numpy.lexsort((number,))
    bounds = numpy.searchsorted(number[order], numpy.arange(len(places) + 1))
    for at, place in enumerate(places):
        place.events = order[bounds[at] : bounds[at + 1]]
    names = ("peer", "tag", "size", "before_s", "duration_s", "ended", "group", "completed_by")
    values = {name: numpy.concatenate([getattr(calls, name) for calls in recordings]) for name in names}
    starts = numpy.cumsum([0, *map(len, recordings)])[recording]
    values["completed_by"] += numpy.where(values["completed_by"] >= 0, starts, 0)
    structure = Structure(list(recordings), root, recording, rank, turns, values)
    structure.renumber()
    return structure


def _set_depth(place: Place, depth: int) -> None:
    place.depth = depth
    for child in place.children:
        _set_depth(child, depth + place.is_loop)


def _irregular(recordings: Sequence[Calls], folded: Folded) -> str:
    return (
        f"{recordings[-1].path}: its calls do not repeat themselves: {len(folded.top)} calls and loops remain; a "
        "replay takes them as they are: lepaute predict trace"
    )


def _signatures(recordings: Sequence[Calls]) -> tuple[list[tuple[Any, ...]], NDArray[Any]]:
    """What tells calls from each other, and its number for every call: code, communicator, call site, and the tag where
    a site has the same tags in all recordings; others depend on ranks or iterations."""
    by_site = bool(set.intersection(*(set(calls.sites) for calls in recordings)))  # other binaries have others
    bases: list[list[tuple[Any, ...]]] = []
    which, tags = [], []
    for calls in recordings:
        site = calls.site if by_site else numpy.full(len(calls), -1)
        key = (calls.code.astype("int64") << 40) + (calls.group << 32) + (site + 1)
        _, first, inverse = numpy.unique(key, return_index=True, return_inverse=True)
        texts = [calls.sites[int(site[at])] if site[at] >= 0 else "" for at in first.tolist()]
        columns = (calls.code[first].tolist(), calls.group[first].tolist(), texts)
        bases.append([(calls.codes[code], group, text) for code, group, text in zip(*columns, strict=True)])
        which.append(inverse.reshape(-1))
        pairs = numpy.unique(numpy.stack((which[-1], calls.tag)), axis=1)
        seen: dict[tuple[Any, ...], set[int]] = {}
        for at, tag in pairs.T.tolist():
            seen.setdefault(bases[-1][at], set()).add(tag)
        tags.append(seen)
    by_tag = {base for base, last in tags[-1].items() if all(seen.get(base, last) == last for seen in tags)}
    known: dict[tuple[Any, ...], int] = {}
    symbols = []
    for calls, base, inverse in zip(recordings, bases, which, strict=True):
        tagged = numpy.array([signature in by_tag for signature in base] or [False])[inverse]
        key = (inverse.astype("int64") << 32) + numpy.where(tagged, calls.tag + 1, 0)
        _, first, again = numpy.unique(key, return_index=True, return_inverse=True)
        numbers = []
        for at in first.tolist():
            signature = (*base[inverse[at]], int(calls.tag[at]) if tagged[at] else None)
            numbers.append(known.setdefault(signature, len(known)))
        symbols.append(numpy.array(numbers, dtype="int64")[again.reshape(-1)])
    return list(known), numpy.concatenate(symbols)


def _shapes(folded: Folded, sequences: int) -> tuple[list[tuple[int, ...]], NDArray[Any]]:
    """Distinct sequences after folding, and which one every sequence has."""
    bounds = numpy.searchsorted(folded.sequence, numpy.arange(sequences + 1))
    shapes: dict[tuple[int, ...], int] = {}
    which = numpy.zeros(sequences, dtype="int64")
    for at in range(sequences):
        shape = tuple(folded.top[bounds[at] : bounds[at + 1]].tolist())
        which[at] = shapes.setdefault(shape, len(shapes))
    return list(shapes), which


class _Merger:
    """Aligns shapes; nodes: of every shape the places of its symbols, in preorder."""

    def __init__(self, folded: Folded, signatures: list[tuple[Any, ...]]) -> None:
        self.bodies, self.signatures = folded.bodies, signatures
        self.nodes: list[list[Place]] = []
        self._calls: dict[int, int] = {}
        self._scores: dict[tuple[int, int], float] = {}

    def merge(self, shapes: Sequence[tuple[int, ...]]) -> Place:
        root = Place(None)
        self.nodes = [[] for _ in shapes]
        order = sorted(range(len(shapes)), key=lambda at: -sum(map(self.count_calls, shapes[at])))
        for at in order:
            self._scores = {}
            root.children = self._aligned(root.children, shapes[at], self.nodes[at])
        return root

    def count_calls(self, symbol: int) -> int:
        if symbol not in self.bodies:
            return 1
        if symbol not in self._calls:
            self._calls[symbol] = sum(map(self.count_calls, self.bodies[symbol]))
        return self._calls[symbol]

    def _score(self, place: Place, symbol: int) -> float:
        """How many calls match; 0 where they are not the same."""
        body = self.bodies.get(symbol)
        if body is None:
            return float(place.signature == self.signatures[symbol])
        if not place.is_loop:
            return 0.0
        key = (id(place), symbol)
        if key not in self._scores:
            score, _ = self._best(place.children, body)
            smaller = min(sum(1 for _ in place.calls()), self.count_calls(symbol))
            self._scores[key] = score if score >= _MIN_OVERLAP * smaller else 0.0
        return self._scores[key]

    def _best(self, places: Sequence[Place], symbols: Sequence[int]) -> tuple[float, list[tuple[int, int]]]:
        """The best alignment: its score, and pairs of places and symbols."""
        rows, columns = len(places), len(symbols)
        scores = [self._score(place, symbol) for place in places for symbol in symbols]
        pair = numpy.array(scores).reshape(rows, columns)
        best = numpy.zeros((rows + 1, columns + 1))
        for i in range(rows - 1, -1, -1):
            for j in range(columns - 1, -1, -1):
                match = pair[i, j] + best[i + 1, j + 1] if pair[i, j] > 0.0 else 0.0
                best[i, j] = max(best[i + 1, j], best[i, j + 1], match)
        pairs, i, j = [], 0, 0
        while i < rows and j < columns:
            if pair[i, j] > 0.0 and best[i, j] == pair[i, j] + best[i + 1, j + 1]:
                pairs.append((i, j))
                i, j = i + 1, j + 1
            elif best[i, j] == best[i + 1, j]:
                i += 1
            else:
                j += 1
        return float(best[0, 0]), pairs

    def _aligned(self, places: list[Place], symbols: Sequence[int], nodes: list[Place]) -> list[Place]:
        """Places with those of the symbols; nodes: gets these in preorder."""
        matched = dict(self._best(places, symbols)[1]) if places else {}
        of_symbol = {symbol: place for place, symbol in matched.items()}
        result: list[Place] = []
        behind = 0
        for at, symbol in enumerate(symbols):
            if at in of_symbol:
                result += places[behind : of_symbol[at]]
                place = places[of_symbol[at]]
                behind = of_symbol[at] + 1
            else:
                place = Place(None if symbol in self.bodies else self.signatures[symbol])
            nodes.append(place)
            if symbol in self.bodies:
                place.children = self._aligned(place.children, self.bodies[symbol], nodes)
            result.append(place)
        return result + places[behind:]


def _nodes(folded: Folded) -> tuple[NDArray[Any], NDArray[Any]]:
    """Of every call its number in the preorder of its shape, and the iterations of the loops around it."""
    most = max([*folded.bodies, int(folded.top.max(initial=0))]) + 1
    sizes = numpy.ones(most, dtype="int64")
    longest = max(map(len, folded.bodies.values()), default=1)
    before = numpy.zeros((most, longest), dtype="int64")
    for symbol, body in sorted(folded.bodies.items()):  # those inside have lower numbers
        within = sizes[list(body)]
        sizes[symbol] = 1 + within.sum()
        before[symbol, : len(body)] = 1 + numpy.cumsum(within) - within
    top_sizes = sizes[folded.top]
    passed = numpy.cumsum(top_sizes) - top_sizes
    starts = numpy.flatnonzero(numpy.diff(folded.sequence, prepend=-1))
    local = passed - passed[starts][numpy.cumsum(numpy.diff(folded.sequence, prepend=-1) != 0) - 1]
    turns = numpy.full((len(local), 0), -1, dtype="int32")
    depth = numpy.zeros(len(local), dtype="int64")
    for level in reversed(folded.levels):
        inside = level.slot >= 0
        at = level.parent
        turns, outer = turns[at], depth[at]
        local = local[at] + numpy.where(inside, before[level.after[at], level.slot.clip(0)], 0)
        depth = outer + inside
        if depth.max(initial=0) > turns.shape[1]:
            turns = numpy.concatenate((turns, numpy.full((len(turns), 1), -1, dtype="int32")), axis=1)
        rows = numpy.flatnonzero(inside)
        turns[rows, outer[rows]] = level.turn[rows]
    return local, turns


class _Requests(NamedTuple):
    """By id of a place: lists that requests begin in, and how a wait ends those of which lists."""

    begun: dict[int, tuple[str, ...]]
    ended: dict[int, tuple[str, tuple[str, ...]]]


def requests_of(structure: Structure) -> _Requests:
    """Which waits end which requests: all that are open of some places, or the first of them."""
    places = list(structure.root.calls())
    values, by_number = structure.values, {place.number: place for place in places}
    begins = numpy.flatnonzero(values["completed_by"] >= 0)
    sources: dict[int, set[int]] = defaultdict(set)
    pairs = numpy.unique(
        values["number"][begins].astype("int64") << 32 | values["number"][values["completed_by"][begins]]
    )
    for pair in pairs.tolist():
        sources[pair >> 32].add(pair & 0xFFFFFFFF)
    lists: dict[frozenset[int], list[int]] = defaultdict(list)
    for source, waits in sources.items():
        lists[frozenset(waits)].append(source)
    alone = {frozenset(waits) for waits in lists if _ends_near(structure.root, {*waits}, {*lists[waits]})}
    names = {
        waits: "requests" if len(lists) == 1 or waits in alone else f"requests_{at + 1}"
        for at, waits in enumerate(lists)
    }
    begun: dict[int, tuple[str, ...]]
    begun = {id(by_number[source]): (names[waits],) for waits, members in lists.items() for source in members}
    ended = {}
    for place in places:
        if place.signature is not None and place.signature[0] == "wait":
            of_wait = [waits for waits in lists if place.number in waits]
            members = [source for waits in of_wait for source in lists[waits]]
            form = _form_of_wait(structure, place, numpy.isin(values["number"][begins], members), begins)
            ended[id(place)] = (form, tuple(names[waits] for waits in of_wait))
    return _Requests(begun, ended)


def _ends_near(place: Place, waits: set[int], sources: set[int]) -> bool:
    """Whether one wait ends requests that begin before it in the same loop, with no other wait in between."""
    for child in place.children:
        if child.is_loop and _ends_near(child, waits, sources):
            return True
    numbers = [child.number if not child.is_loop else -1 for child in place.children]
    if len(waits) > 1 or not (waits | sources) <= {*numbers}:
        return False
    first, last = min(map(numbers.index, sources)), numbers.index(*waits)
    return first < last and all(
        not child.is_loop and child.signature is not None and child.signature[0] != "wait"
        for child in place.children[first:last]
    )


def _form_of_wait(structure: Structure, place: Place, chosen: NDArray[Any], begins: NDArray[Any]) -> str:
    """all or first: which of the open requests a wait ends; empty for others."""
    values = structure.values
    begun = begins[chosen]
    after = values["completed_by"][begun]
    at = place.events
    # Requests that have begun before every wait, and those of them that have ended.
    open_before = numpy.searchsorted(begun, at) - numpy.searchsorted(numpy.sort(after), at)
    if (values["ended"][at] == open_before).all():
        return "all"
    if (values["ended"][at] != 1).any():
        return ""
    return "first" if (numpy.diff(numpy.lexsort((after,))) > 0).all() else ""  # requests by when they end
