"""Predictions, emulations, sweeps and scaling as they are answered: the answer first, then what it rests on.

`prediction_text` has all that `--details` adds.
"""

from collections.abc import Sequence

from lepaute.cli import prediction_text
from lepaute.cli.terminal import answer_text, details_text
from lepaute.kit.tables import shown_table
from lepaute.kit.text import counted, quantity, ranks_text, scaled_unit, significant
from lepaute.simulate import Prediction
from lepaute.simulate.prediction.comparing import ROUNDING, difference
from lepaute.simulate.prediction.sweep import ScalingPoint, Sweep
from lepaute.simulate.prediction.warnings import caveats
from lepaute.simulate.prediction.wording import fastest, scaling_answer, takes, where_run, with_slow_state

#: Parts of an interval, of computing and of communication, and parameters of a sweep, that are named in an answer.
MAX_PARTS, MAX_COMPUTING, MAX_COMMUNICATION, MAX_PARAMETERS = 3, 1, 2, 3
#: Rows of a table of combinations, without --details.
_MAX_ROWS = 12
#: A share of computing without fitted ranges that is worth a line.
MIN_OUTSIDE = 0.005


def answered(prediction: "Prediction", width: int, *, besides: Sequence[Prediction] = (), details: bool = False) -> str:
    """One prediction on a terminal of `width` columns, or in a file; besides : others, for their caveats."""
    rate, peak = prediction.rate, prediction_text.peak_gflops(prediction)
    of_peak = "" if rate is None or peak is None else f", {rate.figure(100.0 / peak)} % of peak"
    answer = with_slow_state(takes(prediction) + of_peak, prediction)
    if details:
        return details_text(answer, prediction_text.readable(prediction), width)
    facts = [("run", where_run(prediction)), *_facts(prediction)]
    return answer_text(answer, facts, _caveats(prediction, besides), width)


def answered_emulation(
    prediction: "Prediction", width: int, *, besides: Sequence[Prediction] = (), details: bool = False
) -> str:
    run = prediction.first
    assert run is not None
    assert run.emulated is not None
    emulated, on = run.emulated, f"on {ranks_text(prediction.application.ranks)} of {prediction.platform_name}"
    answer = with_slow_state(f"{takes(prediction)} {on}", prediction)
    if details:
        return details_text(answer, prediction_text.readable_emulation(prediction), width)
    facts = [("compute", prediction_text.computing_of(emulated))]
    if emulated.program_s != emulated.time_s:
        facts.append(("whole", f"{significant(emulated.program_s, 4)} s with what is not timed"))
    return answer_text(answer, [*facts, *_facts(prediction)], _caveats(prediction, besides), width)


def _facts(prediction: "Prediction") -> list[tuple[str, str]]:
    """Where the time goes, what the interval is made of, what is extrapolated, energy: four lines at most."""
    outside, where = prediction.outside, prediction_text.shares_of_time(prediction, MAX_COMPUTING, MAX_COMMUNICATION)
    facts = [("where", ", ".join(where))] if where else []
    facts.append(("from", _from(prediction)))
    if outside is not None and outside.unknown_share >= MIN_OUTSIDE:  # what is known to be outside, caveats tell
        facts.append(("ranges", outside.unknown_text))
    if (energy_j := prediction.energy_j) is not None:
        power = quantity(energy_j.mean / prediction.time_s.mean, "W")
        facts.append(("energy", f"{energy_j.text('J')}; {power} on average"))
    return facts


def _from(prediction: "Prediction") -> str:
    """20 simulated runs; ± 6.0 % of kernel models 4.2, network 3.3"""
    text = counted(len(prediction.run_list), "simulated run")
    half_width = prediction.undisturbed_time_s.half_width_percent
    if half_width is None:
        return text
    text += f"; ± {significant(half_width, 2)} %{' undisturbed' * (prediction.state == 'any')}"
    if prediction.interval_basis is not None and prediction.controls is None:
        text += f" by {prediction.interval_basis}"
    if prediction.parts is not None:
        widths = list(prediction.parts.half_widths(half_width).items())[:MAX_PARTS]  # the largest first
        named = [
            f"{prediction_text.PART_LABELS.get(name, name)} {width:.1f}"
            for name, width in widths
            if width >= prediction_text.MIN_PART
        ]
        text += f", mostly {', '.join(named)}" if named else ""
    return text


def _caveats(prediction: "Prediction", besides: Sequence[Prediction]) -> list[str]:
    conditions = prediction.conditions
    texts = caveats([prediction, *besides]) if besides else list(prediction.warnings)
    if conditions is not None and conditions.layers.off:
        texts.insert(0, f"without {', '.join(conditions.layers.off)}: the interval does not hold these layers")
    if conditions is not None and (transfer := conditions.transfer) is not None:
        learnt = f"{significant(100.0 * transfer.total_sd, 2)} % learnt from other studies"
        texts.insert(0, f"{learnt}: {', '.join(transfer.studies)}")
    return texts


def answered_sweep(sweep: Sweep, width: int, *, details: bool = False) -> str:
    """Several combinations: the fastest by problem, how sure that is, and what parameters change; of problems
    that were predicted once each, under the same choices, the shortest and the longest. Then a table of all."""
    predictions, where = sweep.predictions, f" on {sweep.predictions[0].platform_name}"
    if len(sweep.problems) == len(predictions) and len(set(map(_choices, predictions))) == 1:
        ends = (pick(predictions, key=lambda case: case.time_s.mean) for pick in (min, max))
        range_s = " to ".join(f"{case.time_s.figure()} s ({case.application.problem.words})" for case in ends)
        answers = [f"{predictions[0].application.title} takes {range_s}"]
        slow = [with_slow_state(case.application.problem.words, case) for case in predictions if case.any]
        facts, where = [("run", _choices(predictions[0])), *(("slow", text) for text in slow if ". " in text)], ""
    else:
        several = len(sweep.problems) > 1
        texts = [(fastest(case, f" for {case.problem}" if several else ""), case.best) for case in sweep.problems]
        answers = [text if best is None else with_slow_state(text, best) for text, best in texts]
        effects = [] if several else prediction_text.effect_lines(predictions)[1:]
        facts = [("choice", line.strip()) for line in effects[:MAX_PARAMETERS]] if len(effects) > 1 else []
    table = _table(sweep, width, len(predictions) if details else _MAX_ROWS)
    if details:
        text = details_text(answers[-1], prediction_text.summary(sweep), width)
    else:
        facts += _facts_of_sweep(sweep, where)
        text = answer_text(answers[-1], facts, caveats(predictions), width)
    return "\n".join([*answers[:-1], text, table])


def _choices(prediction: Prediction) -> str:
    """Where it runs and how, without the problem."""
    return where_run(prediction).removeprefix(prediction.application.problem.words).strip()


def _table(sweep: Sweep, width: int, most: int) -> str:
    """Rows of what varies, time and rate, how much slower it is; by problem, what is not comparable last."""
    predictions, problems = sweep.predictions, sweep.problems
    choices = [case.application.problem.choices for case in predictions]
    varied = [choice for choice in choices[0] if len({case.get(choice) for case in choices}) > 1]
    name, is_, _ = sweep.problem.partition(" = ")
    rate, rates = predictions[0].application.rate, [case.rate.mean for case in predictions if case.rate]
    unit, factor = scaled_unit(rate.unit, max(rates)) if rate and rates else ("", 1.0)
    rows = list[dict[str, str]]()
    for problem in problems:
        bests = set(map(id, problem.bests))
        for case in sorted(problem.by_speed, key=lambda case: not case.comparable):
            words = case.application.problem.words
            row = {name if is_ else "problem": words.removeprefix(f"{name}{is_}") if is_ else words}
            row = row if len(problems) > 1 else {}
            row |= {choice: str(case.application.problem.choices[choice]) for choice in varied}
            if not varied and len(problems) < len(predictions):
                row["run"] = case.application.label
            row |= {"time s": case.time_s.figure(), "95 %": case.time_s.interval()}
            row |= {unit: case.rate.figure(factor)} if case.rate else {}
            if len(problems) < len(predictions):
                row["than the fastest"] = _against(problem.best, case, is_best=id(case) in bests)
            rows.append(row)
    texts_at = [at for at, cell in enumerate(rows[0].values()) if not cell[:1].isdigit()]
    table = shown_table(list(rows[0]), [list(row.values()) for row in rows[:most]], width, texts_at)
    return f"{table}\n({len(rows) - most} more: --details)" if len(rows) > most else table


def _against(best: Prediction | None, case: Prediction, *, is_best: bool) -> str:
    if best is None or not case.comparable:
        return "not comparable"
    if is_best:
        return "fastest" if case is best else "cannot be told apart"
    change = difference(best, case)
    return change.text if change.high - change.low < ROUNDING else change.bounds("slower", "faster")


def _facts_of_sweep(sweep: Sweep, where: str) -> list[tuple[str, str]]:
    predictions, facts = sweep.predictions, []
    if sweep.apart:
        reason = "too much depends on what is outside the fitted ranges"
        remedy = "" if sweep.remedy is None else f"; to compare them: {sweep.remedy}"
        facts.append(("apart", f"{len(sweep.apart)} of {len(predictions)} not comparable: {reason}{remedy}"))
    runs = sum(len(prediction.run_list) for prediction in predictions)
    return [*facts, ("from", f"{counted(runs, 'simulated run')}{where}")]


def answered_scaling(points: "Sequence[ScalingPoint]", width: int, *, details: bool = False) -> str:
    """Several numbers of ranks: the time on most of them, a table, and the caveats."""
    predictions, first = [point.prediction for point in points], points[0]
    answer = with_slow_state(scaling_answer(points), predictions[-1])
    # Left out first where the terminal is narrow: the run where the number of ranks tells it, else intervals.
    drop = (1, 5, 3) if len({point.ranks for point in points}) == len(points) else (5, 3, 1)
    titles = ["ranks", "run", "time s", "95 % interval", "speed-up", "95 % interval of it", "efficiency"]
    rows = [
        [
            str(point.ranks),
            point.prediction.application.label,
            point.prediction.time_s.figure(),
            point.prediction.time_s.interval(),
            point.speed_up.figure(),
            point.speed_up.interval(),
            f"{point.efficiency.figure(100.0)} %",
        ]
        for point in points
    ]
    table = shown_table(titles, rows, width, left=(1,), drop=drop)
    if details:
        return f"{details_text(answer, prediction_text.scaling_details(points), width)}\n{table}"
    runs = counted(len(first.prediction.run_list), "simulated run")
    facts = [("from", f"{runs} of each on {first.prediction.platform_name}")]
    if others := [point for point in points if not point.prediction.comparable]:
        ranks = ", ".join(str(point.ranks) for point in others)
        reason = others[0].prediction.trust.reasons[0]
        facts.append(("apart", f"{len(others)} of {len(points)} not comparable (ranks: {ranks}): {reason}"))
    return f"{answer_text(answer, facts, caveats(predictions), width)}\n{table}"
