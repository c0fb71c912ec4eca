"""Predictions against results of HPL that exist already: an HPL.out, wherever and whenever it was made."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.kit.files import write_whole
from lepaute.kit.text import counted
from lepaute.simulate.apps.hpl.hpl_out import HplResult, default_of, read_hpl_results
from lepaute.simulate.prediction.comparing import sd_on_one_day
from lepaute.simulate.prediction.sweep import Sweep
from lepaute.verify.campaign import Case
from lepaute.verify.comparison import compare, comparison_record
from lepaute.verify.verification import (
    JSON_FILE,
    PLOT_FILE,
    PLOT_NAME,
    RESULTS_FILE,
    VECTOR_FILE,
    foot_of_cases,
    joint_record,
)

if TYPE_CHECKING:
    import pandas

    from lepaute.platform import Platform
    from lepaute.simulate import Hpl, Prediction
    from lepaute.verify.campaign import Case

LEAST_TOLD = 0.03  # of the predicted time; a smaller gap needs no cause
MANY_TIMES = 3.0  # from here on a gap is told as a multiple, not in per cent
#: More than a core of 2026 does in double precision: about 5 GHz times 32 operations a cycle.
MOST_OF_A_CORE_FLOPS = 250e9
MOSTLY = 0.6  # of the predicted time


def largest_gap(
    cases: "list[Case]", rows: list[dict[Any, Any]], platform: "Platform"
) -> "tuple[Case, list[str]] | None":
    """The case furthest off, of those that are not inside their interval, with lines: the gap, and its likely causes in
    order; None where there is none. A case that no machine can have made does not count.

    rows: of comparison.compare, in the order of the cases
    """
    off = [
        (case, row["measured_time_s"] / row["predicted_time_s"], row)
        for case, row in zip(cases, rows, strict=True)
        if row["inside_interval"] is not True
        and row["predicted_time_s"] > 0.0
        and impossible(case, row["measured_time_s"], platform) is None
    ]
    off = [one for one in off if abs(one[1] - 1.0) >= LEAST_TOLD]
    if not off:
        return None
    case, ratio, row = max(off, key=lambda one: max(one[1], 1.0 / one[1]))
    return case, [_gap(case, ratio, row), f"  look at, in this order: {'; '.join(_causes(case, ratio, platform))}"]


def impossible(case: "Case", measured_s: float, platform: "Platform") -> str | None:
    """In words, that the cores of a run did more than cores can; None where they did not."""
    hpl = case.hpl
    flops = hpl.flop_count / measured_s / (hpl.ranks * hpl.threads_per_rank)
    peak_flops = platform.nodes.peak_flops_per_core
    if flops <= (1.2 * peak_flops if peak_flops else MOST_OF_A_CORE_FLOPS):
        return None
    threads = hpl.threads_per_rank * case.prediction.time_s.mean / measured_s
    return (
        f"{case.label}: {flops / 1e9:.4g} Gflop/s on each core, of which a rank has {hpl.threads_per_rank} here, is "
        f"more than any core does. Is it about --threads-per-rank {threads:.0f}, or a GPU?"
    )


def _gap(case: "Case", ratio: float, row: dict[Any, Any]) -> str:
    measured, predicted = (row["flop_count"] / row[key] / 1e9 for key in ("measured_time_s", "predicted_time_s"))
    how = f"{100 * (ratio - 1):.0f} % longer than" if ratio > 1 else f"{100 * (1 - ratio):.0f} % shorter than"
    if ratio >= MANY_TIMES:
        how = f"{ratio:.3g} times as long as"
    return (
        f"{case.label}: the real run took {how} predicted ({row['measured_time_s']:.4g} s, not "
        f"{row['predicted_time_s']:.4g} s): {measured:.4g} Gflop/s, {abs(predicted - measured):.3g} "
        f"{'less' if ratio > 1 else 'more'} than predicted"
    )


def _causes(case: "Case", ratio: float, platform: "Platform") -> list[str]:
    """What may explain it; what would touch the larger part of the predicted time first."""
    breakdown, hpl = case.prediction.breakdown, case.hpl
    computing = 1.0 if breakdown is None else breakdown.shares["compute"]
    cores = ["the clock frequency", "the BLAS library and its threads (--threads-per-rank)"]
    messages = ["the MPI library and network", "where the ranks ran (--ranks-per-node)"]
    causes = [*cores, *messages] if computing >= MOSTLY else [*messages, *cores]
    if hpl.ranks == 1:
        causes = cores
    if ratio > 1.0:
        causes.insert(2, "other load on the nodes")
        per_node = min(hpl.ranks, platform.nodes.cores // hpl.threads_per_rank or 1)
        memory = platform.nodes.memory_bytes
        if memory is not None and 8.0 * hpl.n**2 / hpl.ranks * per_node > 0.8 * memory:
            causes.insert(0, "memory: the matrix fills more than 80 % of that of a node")
    if case.prediction.extrapolated_share:
        causes.append("kernels outside the sizes that the platform was fitted to")
    return causes


#: What errors of one sign may share, where nobody but the user knows how the runs were made.
CAUSES = (
    "how the runs were made (--threads-per-rank, --ranks-per-node, other load, another BLAS or MPI library), the speed "
    "of the machine since it was calibrated, or the platform"
)
#: What is left in a folder.
FILES = (RESULTS_FILE, JSON_FILE, PLOT_FILE, VECTOR_FILE)


@dataclass(frozen=True)
class KnownResults:
    """The results of a file by case, and what was predicted for these; table, run_table: as of comparison.compare."""

    source: str
    cases: list[Case]
    results: list[HplResult]
    table: "pandas.DataFrame"
    run_table: "pandas.DataFrame"

    def warnings(self) -> list[str]:
        """Results that their own file calls wrong, and parameters that neither it nor the command line says."""
        told = []
        if failed := [result.line for result in self.results if result.failed]:
            lines = ", ".join(map(str, failed[:8])) + (", ..." if len(failed) > 8 else "")
            where = f"{counted(len(failed), 'result')} ({'line' if len(failed) == 1 else 'lines'} {lines})"
            told.append(f"{self.source}: HPL's residual check FAILED for {where}; all are compared")
        if assumed := dict.fromkeys(field for result in self.results for field in result.assumed):
            values = " ".join(f"--{field.replace('_', '-')} {default_of(field)}" for field in assumed)
            told.append(
                f"{self.source}: no list of parameters above the results; assumed, unless --dat HPL.dat or other "
                f"options are given: {values}"
            )
        return told

    def bests(self) -> list[str]:
        """For each N of which there are several cases: the fastest that was measured, and that was predicted."""
        measured_s = dict(
            zip(map(id, (case.prediction for case in self.cases)), self.table["measured_time_s"], strict=True)
        )
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
        return joint_record(records, self.table)

    def save(self, folder: Path) -> None:
        """Writes results.csv, verification.json, verification.png and verification.svg."""
        from lepaute.verify.plot import plot

        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / RESULTS_FILE, self.table.to_csv(index=False))
        write_whole(folder / JSON_FILE, json.dumps(self.to_dict(), indent=1) + "\n")
        title = f"HPL: predicted, and as in {self.source}"
        plot(self.table, self.run_table, folder / PLOT_NAME, title, foot_of_cases(self.cases), known=True)


def known_results(
    path: Path, given: Mapping[str, Any], predict: "Callable[[Sequence[Hpl], int], Sequence[Prediction]]"
) -> KnownResults:
    """The results of the file against the predictions of their cases, one for all results of the same parameters.

    predict(cases, repeat): another `repeat` is another run on the same machines and days; of cases with several results
    given, errors: as in hpl_results.parse_hpl_results
    """
    import pandas

    results = read_hpl_results(path, given)
    hpls = list(dict.fromkeys(result.hpl for result in results))
    predictions = dict(zip(hpls, predict(hpls, 0), strict=True))
    several = [hpl for hpl, count in Counter(result.hpl for result in results).items() if count > 1]
    again = zip(several, predict(several, 1), strict=True) if several else ()
    sds = {hpl: sd_on_one_day(predictions[hpl], one) for hpl, one in again}
    cases = [Case(hpl, prediction, sds.get(hpl, 0.0)) for hpl, prediction in predictions.items()]
    index = {hpl: case for case, hpl in enumerate(hpls)}
    rows = [{"case": index[each.hpl], "time_s": each.time_s, "disturbed": False, "causes": ""} for each in results]
    runs = pandas.DataFrame(rows)
    return KnownResults(path.name, cases, results, compare(cases, runs), runs)
