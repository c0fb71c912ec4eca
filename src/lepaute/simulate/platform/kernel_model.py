"""The duration of compute kernels: piecewise polynomials of the call's parameters, with noise, CPU by CPU.

And what a model says of one call without drawing anything, and which model a kernel takes that has none of its own.
"""

from collections.abc import Iterable
from dataclasses import field
from math import isfinite, prod
from typing import Annotated, Any, Literal, Self

from annotated_types import Ge, Len

from lepaute.simulate.platform.values import (
    Bounds,
    Check,
    Count,
    Covariance,
    Modes,
    NonNegative,
    Number,
    Polynomial,
    Value,
    fault,
    in_order,
    named,
    refuse_twice,
    validate_term,
)

#: The dgemm that speeds of cores are compared by: an update of HPL, C (m x n) += A (m x k) B (k x n).
UPDATE = (4096, 4096, 128)
#: Kernels of HPL, and those that touch memory as they do: an element of a matrix row is a cache line.
LIKENED = {
    "dtrsm_left": "dtrsm",
    "dger": "dgemv",
    "dcopy": "dlaswp01T",
    "dlocswp": "dlaswp01T",
    "dlaswp00N": "dlaswp01T",
    "dlaswp05T": "dlaswp04T",
    "dlaswp06T": "dlaswp01T",
    "dlaswp10N": "dlaswp01T",
}
#: Kernels whose elements of a call are n, not m x n.
ROW_KERNELS = frozenset({"dcopy", "dlocswp"})
#: Variants of a routine that a platform may model apart; one that does not has them cost what the routine costs.
VARIANTS = {"dgemm_nn": "dgemm", "dtrsm_left": "dtrsm"} | {
    f"dlaswp0{number}N": f"dlaswp0{number}T" for number in (1, 3, 4, 5, 6)
}
#: Shapes of the mean, the simplest first: a constant, one product, a polynomial, pieces.
MEANS = ("M-0", "M-1", "M-2", "M'")
#: Kinds of noise, the simplest first: none, a constant standard deviation, a polynomial one, modes.
NOISES = ("N-0", "N-1", "N-2", "N'")
#: A member of the family, such as M'-H/N-2; -H: coefficients of each core, -S: of each socket.
FORM = f"^({'|'.join(MEANS)})(-[HS])?/({'|'.join(NOISES)})$"


def _number_or_table(value: object) -> object:
    """Raises the fault of what is neither a number above -1 nor a table of shares with such numbers."""

    def is_number(cell: object) -> bool:
        return isinstance(cell, int | float) and not isinstance(cell, bool) and isfinite(cell)

    rows = value if isinstance(value, list | tuple) else [[1, value]]
    expected = "a number, or a table [[share, increase], ...] is expected"
    if not rows:
        raise fault(f"is an empty table; {expected}", remedy="Write null where crowding is unknown.")
    before = 0.0
    for position, row in enumerate(rows):
        at = (position,) if rows is value else ()
        if not isinstance(row, list | tuple) or len(row) != 2 or not all(map(is_number, row)):
            raise fault(f"is {str(row if at else value)[:80]}; {expected}", *at)
        share, increase = row
        if not before < share <= 1.0:
            raise fault(f"has the share {share:g}; shares rise from row to row, above 0 and up to 1", *at)
        if not increase > -1.0:
            raise fault(f"is {increase:g}; an increase is above -1: at -1 a call would take no time", *at)
        before = share
    return value


#: How much longer a call takes next to computing cores: a number at full load, or rows (share of the other cores of the
#: socket that compute, increase), linear in between from (0, 0) and constant beyond the last.
Crowding = Annotated[Number | tuple[tuple[Number, Number], ...], Check(before=_number_or_table)]


class Noise(Value):
    """Spread of single calls around the mean: the shape, and the standard deviation as a polynomial (seconds).

    `modes`: of a mixture (N' in the notation of the literature), in units of that standard deviation.
    """

    kind: Literal["none", "half-normal", "normal", "lognormal", "mixture"] = "none"
    sd: Polynomial = field(default_factory=dict)
    modes: Modes | None = None

    def __post_init__(self) -> None:
        if (self.kind == "none") != (not self.sd):
            problem = "is none, but sd is not empty" if self.sd else f"is {self.kind}, but sd is empty"
            raise fault(problem, "kind", remedy="Write none without sd, or a kind with its sd.")
        if (self.kind == "mixture") != (self.modes is not None):
            problem = f"is {self.kind}, but there are modes" if self.modes else "is mixture, but there are no modes"
            raise fault(problem, "kind", remedy="Give modes to a mixture, and only to a mixture.")


class PerCpu(Value):
    """Coefficients of single CPUs or sockets: columns node, cpu (or socket), then terms of the mean, then `sd:<term>`.

    For its cpu, a row replaces the whole mean and the whole standard deviation: a term that is no column is 0. The CPUs
    of a socket that has a row share it, and the error of its coefficients.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Number, ...], ...]

    @property
    def by_socket(self) -> bool:
        """Whether a row is of a socket, not of a cpu."""
        return self.columns[1] == "socket"

    @property
    def mean_terms(self) -> tuple[str, ...]:
        """Terms of the mean, in the order of the columns."""
        return tuple(column for column in self.columns[2:] if not column.startswith("sd:"))

    @property
    def sd_terms(self) -> tuple[str, ...]:
        """Terms of the standard deviation, in the order of the columns."""
        return tuple(column.removeprefix("sd:") for column in self.columns if column.startswith("sd:"))

    def __post_init__(self) -> None:
        from pydantic_core import PydanticCustomError

        if self.columns[:2] not in {("node", "cpu"), ("node", "socket")} or not self.mean_terms:
            problem = "must begin with node, cpu (or node, socket), followed by the terms of the mean"
            raise fault(problem, "columns", remedy="Correct the columns.")
        refuse_twice(self.columns, "column", "columns")
        for position, column in enumerate(self.columns[2:], start=2):
            try:
                validate_term(column.removeprefix("sd:"))
            except PydanticCustomError as error:
                problem = f"({column}) {(error.context or {})['problem']}"
                raise fault(problem, "columns", position, remedy="Correct the column.") from None
        seen = set()
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                problem = f"has {len(row)} values for {len(self.columns)} columns"
                raise fault(problem, "rows", number, remedy="Complete the row.")
            if row[:2] in seen:
                problem = f"is a second row for node {row[0]:g}, {self.columns[1]} {row[1]:g}"
                raise fault(problem, "rows", number, remedy="Remove one.")
            seen.add(row[:2])


class Goodness(Value):
    """How well a fit describes its data."""

    n_observations: Annotated[int, Ge(0)] | None = None
    r_squared: Number | None = None
    mean_absolute_relative_error: NonNegative | None = None


class Piece(Value):
    """A kernel's duration where `where` holds: mean, covariance of its coefficients, noise, fitted ranges.

    `ranges`: boxes inside `range`, where that holds sizes that were not fitted; null: `range` itself.
    `discrepancy_relative_sd`: of this piece's own error factor, in addition to that of the kernel; null: none.
    """

    where: Bounds | None = None
    mean: Polynomial
    covariance: Covariance | None = None
    noise: Noise = Noise.model_construct(kind="none", sd={})
    range: Bounds | None = None
    ranges: tuple[Bounds, ...] | None = None
    goodness: Goodness | None = None
    per_cpu: PerCpu | None = None
    discrepancy_relative_sd: NonNegative | None = None

    def __post_init__(self) -> None:
        if not self.mean:
            raise fault("has no term", "mean", remedy='Write {"1": 0.0} for a kernel that costs nothing.')
        if self.covariance is not None and set(self.covariance.terms) != set(self.mean):
            have, want = (", ".join(in_order(terms)) for terms in (self.covariance.terms, self.mean))
            raise fault(f"has {have}; the mean has {want}", "covariance", "terms", remedy="Give the terms of the mean.")
        if self.per_cpu is not None and bool(self.per_cpu.sd_terms) != (self.noise.kind != "none"):
            # a table without sd: would leave it open whether its CPUs have the default noise or none
            what = "has sd: columns, but the noise is none" if self.per_cpu.sd_terms else "has no sd: columns"
            raise fault(what, "per_cpu", "columns", remedy="Give sd: columns if the noise has a kind, and only then.")

    def lengthened(self, factor: float) -> Self:
        """Calls `factor` times as long, and their errors in proportion."""
        covariance, table = self.covariance, self.per_cpu
        if covariance is not None:
            matrix = tuple(tuple(value * factor * factor for value in row) for row in covariance.matrix)
            covariance = covariance.model_copy(update={"matrix": matrix})
        if table is not None:
            rows = tuple((*row[:2], *(value * factor for value in row[2:])) for row in table.rows)
            table = table.model_copy(update={"rows": rows})
        sd = {term: value * factor for term, value in self.noise.sd.items()}
        return self.model_copy(
            update={
                "mean": {term: value * factor for term, value in self.mean.items()},
                "covariance": covariance,
                "noise": self.noise.model_copy(update={"sd": sd}),
                "per_cpu": table,
            }
        )


def _name_the_terms(content: Any) -> Any:
    if isinstance(content, dict) and isinstance(content.get("covariance"), list | tuple):
        return content | {"covariance": named(content["covariance"], content.get("mean"))}
    return content


class KernelModel(Value):
    """The duration of a kernel run by `threads` threads: the first piece that matches a call holds.

    `crowding`: relative increase of the duration when the other cores of the socket compute, see `Crowding`; null where
    it is unknown. `crowding_relative_sd`: error of the duration where none of them computes, as a factor on all calls,
    drawn once a run; less in proportion next to some, none at the last share of the table. `form`: the family's member
    that was fitted, such as M'-H/N-2; null where it is unknown. `discrepancy_relative_sd`: what the model is wrong by,
    as a factor on all calls, drawn once a run; `discrepancy_source`: what says so, for it and for those of the pieces.
    """

    kernel: Annotated[str, Check(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
    threads: Count = 1
    pieces: Annotated[tuple[Annotated[Piece, Check(before=_name_the_terms)], ...], Len(1)]
    discrepancy_relative_sd: NonNegative = 0.0
    discrepancy_source: str | None = None
    crowding: Crowding | None = None
    crowding_relative_sd: NonNegative | None = None
    form: Annotated[str, Check(pattern=FORM)] | None = None

    @property
    def crowding_table(self) -> tuple[tuple[float, float], ...]:
        """Rows (share, increase); none where crowding is unknown."""
        if self.crowding is None:
            return ()
        return self.crowding if isinstance(self.crowding, tuple) else ((1.0, self.crowding),)

    def __post_init__(self) -> None:
        *earlier, last = self.pieces
        if last.where:
            problem = "is set, but the last piece must cover all remaining sizes"
            remedy = "Write null, or add a piece without where."
            raise fault(problem, "pieces", len(earlier), "where", remedy=remedy)
        for position, piece in enumerate(earlier):
            if not piece.where:
                problem = "is not set, so the pieces after it are never used"
                remedy = "Give bounds, or remove the pieces that follow."
                raise fault(problem, "pieces", position, "where", remedy=remedy)
        tables = [(position, piece.per_cpu) for position, piece in enumerate(self.pieces) if piece.per_cpu is not None]
        for position, table in tables[1:]:
            other, first = tables[0]
            if table.by_socket != first.by_socket:
                what = f"is for each {table.columns[1]}, that of piece {other} for each {first.columns[1]}"
                raise fault(what, "pieces", position, "per_cpu", "columns", remedy="Write both alike.")


def piece_of(model: KernelModel, m: float, n: float, k: float) -> Piece:
    """The first piece that holds for a call."""
    sizes = {"m": m, "n": n, "k": k}
    for piece in model.pieces:
        if all(low <= sizes[letter] <= high for letter, (low, high) in (piece.where or {}).items()):
            return piece
    return model.pieces[-1]


def value_of(polynomial: Polynomial, m: float, n: float, k: float) -> float:
    """The polynomial's value for a call."""
    sizes = {"m": m, "n": n, "k": k, "1": 1.0}
    value = 0.0  # not sum(), which rounds otherwise from Python 3.12 on, nor fsum(), which refuses inf - inf
    for term, coefficient in polynomial.items():
        value += coefficient * prod(sizes[letter] for letter in term)
    return value


def mean_s(model: KernelModel, m: float, n: float, k: float, *, crowded: bool = True) -> float:
    """Mean duration of a call on a cpu without coefficients of its own; `crowded`: while all other cores compute."""
    table = model.crowding_table
    return value_of(piece_of(model, m, n, k).mean, m, n, k) * (1.0 + (table[-1][1] if crowded and table else 0.0))


def models_of(models: Iterable[KernelModel], kernels: Iterable[str], threads: int) -> dict[str, KernelModel]:
    """The model of each of the kernels, by name, for ranks of `threads` threads; those without any are left out.

    Of several the first: its own, its routine's, both with the fewest threads, since HPL's loops use no more.
    """
    of: dict[int, dict[str, KernelModel]] = {}
    for model in models:
        of.setdefault(model.threads, {})[model.kernel] = model
    places = [of.get(threads, {}), of[min(of)] if of else {}]
    found: dict[str, KernelModel] = {}
    for kernel in kernels:
        taken = (own.get(name) for own in places for name in (kernel, VARIANTS.get(kernel, "")))
        if (first := next(filter(None, taken), None)) is not None:
            found[kernel] = first
    return found


def told_of_missing(models: Iterable[KernelModel], kernels: Iterable[str]) -> list[str]:
    """Sentences about those of the kernels that have no model of their own; none where all have."""
    models, kernels = list(models), list(kernels)
    texts = []
    for threads in sorted({model.threads for model in models}):
        modelled = models_of(models, kernels, threads)
        several = f" with {threads} threads" if threads > 1 else ""
        others = []
        for kernel, model in modelled.items():
            if (model.kernel, model.threads) != (kernel, threads):
                fewer = "one thread" if model.threads == 1 else f"{model.threads} threads"
                others.append(f"{kernel} ({model.kernel}{'' if model.threads == threads else f', {fewer}'})")
        if others:
            texts.append(f"Not measured{several}, and modelled by another kernel: {', '.join(others)}.")
        if missing := [kernel for kernel in kernels if kernel not in modelled]:
            texts.append(f"Not measured{several}, and taken to cost nothing: {', '.join(missing)}.")
    return texts
