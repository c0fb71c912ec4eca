"""What `lepaute watch test` says is kept: as long as nothing comes into the store, it is read and not worked out."""

import datetime as dt
import json
import types
from dataclasses import asdict, fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

from lepaute.watch.kept import keep_text, kept_text
from lepaute.watch.report.summary import Summary


def kept_summary(of: object) -> Summary | None:
    """The summary that was kept for the same, None without one; of : all that decides it, as for `kept_text`."""
    text = kept_text(of)
    if text is None:
        return None
    try:
        summary: Summary = _rebuilt(Summary, json.loads(text))
    except (KeyError, TypeError, ValueError):  # damaged
        return None
    return summary


def keep_summary(of: object, summary: Summary) -> None:
    """Keeps it for `kept_summary`."""
    keep_text(of, json.dumps(asdict(summary), default=dt.date.isoformat))


def _rebuilt(kind: Any, value: Any) -> Any:
    """An object of this kind from JSON: dataclasses, tuples and dates, whose numbers may be none."""
    if get_origin(kind) in (Union, types.UnionType):
        (kind,) = (each for each in get_args(kind) if each is not type(None))
        return None if value is None else _rebuilt(kind, value)
    if get_origin(kind) is tuple:
        kinds = get_args(kind)
        kinds = kinds[:1] * len(value) if kinds[-1] is ... else kinds
        return tuple(_rebuilt(one, each) for one, each in zip(kinds, value, strict=True))
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{field.name: _rebuilt(hints[field.name], value[field.name]) for field in fields(kind)})
    return dt.date.fromisoformat(value) if kind is dt.date else value
