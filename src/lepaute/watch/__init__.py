"""Has this machine changed, since when, and which others? Tests of factors over days, against what went before.

>>> import lepaute as lp
>>> with lp.watch.open("observations") as watch:
...     watch.ingest(["night-1.zip", "night-2.zip"], cluster="dahu")
...     tests = watch.test()
>>> tests[tests.p_value < 1e-4]
"""

from typing import TYPE_CHECKING

from lepaute.kit.later import public_names

if TYPE_CHECKING:
    from lepaute.watch.changelog import Changelog as Changelog
    from lepaute.watch.changelog import Event as Event
    from lepaute.watch.changelog import NodeSet as NodeSet
    from lepaute.watch.changelog import Outlier as Outlier
    from lepaute.watch.changelog import read_changelog as read_changelog
    from lepaute.watch.watcher import Watch as Watch
    from lepaute.watch.watcher import open_watch as open  # noqa: A004 -- lp.watch.open

__all__ = ["Changelog", "Event", "NodeSet", "Outlier", "Watch", "open", "read_changelog"]
__getattr__, __dir__, _ = public_names(__name__)
