"""Pages of templates and their tables, and reports on disk. Every text is escaped; pictures escape their own.

Figures of Matplotlib have the font of the page, its colours in light and in dark, any width, and no script."""

import dataclasses
import hashlib
import io
import json
import math
import re
from collections.abc import Callable, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError
from lepaute.kit.files import check_output, write_atomic
from lepaute.kit.picture import BLACK, BLUE, DEEP, EDGE, GRID, INK, PALE, PANEL, RED, RULE, SERIOUS, SOFT
from lepaute.kit.text import significant, with_nonbreaking_units
from lepaute.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup
    from matplotlib.figure import Figure

    from lepaute.kit.report.svg import Picture

#: Of reports: a page to read, or an object of the same content for programs.
SUFFIXES = (".html", ".json")
#: An option of a command, or a date.
_OPTION = re.compile(r"(?<![\w-])--[a-z-]+|\d{4}-\d\d-\d\d")
_NUMBER = re.compile(r"[<±+−-]? ?\d[\d,.]*(?:e[+-]?\d+)?(?: ?[%/A-Za-zµ]{1,6})?(?: to \S+(?: \S{1,6})?)?|[-–]?")
#: What stands before the first semicolon that is not in parentheses.
_UNTIL_SEMICOLON = re.compile(r"(?:[^;(]|\([^)]*\)|\()*")


def render(package: str, template: str, **values: Any) -> str:
    """The page of a template in the folder `templates` of `package`, which extends `page.html.j2` here (style sheet,
    header, footer) and imports macros for folding, checks, pictures and tables from `parts.html.j2`.

    A page that answers one question fills the blocks `finding`, `evidence` and `details`, and gives
      answer   : the sentence that the command prints first;  state : fine, notable, serious or unable;
                 a page without one has no colour
      figures  : (value, what of) in large type
      commands : (words, command) that make it again
    Any page may give
      made_of  : name and value of what made the page (digest of an archive or platform, seed); the version is added
    """
    given = {"made_of": (), "figures": (), "commands": (), "state": "", **values}
    made = _environment(package).get_template(template)  # names of files may be no text
    return made.render(**given, version=__version__).encode(errors="backslashreplace").decode()


@cache
def _environment(package: str) -> "Environment":
    """One for all pages of a package: it keeps the compiled templates, which take longer than most pages."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package, "templates"), PackageLoader("lepaute.kit.report", "templates")]),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"sentence": _sentence, "unbroken": _unbroken, "number_columns": _number_columns}
    return environment


def _number_columns(rows: Sequence[Sequence[object]]) -> set[int]:
    """Columns of a table that hold nothing but numbers with their units and intervals, and dashes for none."""
    return {
        place
        for place, texts in enumerate(zip(*rows, strict=True))
        if all(_NUMBER.fullmatch(str(text)) for text in texts) and any(text not in ("", "-", "–") for text in texts)
    }


def _unbroken(text: str) -> "Markup":
    """For a page, whose lines end neither between a number and its unit nor within an option or a date."""
    from markupsafe import Markup, escape

    return Markup(_OPTION.sub(r'<span class="unbroken">\g<0></span>', str(escape(with_nonbreaking_units(text)))))


def _sentence(text: str) -> "Markup":
    """An answer with its full stop; what comes before a semicolon, those in parentheses apart, stands out."""
    from markupsafe import Markup

    whole = text.removesuffix(".")
    first = _UNTIL_SEMICOLON.match(whole)[0]  # type: ignore[index]  # of any text, if only of nothing
    semicolon, rest = whole[len(first) :][:1], whole[len(first) + 1 :]
    return Markup("<strong>{}</strong>{}{}.").format(_unbroken(first), semicolon, _unbroken(rest))


def picture_values(picture: "Picture") -> dict[str, Any]:
    """A picture as the macro `pictures_of` takes it."""
    from markupsafe import Markup

    return {"svg": Markup(picture.svg()), "caption": picture.caption, "title": picture.title}


def anchor(subject: str) -> str:
    """A name for links: letters, digits and dashes of a subject's, whatever else is in it, and never twice the same."""
    plain = re.sub(r"[^a-z0-9]+", "-", subject.lower()).strip("-")[:40]
    return f"{plain}-{hashlib.sha256(subject.encode()).hexdigest()[:6]}"


def records_table(title: str, rows: Any) -> dict[str, Any] | None:
    """A table of data classes or dictionaries: a column a field, and their `sentence` where they have one; None: empty.

    A field that is itself a list of such is written in one cell.
    """
    if rows is None:
        return None
    listed = list(rows.values()) if isinstance(rows, dict) else list(rows) if isinstance(rows, list | tuple) else [rows]
    records = [record for record in map(_record, listed) if record]
    if not records:
        return None
    columns = list(dict.fromkeys(name for record in records for name in record))
    return {
        "title": title,
        "anchor": anchor(title),
        "columns": [name.replace("_", " ") for name in columns],
        "rows": [[_text(record.get(name)) for name in columns] for record in records],
    }


def _record(row: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        record = {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
        sentence = getattr(row, "sentence", None)
        return {**record, "in words": sentence} if isinstance(sentence, str) else record
    return dict(row) if isinstance(row, dict) else {}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return significant(value) if math.isfinite(value) else "–"
    if isinstance(value, list | tuple):
        return "; ".join(map(_text, value))
    if record := _record(value):
        return ", ".join(f"{name} {_text(part)}" for name, part in record.items() if part is not None)
    return "" if value is None else str(value)


def check_page_name(path: Path | None) -> None:
    """Raises InputError if the name of a requested page does not end in .html."""
    if path is not None and path.suffix.lower() != ".html":
        raise InputError(f"--report {path}: the name of a page must end in .html; --json prints the data")


def write_report(path: Path, page: Callable[[], str], content: Callable[[], dict[str, Any]]) -> None:
    """Writes the page where the name ends in .html, the content as a JSON object where it ends in .json.

    Raises InputError for another suffix, or where the file cannot be written; nothing is computed then.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: the name of a report must end in .html (a page) or .json (data)")
    check_output(path)
    is_page = path.suffix.lower() == ".html"
    write_atomic(path, page() if is_page else json.dumps(content(), indent=2, allow_nan=False) + "\n")


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
