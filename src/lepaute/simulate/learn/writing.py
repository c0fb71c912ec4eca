"""The learnt application as a Python file that a person reads and changes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy

from lepaute.kit.text import percent, ranks_text, seconds
from lepaute.simulate.apps.replay.collectives import library_of
from lepaute.simulate.learn.costs import CostModel
from lepaute.simulate.learn.grammar import Layout, place_text
from lepaute.simulate.learn.learning import ROOTED, Learnt, Step
from lepaute.simulate.learn.reading import BETWEEN_TWO, METHODS, SENDS
from lepaute.simulate.learn.rules import Rule, is_stencil
from lepaute.simulate.learn.shaping import shaped

#: Ranks that differ less, or places with a smaller share of computing, are taken as equal.
MIN_IMBALANCE, LEAST_SHARE = 0.05, 0.05
_SHIFTS = {
    "shift(0, -1)": "up",
    "shift(0, 1)": "down",
    "shift(1, -1)": "left",
    "shift(1, 1)": "right",
    "shift(2, -1)": "back",
    "shift(2, 1)": "front",
}
_AROUND = {"(rank + 1) % size": "after", "(rank - 1) % size": "before"}
_LINE = {"rank + 1 if rank + 1 < size else None": "after", "rank - 1 if rank >= 1 else None": "before"}
#: Without them nothing can be said of a call.
_FATAL = {"peer", "tag", "count", "where", "requests", "root"}
_WORD = re.compile(r"[a-z_]\w*")


@dataclass
class _File:
    """Names that the text has so far."""

    learnt: Learnt
    costs: Mapping[int, CostModel]
    recorded_on: str
    fields: dict[str, tuple[str, str]] = field(default_factory=dict)  # default, help
    works: dict[int, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)  # of peers by their text
    lists: dict[str, tuple[str, Rule]] = field(default_factory=dict)  # of neighbours, by their text
    uneven: dict[str, float] = field(default_factory=dict)
    groups: dict[int, str] = field(default_factory=dict)
    waiting: list[int] = field(default_factory=list)  # communicators that no split has made yet
    steps: Step | None = None
    frames: dict[str, list[str]] = field(default_factory=dict)  # functions around a call, by its line
    counts: dict[int, str] = field(default_factory=dict)  # of loops whose iterations are a field


def class_name(program: str) -> str:
    """A class's name of that of a program: CgS of cg.S.x."""
    words = re.split(r"[^A-Za-z0-9]+", re.sub(r"\.(x|exe|py|out)$", "", program))
    name = "".join(word[:1].upper() + word[1:] for word in words)
    return name if name[:1].isalpha() else f"Program{name}"


def program_text(learnt: Learnt, costs: Mapping[int, CostModel], recorded_on: str, caveats: Sequence[str] = ()) -> str:
    """Text of the file.

    recorded_on : the platform of the recordings; empty: not known;  caveats: lines on what no rule explains
    """
    made = _File(learnt, costs, recorded_on)
    made.steps = _main_loop(learnt)
    made.waiting = sorted(learnt.groups)
    _name_counts(made)
    _name_works(made)
    body = list(_block(made, learnt.root.children, 0))
    prologue = _prologue(made, body)
    functions, shorter = shaped(body, partial(_function_name, made))
    lines = [*_head(made, caveats), "", "    def run(self, me):"]
    lines += [
        f"        {line}" if line else "" for line in (*prologue, *([""] * bool(functions)), *functions, *shorter)
    ]
    text = "\n".join(lines) + "\n"
    imports = "import lepaute as lp\n\n\n"
    if "log2(" in text:
        imports = f"from math import log2\n\n{imports}"
    return f'"""{_origin(learnt)}"""\n\n{imports}{text}'


def _function_name(made: _File, lines: Sequence[str]) -> str:
    """The innermost function that makes all calls of some lines; a number where there is none."""
    frames = [names for line in lines if (names := made.frames.get(line.strip()))]
    shared = [name for name in (frames[0] if frames else ()) if all(name in others for others in frames)]
    return next((name for name in shared if name not in made.names.values()), "part")


def _origin(learnt: Learnt) -> str:
    recordings = learnt.structure.recordings
    files = ", ".join(f"{_safe(calls.path.name)} ({ranks_text(calls.ranks)})" for calls in recordings)
    return f"Made by lepaute learn of {files}."


def _main_loop(learnt: Learnt) -> Step | None:
    """The outermost loop with most calls, whose iterations count as steps."""
    loops = [step for step in learnt.root.children if step.count is not None and step.count.text != "neighbours"]
    return max(loops, key=lambda step: sum(len(call.events) for call in step.place.calls()), default=None)


def _name_counts(made: _File) -> None:
    """Iterations that are the same in all recordings as fields of the class."""
    counts = [(step, step.count.text) for step in made.learnt.root.children if step.count is not None]
    loops = [(step, count) for step, count in counts if count.isdigit() and int(count) > 2]
    for number, (step, count) in enumerate(loops, 1):
        name = "iterations" if len(loops) == 1 else f"iterations_{number}"
        while name in made.learnt.parameters or name in made.fields:
            name += "_"
        made.fields[name] = (count, f"of the loop around {_place(step).removeprefix('before ')}")
        made.counts[id(step)] = f"self.{name}"


def _name_works(made: _File) -> None:
    steps = [step for step in made.learnt.root.steps() if id(step) in made.costs]
    words = [f"before_{_first(step).code}" for step in steps]
    for at, (step, word) in enumerate(zip(steps, words, strict=True)):
        number = words[: at + 1].count(word)
        made.works[id(step)] = word if words.count(word) == 1 else f"{word}_{number}"


def _head(made: _File, caveats: Sequence[str]) -> Iterator[str]:
    learnt = made.learnt
    recordings = learnt.structure.recordings
    program = _safe(recordings[-1].metadata.get("application") or "a program")
    yield f"class {class_name(program)}(lp.Application):"
    counts = ", ".join(str(calls.ranks) for calls in recordings[:-1])
    yield f'    """{program}, learnt from recordings on {counts} and {ranks_text(recordings[-1].ranks)}.'
    yield ""
    yield from (f"    {_safe(line)}" for line in caveats)
    if caveats:
        yield ""
    yield "    ranks : processes"
    for name in sorted(learnt.parameters):
        yield f"    {name} : {', '.join(map(str, learnt.parameters[name]))} in the recordings"
    for name, (_, help_text) in made.fields.items():
        yield f"    {name} : {help_text}"
    yield '    """'
    yield ""
    yield f"    ranks: int = {recordings[-1].ranks}"
    for name in sorted(learnt.parameters):
        yield f"    {name}: int = {learnt.parameters[name][-1]}"
    for name, (default, _) in made.fields.items():
        yield f"    {name}: int = {default}"
    if made.works:
        yield f'    recorded_on = "{_safe(made.recorded_on)}"  # the platform of the recordings; empty: not known'
    libraries = {library_of(calls.metadata.get("mpi")) for calls in recordings}
    if len(libraries) == 1 and None not in libraries:
        yield f'    collectives = "{libraries.pop()}"  # whose rules choose the algorithms'
    steps = {id(step): step for step in learnt.root.steps()}
    for at, name in made.works.items():
        model = made.costs[at]
        seen = ", ".join(f"{ranks}: {seconds(time_s)}" for ranks, time_s in model.points)
        yield f"    # {percent(model.share)} of computing, {_place(steps[at])}; mean by ranks {seen}"
        bounds = [ranks for ranks, _ in model.points]
        known = f"error={_number(model.error)}, noise={_number(model.noise)}, recorded=({min(bounds)}, {max(bounds)})"
        unit = _number(model.factor or model.constant)
        yield f"    {name} = lp.Cost({unit}, {known}, extrapolation={_number(model.slope)})"


def _safe(text: object) -> str:
    """Words of a recording that may stand in a comment or a text of Python."""
    return re.sub(r"[^\w .,:;+()<>/=%-]", "?", str(text))[:120]


def _number(value: float) -> str:
    return f"{float(f'{value:.4g}')!r}"


def _first(step: Step) -> Step:
    """The first call of a loop, or the call itself."""
    while step.children:
        step = step.children[0]
    return step


def _place(step: Step) -> str:
    """Where a step is, for a comment."""
    step = _first(step)
    site = step.place.signature[2] if step.place.signature else ""
    where = f" at {_safe(site)}" if site else ""
    return f"before {step.code}{where}"


def _prologue(made: _File, body: Sequence[str]) -> Iterator[str]:
    """Lines before the first call: numbers of ranks, the grid, peers."""
    layout = made.learnt.layout
    texts = " ".join([*body, *made.names, *made.lists])
    words = set(_WORD.findall(re.sub(r"self\.\w+|me\.(?!rank\b|size\b)\w+", "", texts)))
    if numbers := [name for name in ("rank", "size") if name in words or (name == "size" and "levels" in words)]:
        yield f"{', '.join(numbers)} = {', '.join(f'me.{name}' for name in numbers)}"
    if "levels" in words:
        yield "levels = (size - 1).bit_length()  # log2 of size, rounded up"
    yield from _grid_lines(layout, words)
    for _, rule in made.lists.values():
        if rule.layout is not None and not layout.order:
            name, more = ("ring", ", periodic=True") if rule.periodic else ("here", "")
            yield f"{name} = me.cartesian((me.size,){more})"
            break
    for text, name in made.names.items():
        yield f"{name} = {text}"
    for text, (name, _) in made.lists.items():
        yield f"{name} = {text}"
    for name, spread in made.uneven.items():
        yield f"{name} = max(0.0, me.random.gauss(1.0, {_number(spread)}))  # ranks differ"
    requests = sorted({name for step in made.learnt.root.steps() for name in step.requests})
    if requests:
        yield f"{', '.join(requests)} = {', '.join('[]' for _ in requests)}"


def _grid_lines(layout: Layout, words: set[str]) -> Iterator[str]:
    if not layout.order:
        return
    sides, coordinates = layout.names
    levels = [name for name in (f"levels_{side[1:]}" for side in sides) if name in words]
    uses_sides = bool(words & {*sides, *levels})
    uses_places = bool(words & {"here", "ring", *coordinates})
    if not uses_sides and not uses_places:
        return
    made = f"me.dims_create({layout.dimensions})"
    plain = tuple(range(layout.dimensions))
    if layout.order == plain[::-1] and layout.dimensions > 1:
        made = f"{made}[::-1]"
    elif layout.order != plain:
        made = f"[{made}[at] for at in {layout.order}]"
    yield f"grid = {made}  # sides, the last dimension fastest"
    if uses_sides:
        yield f"{', '.join(sides)} = grid"
    for name, side in zip((f"levels_{side[1:]}" for side in sides), sides, strict=True):
        if name in words:
            yield f"{name} = ({side} - 1).bit_length()"
    if words & {"here", *coordinates}:
        yield "here = me.cartesian(grid)"
    if "ring" in words:
        yield "ring = me.cartesian(grid, periodic=True)"
    if words & {*coordinates}:
        yield f"{', '.join(coordinates)} = here.coordinates"


def _block(made: _File, steps: Sequence[Step], depth: int) -> Iterator[str]:
    """Lines of steps that follow each other."""
    at = 0
    while at < len(steps):
        step = steps[at]
        inside = step.where.text != "True" and step.code not in BETWEEN_TWO  # a message shares it with others
        computing = list(_compute(made, step))
        if not inside:
            yield from computing
        if _FATAL & step.unexplained.keys():
            yield f"# left out: {_place(step).removeprefix('before ')}, which follows no rule"
            at += 1
            continue
        exchange = _exchange(made, steps[at : at + 3])
        if exchange is not None:
            yield exchange
            at += 3
            continue
        lines = list(_loop(made, step, depth)) if step.place.is_loop else list(_call(made, step))
        if step.place.signature and step.place.signature[2]:
            functions = (frame.split(" ")[0].rstrip("_") for frame in step.place.signature[2].split(" < "))
            names = [name for name in functions if name.isidentifier() and name.lower() not in ("main", "main__")]
            for line in lines:
                made.frames.setdefault(line.strip(), []).extend(names if "yield" in line else ())
        if inside:
            lines = [*computing, *lines]
        if step.where.text != "True":
            lines = [f"if {step.where.text}:", *(f"    {line}" for line in lines)]
        yield from lines
        at += 1


def _compute(made: _File, step: Step) -> Iterator[str]:
    name = made.works.get(id(step))
    if name is None:
        return
    model = made.costs[id(step)]
    text = model.form.text(sorted(made.learnt.parameters)) if model.factor else ""
    if model.constant and model.factor:
        text = f"{text} + {_number(model.constant / model.factor)}"
    if model.imbalance >= MIN_IMBALANCE and model.share >= LEAST_SHARE:
        uneven = f"uneven_{name.removeprefix('before_')}"
        made.uneven[uneven] = model.imbalance
        text = f"{uneven} * ({text})" if " " in text else f"{uneven} * {text}" if text else uneven
    yield f"yield me.compute(self.{name}{', ' + text if text else ''})"


def _loop(made: _File, step: Step, depth: int) -> Iterator[str]:
    if step.count is not None and step.count.text == "neighbours":
        yield from _over_neighbours(made, step)
        return
    if step.count is None:  # until no request is open
        (only,) = step.children
        yield f"while {only.requests[0]}:"
        yield f"    yield me.wait({only.requests[0]}.pop(0))"
        return
    if all(child.code == "create" for child in step.children) and step.count.text.isdigit():
        for _ in range(int(step.count.text)):
            for child in step.children:
                yield from _call(made, child)
        return
    lines = list(_block(made, step.children, depth + 1))
    name = "ijklmopq"[depth]
    used = any(re.search(rf"\b{name}\b", line) for line in lines)
    count = made.counts.get(id(step), step.count.text)
    count = f"me.steps({count})" if step is made.steps else f"range({count})"
    yield f"for {name if used else '_'} in {count}:"
    yield from (f"    {line}" for line in lines)


def _over_neighbours(made: _File, step: Step) -> Iterator[str]:
    sizes = next((child for child in step.children if child.code in SENDS), step.children[0])
    name = _neighbours(made, sizes)
    yield f"for neighbour, {'size_bytes' if sizes.code in SENDS else '_'}{', tag' if sizes.tags else ''} in {name}:"
    for child in step.children:
        yield f"    {_message(child, 'neighbour', 'size_bytes', 'tag' if child.tags else _tag(child))}"


def _neighbours(made: _File, step: Step) -> str:
    """Name of the list of neighbours and bytes, which the prologue makes; receives have that of their sends."""
    if step.code not in SENDS:
        sends = (other for other in made.learnt.root.steps() if other.code in SENDS and other.sizes)
        step = next((other for other in sends if other.peer == step.peer and other.tags == step.tags), step)
    assert step.peer is not None
    text = _neighbours_text(step)
    if text not in made.lists:
        made.lists[text] = ("neighbours" if not made.lists else f"neighbours_{len(made.lists) + 1}", step.peer)
    return made.lists[text][0]


def _neighbours_text(step: Step) -> str:
    rule = step.peer
    assert rule is not None
    assert rule.layout is not None
    points = 0 if rule.periodic or step.tags else is_stencil(rule.offsets)
    sizes = [size.text for size in step.sizes]
    by_order: dict[int, set[str]] = {}
    for offset, size in zip(rule.offsets, sizes, strict=True):
        by_order.setdefault(sum(map(abs, offset)), set()).add(size)
    if points and all(len(texts) == 1 for texts in by_order.values()):
        table = ", ".join(f"{order}: {next(iter(texts))}" for order, texts in sorted(by_order.items()))
        return f"[(other, {{{table}}}[order]) for other, order in here.neighbours({points})]"
    names = rule.layout.names[1]
    places = [place_text(offset, names, periodic=rule.periodic) for offset in rule.offsets]
    columns = (places, sizes, [tag.text for tag in step.tags]) if step.tags else (places, sizes)
    rows = ", ".join(f"({', '.join(row)})" for row in zip(*columns, strict=True))
    return f"[entry for entry in [{rows}] if entry[0] is not None]"


def _exchange(made: _File, steps: Sequence[Step]) -> str | None:
    """A receive from each neighbour, a send to each, and a wait for all, in one line."""
    if len(steps) < 3 or any(id(step) in made.works for step in steps[1:]):
        return None
    receives, sends, wait = steps
    if wait.code != "wait" or wait.wait != "all" or any(len(step.children) != 1 for step in (receives, sends)):
        return None
    receive, send = receives.children[0], sends.children[0]
    lists = [step.count is not None and step.count.text == "neighbours" for step in (receives, sends)]
    same = (
        receive.code == "irecv" and send.code == "isend" and receive.peer == send.peer and _tag(receive) == _tag(send)
    )
    same = same and not receive.tags and not send.tags
    if not all(lists) or not same or not receive.requests == send.requests == wait.requests:
        return None
    tag = "" if _tag(receive) == "0" else f", {_tag(receive)}"
    return f"yield me.exchange({_neighbours(made, send)}{tag})"


def _size(step: Step) -> str:
    """Bytes of a call; without a rule those of messages are drawn from the recorded ones, else it is their mean."""
    values = step.unexplained.get("size")
    if values is None:
        return step.size.text if step.size is not None else "8"
    if step.code not in SENDS:
        return str(round(float(values.mean())))
    return (
        f"me.random.choice({[round(float(size)) for size in numpy.quantile(values, numpy.linspace(0.05, 0.95, 10))]})"
    )


def _tag(step: Step) -> str:
    return step.tag.text if step.tag is not None else "0"


def _call(made: _File, step: Step) -> Iterator[str]:
    if step.code in BETWEEN_TWO:
        assert step.peer is not None
        peer = _peer(made, step.peer)
        if step.peer.optional and peer == step.peer.text:
            yield f"other = {peer}"
            peer = "other"
        line = _message(step, peer, _size(step), _tag(step))
        if step.peer.optional:
            yield f"if {peer} is not None:"
            line = f"    {line}"
        yield line
    elif step.code == "wait":
        if step.wait == "first":
            lists = step.requests[0] if len(step.requests) == 1 else f"({' or '.join(step.requests)})"
            yield f"yield me.wait({lists}.pop(0))"
            return
        several = ", ".join(f"*{name}" for name in step.requests)
        yield f"yield me.waitall({step.requests[0] if len(step.requests) == 1 else f'[{several}]'})"
        yield from (f"{name}.clear()" for name in step.requests)
    elif step.code == "create" and made.waiting and not step.group:
        number = made.waiting.pop(0)
        colour = made.learnt.groups[number].text
        if colour == "0":
            made.groups[number] = "me"
            yield _collective(made, step)
            return
        name = {"y": "row", "x": "column"}.get(colour, f"group_{number}")
        made.groups[number] = name
        yield f"{name} = yield me.split({colour}, me.rank)"
    else:
        yield _collective(made, step)


def _collective(made: _File, step: Step) -> str:
    target = made.groups.get(step.group, f"group_{step.group}") if step.group else "me"
    starts = step.code[0] == "i"
    code = METHODS[step.code.removeprefix("i")]
    arguments = [] if code == "barrier" else [_size(step)]
    if step.code in ROOTED and step.root is not None and step.root.text != "0":
        arguments.append(step.root.text)
    note = "  # makes a communicator of all ranks" if step.code == "create" else ""
    call = f"{target}.{code}({', '.join(arguments)})"
    return f"{step.requests[0]}.append((yield me.start({call})))" if starts else f"yield {call}{note}"


def _message(step: Step, peer: str, size: str, tag: str) -> str:
    with_tag = "" if tag == "0" and step.code in SENDS else f", {tag}"
    if step.code in SENDS:
        code = "send" if step.code == "ssend" else step.code
        made = f"me.{code}({peer}, {size}{with_tag}{', synchronous=True' if step.code == 'ssend' else ''})"
    else:
        made = f"me.{step.code}({peer}{with_tag})"
    return (
        f"{step.requests[0]}.append((yield {made}))"
        if step.code in ("isend", "irecv") and step.requests
        else f"yield {made}"
    )


def _peer(made: _File, rule: Rule) -> str:
    """Text of a peer: its name, where iterations do not change it."""
    if rule.text.isdigit() or re.search(r"\b[ijklmopq]\b", rule.text):
        return rule.text
    if rule.text not in made.names:
        form, _, shift = rule.text.partition(".")
        name = _SHIFTS.get(shift, "") if form in ("here", "ring") else {**_AROUND, **_LINE}.get(rule.text, "")
        if not name or name in made.names.values():
            name = f"peer_{len(made.names) + 1}"
        made.names[rule.text] = name
    return made.names[rule.text]
