"""HPL, the High-Performance Linpack benchmark: its parameters, input and output files, and its simulation."""

from lepaute.simulate.apps.hpl.parameters import Hpl

__all__ = ["Hpl"]
