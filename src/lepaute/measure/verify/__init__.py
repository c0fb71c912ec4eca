"""Prediction against a real run here: predict, seal, run the real HPL in shuffled order, compare.

The files follow the order of the work: `real_run` makes one run here, `node_site` on nodes, `disturbance` says whether
other load touched it, `campaign` predicts before it runs and repeats what was disturbed, `seal` keeps predictions and
runs, `machine` compares the machine with the platform's, `comparison` turns runs into a table, `verification` holds the
whole, `report` and `plot` show it; `known_results` compares with results that exist already.
"""
