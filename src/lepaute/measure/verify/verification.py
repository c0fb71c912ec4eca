"""A document verification and what it leaves behind: files, JSON, a verdict."""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

import pandas

from lepaute.errors import InputError
from lepaute.kit.files import write_atomic
from lepaute.kit.numbers import none_if_nan
from lepaute.kit.picture import origin
from lepaute.kit.text import counted
from lepaute.measure.sentinel import Guard
from lepaute.measure.verify import campaign as campaigns
from lepaute.measure.verify import seal as seals
from lepaute.measure.verify.comparison import compare, comparison_record, decision_of, one_sided, run_table, sentence
from lepaute.measure.verify.machine import MachineDrift, machine_drift, readings_of
from lepaute.measure.verify.real_run import Program, RealRun, Site
from lepaute.simulate import Application, Prediction
from lepaute.simulate.apps.hpl import Hpl
from lepaute.simulate.apps.hpl.hpl_out import real_report
from lepaute.simulate.platform.schema import Sentinel
from lepaute.stats.decision import Decision
from lepaute.stats.disturbance import disturbers

RESULTS_FILE = "results.csv"
RUNS_FILE = "runs.csv"
JSON_FILE = "verification.json"
PLOT_FILE, VECTOR_FILE = "verification.png", "verification.svg"
#: Of both.
PLOT_NAME = "verification"
HPL_OUT_FILE = "HPL.out"
CHECKSUMS_FILE = "results.sha256"
#: What a campaign leaves in its folder; another one would mix its own with it.
CAMPAIGN_FILES = (
    *(seals.PREDICTIONS_FILE, seals.SEAL_FILE, seals.JOURNAL_FILE, RESULTS_FILE, RUNS_FILE, JSON_FILE, PLOT_FILE),
    *(VECTOR_FILE, HPL_OUT_FILE, CHECKSUMS_FILE),
)


@dataclass(frozen=True)
class Verification:
    """Predictions, their seal, every real run, and both as a table (see comparison.compare for its columns)."""

    cases: list[campaigns.Case]
    seal: seals.Seal
    runs: list[campaigns.RecordedRun]
    table: "pandas.DataFrame"
    run_table: "pandas.DataFrame"
    drift: MachineDrift | None = None

    @property
    def sentence(self) -> str:
        return sentence(self.table)

    @property
    def decision(self) -> Decision:
        """Whether all is as predicted."""
        return Decision.of_several(map(decision_of, self.table.to_dict("records")), "against")

    def records(self) -> list[dict[str, Any]]:
        """One dictionary a case: the keys of its prediction, `measured` (every run), and how they compare."""
        return [
            {
                **case.prediction.to_dict(),
                "measured": [campaigns.measured_record(case, run) for run in self.runs if run.case == index],
                **comparison_record(row),
                "drift_percent": none_if_nan(row["drift_percent"]),
                "error_without_drift_percent": none_if_nan(row["error_without_drift_percent"]),
                "inside_without_drift": row["inside_without_drift"],
                "predictions_sha256": self.seal.sha256,
                "predictions_created": self.seal.created,
            }
            for index, (case, row) in enumerate(zip(self.cases, self.table.to_dict("records"), strict=True))
        ]

    def to_dict(self) -> dict[str, Any]:
        """What --json prints: the answer, the record of the only case or {"verifications": [...]}, `machine_drift`."""
        document = {"answer": self.sentence} | joint_record(self.records(), self.table) | self.decision.to_dict()
        return document if self.drift is None else {**document, "machine_drift": self.drift.to_dict()}

    def hpl_out(self) -> str:
        """The real runs of HPL as it reports them, case by case, disturbed ones left out where a case has others."""
        only_disturbed = self.table["only_disturbed"].tolist()
        runs = sorted(self.runs, key=lambda run: (run.case, run.order))
        counting = [run for run in runs if not run.disturbed or only_disturbed[run.case]]
        dated = [(self.cases[run.case].hpl, run.run.time_s, datetime.fromisoformat(run.started)) for run in counting]
        return real_report("HPL, run by lepaute verify", dated)

    def save(self, folder: Path, title: str) -> None:
        """Write results.csv, runs.csv, verification.json, .png and .svg, and of HPL an HPL.out beside the predictions.

        At last results.sha256, for `sha256sum -c`: the checksums of these, of the journal and of the predictions.
        Raises InputError if the predictions are not the sealed ones any more.
        """
        try:
            self._write(folder, title)
        except BaseException as problem:
            problem.add_note(f"all runs are kept in {folder / seals.JOURNAL_FILE}; --resume writes their results again")
            raise

    def _write(self, folder: Path, title: str) -> None:
        from lepaute.measure.verify.plot import plot

        self.seal.check()
        write_atomic(folder / RESULTS_FILE, self.table.to_csv(index=False))
        write_atomic(folder / RUNS_FILE, self.run_table.to_csv(index=False))
        write_atomic(folder / JSON_FILE, json.dumps(self.to_dict(), indent=1) + "\n")
        told = self.drift is not None and self.drift.significant
        drawn = self.table if told else self.table.assign(measured_without_drift_s=math.nan)
        plot(drawn, self.run_table, folder / PLOT_NAME, title, foot_of_cases(self.cases))
        written = set(CAMPAIGN_FILES) - {seals.SEAL_FILE, CHECKSUMS_FILE}
        if isinstance(self.cases[0].application, Hpl):
            write_atomic(folder / HPL_OUT_FILE, self.hpl_out())
        else:
            written.remove(HPL_OUT_FILE)
        checked = [name for name in CAMPAIGN_FILES if name in written]
        digests = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in checked}
        write_atomic(folder / CHECKSUMS_FILE, "".join(f"{digest}  {name}\n" for name, digest in digests.items()))


def foot_of_cases(cases: Sequence[campaigns.Case]) -> str:
    """Origin of the predictions, for the foot of their picture."""
    first, runs = cases[0].prediction, sum(len(case.prediction.run_list) for case in cases)
    return origin(first.platform_name, first.platform_sha256, first.seed, first.version, runs)


def joint_record(records: list[dict[str, Any]], table: "pandas.DataFrame") -> dict[str, Any]:
    """The record of a single case, or {"verifications": [...]} with what all have in common: errors to one side."""
    if len(records) == 1:
        return records[0]
    found = one_sided(table["error_percent"].tolist())
    return {"verifications": records, "one_sided": None if found is None else found.to_dict()}


def check_unused(folder: Path, names: Sequence[str] = CAMPAIGN_FILES) -> None:
    """Raises InputError if a campaign left something in the folder: predictions and results of two never mix."""
    for name in names:
        # The journal is also what a campaign holds the folder by: empty, it is no result.
        if (folder / name).is_dir() or ((folder / name).exists() and (folder / name).stat().st_size):
            raise InputError(
                f"{folder} holds {name} of an earlier verification: continue it with --resume, or give another --output"
            )


def check_begun(folder: Path) -> None:
    """Raises InputError if no campaign was begun that could go on."""
    if not folder.is_dir() or not any(folder.iterdir()):
        raise InputError(f"{folder}: no interrupted verification to resume; start without --resume")


class ChosenRuns:
    """An open campaign, whose runs may be chosen one at a time, each by what the ones before it took.

    Runs in the journal are answered from there: the same choices lead to where the campaign was interrupted.

    cases : with their sealed predictions;  seal : of these
    runs  : every real run so far, disturbed ones too, in the order in which they were made
    """

    def __init__(self, cases: list[campaigns.Case], seal: seals.Seal, plan: campaigns.Plan, journal: seals.RunJournal,
                 site: Site,
                 watch: Callable[[], float | None], progress: Callable[[str, float], None]) -> None:  # fmt: skip
        self.cases, self.seal = cases, seal
        self.runs: list[campaigns.RecordedRun] = list(journal.finished)
        self._plan, self._journal, self._site = plan, journal, site
        self._watch, self._progress = watch, progress
        self._chosen: dict[int, int] = {}

    def make(self, chosen: Sequence[tuple[int, int]] | None = None) -> None:
        """Makes the runs (case, repeat) of `chosen`, by default all of the plan, where the journal has not got them."""

        def run_once(application: "Application", timeout_s: float) -> RealRun:
            self._journal.reserve(application.ranks)
            return self._site.run(application, timeout_s)

        self.runs = campaigns.run_cases(
            self.cases, self._plan, run_once, self._progress, self.runs, self._journal.add, self._watch, chosen
        )

    def run(self, case: int) -> float:
        """Seconds of another run of a case: its undisturbed attempt, or the median of all where each was disturbed.

        Raises EnvironmentProblem if it fails or cannot be kept.
        """
        repeat = self._chosen.get(case, 0)
        self._chosen[case] = repeat + 1
        self.make([(case, repeat)])
        attempts = self._attempts(case, repeat)
        return median(run.run.time_s for run in [run for run in attempts if not run.disturbed] or attempts)

    @property
    def warnings(self) -> list[str]:
        """Warnings of disturbed runs."""
        disturbed = ["; ".join(run.causes) for run in self.runs if run.disturbed]
        chosen = ((case, repeat) for case, count in self._chosen.items() for repeat in range(count))
        always = sum(all(run.disturbed for run in self._attempts(*place)) for place in chosen)
        if not disturbed:
            return []
        told = f"{len(disturbed)} of {counted(len(self.runs), 'real run')} were disturbed {disturbers(disturbed)}"
        return [f"{told}; {always} of those that count had no undisturbed repetition"]

    def csv(self) -> str:
        return pandas.DataFrame([campaigns.run_record(self.cases[run.case], run) for run in self.runs]).to_csv(
            index=False
        )

    def _attempts(self, case: int, repeat: int) -> list[campaigns.RecordedRun]:
        return [run for run in self.runs if (run.case, run.repeat) == (case, repeat)]


@contextmanager
def chosen_runs(
    applications: "Iterable[Application]",
    program: Program,
    plan: campaigns.Plan,
    predict: "Callable[[Any], Prediction]",
    folder: Path,
    site: Site,
    progress: Callable[[str, float], None],
    *,
    guard: "Guard | None" = None,
    again: "Callable[[Any], Prediction] | None" = None,
    sealed: Callable[[seals.Seal, int], None] = lambda _seal, _finished: None,
    resume: bool = False,
) -> Iterator[ChosenRuns]:
    """Predicts all cases, seals that in the folder, and lends a campaign of them.

    plan  : its repeats are the most that any case may be run
    guard : the sentinel of the platform, which is run around the real runs; None: none is
    again : as of `predict_cases`
    sealed(seal, finished runs) is called once the predictions are on disk, before the first real run.
    Raises InputError if a case does not fit, or where the folder holds another campaign (without `resume` any).
    What is raised among the real runs has a note where they are kept.
    """
    if not resume:
        check_unused(folder)
    cases = campaigns.predict_cases(applications, site.check, predict, progress, again)
    before = seals.sealed_before(cases, plan, program, folder) if resume else None
    cases, seal = before or (cases, seals.seal_predictions(cases, plan, program, folder))
    journal = seals.RunJournal(folder, seal)
    sealed(seal, len(journal.finished))
    watch = (lambda: None) if guard is None else (lambda: site.watch(guard))
    try:
        yield ChosenRuns(cases, seal, plan, journal, site, watch, progress)
    except BaseException as problem:
        problem.add_note(f"finished real runs are kept in {journal.path}; continue with the same command and --resume")
        raise
    finally:
        journal.close()


def verify(begun: AbstractContextManager[ChosenRuns], sentinel: "Sentinel | None" = None) -> Verification:
    """Makes all runs of a campaign (`chosen_runs`, which says what is raised), and compares."""
    with begun as campaign:
        campaign.make()
    runs_frame = run_table(campaign.cases, campaign.runs, sentinel)
    drift = None if sentinel is None else machine_drift(readings_of(runs_frame), sentinel)
    table = compare(campaign.cases, runs_frame)
    return Verification(campaign.cases, campaign.seal, campaign.runs, table, runs_frame, drift)
