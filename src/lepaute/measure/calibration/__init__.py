"""A calibration: every node's kernels and messages measured by the probes, through the controller of experiments."""
