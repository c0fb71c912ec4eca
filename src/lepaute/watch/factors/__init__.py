"""Factors of an archive: what a run found of each processor, as rows of the table of factor values."""

from lepaute.watch.factors.dgemm import MODEL_FACTORS, PRODUCT_FACTORS
from lepaute.watch.factors.table import factors_of, kinds, register, strata_of, unregister, why_strata_differ
from lepaute.watch.factors.value import FactorValue

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
