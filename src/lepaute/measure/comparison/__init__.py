"""Campaigns that measure MPI libraries side by side; docs/comparison.md says how."""
