"""Studies: questions that take many simulations, each asked once, and how sure the answers are."""
