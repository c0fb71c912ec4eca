"""The generative model against published daily calibrations: levels, tests, truth that is known, pictures."""
