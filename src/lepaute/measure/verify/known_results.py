"""Predictions against results of HPL that exist already: an HPL.out, wherever and whenever it was made.

The verdict: as expected or not, and causes that fit the size and the direction of the gap."""

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pandas

from lepaute.kit.files import write_atomic
from lepaute.kit.text import counted, significant
from lepaute.measure.verify.campaign import Case
from lepaute.measure.verify.comparison import (
    MIN_OF_ONE_SIGN,
    compare,
    comparison_record,
    decision_of,
    error_text,
    times_as_long,
)
from lepaute.measure.verify.report import predicted_and_measured
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
from lepaute.simulate.prediction.trust import weaknesses_of
from lepaute.stats.decision import Decision, Weakness

AS_EXPECTED, SLOWER, FASTER = "as_expected", "slower", "faster"
UNDECIDED, FAILED, UNKNOWN = "undecided", "failed", "unknown"
MIN_TOLD = 0.03  # of the predicted time; a smaller gap needs no cause
#: More than a core of 2026 does in double precision: about 5 GHz times 32 operations a cycle.
MAX_OF_A_CORE_FLOPS = 250e9
MOSTLY = 0.6  # of the predicted time
SHORT_S, FILLED = 0.3, 0.8  # a run that says little; of a node's memory
_MAX_MODEL_ERROR = 1.5  # of a kernel outside its fitted sizes: what needs more is not seen to be the platform's fault


@dataclass(frozen=True, slots=True)
class Cause:
    """Cause that makes a run `low` to `high` times as long as predicted.

    seen: the results or the prediction speak for it;  of_messages: it slows messages, not computing
    passing: it may be of one run among others, of the same job
    """

    cause: str
    text: str
    low: float
    high: float
    seen: bool = False
    of_messages: bool = False
    passing: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """decision: that all is as predicted;  text: the answer;  lines: what each is and its text, of the case in the
    middle of those that are off, `case`;  causes: the likeliest first

    error_percent: of that case, as of comparison.compare; None if none is off
    """

    decision: Decision
    value: str
    text: str
    error_percent: float | None = None
    causes: tuple[Cause, ...] = ()
    case: "Case | None" = None
    lines: tuple[tuple[str, str], ...] = ()

    def status(self, *, limited: bool) -> int:
        """Exit status: 1 for slower and for failed, 3 where it is not known whether it is slower; limited: by a
        tolerance, which decides what is slower."""
        if limited or self.value in (FAILED, FASTER):
            return int(self.value == FAILED)
        return self.decision.status("against", strict=True)

    def to_dict(self) -> dict[str, Any]:
        return {
            "answer": self.text,
            "verdict": self.value,
            **self.decision.to_dict(),
            "error_percent": self.error_percent,
            "causes": [asdict(cause) for cause in self.causes],
        }


def verdict(
    source: str,
    results: "Sequence[HplResult]",
    cases: "Sequence[Case]",
    rows: Sequence[dict[Any, Any]],
    platform: "Platform",
    per_node: int | None = None,
) -> Verdict:
    """Verdict on a file; rows: of comparison.compare, in the order of the cases; per_node: ranks, where given.

    With several cases the limit is such that chance puts any of them outside in 5 % of files.
    """
    if failed := [result.line for result in results if result.failed]:
        lines = ", ".join(map(str, failed[:8])) + (f" and {len(failed) - 8} more" if len(failed) > 8 else "")
        count = f"{len(failed)} of {counted(len(results), 'result')}"
        why = Weakness("failed", f"HPL's residual check FAILED for {count}, line {lines}")
        decision = Decision.of(False, False, [why])
        compared = "; the others are compared" if cases else ", and is not compared"
        return Verdict(decision, FAILED, f"Your {source} is no valid result{compared}: {decision.reasons[0]}")
    decisions = list(map(decision_of, rows))
    known = [decision for decision in decisions if decision.answer != "unknown"]
    if not known:
        decision = Decision.of_several(decisions, "unknown")
        return Verdict(decision, UNKNOWN, decision.words("", "", "", f"Your {source} cannot be judged"))
    decided = [
        (row["measured_time_s"] / row["predicted_time_s"], case, row)
        for case, row, decision in zip(cases, rows, decisions, strict=True)
        if decision in known and row["predicted_time_s"] > 0.0
    ]
    beside = weaknesses_of(cases[0].hpl, platform)
    limit = NormalDist().inv_cdf(1.0 - 0.025 / len(decided)) / NormalDist().inv_cdf(0.975)
    off = [one for one in decided if abs(one[0] - 1.0) >= MIN_TOLD and _beyond(*one) > limit]
    if not off:
        errors = sorted(row["error_percent"] for *_, row in decided)
        found = f"error {' to '.join(map(error_text, dict.fromkeys((errors[0], errors[-1]))))}"
        wide = sum(decision.answer == "undecided" for decision in known)
        decision = Decision.of(not wide, False, beside)
        text = decision.words(
            f"is as expected: {found}",
            "",
            f"may be as expected: {found}, but the intervals of {wide} of {counted(len(decided), 'case')} are too wide "
            "to show it",
        )
        return Verdict(decision, decision.pick(AS_EXPECTED, "", UNDECIDED, ""), f"Your {source} {text}")
    slower, faster = ([one for one in off if (one[0] > 1.0) is more] for more in (True, False))
    same = sorted(slower if len(slower) >= len(faster) else faster, key=lambda one: abs(math.log(one[0])))
    ratio, case, row = same[len(same) // 2]
    assumed = any(result.assumed for result in results)
    to_side = sum(abs(times - 1.0) >= MIN_TOLD and (times > 1.0) is (ratio > 1.0) for times, *_ in decided)
    common = len(decided) >= MIN_OF_ONE_SIGN and to_side > len(decided) / 2
    common = common or (False if len(same) <= len(decided) / 2 else None)
    causes = tuple(causes_of(case, ratio, platform, per_node=per_node, assumed=assumed, common=common))
    count, way = counted(len(decided), "case"), "slow" if ratio > 1.0 else "fast"
    among = f" in {len(same)} of {count}, as {case.full_label}" if len(decided) > 1 else ""
    (predicted_s, _), (measured_s, _) = predicted_and_measured(row)
    size = f"is {way}{among}: {measured_s} s, {times_as_long(ratio)} predicted ({predicted_s} s)"
    likely = f"possibly {causes[0].text}" if causes else "unknown why: no cause that is known makes so large a gap"
    rates = " Gflop/s, predicted ".join(significant(row[f"{how}_rate_gflops"]) for how in ("measured", "predicted"))
    gap = [("rate", f"{rates}, of {case.full_label}")]
    if (outside := sum(decision_of(row).answer == "against" for *_, row in decided)) > len(same):
        single = f"{outside} of {count} by their 95 % intervals"
        gap.append(("outside", f"{single}; {len(same)} {way} by the limit for {count} together"))
    if causes[1:]:
        gap.append(("causes", f"{'; '.join(cause.text for cause in causes)} (likeliest first)"))
    value, decision = SLOWER if ratio > 1.0 else FASTER, Decision.of(False, True, beside)
    text = f"Your {source} {size}; {likely}"
    return Verdict(decision, value, text, row["error_percent"], causes, case, tuple(gap))


def causes_of(case: "Case", ratio: float, platform: "Platform", *, per_node: int | None = None,
              assumed: bool = False, common: bool | None = None) -> list[Cause]:  # fmt: skip
    """Causes that fit a run `ratio` times as long as predicted: what is seen first, then what touches most time.

    assumed: the file does not say all parameters
    common: most cases are off to this side, which is no chance; False: they are not, so that what all have in common
        is no likely cause; None: there is one case
    """
    hpl, nodes, prediction = case.hpl, platform.nodes, case.prediction
    threads, cores, predicted_s = hpl.threads_per_rank, nodes.cores, prediction.time_s.mean
    is_placed, per_node = per_node is not None, min(hpl.ranks, per_node or cores // threads or 1)
    computing = 0.7 if prediction.breakdown is None else prediction.breakdown.shares["compute"]
    messages = 1.0 - computing
    filled = 8.0 * hpl.n**2 / hpl.ranks * per_node / (nodes.memory_bytes or math.inf)
    outside = prediction.extrapolated_share or 0.0
    kernels = 1.0 + (ratio - 1.0) / (outside * computing or math.nan)  # times as long as predicted, of those outside
    is_platform = common is not False and 1.0 / _MAX_MODEL_ERROR <= kernels <= _MAX_MODEL_ERROR
    flops = hpl.flop_count / (ratio * predicted_s * hpl.ranks * threads)  # of a core
    too_much = flops > (1.2 * nodes.peak_flops_per_core if nodes.peak_flops_per_core else MAX_OF_A_CORE_FLOPS)
    spare = cores / per_node / threads  # cores for each thread that the prediction has
    several, between = hpl.ranks > 1, hpl.ranks > per_node
    # The only place of these ranges: whether it may be, its name, text, least and largest factor, what it is.
    table = (
        ((too_much or spare >= 1.5) and round(threads / ratio) != threads, Cause(
            "threads", f"about {threads / ratio:.0f} threads a rank, not {threads} (--threads-per-rank), or a GPU",
            0.0 if too_much else 0.8 / spare, 0.7, too_much or several)),
        (filled > FILLED, Cause(
            "memory", f"swapping: the matrix fills {100.0 * filled:.0f} % of a node's memory", 1.0, 1e5, seen=True)),
        (min(ratio, 1.0) * predicted_s < SHORT_S and not common, Cause(
            "small", f"chance: N = {hpl.n} is {significant(predicted_s, 2)} s of work, so that what else runs counts",
            0.3, 10.0, seen=True)),
        (assumed, Cause("parameters", "parameters that the file does not say (--dat HPL.dat)", 0.9, 1.15)),
        (True, Cause("clock", "the clock frequency (turbo, or limits of power, heat and AVX)", 0.7, 1.4)),
        (True, Cause("load", "other programs on the nodes", 1.0, 2.0, passing=True)),
        (between, Cause("slow_node", "one slow node that all wait for", 1.0, 2.0)),
        (several and not is_placed, Cause(
            "placement", "where the ranks ran (--ranks-per-node)", 0.8, 1.0 + 4.0 * messages, False, True)),
        (between, Cause("network", "TCP instead of the fast network", 1.0, 1.0 + 50.0 * messages, False, True)),
        (True, Cause("libraries", "another BLAS or MPI library", 0.5, 1.5)),
        (outside >= 0.2 and 0.4 <= kernels <= 2.5, Cause(
            "extrapolated", f"the platform: {100.0 * outside:.0f} % of computing is outside its fitted sizes",
            0.4, 2.5, is_platform)),
        (True, Cause("shared_cores", "several ranks, threads or programs on one core", 1.7, 8.0, passing=True)),
        (threads > 1, Cause(
            "one_thread", f"one thread a rank, not {threads} (OMP_NUM_THREADS)", 0.6 * threads, 1.3 * threads)),
        (per_node > 1, Cause(
            "blas_threads", "threads of BLAS in each rank, on the same cores (OMP_NUM_THREADS=1)",
            max(1.7, cores / 3.0), 2.0 * cores)),
        (per_node > 1, Cause(
            "one_core", f"all {per_node} ranks of a node bound to one core", 0.7 * per_node, 3.0 * per_node)),
        (computing >= 0.3, Cause("slow_blas", "a BLAS that is not optimised", 5.0, 50.0)),
        (nodes.memory_bytes is None, Cause("memory", "swapping: too little memory", 10.0, 1e5)),
        (True, Cause("precision", "a result in mixed precision, or of a GPU", 0.0, 0.5)),
        (True, Cause("machine", "another machine than the platform's", 0.1, 10.0)),
    )  # fmt: skip
    fit = [cause for may_be, cause in table if may_be and cause.low <= ratio <= cause.high]
    in_all = common is False
    return sorted(fit, key=lambda at: (not at.seen, in_all and not at.passing, at.of_messages is (computing >= MOSTLY)))


def _beyond(ratio: float, _case: "Case", row: dict[Any, Any]) -> float:
    """How far the mean of the runs is from the predicted one, over how far the end of its interval is."""
    end_s = row["mean_high_s"] if ratio > 1.0 else row["mean_low_s"]
    reach = abs(math.log(end_s / row["predicted_time_s"])) if end_s > 0.0 else math.inf
    return abs(math.log(ratio)) / reach if reach else math.inf


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
            ratio = measured_s[id(best)] / measured_s[id(real)]
            took = "" if best is real else f", which took {times_as_long(ratio)} it"
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
