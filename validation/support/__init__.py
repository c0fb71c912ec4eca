"""What the scripts of this folder share: the reference data, simulations, goals, and the pages they write."""
