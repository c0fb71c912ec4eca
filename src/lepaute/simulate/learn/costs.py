"""Models of computing at the places of a program: performance model normal form, from few numbers of ranks.

The mean over ranks of a place's computing, in seconds an execution, is c0 + c1 f, where f is a product of powers of the
number of ranks, its logarithm and the parameters (Calotoiu, Hoefler, Poke, Wolf: Using automated performance modeling
to find scalability bugs in complex codes, SC 2013). Fixed beforehand: models are in the order of `_forms`; a later one
replaces an earlier one where the squared relative error of recordings that it was not fitted to is less than
`IMPROVEMENT` of that one's (`RARE_IMPROVEMENT` for rare forms).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import fsum, log2, sqrt
from statistics import NormalDist
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.simulate.apps.own.measured import MAX_NOISE, WARM_FROM
from lepaute.simulate.learn.learning import Learnt, Step
from lepaute.stats.student import student_quantile

IMPROVEMENT = 0.25
#: The same for a form with a logarithm or another exponent than `_PLAIN`, of which there are many.
RARE_IMPROVEMENT = 0.05
#: A form that is further off at recordings it was not fitted to is taken for none but a constant: root mean square.
MAX_MISSED = 0.25
#: Places with a smaller share of all computing are counted with the next place of their loop.
SMALL_SHARE = 0.005
_HALF_95 = NormalDist().inv_cdf(0.975)
_PLAIN = (0.0, -1.0, 1.0)
_EXPONENTS = (*_PLAIN, -0.5, 0.5, -2.0, 2.0, -2 / 3, -1 / 3, 1 / 3, 2 / 3, -1.5, 1.5)
#: A cost that may be so far off is not known: relative standard deviation.
MAX_ERROR = 1.0
#: Of every doubling of ranks beyond the recordings at least.
MIN_SLOPE = 0.005


@dataclass(frozen=True)
class Form:
    """Powers of ranks, of their logarithm, and of parameters; with_constant: whether a constant is added."""

    ranks: float = 0.0
    levels: int = 0
    powers: tuple[float, ...] = ()
    with_constant: bool = False

    @property
    def coefficients(self) -> int:
        return 1 + self.with_constant

    def value(self, ranks: float, parameters: Sequence[float]) -> float:
        value = ranks**self.ranks * max(log2(ranks), 1e-9 if self.levels else 1.0) ** self.levels
        for parameter, power in zip(parameters, self.powers, strict=True):
            value *= parameter**power
        return float(value)

    def text(self, names: Sequence[str]) -> str:
        """The form as Python, of `size` and the fields of the class; empty for a constant."""
        above: list[str] = []
        below: list[str] = []
        for name, power in (("size", self.ranks), *zip((f"self.{name}" for name in names), self.powers, strict=True)):
            exponent = f"({round(abs(power) * 3)} / 3)" if power * 2 % 1 else f"{abs(power):g}"
            if power:
                (above if power > 0 else below).append(name if exponent == "1" else f"{name}**{exponent}")
        if self.levels:
            above.append("log2(size)" if self.levels == 1 else f"log2(size)**{self.levels}")
        text = " * ".join(above) or ("1" if below else "")
        return f"{text} / {' / '.join(below)}" if below else text


@dataclass(frozen=True)
class CostModel:
    """Computing before a call.

    constant, factor : seconds; factor times the form, per execution
    error  : relative standard error within the recordings, of what Student's 95 % are 1.96 times
    slope  : relative standard deviation for every doubling of ranks beyond the recordings
    noise  : of single executions;  imbalance: of ranks, beyond what noise explains
    share  : of all computing in the largest recording
    missed : relative error at the largest recording by a model of the others; None where they are too few
    """

    form: Form
    constant: float
    factor: float
    error: float
    slope: float
    noise: float
    imbalance: float
    share: float
    missed: float | None = None
    points: tuple[tuple[int, float], ...] = ()

    def seconds(self, ranks: int, parameters: Sequence[float]) -> float:
        return self.constant + self.factor * self.form.value(ranks, parameters)


@dataclass
class Slot:
    """Where ranks compute in a loop's body: before a call, a loop, or messages of one direction, of which some ranks
    leave out some (`steps`)."""

    steps: list[Step]
    number: int = -1


@dataclass
class _Sums:
    """Of a slot in every recording and rank: executions, seconds of all, and squares of deviations from their mean."""

    count: NDArray[Any]
    total: NDArray[Any]
    squares: NDArray[Any]


def learn_costs(learnt: Learnt) -> "tuple[dict[int, CostModel], float]":
    """Models by id of the step before which computing is done, and the share of computing that none has."""
    structure = learnt.structure
    bodies = list(_bodies(learnt.root))
    slots = [slot for body in bodies for slot in body]
    for number, slot in enumerate(slots):
        slot.number = number
    table = _table(learnt, slots)
    sums = _sums(learnt, table, slots)
    totals = numpy.bincount(structure.recording, structure.values["before_s"], len(structure.recordings))
    models: dict[int, CostModel] = {}
    uncounted = 0.0
    for body in bodies:
        carriers = _carriers(body, sums, totals)
        if not carriers:
            uncounted += sum(float(sums[slot.number].total[-1].sum()) for slot in body) / max(float(totals[-1]), 1e-300)
        for slot, of_slot in carriers:
            model = _fitted(learnt, of_slot, totals)
            if model is not None:
                models[id(slot.steps[0])] = model
    return models, uncounted


def _bodies(step: Step) -> Iterator[list[Slot]]:
    """Slots of every loop body, in order."""
    slots: list[Slot] = []
    last = ""
    for child in step.children:
        form = {"ssend": "send", "isend": "send", "irecv": "receive"}.get(child.code, child.code)
        if form == last and form in ("send", "receive"):
            slots[-1].steps.append(child)
        else:
            slots.append(Slot([child]))
        last = form
    yield slots
    for child in step.children:
        if child.place.is_loop:
            yield from _bodies(child)


def _table(learnt: Learnt, slots: Sequence[Slot]) -> NDArray[Any]:
    """By number of a call and depth the slot before the loop there around it; the last: the slot of the call itself."""
    structure = learnt.structure
    depth = structure.turns.shape[1]
    count = 1 + max(place.number for place in structure.root.calls())
    table = numpy.full((count, depth + 1), -1)

    def fill(steps: Sequence[Step], path: tuple[int, ...]) -> None:
        for step in steps:
            slot = of_step[id(step)]
            if step.place.is_loop:
                fill(step.children, (*path, slot))
            else:
                table[step.place.number, : len(path)] = path
                table[step.place.number, depth] = slot

    of_step = {id(step): slot.number for slot in slots for step in slot.steps}
    fill(learnt.root.children, ())
    return table


def _sums(learnt: Learnt, table: NDArray[Any], slots: Sequence[Slot]) -> list[_Sums]:
    """Sums of all slots. Computing before a loop is that before its first call, less what the loop's own slot takes."""
    structure = learnt.structure
    values, turns, depth = structure.values, structure.turns, structure.turns.shape[1]
    path = table[values["number"]]
    sequence = structure.recording * 2**24 + structure.rank
    goes_on = numpy.diff(sequence, prepend=-1) == 0  # in the same loops with the same iterations as the call before
    outermost = numpy.full(len(sequence), depth)
    for at in range(depth - 1, -1, -1):
        inside = path[:, at] >= 0
        same = goes_on.copy()
        for level in range(at + 1):
            same &= numpy.roll(path[:, level], 1) == path[:, level]
            if level < at:
                same &= numpy.roll(turns[:, level], 1) == turns[:, level]
        outermost = numpy.where(inside & ~same, at, outermost)
    slot = path[numpy.arange(len(path)), outermost]
    again = goes_on & (numpy.roll(slot, 1) == slot) & (outermost == depth)
    for level in range(depth):
        again &= numpy.roll(turns[:, level], 1) == turns[:, level]
    width = int(structure.ranks.max())
    shape = (len(structure.recordings), width)
    cell = structure.recording * width + structure.rank
    # Executions: a slot of several messages has the time before all of them.
    order = numpy.lexsort((slot * (shape[0] * width) + cell,))
    begins = ~again[order]
    number = numpy.cumsum(begins) - 1
    passed = numpy.bincount(number, values["before_s"][order]) if len(order) else numpy.zeros(0)
    first = order[begins]
    key = slot[first] * (shape[0] * width) + cell[first]
    size = len(slots) * shape[0] * width
    every = numpy.bincount(key, minlength=size)
    starts = numpy.flatnonzero(numpy.diff(key, prepend=-1))
    warm = numpy.ones(len(key), dtype=bool)
    warm[starts[every[key[starts]] >= WARM_FROM]] = False
    count = numpy.bincount(key[warm], minlength=size)
    total = numpy.bincount(key[warm], passed[warm], size)
    mean = total / numpy.maximum(count, 1)
    squares = numpy.bincount(key[warm], (passed[warm] - mean[key[warm]]) ** 2, size)
    shaped = [array.reshape(len(slots), *shape) for array in (count, total, squares)]
    made = [_Sums(*(array[at] for array in shaped)) for at in range(len(slots))]
    numbers = {id(step): slot.number for slot in slots for step in slot.steps}
    for at in range(len(slots) - 1, -1, -1):
        inner = slots[at].steps[0]
        while inner.children:
            inner = inner.children[0]
            within = made[numbers[id(inner)]]
            made[at].total = made[at].total - made[at].count * within.total / numpy.maximum(within.count, 1)
        made[at].total = numpy.maximum(made[at].total, 0.0)
    return made


def _carriers(body: Sequence[Slot], sums: Sequence[_Sums], totals: NDArray[Any]) -> list[tuple[Slot, _Sums]]:
    """Slots with a share of computing that counts, with that of the ones before them that have none."""
    of_body = [sums[slot.number] for slot in body]
    shares = [float((of_slot.total.sum(axis=1) / numpy.maximum(totals, 1e-300)).max()) for of_slot in of_body]
    large = [at for at, share in enumerate(shares) if share >= SMALL_SHARE]
    if not large:
        if fsum(shares) < SMALL_SHARE or not body:
            return []
        large = [max(range(len(body)), key=shares.__getitem__)]
    # Where a rank leaves out a slot, its computing is seen at the next: only those with all slots tell which is where.
    complete = numpy.all([of_body[at].count > 0 for at in large], axis=0)
    tells = complete.any(axis=1, keepdims=True)
    complete = complete if tells.sum() > 1 else numpy.where(tells, complete, True)
    result = []
    for at in large:
        count = numpy.where(complete, of_body[at].count, 0)
        total = of_body[at].total.copy()
        for place, small in enumerate(of_body):
            if place not in large and at == next((x for x in large if x > place), large[-1]):
                total += small.total
        some = count > 0
        result.append((body[at], _Sums(count, total * some, of_body[at].squares * some)))
    return result


def _fitted(learnt: Learnt, sums: _Sums, totals: NDArray[Any]) -> CostModel | None:
    structure = learnt.structure
    names = sorted(learnt.parameters)
    points, noises, spreads = [], [], []
    for at in range(len(structure.recordings)):
        some = sums.count[at] > 0
        count, total = sums.count[at][some], sums.total[at][some]
        mean = float((total / count).mean()) if some.any() else 0.0
        if mean <= 0.0:
            continue
        within = _within(sums, at, some)
        noises.append(within / mean)
        between = float((total / count).var(ddof=1)) if len(count) > 2 else 0.0
        spreads.append(sqrt(max(0.0, between - within**2 / float(count.mean()))) / mean)
        points.append((int(structure.ranks[at]), tuple(float(learnt.parameters[n][at]) for n in names), mean))
    if not points:
        return None
    form = _chosen(points, len(names))
    constant, factor = _coefficients(form, points)
    slope, missed = _extrapolation(form, points, len(names))
    share = float((sums.total.sum(axis=1) / numpy.maximum(totals, 1e-300)).max())
    noise = sqrt(fsum(x * x for x in noises) / len(noises))
    imbalance = sqrt(fsum(x * x for x in spreads) / len(spreads))
    shown = tuple((ranks, mean) for ranks, _, mean in points)
    error = _error(form, points)
    return CostModel(form, constant, factor, error, slope, min(noise, MAX_NOISE), imbalance, share, missed, shown)


def _within(sums: _Sums, at: int, some: NDArray[Any]) -> float:
    """Standard deviation of single executions among those of their rank."""
    freedom = int((sums.count[at][some] - 1).sum())
    return sqrt(float(sums.squares[at][some].sum()) / freedom) if freedom > 0 else 0.0


Point = tuple[int, tuple[float, ...], float]


def _forms(parameters: int, points: Sequence[Point]) -> Iterator[Form]:
    """Forms in the order in which they are preferred: few coefficients, plain exponents."""
    varies = [len({values[at] for _, values, _ in points}) > 1 for at in range(parameters)]
    several = len({ranks for ranks, _, _ in points}) > 1
    powers = product(*((0.0, 1.0, 2.0, 3.0, 0.5) if does else (0.0,) for does in varies))
    bases = product(_EXPONENTS if several else (0.0,), (0, 1, 2) if several else (0,))
    alone = [Form(*base, chosen) for base, chosen in product(bases, powers)]
    order = _EXPONENTS.index
    alone.sort(key=lambda form: (form.levels, order(form.ranks) > 2, sum(form.powers), order(form.ranks)))
    yield from (form for form in alone if len(points) >= 2 or form == alone[0])
    if len(points) > 2:
        plain = [form for form in alone if form.levels == 0 and (form.ranks or any(form.powers))]
        plain = [form for form in plain if form.ranks in _PLAIN or len(points) > 4]
        yield from (Form(form.ranks, form.levels, form.powers, with_constant=True) for form in plain)


def _coefficients(form: Form, points: Sequence[Point]) -> tuple[float, float]:
    """Constant and factor with the least squares of relative errors, neither below zero.

    A recording weighs as many times as it has ranks: the larger ones are nearer to what is asked.
    """
    rows = [(ranks, 1.0 / y, form.value(ranks, parameters) / y) for ranks, parameters, y in points]
    a, b, aa, ab, bb = (
        fsum(weight * of(unit, x) for weight, unit, x in rows)
        for of in (lambda u, _: u, lambda _, x: x, lambda u, _: u * u, lambda u, x: u * x, lambda _, x: x * x)
    )
    alone, determinant = (0.0, b / bb), aa * bb - ab * ab
    if not form.with_constant or determinant <= 1e-12 * aa * bb:
        return alone
    constant, factor = (a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant
    if constant < 0.0:
        return alone
    return (a / aa, 0.0) if factor < 0.0 else (constant, factor)


def _residuals(form: Form, fitted: Sequence[Point], points: Sequence[Point]) -> list[float]:
    constant, factor = _coefficients(form, fitted)
    return [(constant + factor * form.value(ranks, parameters)) / y - 1.0 for ranks, parameters, y in points]


def _cross_validated(form: Form, points: Sequence[Point]) -> float:
    """Mean square of relative errors of recordings that were left out."""
    errors = [_residuals(form, [*points[:at], *points[at + 1 :]], [points[at]])[0] for at in range(len(points))]
    return fsum(error * error for error in errors) / len(errors)


def _chosen(points: Sequence[Point], parameters: int) -> Form:
    best: tuple[float, Form] | None = None
    for form in _forms(parameters, points):
        if len(points) < 2:
            return form
        if len(points) <= form.coefficients:
            continue
        error = _cross_validated(form, points)
        if best is not None and error > MAX_MISSED**2:
            continue
        rare = form.levels > 0 or form.ranks not in _PLAIN
        if best is None or error < (RARE_IMPROVEMENT if rare else IMPROVEMENT) * best[0] - 1e-12:
            best = (error, form)
    assert best is not None
    return best[1]


def _error(form: Form, points: Sequence[Point]) -> float:
    """Relative standard error of a further point: Student's half width of 95 % over 1.96."""
    freedom = len(points) - form.coefficients
    if freedom < 1:
        return MAX_ERROR
    squares = fsum(error * error for error in _residuals(form, points, points))
    counting = sum(ranks for ranks, _, _ in points) ** 2 / sum(ranks**2 for ranks, _, _ in points)  # by their weights
    spread = sqrt(squares / freedom * (1.0 + form.coefficients / counting))
    return min(MAX_ERROR, student_quantile(0.975, freedom) * spread / _HALF_95)


def _extrapolation(form: Form, points: Sequence[Point], parameters: int) -> tuple[float, float | None]:
    """Relative standard deviation for a doubling of ranks: what a model of the smaller recordings is off at the
    largest, or how far apart forms are that explain the recordings as well; and the former alone."""
    most = max(ranks for ranks, _, _ in points)
    smaller = [point for point in points if point[0] < most]
    missed, slope = None, MIN_SLOPE
    if len({point[0] for point in smaller}) > 1:
        chosen = _chosen(smaller, parameters)
        largest = [point for point in points if point[0] == most]
        missed = max(map(abs, _residuals(chosen, smaller, largest)))
        slope = max(slope, missed / log2(most / max(point[0] for point in smaller)))
    elif not smaller:
        return MAX_ERROR, None
    best = max(_cross_validated(form, points), 1e-6) if len(points) > form.coefficients else MAX_ERROR
    far, last = 4.0 * most, max(points, key=lambda point: point[0])
    constant, factor = _coefficients(form, points)
    here = constant + factor * form.value(far, last[1])
    for rival in _forms(parameters, points):
        if len(points) > rival.coefficients and _cross_validated(rival, points) <= min(
            best / IMPROVEMENT, MAX_MISSED**2
        ):
            constant, factor = _coefficients(rival, points)
            there = constant + factor * rival.value(far, last[1])
            slope = max(slope, abs(log2(max(there, 1e-300) / max(here, 1e-300))) * 0.6931 / 2.0 / _HALF_95)
    return min(slope, MAX_ERROR), missed
