"""Prediction against a real run here: predict, seal, run the real HPL in shuffled order, compare.

The files follow the order of the work: `hpl_input` writes what HPL reads, `real_run` makes one run, `disturbance`
judges whether other load touched it, `campaign` predicts before it runs and repeats what was disturbed, `comparison`
turns runs into a table, `verification` holds the whole, `report` and `plot` show it.
"""
