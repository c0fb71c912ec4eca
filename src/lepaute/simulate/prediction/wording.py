"""What predictions amount to, in a line: the first one of the terminal, and the title of a picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lepaute.kit.text import counted, ranks_text

if TYPE_CHECKING:
    from lepaute.simulate.prediction.prediction import Prediction, Spread
    from lepaute.simulate.prediction.sweep import ScalingPoint, Sweep


#: Note on a fidelity that was asked for.
NOT_SAMPLED = "sampled has no effect: there are so few steps that all are simulated"
#: Shares of runs that meet the slow state: what is less, or more, is said without its figure.
MIN_SHARE_OF_RUNS, MAX_SHARE_OF_RUNS = 0.001, 0.995


def takes(prediction: "Prediction") -> str:
    """HPL takes 54.9 s (95 %: 53.0 to 57.0 s), 777 Gflop/s; and the condition of that, where there is one."""
    application, conditions, run = prediction.application, prediction.conditions, prediction.first
    proviso = "" if conditions is None or run is None else application.on(conditions.platform).proviso(run)
    return f"{application.subject} takes {_figures(prediction)}{proviso and f' {proviso}'}"


def with_slow_state(answer: str, prediction: "Prediction") -> str:
    """The answer, and its sentence on the slow state of the machine, where there is one."""
    sentence = slow_state_sentence(prediction)
    without = f"; undisturbed: {span_of(prediction.undisturbed_time_s)}" if prediction.state == "any" else ""
    return f"{answer}. {sentence}{without}" if sentence else answer


def slow_state_sentence(prediction: "Prediction") -> str:
    """About one run in 12 meets the slow state of this machine and takes up to 1.8 times as long; "" if none can."""
    found = prediction.any
    if found is None or found.share_of_runs == 0.0:
        return ""
    share, most = found.share_of_runs, found.slower_by_most
    who = f"About one run in {1.0 / share:.0f}" if share <= 0.5 else f"About {100.0 * share:.0f} % of runs"
    if share < MIN_SHARE_OF_RUNS or share > MAX_SHARE_OF_RUNS:
        who = "Fewer than one run in 1,000" if share < 0.5 else "Every run"
    many = who.endswith("runs")
    how = "" if most is None else f" and take{'s' * (not many)} up to {most:.{3 if most < 1.095 else 2}g} times as long"
    return f"{who} meet{'s' * (not many)} the slow state of this machine{how}"


def _figures(prediction: "Prediction") -> str:
    application, rate = prediction.application, prediction.rate
    text = span_of(prediction.time_s)
    if rate is not None and application.rate is not None:
        text += f", {rate.amount(application.rate.unit)}"
    return text


def span_of(time_s: "Spread") -> str:
    """A time with its interval in the unit that suits it."""
    text = time_s.text("s")
    return text if time_s.has_interval else f"{text} (one run: no interval)"


def where_run(prediction: "Prediction") -> str:
    """Which parameters, on how many nodes of which platform."""
    nodes = f"ranks on {counted(prediction.nodes, 'node')} of " if prediction.nodes else "ranks on "  # 0: of a file
    return f"{prediction.application.label} {nodes}{prediction.platform_name}"


def fastest(sweep: "Sweep", of: str = "") -> str:
    """Fastest of 16: NB = 128 …, 1.19 s (95 %: 1.09 to 1.31 s), 560 Gflop/s, one of 2 that cannot be told apart

    Those that are not comparable were in no race: "Fastest of 14 comparable (of 16)", "Only one of 2 is comparable".
    """
    best, number, compared = sweep.best, len(sweep.predictions), len(sweep.comparable)

    def label(prediction: "Prediction") -> str:
        return prediction.application.label.removeprefix(sweep.problem if of else "").strip()

    if number == 1:
        (only,) = sweep.predictions
        return f"{only.application.label}: {_figures(only)}{'' if only.comparable else ', not comparable'}"
    if sweep.ahead:
        first = sweep.ahead[0]
        return f"Fastest{of}: {label(first)}, by how much is not known: {first.trust.reasons[0]}"
    if best is None:
        return f"Fastest{of}: not known, none of {number} is comparable"
    doubt = "" if len(sweep.bests) == 1 else f", one of {len(sweep.bests)} that cannot be told apart"
    doubt += "; give --runs 10" * bool(doubt and len(best.run_list) == 1)
    which = f"Fastest of {number}" if compared == number else f"Fastest of {compared} comparable (of {number})"
    if 1 == compared < number:
        which = f"Only one of {number} is comparable"
    return f"{which}{of}: {label(best)}, {_figures(best)}{doubt}"


def scaling_answer(points: "Sequence[ScalingPoint]") -> str:
    """HPL on 16 ranks takes 14.1 s (95 %: 13.5 to 14.8 s), 13.6 times (95 %: 13.3 to 14.0) as fast as on 1 rank"""
    first = points[0]
    last = min(
        (point for point in points if point.ranks == points[-1].ranks), key=lambda each: each.prediction.time_s.mean
    )
    speed_up, title = last.speed_up, last.prediction.application.title
    faster = f"{speed_up.figure()} times{f' (95 %: {speed_up.interval()})' * speed_up.has_interval}"
    doubtful = "" if first.prediction.comparable and last.prediction.comparable else ", which is not comparable"
    return (
        f"{title} on {ranks_text(last.ranks)} takes {span_of(last.prediction.time_s)}, "
        f"{faster} as fast as on {ranks_text(first.ranks)}{doubtful}"
    )
