"""Campaigns that measure MPI libraries side by side (docs/concepts/comparisons.md)."""
