"""The verdict on an HPL.out: as expected or not, and causes that fit the size and the direction of the gap."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from lepaute.kit.text import counted, significant
from lepaute.measure.verify.comparison import MIN_OF_ONE_SIGN, decision_of
from lepaute.measure.verify.report import predicted_and_measured
from lepaute.simulate.prediction.trust import weaknesses_of
from lepaute.stats.decision import Decision, Weakness

if TYPE_CHECKING:
    from lepaute.measure.verify.campaign import Case
    from lepaute.simulate.apps.hpl.hpl_out import HplResult
    from lepaute.simulate.platform import Platform

AS_EXPECTED, SLOWER, FASTER = "as_expected", "slower", "faster"
UNDECIDED, FAILED, UNKNOWN = "undecided", "failed", "unknown"
MIN_TOLD = 0.03  # of the predicted time; a smaller gap needs no cause
#: More than a core of 2026 does in double precision: about 5 GHz times 32 operations a cycle.
MAX_OF_A_CORE_FLOPS = 250e9
MOSTLY = 0.6  # of the predicted time
SHORT_S, FILLED = 0.3, 0.8  # a run that says little; of a node's memory


@dataclass(frozen=True, slots=True)
class Cause:
    """Cause that makes a run `low` to `high` times as long as predicted.

    seen: the results or the prediction speak for it;  of_messages: it slows messages, not computing
    """

    cause: str
    text: str
    low: float
    high: float
    seen: bool = False
    of_messages: bool = False


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
            "verdict": self.value,
            "answer": self.text,
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
        found = f"error {_error(errors[0])}{f' to {_error(errors[-1])}' if errors[1:] else ''}"
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
    causes = tuple(causes_of(case, ratio, platform, per_node=per_node, assumed=assumed, common=common))
    count, way = counted(len(decided), "case"), "slow" if ratio > 1.0 else "fast"
    among = f" in {len(same)} of {count}, as {case.full_label}" if len(decided) > 1 else ""
    (predicted_s, _), (measured_s, _) = predicted_and_measured(row)
    size = f"is {way}{among}: {measured_s} s, predicted {predicted_s} s (error {_error(row['error_percent'])})"
    likely = f"most likely {causes[0].text}" if causes else "unknown why: no cause that is known makes so large a gap"
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
              assumed: bool = False, common: bool = False) -> list[Cause]:  # fmt: skip
    """Causes that fit a run `ratio` times as long as predicted: what is seen first, then what touches most time.

    assumed: the file does not say all parameters;  common: most cases are off to this side, which is no chance
    """
    hpl, nodes, prediction = case.hpl, platform.nodes, case.prediction
    threads, cores, predicted_s = hpl.threads_per_rank, nodes.cores, prediction.time_s.mean
    per_node = min(hpl.ranks, per_node or cores // threads or 1)
    computing = 0.7 if prediction.breakdown is None else prediction.breakdown.shares["compute"]
    messages = 1.0 - computing
    filled = 8.0 * hpl.n**2 / hpl.ranks * per_node / (nodes.memory_bytes or math.inf)
    outside = prediction.extrapolated_share or 0.0
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
        (outside >= 0.2, Cause(
            "extrapolated", f"the platform: {100.0 * outside:.0f} % of computing is outside the sizes it was fitted to",
            0.4, 2.5, seen=True)),
        (assumed, Cause("parameters", "parameters that the file does not say (--dat HPL.dat)", 0.9, 1.15)),
        (True, Cause("clock", "the clock frequency (turbo, or limits of power, heat and AVX)", 0.7, 1.4)),
        (True, Cause("load", "other programs on the nodes", 1.0, 2.0)),
        (between, Cause("slow_node", "one slow node that all wait for", 1.0, 2.0)),
        (several, Cause("placement", "where the ranks ran (--ranks-per-node)", 0.8, 1.0 + 4.0 * messages, False, True)),
        (between, Cause("network", "TCP instead of the fast network", 1.0, 1.0 + 50.0 * messages, False, True)),
        (True, Cause("libraries", "another BLAS or MPI library", 0.5, 1.5)),
        (True, Cause("shared_cores", "several ranks, threads or programs on one core", 1.7, 8.0)),
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
    return sorted(fit, key=lambda cause: (not cause.seen, cause.of_messages is (computing >= MOSTLY)))


def _beyond(ratio: float, _case: "Case", row: dict[Any, Any]) -> float:
    """How far the mean of the runs is from the predicted one, over how far the end of its interval is."""
    end_s = row["mean_high_s"] if ratio > 1.0 else row["mean_low_s"]
    reach = abs(math.log(end_s / row["predicted_time_s"])) if end_s > 0.0 else math.inf
    return abs(math.log(ratio)) / reach if reach else math.inf


def _error(percent: float) -> str:
    return f"{percent:+.1f} %"
