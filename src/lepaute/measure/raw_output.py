"""The raw file that a probe writes: `#@key=value` lines, the names of its columns, a row a call."""

import csv


def rows_of(text: str) -> list[dict[str, str]]:
    """The rows, by the names of the columns."""
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


def header_of_raw(text: str) -> dict[str, str]:
    """The lines at the head of the file."""
    header = {}
    for line in text.splitlines():
        if not line.startswith("#@"):
            break
        key, _, value = line[2:].partition("=")
        header[key] = value
    return header
