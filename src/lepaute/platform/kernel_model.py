"""The duration of compute kernels: piecewise polynomials of the call's parameters, with noise, CPU by CPU."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from lepaute.platform.covariance import Covariance, in_order, named
from lepaute.platform.mixture import Modes
from lepaute.platform.values import Bounds, Count, NonNegative, Number, Polynomial, Value, fault, known_letters

#: Shapes of the mean, the simplest first: a constant, one product, a polynomial, pieces.
MEANS = ("M-0", "M-1", "M-2", "M'")
#: Kinds of noise, the simplest first: none, a constant standard deviation, a polynomial one, modes.
NOISES = ("N-0", "N-1", "N-2", "N'")
#: A member of the family, such as M'-H/N-2; -H: coefficients of each core.
FORM = f"^({'|'.join(MEANS)})(-H)?/({'|'.join(NOISES)})$"


class Noise(Value):
    """Spread of single calls around the mean: the shape, and the standard deviation as a polynomial (seconds).

    `modes`: of a mixture (N' in the notation of the literature), in units of that standard deviation.
    """

    kind: Literal["none", "half-normal", "normal", "lognormal", "mixture"] = "none"
    sd: Polynomial = Field(default_factory=dict)
    modes: Modes | None = None

    @model_validator(mode="after")
    def _has_a_width(self) -> Self:
        if (self.kind == "none") != (not self.sd):
            problem = "is none, but sd is not empty" if self.sd else f"is {self.kind}, but sd is empty"
            raise fault(problem, "kind", remedy="Write none without sd, or a kind with its sd.")
        if (self.kind == "mixture") != (self.modes is not None):
            problem = f"is {self.kind}, but there are modes" if self.modes else "is mixture, but there are no modes"
            raise fault(problem, "kind", remedy="Give modes to a mixture, and only to a mixture.")
        return self


class PerCpu(Value):
    """Coefficients of single CPUs: columns node, cpu, then terms of the mean, then `sd:<term>`; a row a cpu.

    For its cpu, a row replaces the whole mean and the whole standard deviation: a term that is no column is 0.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Number, ...], ...]

    @property
    def mean_terms(self) -> tuple[str, ...]:
        """Terms of the mean, in the order of the columns."""
        return tuple(column for column in self.columns[2:] if not column.startswith("sd:"))

    @property
    def sd_terms(self) -> tuple[str, ...]:
        """Terms of the standard deviation, in the order of the columns."""
        return tuple(column.removeprefix("sd:") for column in self.columns if column.startswith("sd:"))

    @model_validator(mode="after")
    def _is_a_table(self) -> Self:
        if self.columns[:2] != ("node", "cpu") or not self.mean_terms:
            raise fault(
                "must begin with node, cpu, followed by the terms of the mean",
                "columns",
                remedy="Correct the columns.",
            )
        if len(set(self.columns)) < len(self.columns):
            raise fault("has the same column twice", "columns", remedy="Remove one.")
        for position, column in enumerate(self.columns[2:], start=2):
            try:
                known_letters(column.removeprefix("sd:"))
            except PydanticCustomError as error:
                raise fault(
                    f"({column}) {(error.context or {})['problem']}", "columns", position, remedy="Correct the column."
                ) from None
        seen = set()
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise fault(
                    f"has {len(row)} values for {len(self.columns)} columns", "rows", number, remedy="Complete the row."
                )
            if row[:2] in seen:
                raise fault(
                    f"is a second row for node {row[0]:g}, cpu {row[1]:g}", "rows", number, remedy="Remove one."
                )
            seen.add(row[:2])
        return self


class Goodness(Value):
    """How well a fit describes its data."""

    n_observations: Annotated[int, Field(ge=0)] | None = None
    r_squared: Number | None = None
    mean_absolute_relative_error: NonNegative | None = None


class Piece(Value):
    """A kernel's duration where `where` holds: mean, covariance of its coefficients, noise, fitted ranges.

    `discrepancy_relative_sd`: of a factor of its own, besides that of the kernel; null: none.
    """

    where: Bounds | None = None
    mean: Polynomial
    covariance: Covariance | None = None
    noise: Noise = Noise.model_construct(kind="none", sd={})
    range: Bounds | None = None
    goodness: Goodness | None = None
    per_cpu: PerCpu | None = None
    discrepancy_relative_sd: NonNegative | None = None

    @model_validator(mode="before")
    @classmethod
    def _name_the_terms(cls, content: Any) -> Any:
        if isinstance(content, dict) and isinstance(content.get("covariance"), list | tuple):
            return content | {"covariance": named(content["covariance"], content.get("mean"))}
        return content

    @model_validator(mode="after")
    def _coefficients_are_complete(self) -> Self:
        if not self.mean:
            raise fault("has no term", "mean", remedy='Write {"1": 0.0} for a kernel that costs nothing.')
        if self.covariance is not None and set(self.covariance.terms) != set(self.mean):
            have, want = (", ".join(in_order(terms)) for terms in (self.covariance.terms, self.mean))
            raise fault(f"has {have}; the mean has {want}", "covariance", "terms", remedy="Give the terms of the mean.")
        if self.per_cpu is not None and bool(self.per_cpu.sd_terms) != (self.noise.kind != "none"):
            # a table without sd: would leave it open whether its CPUs have the default noise or none
            what = "has sd: columns, but the noise is none" if self.per_cpu.sd_terms else "has no sd: columns"
            raise fault(what, "per_cpu", "columns", remedy="Give sd: columns if the noise has a kind, and only then.")
        return self


class KernelModel(Value):
    """The duration of a kernel run by `threads` threads: the first piece that matches a call holds.

    `crowding`: relative increase of the duration when all cores of the node compute, in proportion when some of the
    others do; null where it is unknown. `form`: the family's member that was fitted, such as M'-H/N-2; null where it
    is unknown. `discrepancy_relative_sd`: what the model is wrong by, as a factor on all calls, drawn once a run;
    `discrepancy_source`: what says so, for it and for those of the pieces.
    """

    kernel: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
    threads: Count = 1
    pieces: Annotated[tuple[Piece, ...], Field(min_length=1)]
    discrepancy_relative_sd: NonNegative = 0.0
    discrepancy_source: str | None = None
    crowding: Annotated[Number, Field(gt=-1)] | None = None
    form: Annotated[str, Field(pattern=FORM)] | None = None

    @model_validator(mode="after")
    def _some_piece_always_holds(self) -> Self:
        *earlier, last = self.pieces
        if last.where:
            raise fault(
                "is set, but the last piece must cover all remaining sizes",
                "pieces",
                len(earlier),
                "where",
                remedy="Write null, or add a piece without where.",
            )
        for position, piece in enumerate(earlier):
            if not piece.where:
                raise fault(
                    "is not set, so the pieces after it are never used",
                    "pieces",
                    position,
                    "where",
                    remedy="Give bounds, or remove the pieces that follow.",
                )
        return self
