"""Trials: each library once with all that is asked for, before anything is compared; what a library lacks."""

from collections.abc import Callable, Mapping

from lepaute.errors import EnvironmentProblem
from lepaute.measure.comparison.cases import BLOCKING, NOTHING, Case, ComparisonRequest, name_of
from lepaute.measure.comparison.entries import COMPLETE, Lacking, MpirunEnded
from lepaute.measure.comparison.libraries import ReadyLibrary
from lepaute.measure.comparison.mpirun import Mpiruns
from lepaute.measure.comparison.numbers import TRIAL_CALLS, mpirun_seed, shuffled_batches
from lepaute.measure.experiment.workspace import Workspace

#: Numbers in the place of a block's: of trials, and of starts that try one operation alone.
TRIAL, ALONE = -1, -2
#: The least from which it can be seen by how much mpiruns differ.
TRIALS = 2
#: Ranks are brought together by a barrier that is the same for every library and needs no window.
SYNCHRONISATION = "dissemination"
#: Is always tried: how long word of a start takes to reach all ranks.
BROADCAST = Case("Bcast", BLOCKING, 8)
#: A trial may take half of the budget, and so long at least.
TRIAL_LIMIT_S, ALONE_LIMIT_S = 120.0, 60.0
_MOST_TRIALS = 3


class Trials:
    """TRIALS starts of each library in turn with TRIAL_CALLS calls of every case; one where calls are not derived.

    Where that fails, each operation is tried by itself: those that fail then are lacking, and the library is measured
    with the others.
    """

    def __init__(
        self,
        maker: Mpiruns,
        workspace: Workspace,
        libraries: Mapping[str, ReadyLibrary],
        request: ComparisonRequest,
        seed: int,
        warn: Callable[[str], None],
    ) -> None:
        self._maker, self._workspace, self._libraries = maker, workspace, libraries
        self._request, self._seed, self._warn = request, seed, warn

    @property
    def durations_s(self) -> dict[str, float]:
        """Of the last complete trial of each library."""
        return {each.library: each.wall_s for each in self._complete()}

    def _complete(self) -> list[MpirunEnded]:
        return [each for each in self._workspace.noted(MpirunEnded) if (each.block, each.outcome) == (TRIAL, COMPLETE)]

    def make(self, tell: Callable[[str], None]) -> None:
        """All that have not been made. Raises EnvironmentProblem where a library cannot be measured at all."""
        for made in range(1 if self._request.calls is not None else TRIALS):
            for place, label in enumerate(self._libraries):
                if sum(each.library == label for each in self._complete()) <= made:
                    tell(f"trying {label}")
                    self._make(label, place, tell)

    def _make(self, label: str, place: int, tell: Callable[[str], None]) -> None:
        limit_s = max(TRIAL_LIMIT_S, self._request.budget_s / 2)
        ended = self._try(label, TRIAL, place, self._cases(label), TRIAL_CALLS, limit_s)
        trials = 1
        while ended.outcome != COMPLETE:
            if trials == _MOST_TRIALS:
                raise EnvironmentProblem(f"{label}: cannot be measured: {ended.failure}")
            trials += 1
            self._find_lacking(label, place, tell)
            ended = self._try(label, TRIAL, place, self._cases(label), TRIAL_CALLS, limit_s)

    def _cases(self, label: str) -> list[Case]:
        lacking = {(each.operation, each.form) for each in self._workspace.noted(Lacking) if each.library == label}
        every = dict.fromkeys([*self._request.cases, BROADCAST])
        return [case for case in every if (case.operation, case.form) not in lacking]

    def _find_lacking(self, label: str, place: int, tell: Callable[[str], None]) -> None:
        """Raises EnvironmentProblem where no operation works."""
        operations = dict.fromkeys((case.operation, case.form) for case in self._cases(label))
        failed: dict[tuple[str, str], str] = {}
        for operation, form in operations:
            tell(f"trying {label}: {name_of(operation, form)}")
            mine = [case for case in self._cases(label) if (case.operation, case.form) == (operation, form)]
            ended = self._try(label, ALONE, place, mine, 1, ALONE_LIMIT_S)
            if ended.outcome != COMPLETE:
                failed[operation, form] = ended.failure
        if len(failed) == len(operations):
            raise EnvironmentProblem(f"{label}: cannot be measured: {next(iter(failed.values()))}")
        for (operation, form), why in failed.items():
            self._workspace.note(Lacking(label, operation, form, why))
            if any((case.operation, case.form) == (operation, form) for case in self._request.cases):
                self._warn(f"{label}: {name_of(operation, form)} is not measured with it: {why}")

    def _try(self, label: str, block: int, place: int, cases: list[Case], calls: int, limit_s: float) -> MpirunEnded:
        attempt = sum(each.library == label for each in self._workspace.noted(MpirunEnded))
        seed = mpirun_seed(self._seed, block, place, label, attempt)
        counts = dict.fromkeys(cases, calls)
        windows = dict.fromkeys([*cases, Case(NOTHING, BLOCKING, 0)], 0)
        limit_s = self._request.limit_s if self._request.limit_s is not None else limit_s
        _, ended = self._maker.make(
            self._libraries[label],
            shuffled_batches(counts, windows, seed, split=False),
            block=block,
            place=place,
            attempt=attempt,
            seed=seed,
            limit_s=limit_s,
            synchronisation=SYNCHRONISATION,
        )
        return ended
