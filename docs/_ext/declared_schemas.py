"""JSON Schemas of files that dataclasses and declared columns describe, where no model of Pydantic does."""

import inspect
from collections.abc import Iterable, Iterator
from dataclasses import is_dataclass
from pathlib import PurePosixPath
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter

from lepaute.measure.observation_columns import COLUMNS, NEEDED, Column
from lepaute.simulate.trace.table import NUMBERS, TEXTS
from lepaute.watch.store.tables import TABLES

#: In the words of JSON Schema: of declared columns, and of those of a trace.
_TYPES = {"integer": "integer", "real": "number", "text": "string", "flag": "boolean"}


def schema_of(kind: type) -> dict[str, Any]:
    """Of a dataclass and those within it, with their docstrings; `more`, which keeps other members, is no field."""
    schema = TypeAdapter(kind).json_schema()
    parts = {kind.__name__: schema} | schema.get("$defs", {})
    for each in dict.fromkeys(_dataclasses(kind)):
        part = parts[each.__name__]
        part["description"] = inspect.cleandoc(each.__doc__ or "")
        part["properties"].pop("more", None)
    return schema


def _dataclasses(kind: Any) -> Iterator[type]:
    """The dataclass and all that its fields are made of."""
    if isinstance(kind, type) and is_dataclass(kind):
        yield kind
        for name, hint in get_type_hints(kind).items():
            if name in kind.__dataclass_fields__:
                yield from _dataclasses(hint)
    for argument in get_args(kind):
        yield from _dataclasses(argument)


def observations() -> dict[str, Any]:
    """A row of a table of observations, and of each table the columns that fits need and those of its run."""
    tables = {
        PurePosixPath(member).stem: {
            "type": "object",
            "description": f"A row of `{member}` of a calibration.",
            "properties": {
                column.name: _column(column) for column in COLUMNS if member in (*column.needed, *column.of_run)
            },
            "required": list(names),
        }
        for member, names in NEEDED.items()
    }
    columns = {column.name: _column(column) for column in COLUMNS}
    return {"title": "observations", "type": "object", "properties": columns, "$defs": tables}


def _column(column: Column) -> dict[str, Any]:
    unit = f"in {column.unit}" if column.unit not in ("", "1") else ""
    schema = {"type": _TYPES[column.type], "description": ", ".join(filter(None, (column.role, unit, column.meaning)))}
    bound = {} if column.least is None or column.least == float("-inf") else {"minimum": column.least}
    return schema | bound | ({} if column.absent is None else {"default": column.absent})


def store() -> dict[str, Any]:
    """A row of each table."""
    tables = {
        table.name: {
            "type": "object",
            "description": f"Key: {', '.join(table.key)}.",
            "properties": {name: {"type": _TYPES[kind]} for name, kind in table.columns.items()},
            "required": list(table.columns),
        }
        for table in TABLES
    }
    return {"title": "store", "type": "object", "properties": _listed(tables), "$defs": tables}


def _listed(tables: Iterable[str]) -> dict[str, Any]:
    return {name: {"type": "array", "items": {"$ref": f"#/$defs/{name}"}} for name in tables}


def trace() -> dict[str, Any]:
    """A call, in a row of a trace."""
    numbers = {name: _of_trace(kind, absent) for name, kind, absent in NUMBERS}
    needed = [*(name for name, _, absent in NUMBERS if absent is None), *TEXTS]
    texts = {name: {"type": "string"} for name in TEXTS}
    return {"title": "trace", "type": "object", "properties": numbers | texts, "required": needed}


def _of_trace(kind: str, absent: float | None) -> dict[str, Any]:
    nothing = "" if absent is None else f"; {absent:g} where it means nothing"
    return {"type": "number" if kind.startswith("float") else "integer", "description": f"{kind}{nothing}"}
