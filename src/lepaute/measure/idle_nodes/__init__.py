"""Tests of the nodes of a batch system, one job a node, on nodes that nobody uses."""
