"""Measuring machines: experiments on nodes, calibrations, recordings, and the programs that these build and run."""
