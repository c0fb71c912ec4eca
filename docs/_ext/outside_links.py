"""Links from pages to what lies outside of docs/: a page that the site has instead, a file to look at, or plain text.

In the repository such a link leads to the file or folder. The site is read without the repository: it takes files
along, and shows the path of a folder. A link to what is not there stays as it is, and Sphinx reports it. A generated
page, reference/commands/watch, is linked as reference/index.md#commands/watch, which a clone has.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx import addnodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

#: What the site shows as a page of its own: path in the repository, without .md -> page.
PAGES = {"README": "index", "CONTRIBUTING": "contributing", "CHANGELOG": "changes"}


def mend(app: "Sphinx", doctree: nodes.document) -> None:
    """Changes the links of a page that was read."""
    here, root = Path(app.srcdir, app.env.docname).parent, app.srcdir.parent
    for link in [link for link in doctree.findall(addnodes.pending_xref) if link.get("reftype") == "myst"]:
        target, is_page, part = link.get("reftarget", ""), link.get("refdomain") == "doc", link.get("reftargetid")
        outside = Path(app.srcdir, target).resolve()  # of documents, without .md
        if is_page and not outside.is_relative_to(app.srcdir):
            if page := PAGES.get(str(outside.relative_to(root))):
                link["reftarget"], link["reftargetid"] = page, None
            else:
                _as_file(link, os.path.relpath(f"{outside}.md", here), app.env.docname)
        elif is_page and target == "reference/index" and part:
            link["reftarget"], link["reftargetid"] = f"reference/{part}", None
        elif not link.get("refdomain") and any((place / target).is_dir() for place in (here, root)):
            link.replace_self(link.children)
        elif not link.get("refdomain") and (root / target).is_file():  # of a page that includes a file of the root
            _as_file(link, os.path.relpath(root / target, here), app.env.docname)


def _as_file(link: addnodes.pending_xref, target: str, page: str) -> None:
    """Makes it a link to a copy of the file."""
    file = addnodes.download_reference("", "", *link.children, reftarget=target, refdoc=page, refexplicit=True)
    link.replace_self(file)


def setup(app: "Sphinx") -> dict[str, Any]:
    """Called by Sphinx; before its own collector of files to copy, which has priority 500."""
    app.connect("doctree-read", mend, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
