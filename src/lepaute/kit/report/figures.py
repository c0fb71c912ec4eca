"""Figures of Matplotlib inside a page: its font, its colours in light and in dark, any width, no script."""

import io
import re
from html import escape
from typing import TYPE_CHECKING, Any

from lepaute.kit.picture import BLACK, BLUE, DEEP, EDGE, GRID, INK, PALE, PANEL, RED, RULE, SERIOUS, SOFT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Colours of pictures, and what they are called in the style sheet of pages, which has others in a dark mode.
VARIABLES = {
    BLACK: "ink",
    INK: "ink",
    SOFT: "soft",
    RULE: "grid",
    GRID: "grid",
    EDGE: "rule",
    PANEL: "panel",
    "#ffffff": "panel",
    SERIOUS: "serious",
    BLUE: "blue",
    DEEP: "blue",
    PALE: "dot",
    RED: "second",
}
#: A figure is drawn no wider than this many times its size, in which a point is a pixel.
MOST = 1.25
#: Pixels, from which on a figure scrolls rather than become too small to be read.
_WIDE = 800
_INCH = 72


def figure_svg(figure: "Figure", alt: str) -> str:
    """The figure as an element of a page, without the title and the foot that `kit/picture.entitle` gave it.

    alt: what there is to see, for those who do not see it; colours of VARIABLES are those of the page
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    FigureCanvasSVG(figure)
    if figure.get_suptitle():
        figure.suptitle("")
    for text in [text for text in figure.texts if text.get_gid() == "foot"]:
        text.remove()
    written = io.StringIO()
    options: dict[Any, Any] = {"svg.hashsalt": alt, "svg.fonttype": "none"}
    with rc_context(options):
        figure.savefig(written, format="svg", transparent=True, dpi=_INCH, metadata={"Date": None})
    # Of several pictures of a page: no style that holds for all, no name twice; the font of the page, any width.
    svg = re.sub(r"^.*?<svg[^>]*>|<metadata.*?</metadata>|<style.*?</style>", "", written.getvalue(), flags=re.DOTALL)
    svg = re.sub(r' id="[\w.]+_\d+"|font-family: [^;"]*(?:; )?', "", svg)
    svg = re.sub("|".join(VARIABLES), lambda colour: f"var(--{VARIABLES[colour[0]]})", svg)
    wide, high = figure.get_size_inches() * _INCH
    least = f"; min-width: {wide:.0f}px" if wide > _WIDE else ""
    style = f"max-width: {MOST * wide:.0f}px{least}"
    view = f'viewBox="0 0 {wide:g} {high:g}" style="{style}" role="img" aria-label="{escape(alt)}"'
    return f'<svg class="drawn" xmlns:xlink="http://www.w3.org/1999/xlink" {view}>{svg}'
