"""Levels of the memory hierarchy, from measured bandwidths."""
