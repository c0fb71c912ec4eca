"""The command line: one small module a command; each parses, calls, prints, and decides nothing."""
