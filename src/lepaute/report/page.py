"""Pages of templates. Every text is escaped; pictures escape their own."""

import hashlib
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from lepaute.kit.text import unbroken
from lepaute.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from lepaute.report.svg import Picture

#: An option of a command.
_OPTION = re.compile(r"(?<![\w-])--[a-z-]+")
#: What stands before the first semicolon that is not in parentheses.
_UNTIL_SEMICOLON = re.compile(r"(?:[^;(]|\([^)]*\)|\()*")


def render(package: str, template: str, **values: Any) -> str:
    """The page of a template in the folder `templates` of `package`, which extends `page.html.j2` here (style sheet,
    header, footer) and imports macros for folding, checks, pictures and tables from `parts.html.j2`.

    A page that answers one question fills the blocks `finding`, `evidence` and `details`, and gives
      answer   : the sentence that the command prints first;  state : fine, notable or serious
      figures  : (value, what of) in large type
      commands : (words, command) that make it again
    Any page may give
      made_of  : name and value of what made the page (digest of an archive or platform, seed); the version is added
    """
    given = {"made_of": (), "figures": (), "commands": (), "state": "fine", **values}
    return _environment(package).get_template(template).render(**given, version=__version__)


@cache
def _environment(package: str) -> "Environment":
    """One for all pages of a package: it keeps the compiled templates, which take longer than most pages."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package, "templates"), PackageLoader("lepaute.report", "templates")]),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"sentence": _sentence, "unbroken": _unbroken}
    return environment


def _unbroken(text: str) -> "Markup":
    """For a page, whose lines end neither between a number and its unit nor within an option such as --real-runs."""
    from markupsafe import Markup, escape

    return Markup(_OPTION.sub(r'<span class="unbroken">\g<0></span>', str(escape(unbroken(text)))))


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
