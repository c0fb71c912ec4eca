"""What numbers are planned from: cases, and calls read from the raw files of a workspace."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lepaute.archive.mpi_campaign import call_table
from lepaute.measure.comparison.asked import Asked
from lepaute.measure.comparison.cases import NOTHING, Case
from lepaute.measure.comparison.entries import COMPLETE, Lacking, MpirunBegun, MpirunEnded
from lepaute.measure.comparison.tables import calls_and_clocks, mpirun_table
from lepaute.measure.experiment.workspace import Workspace

if TYPE_CHECKING:
    import pandas


def measurable(workspace: Workspace, asked: Asked, labels: Sequence[str]) -> tuple[Case, ...]:
    """The cases that one of these libraries at least can be measured with."""
    lacking = {(each.library, each.operation, each.form) for each in workspace.noted(Lacking)}
    return tuple(
        case for case in asked.cases if any((label, case.operation, case.form) not in lacking for label in labels)
    )


def trial_calls(workspace: Workspace, trial: int) -> "pandas.DataFrame":
    """The calls of the complete trials, `trial` being the number in the place of their block's."""
    ended = workspace.noted(MpirunEnded)
    return _calls(workspace, {each.mpirun for each in ended if (each.block, each.outcome) == (trial, COMPLETE)})


def first_stage_calls(workspace: Workspace, blocks: int) -> "pandas.DataFrame":
    """Calls of one complete mpirun at each place of the first blocks, an undisturbed one where there is."""
    chosen: dict[tuple[int, int], MpirunEnded] = {}
    for each in workspace.noted(MpirunEnded):
        if 0 <= each.block < blocks and each.outcome == COMPLETE:
            before = chosen.get((each.block, each.place))
            if before is None or (before.disturbed and not each.disturbed):
                chosen[each.block, each.place] = each
    return _calls(workspace, {each.mpirun for each in chosen.values()})


def _calls(workspace: Workspace, numbers: set[int]) -> "pandas.DataFrame":
    begun = [each for each in workspace.noted(MpirunBegun) if each.mpirun in numbers]
    table = call_table(*calls_and_clocks(workspace, begun), mpirun_table(workspace))
    return table[table["operation"] != NOTHING]
