"""What a campaign was asked for, checked once."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import isfinite
from typing import Any

from lepaute.errors import InputError
from lepaute.kit.json_values import from_json, to_json
from lepaute.measure.comparison.cases import Case, cases_of
from lepaute.measure.comparison.reductions import DATATYPE, OPERATOR, Reduction

SYNCHRONISATIONS = ("MPI_Barrier", "dissemination", "double", "window", "round-time")
CLOCKS = ("MPI_Wtime", "clock_gettime", "rdtscp")
CLOCK_METHODS = ("SKaMPI", "Netgauge", "JK", "HCA", "HCA2", "HCA3")
MOST_COMPUTE_S = 1.0
MOST_RANKS, MOST_CALLS, MOST_WARM_UP, MOST_MPIRUNS = 512, 100_000, 1000, 1000


@dataclass(frozen=True, slots=True)
class Asked:
    """The request; a resumed campaign has to be asked for the same.

    libraries : (label, spec) of each
    operations: (operation, form) of each; sizes_bytes: increasing
    precision : wanted half-width of a 95 % interval, a share; budget_s: of all starts of mpirun together
    synchronisation: None: round-time, or dissemination where ranks share cores, since waiting for a moment of the clock
                takes their cores away
    cold      : the private last-level cache is overwritten before each call
    calls, mpiruns: fixed numbers in the place of derived ones
    primary   : rows (operation, form, size) that the campaign is planned for: p-values are corrected among these alone
    limit_s   : after which an mpirun is ended; None: in proportion to what the trial took
    datatype, op: of reductions, as MPI calls them; root: the rank, of operations that have one
    compute_s : work of overlapped operations before they are waited for
    """

    libraries: tuple[tuple[str, ...], ...]
    operations: tuple[tuple[str, ...], ...]
    sizes_bytes: tuple[int, ...]
    ranks: int
    precision: float = 0.02
    budget_s: float = 300.0
    synchronisation: str | None = None
    clock: str = "clock_gettime"
    clock_method: str = "HCA"
    cold: bool = False
    warm_up: int = 5
    calls: int | None = None
    mpiruns: int | None = None
    limit_s: float | None = None
    primary: tuple[tuple[str, str, int], ...] = ()
    datatype: str = DATATYPE
    op: str = OPERATOR
    root: int = 0
    compute_s: float = 0.0

    def __post_init__(self) -> None:
        whole: tuple[tuple[str, int | None, int, int], ...] = (
            ("--np", self.ranks, 2, MOST_RANKS),
            ("--calls", self.calls, 1, MOST_CALLS),
            ("--mpiruns", self.mpiruns, 1, MOST_MPIRUNS),
            ("--warm-up", self.warm_up, 0, MOST_WARM_UP),
            ("--root", self.root, 0, self.ranks - 1),
        )
        for option, value, low, high in whole:
            if value is not None and not low <= value <= high:
                raise InputError(f"{option} is {value}; give {low} to {high}")
        if not (isfinite(self.precision) and 0.0001 <= self.precision <= 1.0):
            raise InputError(f"--precision is {100 * self.precision:g} %; give 0.01 % to 100 %")
        for option, seconds in (("--budget", self.budget_s), ("--limit", self.limit_s)):
            if seconds is not None and not (isfinite(seconds) and seconds > 0):
                raise InputError(f"{option} is {seconds:g} s; give a time above 0")
        if not (isfinite(self.compute_s) and 0 <= self.compute_s <= MOST_COMPUTE_S):
            raise InputError(f"--compute is {self.compute_s:g} s; give at most {MOST_COMPUTE_S:g} s")
        for option, chosen, choices in (
            ("--synchronisation", self.synchronisation, SYNCHRONISATIONS),
            ("--clock", self.clock, CLOCKS),
            ("--clock-method", self.clock_method, CLOCK_METHODS),
        ):
            if chosen is not None and chosen not in choices:
                raise InputError(f"{option} is {chosen[:40]!r}; choose one of {', '.join(choices)}")
        if not self.operations or not self.sizes_bytes:
            raise InputError("a campaign needs operations (--ops) and sizes (--sizes)")
        self.primary_cases  # noqa: B018 - checks that they fit

    @property
    def cases(self) -> tuple[Case, ...]:
        """All that is measured, for every library."""
        operations = [(operation, form) for operation, form in self.operations]
        return cases_of(operations, self.sizes_bytes, self.ranks, self.reduction)

    @property
    def reduction(self) -> Reduction:
        """Raises InputError for one that MPI does not define."""
        return Reduction(self.datatype, self.op)

    @property
    def primary_cases(self) -> tuple[Case, ...]:
        """Those of `primary`. Raises InputError for one that is not measured."""
        chosen = tuple(Case(*row) for row in self.primary)
        for case in chosen:
            if case not in self.cases:
                raise InputError(
                    f"--primary {case}: is not measured; choose among {', '.join(map(str, self.cases[:6]))}, ..."
                )
        return chosen

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = to_json(self)
        return document

    def check_same(self, begun: Mapping[str, Any]) -> None:
        """Raises InputError, one line, where the campaign was begun with something else."""
        before = from_json(Asked, dict(begun), "state.json")
        for each in fields(self):
            old, new = getattr(before, each.name), getattr(self, each.name)
            if old != new:
                raise InputError(
                    f"the campaign was begun with other {each.name.replace('_', ' ')} ({_brief(old)}, now "
                    f"{_brief(new)}); resume it with the same options"
                )


def _brief(value: object) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
