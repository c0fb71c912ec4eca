"""Intervals, tests, moments: pure functions that fit, simulate, watch and compare share."""
