"""Damaged inputs of every kind, what each reader must do with them, and processes that survive what a reader does."""
