"""A whole verification and what it leaves behind: files, JSON, a verdict."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.kit.files import write_whole
from lepaute.verify.campaign import (
    Case,
    Plan,
    RecordedRun,
    Seal,
    measured_record,
    predict_cases,
    run_cases,
    seal_predictions,
)
from lepaute.verify.comparison import compare, predicted_table, run_table, sentence
from lepaute.verify.real_run import HplProgram, real_run

if TYPE_CHECKING:
    import pandas

    from lepaute.simulate import Hpl, Prediction

RESULTS_FILE = "results.csv"
RUNS_FILE = "runs.csv"
JSON_FILE = "verification.json"
PLOT_FILE = "verification.png"


@dataclass(frozen=True)
class Verification:
    """Predictions, their seal, every real run, and both as a table (see comparison.compare for its columns)."""

    cases: list[Case]
    seal: Seal
    runs: list[RecordedRun]
    table: "pandas.DataFrame"
    run_table: "pandas.DataFrame"

    @property
    def sentence(self) -> str:
        return sentence(self.table)

    def exceeds(self, tolerance_percent: float) -> bool:
        """Does any case err by more than that, either way?"""
        return bool((self.table["error_percent"].abs() > tolerance_percent).any())

    def records(self) -> list[dict[str, Any]]:
        """One dictionary a case: the keys of its prediction, `measured` (every run), and how they compare."""
        return [
            {
                **case.prediction.to_dict(),
                "measured": [measured_record(case, run) for run in self.runs if run.case == index],
                "measured_time_s": row["measured_time_s"],
                "error_percent": row["error_percent"],
                "inside_interval": row["inside_interval"],
                "predictions_sha256": self.seal.sha256,
                "predictions_created": self.seal.created,
            }
            for index, (case, row) in enumerate(zip(self.cases, self.table.to_dict("records"), strict=True))
        ]

    def to_dict(self) -> dict[str, Any]:
        """What --json prints: the record of a single case, or {"verifications": [...]}."""
        records = self.records()
        return records[0] if len(records) == 1 else {"verifications": records}

    def save(self, folder: Path, title: str) -> None:
        """Write results.csv, runs.csv, verification.json and verification.png next to the sealed predictions."""
        from lepaute.verify.plot import plot

        write_whole(folder / RESULTS_FILE, self.table.to_csv(index=False).encode())
        write_whole(folder / RUNS_FILE, self.run_table.to_csv(index=False).encode())
        write_whole(folder / JSON_FILE, (json.dumps(self.to_dict(), indent=1) + "\n").encode())
        plot(self.table, self.run_table, folder / PLOT_FILE, title)


def verify(
    hpls: Sequence["Hpl"],
    program: HplProgram,
    plan: Plan,
    predict: Callable[["Hpl"], "Prediction"],
    folder: Path,
    progress: Callable[[str, float], None],
    sealed: Callable[[Seal], None],
) -> Verification:
    """Predict all, seal, run all for real, compare.

    progress(what, fraction done) is called before each step of the two long parts; sealed(seal) between them,
    after the predictions are on disk and before the first real run.
    Raises InputError where a case does not fit on this machine, EnvironmentProblem where a real run fails.
    """
    cases = predict_cases(hpls, predict, progress)
    seal = seal_predictions(cases, plan, folder)
    sealed(seal)
    runs = run_cases(cases, plan, lambda hpl, timeout_s: real_run(hpl, program, timeout_s), progress)
    runs_frame = run_table(cases, runs)
    return Verification(cases, seal, runs, compare(predicted_table(cases), runs_frame), runs_frame)
