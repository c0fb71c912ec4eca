"""Platforms: machines as far as their performance is concerned."""

from lepaute.simulate.platform.io import load_platform, override, shipped_names
from lepaute.simulate.platform.schema import Platform

__all__ = ["Platform", "load_platform", "override", "shipped_names"]
