"""Single tests: each observation against its reference, as of now or replayed day by day."""
