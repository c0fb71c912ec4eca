"""How values show themselves: `Hpl(n=1000, p=2)` in a line, small tables of HTML in a notebook."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any, ClassVar


class Listed(type):
    """Metaclass of `Public`: dir() of the class."""

    def __dir__(cls) -> list[str]:
        fields_of = ("__dataclass_fields__", "__pydantic_fields__")
        named = {*super().__dir__(), *(name for kind in fields_of for name in getattr(cls, kind, ()))}
        return sorted(named - {name for each in cls.__mro__ for name in vars(each).get("_unlisted", ())})


class Public(metaclass=Listed):
    """A class whose dir(), and that of its values, shows what is public: its fields, and all but what is `_unlisted`.

    _unlisted : names that the rest of the package needs and a user does not; they are inherited
    """

    __slots__ = ()
    _unlisted: ClassVar[frozenset[str]] = frozenset()

    def __dir__(self) -> list[str]:
        return dir(type(self))


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
    left = 'style="text-align:left"'
    rows = "".join(
        f"<tr><th {left}>{escape(name)}</th><td {left}>{_lines(str(fact))}</td></tr>"
        for name, fact in facts
        if fact not in (None, "")
    )
    return _html(title, rows, notes)


def table_html(title: str, header: Sequence[str], rows: Iterable[Sequence[object]], notes: Sequence[str] = ()) -> str:
    """A title, a table with a header, and notes below; all of it text, real numbers with four digits."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return _html(title, f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>", notes)


def escape(text: str) -> str:
    """As `html.escape`, whose module is loaded for that alone."""
    from html import escape as escaped

    return escaped(text)


def _html(title: str, table: str, notes: Sequence[str]) -> str:
    below = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f"<div><b>{escape(title)}</b><table>{table}</table>{f'<ul>{below}</ul>' if below else ''}</div>"


def _lines(text: str) -> str:
    return f"<pre>{escape(text)}</pre>" if "\n" in text else escape(text)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.4g}"
    return "" if value is None else escape(str(value))
