"""How values show themselves in Python: `Hpl(n=1000, p=2)` in a line, and small tables of HTML in a notebook."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from html import escape
from typing import Any


def changed_fields(value: Any) -> str:
    """A data class by its fields that differ from their defaults; what has none is shown always. Python reads it."""
    shown = [
        f"{field.name}={getattr(value, field.name)!r}"
        for field in fields(value)
        if field.repr and getattr(value, field.name) != field.default
    ]
    return f"{type(value).__name__}({', '.join(shown)})"


def facts_html(title: str, facts: Iterable[tuple[str, object]], notes: Sequence[str] = ()) -> str:
    """A title, a row for each fact that is not None or empty, and notes below; all of it text."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(str(fact))}</td></tr>'
        for name, fact in facts
        if fact not in (None, "")
    )
    below = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f"<div><b>{escape(title)}</b><table>{rows}</table>{f'<ul>{below}</ul>' if below else ''}</div>"


def table_html(title: str, header: Sequence[str], rows: Iterable[Sequence[object]], notes: Sequence[str] = ()) -> str:
    """A title, a table with a header, and notes below; all of it text, real numbers with four digits."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>" for row in rows)
    below = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return (
        f"<div><b>{escape(title)}</b><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"{f'<ul>{below}</ul>' if below else ''}</div>"
    )


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.4g}"
    return "" if value is None else escape(str(value))
