"""YAML and JSON documents of strangers, read within bounds: size, depth, number of values, aliases, types.

YAML is read from the events of the parser, with a stack of our own: the composer of PyYAML recurses, in C as well, and
its constructor expands aliases without end. The values are those of PyYAML's safe loader, except that a date stays
text; what no platform needs is refused: keys that are collections, tags of other types, anchors that hold themselves.
"""

import json
import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Never

from lepaute.errors import InputError
from lepaute.kit.numbers import path_of

MOST_BYTES = 8 << 20
#: Values of a document, with each alias counted as what it stands for.
MOST_VALUES = 500_000
#: Collections inside each other.
MOST_DEPTH = 50
#: Brackets and commas of JSON: each can cost a Python object of some 70 bytes from one or two bytes of text.
MOST_JSON_MARKS = 4_000_000

_GZIP = b"\x1f\x8b"
_TAGS = "tag:yaml.org,2002:"
#: No number of a document is written with more characters; what is longer is text.
_LONGEST_NUMBER = 100
#: Declarations of tags, of which libyaml compares each with all before.
_MOST_DIRECTIVES = 8
_BOOLEANS = {"yes": True, "no": False, "true": True, "false": False, "on": True, "off": False}
#: 1.5e-9, and 1e-9, which YAML 1.1 takes for a text and nobody means as one.
_DECIMAL = re.compile(r"-?[0-9]+(?:\.[0-9]*(?:[eE][-+][0-9]+)?|[eE][-+][0-9]+)")


def read_text(path: str | Path, kind: str, most_bytes: int = MOST_BYTES) -> str:
    """The text of a file in UTF-8.

    kind: what the file should be, for messages: "a platform file"
    Raises InputError, one line, for a file that cannot be read, is larger than `most_bytes`, or is not UTF-8.
    """
    path_of(path, kind)
    data = read_bytes(path, kind, most_bytes)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line}: is not UTF-8 text; give {kind}") from None


def read_bytes(path: str | Path, kind: str, most_bytes: int = MOST_BYTES) -> bytes:
    """The content of a file, unpacked where it is gzip by its content; raises as `read_text`, and for damaged gzip."""
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(most_bytes + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); give {kind}") from None
    except ValueError:  # a name with a zero byte
        raise InputError(f"{str(path)!r}: is not a file name; give {kind}") from None
    if len(data) > most_bytes:
        raise InputError(f"{path}: has more than {most_bytes} bytes; {kind} must be smaller")
    return _unpacked(data, str(path), most_bytes) if data.startswith(_GZIP) else data


def _unpacked(data: bytes, name: str, most_bytes: int) -> bytes:
    """All members of a gzip file."""
    pieces, size = [], 0
    while data:
        unpacker = zlib.decompressobj(wbits=31)
        try:
            pieces.append(unpacker.decompress(data, most_bytes + 1 - size))
        except zlib.error:
            raise InputError(f"{name}: is a damaged gzip file; copy it again") from None
        size += len(pieces[-1])
        if size > most_bytes:
            raise InputError(f"{name}: unpacks to more than {most_bytes} bytes; split it")
        if not unpacker.eof:
            raise InputError(f"{name}: ends in the middle of its gzip data; copy it again")
        data = unpacker.unused_data.lstrip(b"\0")
    return b"".join(pieces)


def read_json(data: bytes | str, origin: str, *, most_bytes: int = MOST_BYTES) -> Any:
    """The value of a JSON text.

    origin: the name of the text, for messages
    Raises InputError, one line, for what is not JSON, too large, too deep, or would take memory out of proportion.
    """
    text = data if isinstance(data, bytes) else data.encode(errors="surrogatepass")
    if len(text) > most_bytes or sum(text.count(mark) for mark in (b"[", b"{", b",")) > MOST_JSON_MARKS:
        raise InputError(f"{origin}: is too large to read; give a smaller document")
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{origin}:{error.lineno}:{error.colno}: is not JSON ({error.msg}); correct it") from None
    except (ValueError, RecursionError):  # bytes that are no UTF-8, numbers of many digits; brackets in brackets
        raise InputError(f"{origin}: cannot be parsed as JSON; correct it") from None
    if text.count(b"[") + text.count(b"{") > MOST_DEPTH and _is_deep(value):
        raise InputError(f"{origin}: is nested deeper than {MOST_DEPTH} levels; flatten it")
    return value


def _is_deep(value: object) -> bool:
    level = [value]
    for _ in range(MOST_DEPTH + 1):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer if isinstance(outer, list) else ())
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def read_yaml(text: str, origin: str) -> Any:
    """The value of a YAML text of one document; None where it is empty.

    origin: the name of the text, for messages
    Raises InputError, one line with file, line and column, for what is not YAML, has a key twice, or exceeds the bounds
    of this module.
    """
    import yaml

    if len(text) > MOST_BYTES or len(text.encode(errors="surrogatepass")) > MOST_BYTES:
        raise InputError(f"{origin}: has more than {MOST_BYTES} bytes; split it or remove what is not needed")
    if text.count("%TAG") > _MOST_DIRECTIVES:
        raise InputError(f"{origin}: declares tags, which are not supported; remove the %TAG lines")
    try:
        return _Composer(text, origin).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(str(error.problem or error.context).split())
        place = "" if mark is None else f":{mark.line + 1}:{mark.column + 1}"
        raise InputError(f"{origin}{place}: is not YAML ({problem}); correct the line") from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
        raise InputError(f"{origin}:{place}: is not YAML ({' '.join(str(error.reason).split())}); remove it") from None
    except (yaml.YAMLError, UnicodeEncodeError):
        raise InputError(f"{origin}: is not YAML (it has non-text characters); remove them") from None


class _Merge:
    """The key << whose value is merged into the mapping."""


_MERGE = _Merge()
_NO_KEY = _Merge()


@dataclass(slots=True)
class _Open:
    """A collection whose end has not been read.

    size, height: values in it, itself counted, and collections inside each other
    key         : of a mapping, whose value comes next; texts: of the keys, as they are written
    """

    value: Any
    anchor: str | None
    size: int = 1
    height: int = 1
    key: Any = _NO_KEY
    texts: set[str] = field(default_factory=set)
    merged: list[dict[Any, Any]] = field(default_factory=list)


class _Composer:
    """From the events of one document to its value."""

    def __init__(self, text: str, origin: str) -> None:
        import yaml

        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the parser in C is several times faster
        self._yaml = yaml
        self._next = loader(text).get_event
        self._resolvers = loader.yaml_implicit_resolvers
        self._origin = origin
        self._open: list[_Open] = []
        # of each anchor: value, size, height; None while its collection is open
        self._anchors: dict[str, tuple[Any, int, int] | None] = {}
        self._count = 0
        self._value: Any = None

    def document(self) -> Any:
        """The value; raises InputError and yaml.YAMLError."""
        events = self._yaml.events
        scalar, sequence, mapping = events.ScalarEvent, events.SequenceStartEvent, events.MappingStartEvent
        ends, alias = (events.SequenceEndEvent, events.MappingEndEvent), events.AliasEvent
        documents = 0
        while not isinstance(event := self._next(), events.StreamEndEvent):
            kind = type(event)
            if kind is scalar:
                self._add(event, self._scalar(event), 1, 0)
            elif kind is sequence or kind is mapping:
                self._begin(event, [] if kind is sequence else {})
            elif kind in ends:
                self._end(event)
            elif kind is alias:
                self._alias(event)
            elif kind is events.DocumentStartEvent:
                documents += 1
                if documents > 1:
                    self._refuse(event, "begins a second document", "keep one in a file")
        return self._value

    def _begin(self, event: Any, value: list[Any] | dict[Any, Any]) -> None:
        kind = "seq" if isinstance(value, list) else "map"
        if event.tag not in (None, "!", _TAGS + kind):
            self._refuse(event, f"has the tag {event.tag[:60]!r}, which is not supported", "remove the tag")
        self._count += 1
        if len(self._open) >= MOST_DEPTH:
            self._refuse(event, f"is nested deeper than {MOST_DEPTH} levels", "flatten it")
        if self._open and isinstance(self._open[-1].value, dict) and self._open[-1].key is _NO_KEY:
            self._refuse(event, "a key is a collection", "write a text or a number as the key")
        if event.anchor is not None:
            self._define(event, None)
        self._open.append(_Open(value, event.anchor))

    def _end(self, event: Any) -> None:
        closed = self._open.pop()
        if closed.merged:
            explicit = dict(closed.value)
            closed.value.clear()
            for each in reversed(closed.merged):  # the first that has a key decides
                closed.value.update(each)
            closed.value.update(explicit)
        if closed.anchor is not None:
            self._anchors[closed.anchor] = (closed.value, closed.size, closed.height)
        self._place(event, closed.value, closed.size, closed.height)

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            self._refuse(
                event, f"stands for the anchor {event.anchor[:60]!r}, which is not defined", "define it before"
            )
        target = self._anchors[event.anchor]
        if target is None:
            self._refuse(event, f"stands for {event.anchor[:60]!r}, which contains it", "write the value out")
        value, size, height = target
        if len(self._open) + height > MOST_DEPTH:
            self._refuse(event, f"is nested deeper than {MOST_DEPTH} levels", "flatten it")
        self._add(event, value, size, height)

    def _add(self, event: Any, value: Any, size: int, height: int) -> None:
        """A value that is complete: a scalar or what an alias stands for."""
        if event.anchor is not None and type(event) is not self._yaml.events.AliasEvent:
            self._define(event, (value, size, height))
        self._count += size
        if self._count > MOST_VALUES:
            self._refuse(event, f"is value {MOST_VALUES + 1} of the document", "aliases count as their expansions")
        self._place(event, value, size, height)

    def _place(self, event: Any, value: Any, size: int, height: int) -> None:
        """`value` as the next of the collection that holds it."""
        if not self._open:
            self._value = None if value is _MERGE else value
            return
        outer = self._open[-1]
        outer.size += size
        if height >= outer.height:
            outer.height = height + 1
        if isinstance(outer.value, list):
            outer.value.append("<<" if value is _MERGE else value)
        elif outer.key is _NO_KEY:
            self._key(event, outer, value)
        elif outer.key is _MERGE:
            each = value if isinstance(value, list) else [value]
            if not all(isinstance(one, dict) for one in each):
                self._refuse(event, "is merged by << but is not a mapping", "give a mapping, or a list of mappings")
            outer.merged += each
            outer.key = _NO_KEY
        else:
            outer.value[outer.key] = "<<" if value is _MERGE else value
            outer.key = _NO_KEY

    def _key(self, event: Any, outer: _Open, key: Any) -> None:
        if isinstance(key, list | dict):
            self._refuse(event, "a key is a collection", "write a text or a number as the key")
        text = getattr(event, "value", None) or str(key)
        if text in outer.texts or key in outer.value:
            self._refuse(event, f"key {text[:60]} occurs twice", "remove one")
        outer.texts.add(text)
        outer.key = key

    def _define(self, event: Any, target: tuple[Any, int, int] | None) -> None:
        if event.anchor in self._anchors:
            self._refuse(event, f"defines the anchor {event.anchor[:60]!r} again", "rename it")
        self._anchors[event.anchor] = target

    def _scalar(self, event: Any) -> Any:
        text: str = event.value
        tag = event.tag
        if tag is None or tag == "!":
            if not event.implicit[0] or len(text) > _LONGEST_NUMBER:
                return text
            if _DECIMAL.fullmatch(text):  # most of a platform's numbers
                return float(text)
            resolvers = self._resolvers.get(text[:1], ())
            tag = next((tag for tag, pattern in resolvers if pattern.match(text)), _TAGS + "str")
        kind = tag.removeprefix(_TAGS)
        try:
            return _CORE_TYPES[kind](text)
        except KeyError:
            if event.tag is None:  # dates and the like
                return text
            self._refuse(event, f"has the tag {tag[:60]!r}, which is not supported", "remove the tag")
        except ValueError:
            name = {"int": "an integer", "float": "a number", "bool": "true or false"}.get(kind, kind)
            self._refuse(event, f"{text[:60]!r} looks like {name} but is not", "correct it, or put it in quotes")

    def _refuse(self, event: Any, problem: str, remedy: str) -> Never:
        mark = event.start_mark
        raise InputError(f"{self._origin}:{mark.line + 1}:{mark.column + 1}: {problem}; {remedy}")


def _null(text: str) -> None:
    if text.lower() not in ("", "~", "null"):
        raise ValueError


def _boolean(text: str) -> bool:
    try:
        return _BOOLEANS[text.lower()]
    except KeyError:
        raise ValueError from None


def _integer(text: str) -> int:
    """As YAML 1.1 writes them: 12, 1_000, 0x1F, 0b101, 017, 1:30."""
    if len(text) > _LONGEST_NUMBER:
        raise ValueError
    digits = text.replace("_", "")
    sign = -1 if digits[:1] == "-" else 1
    digits = digits.lstrip("+-") if digits[:1] in ("+", "-") else digits
    if digits.startswith("0b"):
        return sign * int(digits, 2)
    if digits.startswith("0x"):
        return sign * int(digits, 16)
    if ":" in digits:
        return sign * int(_sexagesimal(digits, int))
    return sign * int(digits, 8 if digits[:1] == "0" and digits != "0" else 10)


def _real(text: str) -> float:
    if len(text) > _LONGEST_NUMBER:
        raise ValueError
    digits = text.replace("_", "").lower()
    sign = -1.0 if digits[:1] == "-" else 1.0
    digits = digits[1:] if digits[:1] in ("+", "-") else digits
    if digits == ".inf":
        return sign * float("inf")
    if digits == ".nan":
        return float("nan")
    return sign * (float(_sexagesimal(digits, float)) if ":" in digits else float(digits))


def _sexagesimal(digits: str, kind: Any) -> Any:
    total = kind(0)
    for part in digits.split(":"):
        total = total * 60 + kind(part)
    return total


_CORE_TYPES: dict[str, Any] = {
    "str": str,
    "null": _null,
    "bool": _boolean,
    "int": _integer,
    "float": _real,
    "merge": lambda _text: _MERGE,
}
