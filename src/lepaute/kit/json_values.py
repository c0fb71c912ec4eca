"""Dataclasses from JSON objects and back, checked once where a document comes in.

A field of the dataclass is a member of the object, by name. Members without a field are kept in a field called `more`,
if the class has one. A field of ABSENT_IF_NONE is left out of the object while it is None. What documents of older
versions lack has its value from the class's ABSENT, if it has one.
"""

import datetime as dt
import functools
import math
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from lepaute.errors import InputError

Value = TypeVar("Value")

#: `metadata` of a field.
ABSENT_IF_NONE = {"absent_if_none": True}
_MORE = "more"
#: Larger integers are no count; Python takes long to spell them out.
_MAX_WHOLE = 2**63
_NAMES = {str: "text", int: "an integer", float: "a number", bool: "true or false"}


class _Unfit(Exception):
    """A value is not of its field's type; the message tells of which."""


def from_json(kind: type[Value], document: object, where: str = "", *, lenient: bool = False) -> Value:
    """The value that a JSON object describes.

    lenient: of an untrusted document: what is not of its field's type counts as missing, and every field needs a
             default; otherwise it raises InputError naming file and field
    """
    if not isinstance(document, dict):
        if not lenient:
            raise InputError(f"{where}: is not a JSON object; it is damaged or was written by another program")
        document = {}
    values: dict[str, Any] = {}
    absent = getattr(kind, "ABSENT", {})
    for field, convert in _plan(kind, lenient):  # type: ignore[arg-type]  # mypy sees no hash of a type
        try:
            values[field.name] = convert(document[field.name])
        except KeyError:
            if field.name in absent:
                values[field.name] = absent[field.name]
            elif field.default is MISSING and field.default_factory is MISSING:
                raise InputError(
                    f"{where}: has no {field.name}; it is damaged or was written by another version"
                ) from None
        except _Unfit as problem:
            if not lenient:
                text = f"{document[field.name]!r:.60}"
                raise InputError(f"{where}: {field.name} is {text}; it must be {problem}") from None
    if any(field.name == _MORE for field in fields(kind)):  # type: ignore[arg-type]
        known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
        values[_MORE] = {name: item for name, item in document.items() if name not in known}
    return kind(**values)


def to_json(value: Any) -> Any:
    """The value as JSON has it: dataclasses as objects, tuples as lists."""
    if is_dataclass(value) and not isinstance(value, type):
        document: dict[str, Any] = {}
        for field in fields(value):
            item = getattr(value, field.name)
            if field.name == _MORE:
                document |= item
            elif item is not None or not field.metadata.get("absent_if_none"):
                document[field.name] = to_json(item)
        return document
    if isinstance(value, Mapping):
        return {name: to_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value


def finite_json(value: Any) -> Any:
    """The same, with dates as text, numbers of NumPy as Python's, and None for what is not finite."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: finite_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): finite_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite_json(item) for item in value]
    if isinstance(value, dt.date):
        return value.isoformat()
    if hasattr(value, "dtype"):  # a scalar of NumPy
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


@functools.cache
def _plan(kind: type, lenient: bool) -> "tuple[tuple[Field[Any], Callable[[Any], Any]], ...]":
    hints = get_type_hints(kind)
    return tuple((field, _converter(hints[field.name], lenient)) for field in fields(kind) if field.name != _MORE)


def _converter(hint: Any, lenient: bool) -> Callable[[Any], Any]:
    """From a JSON value to a field's; raises _Unfit."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        (inner,) = (argument for argument in arguments if argument is not type(None))
        some = _converter(inner, lenient)
        return lambda value: None if value is None else some(value)
    if origin is tuple and arguments[-1] is not Ellipsis:
        return functools.partial(_positions, [_converter(argument, lenient) for argument in arguments])
    if origin in (tuple, list):
        return functools.partial(_listed, origin, _converter(arguments[0], lenient), lenient=lenient)
    if origin is not None and issubclass(origin, Mapping):
        convert = _converter(arguments[1], lenient)
        return lambda value: {name: convert(each) for name, each in _expect(value, dict, "an object").items()}
    if isinstance(hint, type) and is_dataclass(hint):
        made: type = hint
        return lambda value: from_json(made, _expect(value, dict, "an object"), lenient=lenient)
    if hint is dt.date:
        return lambda value: dt.date.fromisoformat(_expect(value, str, "a date"))
    if hint in (Any, object):
        return lambda value: value
    return functools.partial(_scalar, hint, lenient=lenient)


def _listed(made: type, convert: Callable[[Any], Any], value: Any, *, lenient: bool) -> Any:
    items = []
    for each in _expect(value, list, "a list"):
        try:
            items.append(convert(each))
        except _Unfit:
            if not lenient:
                raise
    return made(items)


def _positions(converters: Sequence[Callable[[Any], Any]], value: Any) -> tuple[Any, ...]:
    """Of a tuple whose places have types of their own."""
    if len(_expect(value, list, "a list")) != len(converters):
        raise _Unfit(f"a list of {len(converters)}")
    return tuple(convert(each) for convert, each in zip(converters, value, strict=True))


def _scalar(hint: type, value: Any, *, lenient: bool) -> Any:
    _expect(value, (int, float) if hint is float else hint, name := _NAMES.get(hint, hint.__name__))
    if isinstance(value, bool) and hint is not bool:
        raise _Unfit(name)
    finite = math.isfinite(value) if isinstance(value, float) else not isinstance(value, int) or abs(value) < _MAX_WHOLE
    if lenient and not finite:
        raise _Unfit("a finite number")
    if isinstance(value, int) and abs(value) >= 2 * _MAX_WHOLE:
        raise _Unfit(f"{name} of 64 bits")
    return value


def _expect(value: Any, kind: type | tuple[type, ...], name: str) -> Any:
    if not isinstance(value, kind):
        raise _Unfit(name)
    return value
