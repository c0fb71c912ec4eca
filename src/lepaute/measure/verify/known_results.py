"""Predictions against results of HPL that exist already: an HPL.out, wherever and whenever it was made."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas

from lepaute.kit.files import write_atomic
from lepaute.kit.text import counted
from lepaute.measure.verify.campaign import Case
from lepaute.measure.verify.comparison import compare, comparison_record
from lepaute.measure.verify.gap import Verdict, verdict
from lepaute.measure.verify.verification import (
    JSON_FILE,
    PLOT_FILE,
    PLOT_NAME,
    RESULTS_FILE,
    VECTOR_FILE,
    foot_of_cases,
    joint_record,
)
from lepaute.simulate import Hpl, Prediction
from lepaute.simulate.apps.hpl.hpl_dat import HplDat
from lepaute.simulate.apps.hpl.hpl_out import HplResult, default_of, read_hpl_results
from lepaute.simulate.platform import Platform
from lepaute.simulate.prediction.comparing import sd_on_one_day
from lepaute.simulate.prediction.sweep import Sweep
from lepaute.stats.decision import Decision

#: What errors of one sign may share, where nobody but the user knows how the runs were made.
CAUSES = (
    "how the runs were made (--threads-per-rank, --ranks-per-node, other load, another BLAS or MPI library), the speed "
    "of the machine since it was calibrated, or the platform"
)
#: What is left in a folder.
FILES = (RESULTS_FILE, JSON_FILE, PLOT_FILE, VECTOR_FILE)


@dataclass(frozen=True)
class KnownResults:
    """The results of a file by case, and what was predicted for these; table, run_table: as of comparison.compare.

    dat: of the runs, if that is known
    """

    source: str
    cases: list[Case]
    results: list[HplResult]
    table: "pandas.DataFrame"
    run_table: "pandas.DataFrame"
    verdict: Verdict
    dat: HplDat | None = None

    @property
    def decision(self) -> Decision:
        """Whether all is as predicted."""
        return self.verdict.decision

    def warnings(self) -> list[str]:
        """Cases without results, and parameters that neither the file nor the command line says."""
        lines = []
        if self.dat is not None and (missing := self.dat.unlike(result.hpl for result in self.results)):
            lines.append(f"{self.source}: no results of {counted(missing, 'further case')} of the HPL.dat")
        if assumed := dict.fromkeys(field for result in self.results for field in result.assumed):
            values = " ".join(f"--{field.replace('_', '-')} {default_of(field)}" for field in assumed)
            lines.append(
                f"{self.source}: no list of parameters above the results; assumed, unless --dat HPL.dat or other "
                f"options are given: {values}"
            )
        return lines

    def bests(self) -> list[str]:
        """For each N of which there are several cases: the fastest that was measured, and that was predicted."""
        if not self.cases:
            return []
        measured_s = dict(zip([id(case.prediction) for case in self.cases], self.table["measured_time_s"], strict=True))
        told = []
        for sweep in Sweep(tuple(case.prediction for case in self.cases)).problems:
            if len(sweep.predictions) < 2:
                continue
            real = min(sweep.predictions, key=lambda one: measured_s[id(one)])
            told.append(f"Fastest for {sweep.problem}, measured: {real.application.label}; predicted: ")
            best = sweep.best
            if best is None:
                told[-1] += "none, all are mostly extrapolated."
                continue
            among = ", with the measured one" if best is not real and any(one is real for one in sweep.bests) else ""
            number = len(sweep.bests)
            apart = f" (one of {number} that cannot be told apart{among})" if number > 1 else ""
            longer = 100.0 * (measured_s[id(best)] / measured_s[id(real)] - 1.0)
            took = "" if best is real else f", which took {longer:.1f} % longer"
            told[-1] += f"{'the same' if best is real else best.application.label}{apart}{took}."
        return told

    def to_dict(self) -> dict[str, Any]:
        """What --json prints, with the keys of a verification that has run something."""
        rows = self.table.to_dict("records")
        records = [
            {
                **case.prediction.to_dict(),
                "measured": [
                    {
                        "time_s": result.time_s,
                        "rate_gflops": case.hpl.rate_gflops(result.time_s),
                        "line": result.line,
                        "failed": result.failed,
                    }
                    for result in self.results
                    if result.hpl == case.hpl
                ],
                **comparison_record(row),
                "results": self.source,
            }
            for case, row in zip(self.cases, rows, strict=True)
        ]
        found = self.verdict.to_dict()
        return found | (joint_record(records, self.table) if records else {"verifications": []}) | found

    def save(self, folder: Path) -> None:
        """Writes results.csv, verification.json, verification.png and verification.svg."""
        from lepaute.measure.verify.plot import plot

        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / JSON_FILE, json.dumps(self.to_dict(), indent=1) + "\n")
        if not self.cases:
            return
        write_atomic(folder / RESULTS_FILE, self.table.to_csv(index=False))
        title = f"HPL: predicted, and as in {self.source}"
        plot(self.table, self.run_table, folder / PLOT_NAME, title, foot_of_cases(self.cases), known=True)


def known_results(
    path: Path,
    given: Mapping[str, Any],
    predict: "Callable[[Sequence[Hpl], int], Sequence[Prediction]]",
    platform: "Platform",
    per_node: int | None = None,
    dat: HplDat | None = None,
) -> KnownResults:
    """The results of the file against the predictions of their cases, one for all results of the same parameters.

    Results whose residual check failed are not compared; where all did, nothing is predicted.
    predict(cases, repeat): another `repeat` is another run on the same machines and days; of cases with several results
    given, dat, errors: as in hpl_out.parse_hpl_results
    """
    read = read_hpl_results(path, given, dat)
    results = [result for result in read if not result.failed]
    if not results:
        judged = verdict(path.name, read, (), (), platform)
        return KnownResults(path.name, [], read, pandas.DataFrame(), pandas.DataFrame(), judged, dat)
    hpls = list(dict.fromkeys(result.hpl for result in results))
    predictions = dict(zip(hpls, predict(hpls, 0), strict=True))
    several = [hpl for hpl, count in Counter(result.hpl for result in results).items() if count > 1]
    again = zip(several, predict(several, 1), strict=True) if several else ()
    sds = {hpl: sd_on_one_day(predictions[hpl], one) for hpl, one in again}
    cases = [Case(hpl, prediction, sds.get(hpl, 0.0)) for hpl, prediction in predictions.items()]
    index = {hpl: case for case, hpl in enumerate(hpls)}
    rows = [{"case": index[each.hpl], "time_s": each.time_s, "disturbed": False, "causes": ""} for each in results]
    runs = pandas.DataFrame(rows)
    table = compare(cases, runs)
    judged = verdict(path.name, read, cases, table.to_dict("records"), platform, per_node)
    return KnownResults(path.name, cases, read, table, runs, judged, dat)
