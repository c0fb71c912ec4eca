"""Observed coefficients beside synthetic ones, as figures 4.4 and 4.5 of the thesis show them."""

import numpy
from matplotlib.figure import Figure

from lepaute.measure.fit.population.coefficients import Coefficients

NAMES = ("alpha (s per mnk)", "beta (s)", "gamma (s per mnk)")
PAIRS = ((0, 1), (0, 2), (1, 2))
COLOURS = ("#4c78a8", "#e45756", "#54a24b", "#b279a2")


def scatter(shown: dict[str, list[tuple[str, Coefficients, numpy.ndarray]]]) -> Figure:
    """A row for each state and (title, coefficients, group of each node); those of a state on the same axes."""
    rows = [(state, *one) for state, both in shown.items() for one in both]
    figure = Figure(figsize=(11, 2.9 * len(rows)), layout="constrained")
    panels = figure.subplots(len(rows), 3, squeeze=False)
    for line, (state, title, data, groups) in enumerate(rows):
        everything = numpy.concatenate([one.values for _, one, _ in shown[state]])
        of_row = groups[data.node_of_unit[data.unit]]
        for axes, (x, y) in zip(panels[line], PAIRS, strict=True):
            for group in numpy.unique(of_row):
                inside = of_row == group
                axes.plot(data.values[inside, x], data.values[inside, y], ".", ms=2.5, alpha=0.5,
                          color=COLOURS[int(group) % len(COLOURS)], label=f"group {group}")  # fmt: skip
            for axis, number in (("x", x), ("y", y)):
                low, high = everything[:, number].min(), everything[:, number].max()
                margin = 0.04 * (high - low)
                getattr(axes, f"set_{axis}lim")(low - margin, high + margin)
                getattr(axes, f"set_{axis}label")(NAMES[number], fontsize=9)
            axes.tick_params(labelsize=8)
        panels[line][0].set_title(f"{state}: {title}", fontsize=10, loc="left")
        if len(numpy.unique(of_row)) > 1:
            panels[line][0].legend(fontsize=8, frameon=False, markerscale=3)
    return figure
