"""Pictures for people: one palette, one place for the finding and for what it rests on, one way to write files.

A figure has its finding on top, as the command prints it, and at its foot digest of the platform, seed, version.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lepaute.errors import InputError
from lepaute.kit.files import is_stream, whole_file
from lepaute.kit.later import later
from lepaute.kit.text import counted, folded, size_text
from lepaute.version import __version__

if TYPE_CHECKING:
    import matplotlib
    from matplotlib import figure as matplotlib_figure
    from matplotlib import pyplot, ticker
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    matplotlib_figure = later("matplotlib.figure")
    matplotlib = later("matplotlib")
    pyplot, ticker = later("matplotlib.pyplot"), later("matplotlib.ticker")

#: Okabe and Ito, "Color universal design" (2008): told apart also by those who see red and green alike.
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PURPLE = (
    *("#000000", "#e69f00", "#56b4e9", "#009e73"),
    *("#f0e442", "#0072b2", "#d55e00", "#cc79a7"),
)
#: Of series without a meaning of their own, in this order; yellow is too pale for a line on white.
SERIES = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY, BLACK)
#: One meaning in all pictures: what was simulated or fitted, what is real, the choice, what must not be compared.
PREDICTED, MEASURED, BEST, APART = BLUE, RED, ORANGE, "#8a8a8a"
#: Of texts that are no finding, and of lines that guide the eye.
SOFT, RULE = "#5a6675", "#e8e8e8"
#: As in the style sheet of pages, which has others in a dark mode (`kit/report/page`).
INK, PANEL, GRID, EDGE = "#1c2430", "#f6f8fa", "#e3e8ee", "#d9dee5"
DEEP, PALE, SERIOUS = "#1f5fa8", "#8fb0d6", "#b3261e"
#: What a picture can be written as; a name without an ending asks for the first two.
ENDINGS = (".png", ".svg", ".pdf")
DPI = 130
_TITLE_POINTS, _FOOT_POINTS = 10.5, 7.0
#: Mean width of a character, in heights of the type: bold, plain.
_BOLD, _PLAIN = 0.60, 0.56
_FOOT_INCHES = 0.16  # of a line at the foot
_MARGIN_INCHES = 0.08


def picture_files(path: Path) -> tuple[Path, ...]:
    """What a picture of that name is written to: by its ending, or without one NAME.png and NAME.svg.

    A device or a pipe takes a PNG. Raises InputError for another ending.
    """
    if path.suffix.lower() in ENDINGS or _is_no_name(path):
        return (path,)
    if path.suffix:
        raise InputError(
            f"{path}: a picture's name ends in .png, .svg or .pdf; without an ending, PNG and SVG are written"
        )
    return tuple(path.with_name(path.name + ending) for ending in ENDINGS[:2])


def _is_no_name(path: Path) -> bool:
    """Whether a stream or a folder stands there, or what no ending would make a file; `whole_file` says so."""
    try:
        return path.is_dir() or is_stream(path)
    except (OSError, ValueError):
        return True


def files_of(path: Path | None) -> tuple[Path, ...] | None:
    """`picture_files(path)`, or None if no path is given."""
    return None if path is None else picture_files(path)


def origin(platform: str, sha256: str, seed: int, version: str, runs: int | None = None) -> str:
    """What a picture of simulated runs was made of, for its foot."""
    made = "" if runs is None else f" · {counted(runs, 'simulated run')}"
    return f"platform {platform}, sha256 {sha256[:12]} · seed {seed}{made} · lepaute {version}"


def measured_origin(source: str) -> str:
    """The same of measurements, which have neither platform nor seed."""
    return f"{source} · lepaute {__version__}"


def new_figure(size: tuple[float, float], *, for_file: bool) -> "Figure":
    """A figure of this many inches: one of pyplot, which a notebook shows, or for a file one that pyplot never sees."""
    if for_file:
        return matplotlib_figure.Figure(figsize=size, layout="constrained")
    return pyplot.figure(figsize=size, layout="constrained")


def shown_once(figure: "Figure", path: Path | None) -> "Figure":
    """A figure that is returned itself, without pyplot's hold on it: a notebook would show it twice."""
    if path is None:
        pyplot.close(figure)
    return figure


def own_figure(axes: "Axes") -> "Figure":
    """The figure that axes are drawn in, its outermost one."""
    figure = axes.figure
    while not hasattr(figure, "savefig"):
        figure = figure.figure
    return cast("Figure", figure)


def entitle(figure: "Figure", finding: str, foot: str) -> None:
    """The finding on top, folded to the width of the figure, and at the foot, small, what it rests on.

    A figure of `new_figure`; its own legends, if any, are "outside lower", and stand between the axes and the foot.
    """
    width, height = figure.get_size_inches()
    figure.suptitle(
        "\n".join(folded(line, _columns(width, _TITLE_POINTS * _BOLD)) for line in finding.split("\n")),
        x=_MARGIN_INCHES / width, ha="left", fontsize=_TITLE_POINTS, fontweight="bold",
    )  # fmt: skip
    lines = folded(foot, _columns(width, _FOOT_POINTS * _PLAIN))
    figure.text(
        _MARGIN_INCHES / width, 0.6 * _MARGIN_INCHES / height, lines,
        ha="left", va="bottom", fontsize=_FOOT_POINTS, color=SOFT, gid="foot",
    )  # fmt: skip
    share = (_FOOT_INCHES * (lines.count("\n") + 1) + _MARGIN_INCHES) / height
    below = share
    for legend in figure.legends:  # of the figure: outside of the axes, above the foot
        legend.set_bbox_to_anchor((0.0, share, 1.0, 1.0 - share), figure.transFigure)
        below += legend.get_window_extent().height / figure.dpi / height
    layout: Any = figure.get_layout_engine()
    layout.set(rect=(0.0, below, 1.0, 1.0 - below))


def foot_of(figure: "Figure") -> str:
    """What stands at the foot of a picture, in one line."""
    return " ".join(text.get_text().replace("\n", " ") for text in figure.texts if text.get_gid() == "foot")


def write_picture(figure: "Figure", path: Path) -> None:
    """Writes a figure to the files of `picture_files`; finding and foot are in their metadata, too."""
    title, foot = figure.get_suptitle().replace("\n", " "), foot_of(figure)
    about: dict[str, dict[str, Any]] = {
        "png": {"Title": title, "Description": foot, "Software": f"lepaute {__version__}"},
        "svg": {"Title": title, "Description": foot, "Creator": f"lepaute {__version__}", "Date": None},
        "pdf": {"Title": title, "Subject": foot, "Creator": f"lepaute {__version__}", "CreationDate": None},
    }
    for file in picture_files(path):
        ending = file.suffix.lower()
        image_format = ending[1:] if ending in ENDINGS else "png"
        with whole_file(file) as temporary, matplotlib.rc_context({"svg.hashsalt": title}):
            figure.savefig(temporary, format=image_format, dpi=DPI, metadata=about[image_format])


def plain_decades(axis: Any, ends: tuple[float, float]) -> None:
    """Ticks of a logarithmic axis that are numbers, not powers: evenly spaced on an axis of less than half a decade.

    ends: of the values that it shows, above 0
    """
    decades = math.log10(ends[1] / ends[0])
    if decades < 0.4:
        axis.set_major_locator(ticker.MaxNLocator(7, steps=[1, 2, 2.5, 5, 10]))
    else:
        steps = (1.0,) if decades > 4.0 else (1.0, 2.0, 5.0) if decades > 0.9 else (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
        axis.set_major_locator(ticker.LogLocator(subs=steps))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(ticker.NullLocator())


def mark(axis: Any, values: Sequence[float]) -> None:
    """Ticks of a logarithmic axis at these values alone, as numbers."""
    axis.set_ticks(values, [f"{value:g}" for value in values])
    axis.set_ticks([], minor=True)


def sizes_of_memory(axis: Any, ends: tuple[float, float]) -> None:
    """Ticks of a logarithmic axis of bytes at powers of two, as 1 KiB, 4 KiB, at most ten."""
    low, high = (math.floor(math.log2(max(end, 1.0))) for end in ends)
    step = max(1, -(-(high - low) // 9))
    axis.set_major_locator(ticker.FixedLocator([float(1 << power) for power in range(low, high + 1, step)]))
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_formatter(ticker.FuncFormatter(lambda size, _: size_text(size)))


def bare(axes: "Axes") -> None:
    """Hides the top and right spines, and draws the grid below the data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)


def _columns(inches: float, points: float) -> int:
    """Characters of this many points each that fit."""
    return max(20, int((inches - 2.0 * _MARGIN_INCHES) * 72.0 / points))
