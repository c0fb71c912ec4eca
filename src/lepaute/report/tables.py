"""Rows of named values as tables of a page."""

import dataclasses
import math
from typing import Any

from lepaute.kit.text import number
from lepaute.report.page import anchor


def records_table(title: str, rows: Any) -> dict[str, Any] | None:
    """A table of data classes or dictionaries: a column a field, and their `sentence` where they have one; None: empty.

    A field that is itself a list of such is written in one cell.
    """
    if rows is None:
        return None
    listed = list(rows.values()) if isinstance(rows, dict) else list(rows) if isinstance(rows, list | tuple) else [rows]
    records = [record for record in map(_record, listed) if record]
    if not records:
        return None
    columns = list(dict.fromkeys(name for record in records for name in record))
    return {
        "title": title,
        "anchor": anchor(title),
        "columns": [name.replace("_", " ") for name in columns],
        "rows": [[_text(record.get(name)) for name in columns] for record in records],
    }


def _record(row: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        record = {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
        sentence = getattr(row, "sentence", None)
        return {**record, "in words": sentence} if isinstance(sentence, str) else record
    return dict(row) if isinstance(row, dict) else {}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value) if math.isfinite(value) else "–"
    if isinstance(value, list | tuple):
        return "; ".join(map(_text, value))
    if record := _record(value):
        return ", ".join(f"{name} {_text(part)}" for name, part in record.items() if part is not None)
    return "" if value is None else str(value)
