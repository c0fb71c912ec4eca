"""How long a calibration goes on: until a prediction of its own is precise enough, or its time is spent."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar, Literal

import pandas

from lepaute.errors import InputError
from lepaute.kit.text import counted, duration, percent
from lepaute.measure.experiment.entries import Entry
from lepaute.measure.plan import DGEMM, STEPS, STEPS_COLUMN

DEFAULT_PRECISION, DEFAULT_BUDGET_S = 0.05, 240.0
#: After a calibration, a machine that drifts has become another one.
LATER_S = 300.0
#: It also stops so close above what no longer measuring can go below.
NEAR_FLOOR = 1.2
#: In the fit of a check are kernels that take so much of the time, and no phases of HPL, whose names begin so.
_MIN_SHARE, _PHASES = 0.02, "pd"
#: What a check takes until one was made.
_CHECK_S = 20.0
#: Probes of further blocks, all on all cores; by the layer that limits the precision, what shrinks the interval most.
USUAL_PROBES = (STEPS, STEPS_COLUMN)
PROBES_FOR: Mapping[str, tuple[str, ...]] = {"discrepancy": (*USUAL_PROBES, DGEMM)}


@dataclass(frozen=True, slots=True)
class Reached:
    """Precision of a reference run's mean: relative half-width of its 95 % interval, and that with endless blocks.

    reference: what is predicted;  layer: what the half-width is most made of;  limit: the same in words
    later : half-width for LATER_S after the calibration, by which the machine has drifted; None if nobody knows
    """

    half_width: float
    floor: float
    reference: str
    layer: str
    limit: str
    later: float | None = None


@dataclass(frozen=True, slots=True)
class Goal:
    """budget_s: for all of a session, fits included; None: DEFAULT_BUDGET_S, or what the fewest blocks take if more."""

    precision: float = DEFAULT_PRECISION
    budget_s: float | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.precision < 1.0:
            raise InputError(f"--precision is {100.0 * self.precision:g} %; give a share such as 5%, below 100%")

    def met(self, reached: Reached) -> bool:
        return reached.half_width <= max(self.precision, NEAR_FLOOR * reached.floor)

    def budget_for(self, fewest_s: float, blocks: int) -> float:
        """Seconds; raises InputError if they do not hold the fewest blocks."""
        if self.budget_s is not None and self.budget_s < fewest_s:
            raise InputError(
                f"--budget is {duration(self.budget_s)}, and the fewest blocks ({blocks}) take about "
                f"{duration(fewest_s)}; give that, or --quick"
            )
        return max(DEFAULT_BUDGET_S, fewest_s) if self.budget_s is None else self.budget_s

    def text(self, reached: Reached, blocks: int, minute_blocks: float) -> str:
        """One line; minute_blocks: blocks that a minute makes."""
        above = max(0.0, reached.half_width**2 - reached.floor**2)  # falls as the error of a mean does
        more = sqrt(reached.half_width**2 - above * minute_blocks / (blocks + minute_blocks))
        why = "" if reached.half_width <= self.precision else f", short of {percent(self.precision)}"
        if reached.later is not None and reached.later > NEAR_FLOOR * reached.half_width:
            why += f"; {duration(LATER_S)} later to ± {percent(reached.later)}, as this machine drifts"
        return (
            f"the mean of {reached.reference} is known to ± {percent(reached.half_width)} after "
            f"{counted(blocks, 'block')}{why}; no more blocks go below ± {percent(reached.floor)}; what limits it is "
            f"{reached.limit}; another minute would give ± {percent(more)}"
        )


@dataclass(frozen=True, slots=True)
class FurtherBlock(Entry):
    """A block beyond the planned ones, begun after `elapsed_s`; probes: what it measures."""

    JOURNAL: ClassVar[str] = "further"
    block: int
    probes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Check(Entry):
    """A look at the precision after so many blocks; cost_s: how long it took; elapsed_s: of the session, by its end."""

    JOURNAL: ClassVar[str] = "precision"
    blocks: int
    elapsed_s: float
    cost_s: float
    half_width: float
    floor: float
    layer: str


def next_step(
    goal: Goal, reached: Reached | None, blocks: int, remaining_s: float, block_s: float, last: Check | None
) -> Literal["measure", "check", "stop"]:
    """What comes after this many blocks. The fit at the end is paid for, too; a check that takes longer than a block is
    made after every second one.

    reached  : what the last check found, if it was after the last block
    remaining_s : of the budget;  block_s: what the next block takes
    last     : the last check, of this session or an earlier one
    """
    check_s = _CHECK_S if last is None else last.cost_s
    if (reached is not None and goal.met(reached)) or remaining_s < block_s + check_s:
        return "stop"
    if reached is not None:
        return "measure"
    just_checked = last is not None and blocks - last.blocks < 2
    if remaining_s < block_s + 2.0 * check_s or (check_s > block_s and just_checked):
        return "measure"
    return "check"


def main_kernels(calls: pandas.DataFrame) -> pandas.DataFrame:
    """Kernels in which nearly all time is, and no phases, which would lack the others: a fifth of the rows."""
    calls = calls[~calls["kernel"].astype(str).str.startswith(_PHASES)]
    share = calls.groupby(calls["kernel"].astype(str))["duration_s"].sum() / calls["duration_s"].sum()
    return calls[calls["kernel"].astype(str).isin(share.index[share >= _MIN_SHARE])]
