"""What is loaded when it is first used: other modules, and the public names of packages."""

import re
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lepaute.kit.extras import missing_extra

__all__ = ["later", "np", "npt", "pandas", "pd", "public_names", "stats", "ticker"]

_PUBLIC = re.compile(r"^    from (\S+) import (\S+)(?: as (\w+))?", re.MULTILINE)


class _Later(ModuleType):
    """Stands for a module that is loaded when one of its attributes is first asked for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


def later(name: str) -> Any:
    """The module `name`, loaded when it is first used.

    In the `else` of an `if TYPE_CHECKING:` that imports it: annotations such as "pandas.DataFrame" then are known to
    typing.get_type_hints, and pandas is loaded by who asks for them.
    """
    return _Later(name)


if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas
    import pandas as pd
    from matplotlib import ticker
    from scipy import stats
else:
    np, npt, stats, ticker = map(later, ("numpy", "numpy.typing", "scipy.stats", "matplotlib.ticker"))
    pandas = pd = later("pandas")


def public_names(package: str, *further: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], tuple[str, ...]]:
    """`__getattr__`, `__dir__` and `__all__` of a package that loads its names when they are first used.

    They are those that its source imports `as` what they are called, under TYPE_CHECKING, and `further`.
    """
    homes = _homes(package)

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        module, there = homes[name]
        try:
            if module == package or not hasattr(import_module(module), there):
                return import_module(f"{module}.{there}")
            return getattr(import_module(module), there)
        except ImportError as error:
            if (missing := missing_extra(error, f"{package}.{name}")) is None:
                raise
            raise missing from error

    public = (*homes, *further)
    return get, lambda: sorted([*public, "__doc__", "__file__", "__name__", "__path__"]), public


def _homes(package: str) -> dict[str, tuple[str, str]]:
    """Public name -> the module that it is loaded from, and what it is called there."""
    loader: Any = import_module(package).__loader__
    homes: dict[str, tuple[str, str]] = {}
    for module, name, public in _PUBLIC.findall(loader.get_source(package)):
        homes |= _homes(module) if name == "*" else {public: (module, name)} if public else {}
    return homes
