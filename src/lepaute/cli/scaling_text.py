"""Speed-up and efficiency as a person wants to read them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lepaute.cli.predict_text import apart
from lepaute.kit.tables import text_table
from lepaute.kit.text import four_digits, ranks_text
from lepaute.simulate.prediction.sweep import Sweep
from lepaute.simulate.prediction.warnings import caveats

if TYPE_CHECKING:
    from lepaute.simulate.prediction.prediction import Spread
    from lepaute.simulate.prediction.sweep import ScalingPoint

TITLES = ("ranks", "run", "time s", "95 % interval", "speed-up", "95 % interval", "efficiency")


def scaling_text(points: "Sequence[ScalingPoint]") -> str:
    """A table with a line for each number of ranks, what is not comparable, and the warnings with their counts."""
    predictions = [point.prediction for point in points]
    first = predictions[0]
    runs = len(first.run_list)
    rows: list[tuple[object, ...]] = [
        (
            point.ranks,
            point.prediction.application.label,
            four_digits(point.prediction.time_s.mean),
            ends(point.prediction.time_s),
            f"{point.speed_up.mean:.2f}",
            "-" if point is points[0] else ends(point.speed_up),
            f"{100.0 * point.efficiency.mean:.0f} %",
        )
        for point in points
    ]
    titles: tuple[str, ...] = TITLES
    if all(row[1] == ranks_text(point.ranks) for row, point in zip(rows, points, strict=True)):
        titles, rows = TITLES[:1] + TITLES[2:], [row[:1] + row[2:] for row in rows]  # the first column says it all
    lines = [
        f"{first.application.heading} on {first.platform_name}: {runs} simulated run(s) of each; speed-up and "
        f"efficiency relative to {points[0].ranks} rank(s)",
        text_table(titles, rows, left=(1,) if titles is TITLES else ()),
        *apart(Sweep(tuple(predictions))),
        *(f"  warning: {caveat}" for caveat in caveats(predictions)),
    ]
    return "\n".join(lines)


def ends(spread: "Spread") -> str:
    """Both ends of an interval; a dash where there is none."""
    if spread.low is None or spread.high is None:
        return "-"
    return f"{four_digits(spread.low)} to {four_digits(spread.high)}"
