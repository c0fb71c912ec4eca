"""Rules for all places of a structure: who calls there, how often, with whom and of what size."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.simulate.learn.grammar import LAYOUTS, TURNS, Layout, Rows, predicates
from lepaute.simulate.learn.reading import BETWEEN_TWO, SENDS, Calls
from lepaute.simulate.learn.rules import Rule, find_group, find_neighbours, find_number, find_peer, find_predicate
from lepaute.simulate.learn.structure import Place, Structure, requests_of

ROOTED = frozenset(
    f"{i}{code}" for i in ("", "i") for code in ("bcast", "reduce", "gather", "gatherv", "scatter", "scatterv")
)
#: More different observations than these follow no rule of the grammar.
MAX_OBSERVATIONS = 200_000
ALWAYS = Rule("True")


@dataclass
class Step:
    """What is known of a place.

    where : condition under which a rank comes there;  count: iterations of a loop
    peer, tag, size, root : of a call; for a list of neighbours `peer` has their places, `sizes` bytes
        and `tags` tags for each
    wait  : of a wait, "all" or "first";  requests: names of the lists of requests that a call begins or ends
    unexplained : by property the values that no rule explains
    """

    place: Place
    where: Rule = ALWAYS
    count: Rule | None = None
    peer: Rule | None = None
    tag: Rule | None = None
    size: Rule | None = None
    root: Rule | None = None
    sizes: list[Rule] = field(default_factory=list)
    tags: list[Rule] = field(default_factory=list)
    wait: str = ""
    requests: tuple[str, ...] = ()
    children: list["Step"] = field(default_factory=list)
    unexplained: dict[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def code(self) -> str:
        return str(self.place.signature[0]) if self.place.signature else ""

    @property
    def group(self) -> int:
        return int(self.place.signature[1]) if self.place.signature else 0

    def steps(self) -> Iterator["Step"]:
        yield self
        for child in self.children:
            yield from child.steps()

    @property
    def rules(self) -> dict[str, Rule]:
        named = {name: getattr(self, name) for name in ("where", "count", "peer", "tag", "size", "root")}
        named |= {f"size to neighbour {at}": rule for at, rule in enumerate(self.sizes, 1) if self.code in SENDS}
        return {name: rule for name, rule in named.items() if rule is not None and rule.text != "True"}


@dataclass
class Learnt:
    """Rules of a program.

    layout : grid of ranks that they use;  groups: colours of communicators by number
    parameters : names that vary between the recordings, with their values
    """

    structure: Structure
    layout: Layout
    root: Step
    groups: dict[int, Rule]
    parameters: dict[str, list[int]]
    unknown_groups: tuple[int, ...] = ()

    @property
    def unexplained(self) -> list[tuple[Step, str]]:
        return [(step, what) for step in self.root.steps() for what in step.unexplained]


def learn_rules(structure: Structure) -> Learnt:
    """The rules, on the grid of ranks on which most of them hold; the plainest of several."""
    names = sorted({name for calls in structure.recordings for name in calls.parameters})
    values = {name: [int(calls.parameters[name]) for calls in structure.recordings] for name in names}
    layouts: Sequence[Layout] = LAYOUTS
    while True:
        tried = []
        for layout in layouts:
            learnt = _Learning(structure, layout, values).learn()
            tried.append((len(learnt.unexplained) + 10 * len(learnt.unknown_groups), learnt))
            if not tried[-1][0]:
                break
        tried.sort(key=lambda item: item[0])
        best = tried[0][1]
        if not best.unexplained or not _rewrite(best):
            return best
        layouts = [learnt.layout for _, learnt in tried[:_KEPT_LAYOUTS]]  # the others explain less


_KEPT_LAYOUTS = 2
#: Loops that run so often everywhere are written out where no rule has their iterations.
MAX_UNROLLED = 12


def _rewrite(learnt: Learnt) -> bool:
    """Rewrites loops whose iterations follow no rule: written out, or as two loops where values come again."""
    return sum(_rewrite_in(learnt, step) for step in learnt.root.children) > 0


def _rewrite_in(learnt: Learnt, step: Step) -> bool:
    calls = [child for child in step.children if child.unexplained and not child.place.is_loop]
    if not calls:
        return sum(_rewrite_in(learnt, child) for child in step.children) > 0
    count = int(step.count.text) if step.count is not None and step.count.text.isdigit() else 0
    if 1 <= count <= MAX_UNROLLED:
        learnt.structure.unroll(step.place, count)
        return True
    periods = _periods(learnt.structure, calls[0])
    if periods is not None:
        learnt.structure.split(step.place, periods)
    return periods is not None


def _periods(structure: Structure, step: Step) -> NDArray[Any] | None:
    """Number of calls of a place after which its peers, tags and sizes come again, in each recording."""
    events = step.place.events
    key = structure.values["peer"][events] + 1
    for name in ("tag", "size"):
        key = key * 1_000_003 + structure.values[name][events].astype("int64")
    pair = structure.recording[events] * 2**24 + structure.rank[events]
    bounds = numpy.flatnonzero(numpy.diff(pair, prepend=-1))
    periods = numpy.zeros(len(structure.recordings), dtype="int64")
    for begin, end in zip(bounds.tolist(), [*bounds[1:].tolist(), len(events)], strict=True):
        sequence, recording = key[begin:end], structure.recording[events[begin]]
        again = numpy.flatnonzero(sequence[1:] == sequence[0]) + 1
        period = next(
            (p for p in again[:64].tolist() if len(sequence) % p == 0 and (sequence[p:] == sequence[:-p]).all()), 0
        )
        if period == 0 or (period > 1 and periods[recording] > 1 and period != periods[recording]):
            return None
        periods[recording] = max(period, periods[recording])
    counts = [
        int(structure.turns[events[structure.recording[events] == at], step.place.depth - 1].max(initial=0)) + 1
        for at in range(len(periods))
    ]
    complete = all(
        0 < period <= count and count % period == 0 for period, count in zip(periods.tolist(), counts, strict=True)
    )
    return periods if complete and any(1 < p < c for p, c in zip(periods.tolist(), counts, strict=True)) else None


_NUMBER = re.compile(r"(?<![\w.])\d{1,9}(?![\w.])")
#: The largest first that gives whole elements: parts of a smaller one would be 0 on fewer ranks.
_POWERS = [2**power for power in range(12, 2, -1)]
_ELEMENT_BYTES = 8
#: Conditions that are tried for a partner which some of their ranks lack.
_MAX_CONDITIONS = 40
#: Lengths are tried for so many rules in vain; numbers without any rule are no parts of lengths.
_MAX_TRIALS = 300


def _lengths_of(recordings: Sequence[Calls]) -> list[int]:
    """What may be the length of what ranks share: numbers of the command, then powers of two."""
    commands = [set(_NUMBER.findall(str(calls.metadata.get("command") or ""))) for calls in recordings]
    numbers = sorted((int(text) for text in set.intersection(*commands)), reverse=True)
    return [*(number for number in numbers if number > 2), *(power for power in _POWERS if power not in numbers)]


class _Learning:
    def __init__(self, structure: Structure, layout: Layout, parameters: dict[str, list[int]]) -> None:
        self.structure, self.layout = structure, layout
        self.parameters = {name: values for name, values in parameters.items() if len(set(values)) > 1}
        self._constants = [values[0] for values in parameters.values() if len(set(values)) == 1]
        self._lengths = _lengths_of(structure.recordings)
        self._trials = _MAX_TRIALS
        self._pair = structure.recording * 2**24 + structure.rank
        self._requests = requests_of(structure)
        self._known_rows: dict[tuple[Any, ...], Rows] = {}
        self._known_numbers: dict[tuple[int, bytes], Rule | None] = {}

    def learn(self) -> Learnt:
        everyone = numpy.concatenate(
            [at * 2**24 + numpy.arange(calls.ranks) for at, calls in enumerate(self.structure.recordings)]
        )
        root = Step(self.structure.root, count=Rule("1"))
        root.children = [self._step(child, everyone) for child in self.structure.root.children]
        groups, unknown = self._groups()
        return Learnt(self.structure, self.layout, root, groups, self.parameters, tuple(unknown))

    def _rows(self, pair: NDArray[Any], turns: dict[str, NDArray[Any]] | None = None) -> Rows:
        recording = pair >> 24
        size = self.structure.ranks[recording]
        named = {name: numpy.array(values, dtype="int64")[recording] for name, values in self.parameters.items()}
        key = (pair.tobytes(), *((name, turn.tobytes()) for name, turn in (turns or {}).items()))
        if key not in self._known_rows:
            self._known_rows[key] = Rows(self.layout, size, pair & (2**24 - 1), named, turns, self._constants)
        return self._known_rows[key]

    def _find_number(self, rows: Rows, values: NDArray[Any]) -> Rule | None:
        key = (id(rows), values.tobytes())  # rows are kept
        if key not in self._known_numbers:
            rule = find_number(rows, values)
            if rule is None and not rows.turns:
                rule = self._find_part(rows, values)
            self._known_numbers[key] = rule
        return self._known_numbers[key]

    def _find_part(self, rows: Rows, values: NDArray[Any]) -> Rule | None:
        """Rule for parts of a length that nothing but the values themselves tell."""
        values = numpy.rint(values).astype("int64")
        unit = 1 if (values % _ELEMENT_BYTES).any() else _ELEMENT_BYTES
        for length in self._lengths[: self._trials]:
            self._trials -= 1
            with_length = Rows(self.layout, rows.size, rows.rank, rows.parameters, constants=[length])
            if find_number(with_length, values // unit) is None:
                continue
            rule = find_number(with_length, values)
            if rule is not None and rule.values > 2:  # a length, and a factor
                self._lengths.remove(length)
                self._lengths.insert(0, length)
                return rule
        return None

    def _observed(
        self, pair: NDArray[Any], turns: NDArray[Any], values: NDArray[Any]
    ) -> tuple[Rows, NDArray[Any], NDArray[Any]] | None:
        """Different observations, with the iterations that values depend on, and their pairs; None for too many."""
        depth = turns.shape[1]
        chosen = [(), *((at,) for at in range(depth - 1, -1, -1)), tuple(range(depth))]
        for at in chosen:
            key = pair.copy()
            for column in at:
                key = key * 1_000_003 + turns[:, column]
            _, first, group = numpy.unique(key, return_index=True, return_inverse=True)
            if at == chosen[-1] or (values == values[first][group.reshape(-1)]).all():
                if len(first) > MAX_OBSERVATIONS:
                    return None
                named = {TURNS[column]: turns[first, column].astype("int64") for column in at}
                return self._rows(pair[first], named), values[first], pair[first]
        raise AssertionError("all iterations together determine a call")

    def _step(self, place: Place, domain: NDArray[Any]) -> Step:
        return self._loop(place, domain) if place.is_loop else self._call(place, domain)

    # ---- loops -------------------------------------------------------------------------------------------------------

    def _loop(self, place: Place, domain: NDArray[Any]) -> Step:
        events = numpy.sort(numpy.concatenate([call.events for call in place.calls()]))
        step = Step(place)
        present = numpy.unique(self._pair[events])
        only_messages = all(call.signature[0] in BETWEEN_TWO | {"wait"} for call in place.calls() if call.signature)
        if len(present) < len(domain) and not only_messages:
            self._condition(step, domain, present)
            domain = present
        pair, outer, counts = self._counts(place, events)
        observed = self._observed(pair, outer, counts)
        rule = None if observed is None else self._find_number(observed[0], observed[1])
        if rule is not None:
            step.count = rule
            step.children = [self._step(child, domain) for child in place.children]
            if not any(step.unexplained for step in step.steps()):
                if step.where == ALWAYS and len({child.where.text for child in step.children}) == 1:
                    step.where = step.children[0].where
                    for child in step.children:
                        child.where = ALWAYS
                return step
        if self._is_list(step, domain):
            return step
        if not step.children:
            step.children = [self._step(child, domain) for child in place.children]
        if rule is None and not self._is_drain(step):
            step.unexplained["count"] = counts
        return step

    def _counts(self, place: Place, events: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Of every time that a rank comes to a loop its pair, the iterations around, and how often it runs."""
        turns = self.structure.turns[events]
        key = self._pair[events].astype("int64")
        for column in range(place.depth):
            key = key * 1_000_003 + turns[:, column]
        _, first, group = numpy.unique(key, return_index=True, return_inverse=True)
        counts = numpy.zeros(len(first), dtype="int64")
        numpy.maximum.at(counts, group.reshape(-1), turns[:, place.depth] + 1)
        return self._pair[events][first], turns[first, : place.depth], counts

    def _is_list(self, step: Step, domain: NDArray[Any]) -> bool:
        """Whether a loop goes through all neighbours of a rank; notes the rules where it does."""
        place = step.place
        if any(child.is_loop or (child.signature or ("",))[0] not in BETWEEN_TWO for child in place.children):
            return False
        children = []
        for child in place.children:
            made = self._neighbours(child, domain)
            if made is None:
                return False
            children.append(made)
        first = children[0].peer
        if any(child.peer != first for child in children):
            return False
        step.count, step.children = Rule("neighbours"), children
        return True

    def _neighbours(self, place: Place, domain: NDArray[Any]) -> Step | None:
        """Rules of a call that is made for every neighbour: places, and sizes for each."""
        events, values = place.events, self.structure.values
        turns = self.structure.turns[events]
        lists: dict[int, tuple[int, ...]] = dict.fromkeys(domain.tolist(), ())
        outer = self._pair[events].astype("int64")
        for column in range(place.depth - 1):
            outer = outer * 1_000_003 + turns[:, column]
        bounds = numpy.flatnonzero(numpy.diff(outer, prepend=outer[0] - 1))
        for begin, end in zip(bounds.tolist(), [*bounds[1:].tolist(), len(events)], strict=True):
            pair = int(self._pair[events[begin]])
            peers = tuple(values["peer"][events[begin:end]].tolist())
            if lists.setdefault(pair, ()) not in ((), peers):
                return None
            lists[pair] = peers
        pairs = numpy.array(list(lists), dtype="int64")
        rule = find_neighbours(self._rows(pairs), [lists[pair] for pair in pairs.tolist()])
        if rule is None or rule.layout is None:
            return None
        step = Step(place, peer=rule, requests=self._requests.begun.get(id(place), ()))
        ranks = self.structure.ranks[self.structure.recording[events]]
        rows = Rows(rule.layout, ranks, self.structure.rank[events], {})
        for offset in rule.offsets:
            moved = [at + by for at, by in zip(rows.grid[1], offset, strict=True)]
            chosen = events[rows.at(moved, periodic=rule.periodic) == values["peer"][events]]
            tag = self._number(chosen, place.depth, "tag")
            size = self._number(chosen, place.depth, "size") if step.code in SENDS else Rule("0")
            if size is None or tag is None:
                return None
            step.sizes.append(size)
            step.tags.append(tag)
        if len({tag.text for tag in step.tags}) == 1:
            step.tag, step.tags = step.tags[0], []
        return step

    def _is_drain(self, step: Step) -> bool:
        """Whether a loop waits for all requests of a list, one after another."""
        (only, *more) = step.children
        return not more and only.wait == "first"

    # ---- calls -------------------------------------------------------------------------------------------------------

    def _call(self, place: Place, domain: NDArray[Any]) -> Step:
        step, events, values = Step(place), place.events, self.structure.values
        present = numpy.unique(self._pair[events])
        if step.code == "wait":
            step.wait, step.requests = self._requests.ended[id(place)]
            if not step.wait:
                step.unexplained["requests"] = values["ended"][events]
            return step
        step.requests = self._requests.begun.get(id(place), ())
        if step.code in BETWEEN_TWO:
            self._message(step, domain, present)
            return step
        if len(present) < len(domain):
            self._condition(step, domain, present)
        if step.code not in ("barrier", "ibarrier", "create"):
            self._note(step, "size", self._number(events, place.depth, "size"))
        if step.code in ROOTED:
            root = values["peer"][events]
            if step.group:
                members = [
                    self.structure.recordings[pair >> 24].members[step.group - 1][pair & (2**24 - 1)]
                    for pair in self._pair[events].tolist()
                ]
                root = numpy.array([group.index(rank) for group, rank in zip(members, root.tolist(), strict=True)])
            self._note(step, "root", self._number(events, place.depth, "root", root))
        return step

    def _message(self, step: Step, domain: NDArray[Any], present: NDArray[Any]) -> None:
        place, events, values = step.place, step.place.events, self.structure.values
        observed = self._observed(
            self._pair[events], self.structure.turns[events, : place.depth], values["peer"][events]
        )
        rule = None
        if observed is not None:
            lacking = numpy.setdiff1d(domain, present)
            rule = self._peer(observed, lacking)
            if rule is None and len(lacking):
                rule = self._conditional_peer(step, domain, present, observed)
                if rule is None and (rule := self._peer(observed, lacking[:0])) is not None:
                    self._condition(step, domain, present)
        self._note(step, "peer", rule)
        self._note(step, "tag", self._number(events, place.depth, "tag"))
        if step.code in SENDS:
            self._note(step, "size", self._number(events, place.depth, "size"))

    def _peer(self, observed: tuple[Rows, NDArray[Any], NDArray[Any]], lacking: NDArray[Any]) -> Rule | None:
        """Rule for the partner, which some ranks lack."""
        rows, peers, pairs = observed
        turns = {name: numpy.concatenate((turn, lacking * 0)) for name, turn in rows.turns.items()}
        at, others = numpy.concatenate((pairs, lacking)), numpy.concatenate((peers, numpy.full(len(lacking), -1)))
        return find_peer(self._rows(at, turns), others)

    def _conditional_peer(
        self, step: Step, domain: NDArray[Any], present: NDArray[Any], observed: tuple[Rows, NDArray[Any], NDArray[Any]]
    ) -> Rule | None:
        """Rule for the partner, of which some of the ranks of a condition have none."""
        here = numpy.isin(domain, present)
        terms = (term for term in predicates(self._rows(domain)) if " or " not in term.text and not term.value.all())
        for term in islice((term for term in terms if term.value[here].all()), _MAX_CONDITIONS):
            rule = self._peer(observed, domain[term.value & ~here])
            if rule is not None:
                step.where = Rule(term.text, 2)
                return rule
        return None

    def _number(self, events: NDArray[Any], depth: int, name: str, values: NDArray[Any] | None = None) -> Rule | None:
        values = self.structure.values[name][events] if values is None else values
        observed = self._observed(self._pair[events], self.structure.turns[events, :depth], values)
        return None if observed is None else self._find_number(observed[0], observed[1])

    def _note(self, step: Step, name: str, rule: Rule | None) -> None:
        setattr(step, name, rule)
        if rule is None:
            step.unexplained[name] = self.structure.values["peer" if name == "root" else name][step.place.events]

    def _condition(self, step: Step, domain: NDArray[Any], present: NDArray[Any]) -> None:
        rule = find_predicate(self._rows(domain), numpy.isin(domain, present))
        if rule is None:
            step.unexplained["where"] = present
        else:
            step.where = rule

    def _groups(self) -> tuple[dict[int, Rule], list[int]]:
        """Colours of the communicators that ranks use, and those that follow no rule."""
        rules, unknown = {}, []
        count = max((len(calls.members) for calls in self.structure.recordings), default=0)
        for number in range(1, count + 1):
            pairs, members = [], []
            for at, calls in enumerate(self.structure.recordings):
                of_ranks = calls.members[number - 1] if number <= len(calls.members) else {}
                pairs += [at * 2**24 + rank for rank in of_ranks]
                members += list(of_ranks.values())
            rule = find_group(self._rows(numpy.array(pairs, dtype="int64")), members)
            if rule is None:
                unknown.append(number)
            else:
                rules[number] = rule
        return rules, unknown
