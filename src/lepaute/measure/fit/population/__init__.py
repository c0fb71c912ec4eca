"""Generative models of the cores of many nodes, from coefficients of each core and day."""
