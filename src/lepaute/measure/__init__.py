"""Measuring this machine: the programs that run on it, how they are built and started, and what they leave behind."""
