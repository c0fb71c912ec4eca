"""Pages of templates. Every text is escaped; pictures escape their own."""

import hashlib
import re
from typing import TYPE_CHECKING, Any

from lepaute.version import __version__

if TYPE_CHECKING:
    from lepaute.report.svg import Picture


def render(package: str, template: str, **values: Any) -> str:
    """The page of a template in the folder `templates` of `package`, which extends `page.html.j2` here (style sheet,
    header, footer) and imports macros for folding, checks, pictures and tables from `parts.html.j2`.

    made_of, among the values: name and value of what made the page (digest of an archive or platform, seed); the
    version is added.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package, "templates"), PackageLoader("lepaute.report", "templates")]),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**{"made_of": (), **values}, version=__version__)


def picture_values(picture: "Picture") -> dict[str, Any]:
    """A picture as the macro `pictures_of` takes it."""
    from markupsafe import Markup

    return {"svg": Markup(picture.svg()), "caption": picture.caption}


def anchor(subject: str) -> str:
    """A name for links: letters, digits and dashes of a subject's, whatever else is in it, and never twice the same."""
    plain = re.sub(r"[^a-z0-9]+", "-", subject.lower()).strip("-")[:40]
    return f"{plain}-{hashlib.sha256(subject.encode()).hexdigest()[:6]}"
