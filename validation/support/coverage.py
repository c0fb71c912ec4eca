"""How many real runs lie inside the predicted intervals, and how wide these are."""

import pandas

from support.report import Goal, at_most

#: Goals of every study; an interval that is wider than the second says too little.
MIN_INSIDE_PERCENT, MAX_HALF_WIDTH_PERCENT = 90.0, 7.0


def half_widths_percent(frame: pandas.DataFrame) -> pandas.Series:
    """Half of each interval, per cent of the prediction."""
    return 50.0 * (frame["high_s"] - frame["low_s"]) / frame["predicted_s"]


def inside_percent(frame: pandas.DataFrame) -> float:
    """Share of the real runs inside; frame: a row a case with real_inside and real_runs."""
    return float(100.0 * frame["real_inside"].sum() / max(1, frame["real_runs"].sum()))


def coverage_goals(frame: pandas.DataFrame, what: str = "", least_percent: float = MIN_INSIDE_PERCENT) -> list[Goal]:
    """Enough real runs inside, in intervals that are not too wide; `what` names the cases."""
    inside, runs = int(frame["real_inside"].sum()), int(frame["real_runs"].sum())
    share = inside_percent(frame)
    return [
        Goal(
            f"{what}real runs inside the 95 % intervals",
            f"at least {least_percent:g} %",
            f"{share:.0f} % ({inside} of {runs})" if runs else "nothing simulated",
            share >= least_percent if runs else None,
        ),
        at_most(f"{what}median half-width", MAX_HALF_WIDTH_PERCENT, float(half_widths_percent(frame).median())),
    ]
