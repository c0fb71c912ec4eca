"""Methods that bring the clocks of ranks together, measured or simulated, and which to take for how long."""
