"""XML into elements, safely: no entity is expanded, nothing outside the text is read, size and depth are bounded."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Never
from xml.parsers import expat

from lepaute.errors import InputError

LARGEST_TEXT_BYTES = 64 * 2**20
_DEEPEST = 32
_MOST_ELEMENTS = 1_000_000
_LONGEST_NAME = 200
#: Of other encodings expat asks Python for a table, which for many of them it cannot have.
_ENCODINGS = ("utf-8", "us-ascii", "ascii", "iso-8859-1", "latin-1")
#: SimGrid reads a file whose declaration is not at its very beginning; expat does not.
_LATE_DECLARATION = re.compile(rb"(?P<before>(?:\xef\xbb\xbf)?\s+)(?P<declaration><\?xml\s[^>]{0,200}\?>)")
_DECLARED = re.compile(rb"""\s*<\?xml[^>]*?\sencoding\s*=\s*["']([^"'>]*)["']""")


@dataclass(slots=True)
class Element:
    """An element: its tag and attributes, the elements inside, and the line (from 1) where it begins."""

    tag: str
    attributes: dict[str, str]
    line: int
    inside: list["Element"] = field(default_factory=list)

    def everything(self) -> Iterator["Element"]:
        """This element and all inside it, at any depth, in the order of the text."""
        yield self
        for element in self.inside:
            yield from element.everything()

    def all(self, *tags: str) -> Iterator["Element"]:
        """The elements with one of `tags` inside this one, at any depth, in the order of the text."""
        return (element for element in self.everything() if element.tag in tags and element is not self)

    def properties(self) -> dict[str, str]:
        """Of the prop elements directly inside: id -> value."""
        return {e.attributes.get("id", ""): e.attributes.get("value", "") for e in self.inside if e.tag == "prop"}


def parse(text: bytes, origin: str) -> Element:
    """The root element of the XML `text`; `origin` is its name in messages.

    Raises InputError, with the line, for what is not XML, declares entities or an inner DTD, is too large or deep, or
    is in another encoding than UTF-8, ASCII or Latin-1.
    """
    if len(text) > LARGEST_TEXT_BYTES:
        raise InputError(f"{origin}: has {len(text)} bytes; at most {LARGEST_TEXT_BYTES} are read")
    encoding = _encoding(text, origin)
    parser = expat.ParserCreate(encoding)
    root = Element("", {}, 0)
    open_elements = [root]
    count = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > _MOST_ELEMENTS:
            raise InputError(f"{origin}:{parser.CurrentLineNumber}: has more than {_MOST_ELEMENTS} elements")
        if len(open_elements) > _DEEPEST:
            raise InputError(f"{origin}:{parser.CurrentLineNumber}: elements are nested more than {_DEEPEST} deep")
        if any(len(attributes.get(name, "")) > _LONGEST_NAME for name in ("id", "src", "dst")):
            raise InputError(f"{origin}:{parser.CurrentLineNumber}: a name has more than {_LONGEST_NAME} characters")
        element = Element(tag, attributes, parser.CurrentLineNumber)
        open_elements[-1].inside.append(element)
        open_elements.append(element)

    def end(_tag: str) -> None:
        open_elements.pop()

    def doctype(_name: str, _system: str | None, _public: str | None, has_inner: int) -> None:
        if has_inner:
            refuse()

    def refuse(*_declared: object) -> Never:
        raise InputError(
            f"{origin}:{parser.CurrentLineNumber}: declares an internal DTD or entities, which are not supported; "
            "remove the declarations"
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.StartDoctypeDeclHandler = doctype
    parser.EntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    try:
        parser.Parse(_without_late_declaration(text), True)
    except expat.ExpatError as error:
        problem = expat.errors.messages.get(error.code, "damaged")
        raise InputError(f"{origin}:{error.lineno}: is not XML ({problem}); correct the line") from None
    return root.inside[0]


def _without_late_declaration(text: bytes) -> bytes:
    """The text without an XML declaration behind blank lines, on the same lines as before; its encoding is known."""
    late = _LATE_DECLARATION.match(text)
    return text if late is None else late["before"] + b"\n" * late["declaration"].count(b"\n") + text[late.end() :]


def _encoding(text: bytes, origin: str) -> str:
    """The encoding that the parser is told, whatever the text declares; raises InputError for one that is not read."""
    if text.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in text[:4]:
        raise InputError(f"{origin}: is in UTF-16 or UTF-32; convert it to UTF-8")
    declared = _DECLARED.match(text.removeprefix(b"\xef\xbb\xbf"))
    name = declared[1].decode("ascii", errors="replace").strip().lower() if declared else "utf-8"
    if name not in _ENCODINGS:
        raise InputError(f"{origin}:1: declares the encoding {name[:40]!r}; convert it to UTF-8")
    return "iso-8859-1" if name in ("iso-8859-1", "latin-1") else "utf-8"
