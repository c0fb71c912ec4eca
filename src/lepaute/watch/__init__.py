"""Has this machine changed, since when, and which others? Tests of factors over days, against what went before.

>>> import lepaute as lp
>>> with lp.watch.open("observations") as watch:
...     watch.ingest(["night-1.zip", "night-2.zip"], cluster="dahu")
...     tests = watch.test()
>>> tests[tests.p_value < 1e-4]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lepaute.watch.changelog import Changelog as Changelog
    from lepaute.watch.changelog import Event as Event
    from lepaute.watch.changelog import NodeSet as NodeSet
    from lepaute.watch.changelog import Outlier as Outlier
    from lepaute.watch.changelog import read_changelog as read_changelog
    from lepaute.watch.watcher import Watch as Watch
    from lepaute.watch.watcher import open_watch as open  # noqa: A004 -- lp.watch.open

__all__ = ["Changelog", "Event", "NodeSet", "Outlier", "Watch", "open", "read_changelog"]

#: Public name -> module and name there; loaded when they are first used, with NumPy, SciPy and pandas.
_HOME_OF = {
    "Changelog": ("changelog", "Changelog"),
    "Event": ("changelog", "Event"),
    "NodeSet": ("changelog", "NodeSet"),
    "Outlier": ("changelog", "Outlier"),
    "Watch": ("watcher", "Watch"),
    "open": ("watcher", "open_watch"),
    "read_changelog": ("changelog", "read_changelog"),
}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        module, there = _HOME_OF[name]
        return getattr(import_module(f"lepaute.watch.{module}"), there)
    raise AttributeError(f"module 'lepaute.watch' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted([*__all__, "__doc__", "__file__", "__name__", "__path__"])
