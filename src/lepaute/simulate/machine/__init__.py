"""The simulated machine: a platform as the core takes it, what a run draws of it, and where ranks sit."""
