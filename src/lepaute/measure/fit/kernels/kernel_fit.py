"""The model of one kernel from its calls: pieces, polynomials, and what distinguishes the cores."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from lepaute.measure.fit.kernels.form import PER_CORE, SHAPES, Form, default_form, plain_mean, terms_of
from lepaute.measure.fit.kernels.polynomial import (
    PolynomialFit,
    ProcessEffects,
    default_terms,
    mean_absolute_relative_error,
    r_squared,
    settled,
)
from lepaute.measure.fit.kernels.regions import MIN_CALLS, Region, as_called, first_match, regions_of
from lepaute.measure.fit.numeric import Floats, Integers
from lepaute.measure.fit.observations.calls import Calls

#: The mean where there are fewer than MIN_CALLS: it grows with the work as it must, and has next to nothing to fit.
FEW = "M-1"
#: With fewer calls the constant is left out as well.
MIN_FOR_TWO = 6


@dataclass(frozen=True, slots=True)
class FittedPiece:
    """Polynomials in one region: one of all cores together, and one for each core, or socket, that has its own.

    range, ranges: where it counts as fitted; of a bounded region without an application, where others had it
    """

    region: Region
    pooled: PolynomialFit
    own: Mapping[int, PolynomialFit]
    range: Mapping[str, tuple[float, float]]
    ranges: tuple[Mapping[str, tuple[float, float]], ...] = ()


@dataclass(frozen=True, slots=True)
class FittedKernel:
    """Pieces of a kernel; of the regions the first that matches holds, the last holds everywhere."""

    kernel: str
    pieces: tuple[FittedPiece, ...]
    note: str
    form: Form

    def predict(self, calls: Calls) -> Floats:
        """Mean durations in seconds, shape (calls,)."""
        return self._evaluated(calls, deviation=False)

    def deviation(self, calls: Calls) -> Floats:
        """Standard deviations of single calls in seconds, shape (calls,)."""
        return self._evaluated(calls, deviation=True)

    def settled(self, machine_excess: float, machine_error: float = 0.0) -> "FittedKernel":
        """The same model, each tail between its own and that of the machine; see `polynomial.settled`."""
        return self._each(lambda fit: settled(fit, machine_excess, machine_error))

    def with_effects(self, effects: ProcessEffects) -> "FittedKernel":
        """The same model, its error from what processes differ by as well; see `coefficient_error`."""
        return self._each(lambda fit: replace(fit, effects=effects))

    def _each(self, change: Callable[[PolynomialFit], PolynomialFit]) -> "FittedKernel":
        return replace(
            self,
            pieces=tuple(
                replace(piece, pooled=change(piece.pooled), own={unit: change(fit) for unit, fit in piece.own.items()})
                for piece in self.pieces
            ),
        )

    def _evaluated(self, calls: Calls, *, deviation: bool) -> Floats:
        result = np.zeros(len(calls))
        for fit, rows in self.fits(calls):
            evaluate = fit.deviation if deviation else fit.predict
            result[rows] = evaluate(calls.m[rows], calls.n[rows], calls.k[rows])
        return result

    def fits(self, calls: Calls) -> Iterator[tuple[PolynomialFit, Integers]]:
        """The fits, of pieces or of single units in them, with the calls that each holds for."""
        masks = first_match(tuple(piece.region for piece in self.pieces), calls)
        for piece, mask in zip(self.pieces, masks, strict=True):
            yield from _parts_of(piece, np.flatnonzero(mask), units(calls, self.form))


def units(calls: Calls, form: Form) -> Integers:
    """Unit with coefficients of its own: the core of each call, or its socket; shape (calls,)."""
    return calls.sockets() if form.per_socket else calls.cpu


def _parts_of(piece: FittedPiece, rows: Integers, unit: Integers) -> list[tuple[PolynomialFit, Integers]]:
    """The fits of a piece with those of `rows` that each holds for; none is empty. unit: of all calls, see `units`."""
    if len(rows) == 0:
        return []
    if not piece.own:
        return [(piece.pooled, rows)]
    order = rows[np.argsort(unit[rows], kind="stable")]
    numbers, first = np.unique(unit[order], return_index=True)
    groups = np.split(order, first[1:])
    others = [group for number, group in zip(numbers, groups, strict=True) if int(number) not in piece.own]
    parts = [(piece.pooled, np.concatenate(others))] if others else []
    parts += [
        (piece.own[int(number)], group)
        for number, group in zip(numbers, groups, strict=True)
        if int(number) in piece.own
    ]
    return [(fit, np.sort(group)) for fit, group in parts if len(group)]


def fit_kernel(calls: Calls, regions: tuple[Region, ...] | None = None, form: Form | None = None) -> FittedKernel:
    """Fits a kernel to its calls, those of first steps left out where there are others.

    regions : those to use, or None for what the form says: one, or `regions_of` the calls
    form    : member of the family, or None for `default_form`. Whatever its noise, the mean is fitted with the weights
              of a standard deviation that is a polynomial: what is drawn does not change what the calls are worth
    Raises FitError when there are no calls or none takes time.
    """
    form = default_form(calls.kernel) if form is None else form
    warm, note = representative(calls)
    if regions is None:
        regions = regions_of(warm) if SHAPES[form.mean].in_pieces else (Region(None),)
    pieces = []
    for region, mask in zip(regions, first_match(regions, warm), strict=True):
        inside = as_called(warm.where(mask))
        if len(inside) == 0:
            continue
        pooled = _with_noise(_fitted_mean(inside, form), inside, form)
        of_range = inside
        if region.where is not None and not inside.in_context.any() and warm.in_context.any():
            # Measured alone, on cold operands, and small or narrow: in an application it may take half as long.
            of_range = warm.where(warm.in_context)
        pieces.append(FittedPiece(region, pooled, _own(inside, form), ranges(of_range), _ranges_by_depth(of_range)))
    if pieces[-1].region.where is not None:
        # Nothing was measured outside; the nearest thing to a model there is the last piece.
        pieces[-1] = replace(pieces[-1], region=Region(None))
    few = len(warm) < MIN_CALLS
    if few:
        note = "; ".join(filter(None, [note, f"only {len(warm)} calls: a product and a constant"]))
    plain = replace(form, mean=plain_mean(calls.kernel, FEW if few else form.mean, len(pieces)))
    return FittedKernel(calls.kernel, tuple(pieces), note, plain)


def ranges(calls: Calls) -> dict[str, tuple[float, float]]:
    """Smallest and largest value of each parameter that the kernel has."""
    letters = {"m": calls.m, "n": calls.n, "k": calls.k}
    return {
        letter: (float(values.min()), float(values.max())) for letter, values in letters.items() if np.any(values > 0)
    }


#: Of products of matrices: the parameter that is the block size in an update, and a number of columns of the panel in
#: its recursion. One box around both would hold updates of any block size.
DEPTH: Mapping[str, Literal["m", "n", "k"]] = {"dgemm": "k", "dgemm_nn": "k", "dtrsm": "n", "dtrsm_left": "m"}


def _ranges_by_depth(calls: Calls) -> tuple[dict[str, tuple[float, float]], ...]:
    """A box for each octave of the depth, the smallest first; () for one octave, and other kernels.

    What was fitted at one depth counts as fitted at larger ones, in the other parameters: a shallow product of wide
    operands is what a box around all calls would hold without any such call, and few calls are of the widest ones.
    """
    letter = DEPTH.get(calls.kernel)
    if letter is None:
        return ()
    octave = np.ceil(np.log2(np.maximum({"m": calls.m, "n": calls.n, "k": calls.k}[letter], 1.0)))
    found = []
    for each in np.unique(octave):
        box = ranges(calls.where(octave <= each)) | {letter: ranges(calls.where(octave == each))[letter]}
        if letter != "k":
            box.pop("k", None)  # of dtrsm the order of the triangle, which is the depth
        found.append(box)
    return tuple(found) if len(found) > 1 else ()


def goodness(kernel: FittedKernel, calls: Calls) -> tuple[float, float]:
    """Coefficient of determination and mean absolute relative error of all pieces together."""
    predicted = kernel.predict(calls)
    return r_squared(calls.duration_s, predicted), mean_absolute_relative_error(calls.duration_s, predicted)


def representative(calls: Calls) -> tuple[Calls, str]:
    """The calls to fit: with work to do, and none of a first step unless there are no others.

    A call on an empty matrix returns at once; it is no point of the law of the others, and costs next to nothing.
    """
    calls = calls.where(calls.nonempty())
    warm = calls.where(~calls.cold)
    if len(warm) >= min(MIN_CALLS, len(calls)):
        return warm, ""
    return calls, "first steps included, there are no others"


def _fitted_mean(calls: Calls, form: Form) -> PolynomialFit:
    many = len(calls) >= MIN_CALLS
    mean = form.mean if many else FEW
    return SHAPES[mean].fit(
        terms_of(calls.kernel, mean)[: None if len(calls) >= MIN_FOR_TWO else 1],
        calls.m,
        calls.n,
        calls.k,
        calls.duration_s,
        importance=calls.weight,
        nonnegative=not many or calls.kernel not in PER_CORE,
        sd_terms=default_terms(calls.kernel) if many else None,
        launch=calls.launches(),
        block=calls.block,
    )


def _with_noise(fit: PolynomialFit, calls: Calls, form: Form) -> PolynomialFit:
    if form.noise == "N-0":
        return replace(fit, sd_terms=(), sd=np.zeros(0))
    if form.noise == "N-1":
        # The mean variance: what a constant has to be for sums over these calls to scatter as they do.
        constant = np.sqrt(np.mean(fit.deviation(calls.m, calls.n, calls.k) ** 2))
        return replace(fit, sd_terms=("1",), sd=np.array([constant]))
    return fit


def _own(calls: Calls, form: Form) -> dict[int, PolynomialFit]:
    if form.shared:
        return {}
    unit = units(calls, form)
    order = np.argsort(unit, kind="stable").astype(np.int64)
    numbers, first = np.unique(unit[order], return_index=True)
    result = {}
    for number, rows in zip(numbers, np.split(order, first[1:]), strict=True):
        if len(rows) >= MIN_CALLS:
            mine = calls.where(np.sort(rows))
            result[int(number)] = _with_noise(_fitted_mean(mine, form), mine, form)
    return result
