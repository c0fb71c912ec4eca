"""The name of a file above its block: what stands on a page as `<!-- file: NAME -->` is read by nobody on the site."""

import re
from typing import TYPE_CHECKING, Any

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_NAMED = re.compile(r"<!-- file: (\S+) -->\s*")


def name_files(_app: "Sphinx", doctree: nodes.document) -> None:
    """Replaces each such comment by the name."""
    for comment in [*doctree.findall(nodes.raw)]:
        if named := _NAMED.fullmatch(comment.astext()):
            name = nodes.literal("", named[1])
            comment.replace_self(nodes.paragraph("", "", name, classes=["file-name"]))


def setup(app: "Sphinx") -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("doctree-read", name_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
