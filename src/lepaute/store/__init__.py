"""Observations, factor values, verdicts and events of many archives: a folder of Parquet files, or PostgreSQL."""

from lepaute.store.opening import open_store
from lepaute.store.store import Ingested, Store

__all__ = ["Ingested", "Store", "open_store"]
