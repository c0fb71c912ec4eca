"""The site of the documentation: `make docs` builds it into build/site, from these pages and from the package itself.

It needs no network, neither to be built nor to be read: no web fonts, no scripts from elsewhere, and its search runs in
the browser. Commands, Python names, file formats and exit statuses are pages that `_ext/reference_pages.py` writes
from the installed package before the others are read.
"""

import functools
import gc
import sys
from pathlib import Path

from sphinx.search.en import SearchEnglish

from lepaute.version import __version__

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))

# A third of the time of a build was spent to look for garbage, of which it makes little, and to stem the same words.
gc.disable()
SearchEnglish.stem = functools.cache(SearchEnglish.stem)

project = "Lepaute"
author = "The Lepaute developers"
copyright = f"2026, {author}"  # noqa: A001 - Sphinx's name
version = release = __version__

extensions = ["myst_parser", "sphinx_design", "sphinx_copybutton", "reference_pages", "outside_links", "file_names"]
exclude_patterns = ["_ext", "_static"]
smartquotes = False  # --option has two hyphens
toc_object_entries = False
python_maximum_signature_line_length = 80

myst_enable_extensions = ["colon_fence", "deflist", "fieldlist", "attrs_inline", "attrs_block"]
myst_heading_anchors = 4  # links to #headings, as on the web pages of repositories
# Prompts are shown, and not copied.
copybutton_prompt_text = r"\$ |> |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
pygments_style = "default"

html_theme = "pydata_sphinx_theme"
html_title = f"Lepaute {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(DOCS / "_static" / "search.js")
html_copy_source = False
html_show_search_summary = False  # pages opened as files may not read each other
html_show_sourcelink = False
html_last_updated_fmt = None  # the same input gives the same pages
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system
html_sidebars = {"index": [], "start": []}
html_theme_options = {
    "logo": {"text": "Lepaute"},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
    "navigation_depth": 3,
    "collapse_navigation": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
