"""Untrusted YAML and JSON documents, read within bounds (size, depth, number of values, aliases, types), and what
messages about a refused YAML file share: the line of a value, its path as people write it, near names.

YAML is composed here from the events of the parser in C: PyYAML's composer, in C as well, recurses without end, expands
aliases without end, keeps the last of two equal keys, and is half as fast. The values are those of its safe loader,
except that a date stays text and 1e-9 is a number; refused are collections as keys, other tags, circular anchors.
"""

import json
import re
import stat
import types
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from importlib import import_module
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Never, Union, get_args, get_origin

from lepaute.errors import InputError
from lepaute.kit.later import later
from lepaute.kit.numbers import path_of

if TYPE_CHECKING:
    import yaml
else:
    yaml = later("yaml")

MAX_BYTES = 8 << 20
#: Values of a document, with each alias counted as what it stands for.
MAX_VALUES = 500_000
#: Collections inside each other.
MAX_DEPTH = 50
#: Brackets and commas of JSON: each can cost a Python object of some 70 bytes from one or two bytes of text.
MAX_JSON_MARKS = 4_000_000

#: What reads compressed data, and how they begin.
_COMPRESSED = {"gzip": b"\x1f\x8b", "bz2": b"BZh", "lzma": b"\xfd7zXZ\0", "zstd": b"\x28\xb5\x2f\xfd"}
#: Pipes whose other end is there: <(command) of a shell.
_IS_OPEN = re.compile(r"/(dev|proc)/")
_TAGS = "tag:yaml.org,2002:"
#: No number of a document is written with more characters; what is longer is text.
_LONGEST_NUMBER = 100
#: Declarations of tags, of which libyaml compares each with all before.
_MAX_DIRECTIVES = 8
#: 1.5e-9, and 1e-9, which YAML 1.1 takes for a text and nobody means as one.
_DECIMAL = re.compile(r"-?[0-9]+(?:\.[0-9]*(?:[eE][-+][0-9]+)?|[eE][-+][0-9]+)")
_SCALARS = {"int": "an integer", "float": "a number", "bool": "true or false", "null": "null"}
#: The key << whose value is merged into the mapping.
_MERGE = object()
#: Keys and positions that lead from a document to a value.
Steps = tuple[str | int, ...]


def read_text(path: str | Path, kind: str, most_bytes: int = MAX_BYTES) -> str:
    """The text of a file in UTF-8.

    Raises InputError, one line, for a file that cannot be read, is larger than `most_bytes`, or is not UTF-8.
    """
    path_of(path, kind)
    data = read_bytes(path, kind, most_bytes)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line}: is not UTF-8 text; give {kind}") from None


def read_bytes(path: str | Path, kind: str, most_bytes: int = MAX_BYTES) -> bytes:
    """The content of a file, as `unpacked` gives it; raises as that and `read_text`."""
    with unpacked(path, kind) as stream:
        data = stream.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise InputError(f"{path}: has more than {most_bytes} bytes; {kind} must be smaller")
    return data


@contextmanager
def unpacked(path: str | Path, what: str) -> Iterator[BinaryIO]:
    """A stream of the content of a file, unpacked where it is compressed by its content (_COMPRESSED).

    Raises InputError, one line, also while the stream is read: for what cannot be read, pipes that nobody has opened,
    devices, and compressed data that are damaged or end too early.
    """
    name = ""
    try:
        mode = Path(path).stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or (stat.S_ISFIFO(mode) and _IS_OPEN.match(str(path)))):
            raise InputError(f"{path}: is a pipe, a device or a socket; give {what}, as a file")
        with Path(path).open("rb") as file:
            head = file.peek(8)[:8]
            name = next((known for known, magic in _COMPRESSED.items() if head.startswith(magic)), "")
            if name == "zstd":
                yield BufferedReader(import_module("pyarrow").CompressedInputStream(file, name))
            else:
                yield import_module(name).open(file) if name else file
    except (OSError, EOFError, zlib.error, import_module("lzma").LZMAError) as error:
        if (reason := getattr(error, "strerror", None)) is None:  # of what unpacks
            is_cut = isinstance(error, EOFError) or "Truncated" in str(error)
            state = f"ends in the middle of its {name} data" if is_cut else f"is a damaged {name} file"
            raise InputError(f"{path}: {state}; copy it again") from None
        raise InputError(f"{path}: cannot be read ({reason}); give {what}") from None
    except ValueError as error:
        if "null byte" not in str(error):
            raise
        raise InputError(f"{str(path)!r}: is not a file name; give {what}") from None


def read_json(data: bytes | str, origin: str, *, most_bytes: int = MAX_BYTES) -> Any:
    """The value of a JSON text.

    Raises InputError, one line, for what is not JSON, too large, too deep, or would take memory out of proportion.
    """
    text = data if isinstance(data, bytes) else data.encode(errors="surrogatepass")
    if len(text) > most_bytes or sum(text.count(mark) for mark in (b"[", b"{", b",")) > MAX_JSON_MARKS:
        raise InputError(f"{origin}: is too large to read; give a smaller document")
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{origin}:{error.lineno}:{error.colno}: is not JSON ({error.msg}); correct it") from None
    except (ValueError, RecursionError):  # bytes that are no UTF-8, numbers of many digits; brackets in brackets
        raise InputError(f"{origin}: cannot be parsed as JSON; correct it") from None
    level = [value] if text.count(b"[") + text.count(b"{") > MAX_DEPTH else []
    for _ in range(MAX_DEPTH + 1):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer if isinstance(outer, list) else ())
            if isinstance(inner, dict | list)
        ]
    if level:
        raise InputError(f"{origin}: is nested deeper than {MAX_DEPTH} levels; flatten it")
    return value


def read_yaml(text: str, origin: str) -> Any:
    """The value of a YAML text of one document; None if it is empty.

    Raises InputError, with file, line and column, for what is not YAML, has a key twice, or exceeds these bounds.
    """
    if len(text) > MAX_BYTES or len(text.encode(errors="surrogatepass")) > MAX_BYTES:
        raise InputError(f"{origin}: has more than {MAX_BYTES} bytes; split it or remove what is not needed")
    if text.count("%TAG") > _MAX_DIRECTIVES:
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


class _Composer:
    """From the events of one document to its value. A part is (value, values in it, collections inside each other)."""

    def __init__(self, text: str, origin: str) -> None:
        self._yaml = yaml
        self._loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)  # the parser in C is several times faster
        self._next = self._loader.get_event
        self._origin = origin
        #: None while the collection of an anchor is open.
        self._anchors: dict[str, tuple[Any, int, int] | None] = {}
        self._count = 0

    def document(self) -> Any:
        events, value, documents = self._yaml.events, None, 0
        while not isinstance(event := self._next(), events.StreamEndEvent):
            if isinstance(event, events.NodeEvent):
                value = self._part(event, 0)[0]
            elif isinstance(event, events.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self._refuse(event, "begins a second document", "keep one in a file")
        return None if value is _MERGE else value

    def _part(self, event: Any, depth: int) -> tuple[Any, int, int]:
        """What begins with this event, inside `depth` collections."""
        events, anchor = self._yaml.events, event.anchor
        if type(event) is events.AliasEvent:
            name = f"{event.anchor[:60]!r}"
            if event.anchor not in self._anchors:
                self._refuse(event, f"stands for the anchor {name}, which is not defined", "define it before")
            if (part := self._anchors[event.anchor]) is None:
                self._refuse(event, f"stands for {name}, which contains it", "write the value out")
            if depth + part[2] > MAX_DEPTH:
                self._refuse(event, f"is nested deeper than {MAX_DEPTH} levels", "flatten it")
            self._count += part[1]
        else:
            if anchor is not None:
                if anchor in self._anchors:
                    self._refuse(event, f"defines the anchor {anchor[:60]!r} again", "rename it")
                self._anchors[anchor] = None
            self._count += 1
            part = (
                (self._scalar(event), 1, 0)
                if type(event) is events.ScalarEvent
                else self._collection(event, depth, mapping=type(event) is events.MappingStartEvent)
            )
            if anchor is not None:
                self._anchors[anchor] = part
        if self._count > MAX_VALUES:
            self._refuse(event, f"is value {MAX_VALUES + 1} of the document", "aliases count as their expansions")
        return part

    def _collection(self, event: Any, depth: int, *, mapping: bool) -> tuple[Any, int, int]:
        if event.tag not in (None, "!", f"{_TAGS}{'map' if mapping else 'seq'}"):
            self._refuse(event, f"has the tag {event.tag[:60]!r}, which is not supported", "remove the tag")
        if depth >= MAX_DEPTH:
            self._refuse(event, f"is nested deeper than {MAX_DEPTH} levels", "flatten it")
        end = self._yaml.events.MappingEndEvent if mapping else self._yaml.events.SequenceEndEvent
        items: list[Any] = []
        explicit: dict[Any, Any] = {}
        merged: list[dict[Any, Any]] = []
        texts: set[str] = set()
        size, height = 1, 0
        while type(item := self._next()) is not end:
            key = None
            if mapping:
                key, inner, _ = self._part(item, depth + 1)
                self._check_key(item, key, texts, explicit)
                size += inner
                item = self._next()
            value, inner, deep = self._part(item, depth + 1)
            size, height = size + inner, max(height, deep)
            if key is _MERGE:
                mappings = value if isinstance(value, list) else [value]
                if not all(isinstance(each, dict) for each in mappings):
                    self._refuse(item, "is merged by << but is not a mapping", "give a mapping, or a list of mappings")
                merged += mappings
                continue
            value = "<<" if value is _MERGE else value
            if mapping:
                explicit[key] = value
            else:
                items.append(value)
        if merged:  # the first that has a key decides, behind what is written out
            content: dict[Any, Any] = {}
            for each in reversed(merged):
                content.update(each)
            explicit = content | explicit
        return explicit if mapping else items, size, height + 1

    def _check_key(self, event: Any, key: Any, texts: set[str], known: dict[Any, Any]) -> None:
        """Adds the key, as it is written, to the texts; a key may be equal to another that is written otherwise."""
        if isinstance(key, list | dict):
            self._refuse(event, "a key is a collection", "write a text or a number as the key")
        text = getattr(event, "value", None) or str(key)
        if text in texts or key in known:
            self._refuse(event, f"key {text[:60]} occurs twice", "remove one")
        texts.add(text)

    def _scalar(self, event: Any) -> Any:
        text, tag = event.value, event.tag
        if tag is None or tag == "!":
            if not event.implicit[0] or len(text) > _LONGEST_NUMBER:
                return text
            if _DECIMAL.fullmatch(text):  # most of a platform's numbers
                return float(text)
            resolvers = self._loader.yaml_implicit_resolvers.get(text[:1], ())
            tag = next((tag for tag, pattern in resolvers if pattern.match(text)), f"{_TAGS}str")
        kind = tag.removeprefix(_TAGS)
        if kind in ("str", "merge"):
            return text if kind == "str" else _MERGE
        if kind not in _SCALARS:
            if event.tag is None:  # dates and the like
                return text
            self._refuse(event, f"has the tag {tag[:60]!r}, which is not supported", "remove the tag")
        try:
            if len(text) > _LONGEST_NUMBER or (kind == "null" and text.lower() not in ("", "~", "null")):
                raise ValueError
            return getattr(self._loader, f"construct_yaml_{kind}")(self._yaml.ScalarNode(tag, text))
        except (ValueError, LookupError):
            self._refuse(
                event, f"{text[:60]!r} looks like {_SCALARS[kind]} but is not", "correct it, or put it in quotes"
            )

    def _refuse(self, event: Any, problem: str, remedy: str) -> Never:
        mark = event.start_mark
        raise InputError(f"{self._origin}:{mark.line + 1}:{mark.column + 1}: {problem}; {remedy}")


def composed(text: str) -> "yaml.Node | None":
    """The nodes, with their positions, of a text that `read_yaml` has read, for messages about what is refused."""
    root: yaml.Node | None = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return root


def line_in(path: Steps, root: "yaml.Node") -> int:
    """The line, from 1, of the key (or element) that `path` leads to, or of the deepest part of it that is there."""
    node, line = root, root.start_mark.line
    for step in path:
        if isinstance(node, yaml.MappingNode):
            entries = [(key, value) for key, value in node.value if key.value == str(step)]
            if not entries:
                break
            line, node = entries[-1][0].start_mark.line, entries[-1][1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line
        else:
            break
    return int(line) + 1


def spoken(path: Steps) -> str:
    """nodes.list[3].name, or "the file" where the path is empty."""
    words = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return words.removeprefix(".") or "the file"


def shown(value: object) -> str:
    """A value as a message quotes it."""
    if isinstance(value, str):
        try:
            return f"{float(value)!r}"  # YAML 1.1 reads 1e6, for want of a dot and a sign, as a text
        except ValueError:
            pass
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def guess(word: str, known: Sequence[str]) -> str:
    """ " (did you mean nodes?)", where one of the names is near."""
    near = get_close_matches(word, known, n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def fields_at(model: Any, path: Steps) -> list[str]:
    """The names of the fields of the value that `path` leads to in a document of this dataclass or Pydantic model."""
    for step in path:
        if isinstance(step, str) and model is not None:  # an element of a list has the model of the list's annotation
            model = _model_in(_annotations(model).get(step))
    return [] if model is None else list(_annotations(model))


def _annotations(model: Any) -> dict[str, Any]:
    if is_dataclass(model):
        return {field.name: field.type for field in fields(model)}
    return {name: field.annotation for name, field in model.model_fields.items()}


def _model_in(annotation: Any) -> Any:
    """The model class inside `X | None`, `tuple[X, ...]`, `Annotated[X, ...]`; None if there is none."""
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation if is_dataclass(annotation) or hasattr(annotation, "model_fields") else None
    if get_origin(annotation) in (tuple, Union, types.UnionType, Annotated):
        return next((model for part in get_args(annotation) if (model := _model_in(part)) is not None), None)
    return None
