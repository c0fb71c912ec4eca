"""`lepaute watch site`: a store as pages that need neither server nor network."""

import json
from pathlib import Path
from typing import Annotated

import typer

from lepaute.cli.watch_store import AsJson, Place, opened


def site(
    output: Annotated[
        Path, typer.Option("--output-dir", "-o", metavar="FOLDER", help="an older site there is replaced")
    ] = Path("watch-site"),
    store: Place = None,
    as_json: AsJson = False,
) -> None:
    """Writes a folder of pages: all factors, nodes and events, with plots; open its index.html in a browser.

    The pages show what `lepaute watch test` says of all jobs; nothing is recorded.
    """
    import time

    from lepaute.watch.site.write import write_site

    with opened(store) as watch:
        made = write_site(watch.store, output, time.time())
    if as_json:
        plain = {
            "folder": str(made.folder),
            "pages": made.pages,
            "total_bytes": made.total_bytes,
            "largest_bytes": made.largest_bytes,
        }
        print(json.dumps(plain, indent=2))
    else:
        print(f"{made.folder / 'index.html'}: {made.pages} pages, {made.total_bytes / 1e6:.1f} MB")
