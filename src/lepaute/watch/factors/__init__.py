"""Factors of an archive: what a run found of each processor, as rows of the table of factor values."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lepaute.watch.factors.registry import kinds as kinds
    from lepaute.watch.factors.registry import register as register
    from lepaute.watch.factors.registry import unregister as unregister
    from lepaute.watch.factors.regression import MODEL_FACTORS as MODEL_FACTORS
    from lepaute.watch.factors.regression import PRODUCT_FACTORS as PRODUCT_FACTORS
    from lepaute.watch.factors.table import factors_of as factors_of
    from lepaute.watch.factors.table import strata_of as strata_of
    from lepaute.watch.factors.table import why_strata_differ as why_strata_differ
    from lepaute.watch.factors.value import FactorValue as FactorValue

__all__ = [
    "MODEL_FACTORS",
    "PRODUCT_FACTORS",
    "FactorValue",
    "factors_of",
    "kinds",
    "register",
    "strata_of",
    "unregister",
    "why_strata_differ",
]

#: Loaded when they are first used, with NumPy and pandas.
_MODULE_OF = {
    "FactorValue": "value",
    "MODEL_FACTORS": "regression",
    "PRODUCT_FACTORS": "regression",
    "factors_of": "table",
    "kinds": "registry",
    "register": "registry",
    "strata_of": "table",
    "unregister": "registry",
    "why_strata_differ": "table",
}


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(f"lepaute.watch.factors.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module 'lepaute.watch.factors' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted([*__all__, "__doc__", "__file__", "__name__", "__path__"])
