"""An experiment: a class with setup, run and teardown, and all that happens around it."""
