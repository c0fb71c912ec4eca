"""The version of the package, also written into predictions, archives and raw data."""

__version__ = "0.2.0"
