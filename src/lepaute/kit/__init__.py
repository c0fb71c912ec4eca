"""Leaves that every package shares, none of them about measurements: files, builds, commands, text, quantities."""
