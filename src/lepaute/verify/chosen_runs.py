"""A campaign whose runs are chosen one at a time, each by what the ones before it took.

Like any other, it seals the predictions of all cases before the first real run, makes disturbed runs again, and keeps
each run in its journal before the next one starts. Runs that the journal has are answered from there: whoever chooses
in the same way again comes to the point where the campaign was interrupted.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from lepaute.verify.campaign import Case, Plan, RecordedRun, predict_cases, run_cases, run_record
from lepaute.verify.real_run import HplProgram, RealRun
from lepaute.verify.run_journal import RunJournal
from lepaute.verify.seal import Seal, seal_predictions, sealed_before
from lepaute.verify.site import Site
from lepaute.verify.verification import check_unused

if TYPE_CHECKING:
    from lepaute.measure.sentinel import Guard
    from lepaute.simulate import Hpl, Prediction

RUNS_FILE = "runs.csv"


class ChosenRuns:
    """An open campaign.

    cases : with their sealed predictions;  seal : of these
    runs  : every real run so far, disturbed ones too, in the order in which they were made
    """

    def __init__(self, cases: list[Case], seal: Seal, plan: Plan, journal: RunJournal, site: Site,
                 watch: Callable[[], float | None], progress: Callable[[str, float], None]) -> None:  # fmt: skip
        self.cases, self.seal = cases, seal
        self.runs: list[RecordedRun] = list(journal.finished)
        self._plan, self._journal, self._site = plan, journal, site
        self._watch, self._progress = watch, progress
        self._asked: dict[int, int] = {}

    def run(self, case: int) -> float:
        """Seconds of another run of a case: its undisturbed attempt, or the median of all where each was disturbed.

        Raises EnvironmentProblem where it fails or cannot be kept.
        """
        repeat = self._asked.get(case, 0)
        self._asked[case] = repeat + 1
        self.runs = run_cases(
            self.cases, self._plan, self._run_once, self._progress, self.runs, self._journal.add, self._watch,
            [(case, repeat)],
        )  # fmt: skip
        made = self._attempts(case, repeat)
        return median(one.run.time_s for one in [one for one in made if not one.disturbed] or made)

    @property
    def disturbed(self) -> int:
        """Runs asked for of which every attempt was disturbed."""
        asked = ((case, repeat) for case, count in self._asked.items() for repeat in range(count))
        return sum(all(one.disturbed for one in self._attempts(*each)) for each in asked)

    def csv(self) -> str:
        """A line a real run."""
        import pandas

        return pandas.DataFrame([run_record(self.cases[one.case], one) for one in self.runs]).to_csv(index=False)

    def _attempts(self, case: int, repeat: int) -> list[RecordedRun]:
        return [one for one in self.runs if (one.case, one.repeat) == (case, repeat)]

    def _run_once(self, hpl: "Hpl", timeout_s: float) -> RealRun:
        self._journal.reserve(hpl.ranks)
        return self._site.run(hpl, timeout_s)


@contextmanager
def chosen_runs(
    hpls: "Iterable[Hpl]",
    program: HplProgram,
    plan: Plan,
    predict: "Callable[[Hpl], Prediction]",
    folder: Path,
    site: Site,
    progress: Callable[[str, float], None],
    *,
    guard: "Guard | None" = None,
    resume: bool = False,
) -> Iterator[ChosenRuns]:
    """Predicts all cases, seals that in the folder, and lends a campaign of them.

    plan : its repeats are the most that any case may be run
    Raises InputError where a case does not fit, or where the folder holds another campaign (without `resume` any).
    What is raised among the real runs has a note where they are kept.
    """
    if not resume:
        check_unused(folder)
    cases = predict_cases(hpls, site.check, predict, progress)
    before = sealed_before(cases, plan, program, folder) if resume else None
    cases, seal = before or (cases, seal_predictions(cases, plan, program, folder))
    journal = RunJournal(folder, seal)
    watch = (lambda: None) if guard is None else (lambda: site.watch(guard))
    try:
        yield ChosenRuns(cases, seal, plan, journal, site, watch, progress)
    except BaseException as problem:
        problem.add_note(f"finished real runs are kept in {journal.path}; continue with the same command and --resume")
        raise
    finally:
        journal.close()
