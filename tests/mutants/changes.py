"""Changes to a text or to bytes: flips, cuts, splices, and values that readers have stumbled over."""

import json
import random
import re
from typing import Any

#: In the place of a number, or of any word.
_VALUES = [
    *(b"0", b"-1", b"1", b"2147483647", b"2147483648", b"9223372036854775807", b"99999999999999999999", b"9" * 5000),
    *(
        b"1e308", b"-1e308", b"1e999", b"1e-320", b"inf", b"nan", b".inf", b".nan", b"0b_", b"0x", b"1_0", b"1:30",
        b"0.0",
    ),
    *(
        b"\xc2\xb2", b"\xd9\xa3", b"1-999999999", b"0-9999999999", b"2023-02-30", b"true", b"~", b'""', b"''", b"*",
        b"a" * 300,
    ),
]  # fmt: skip
#: Anywhere.
PIECES = [
    *(
        b"\0", b"\x1b[2J", b"\x7f", b"\xff\xfe", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"\r", b"\n\n",
        b"\t", b" ",
    ),
    *(
        b"- " * 400, b"[" * 400, b"{" * 400, b"? [a, b]\n", b"&a [*a]", b"*a", b"<<: *a\n", b"<<: {name: x}\n",
        b"!!python/name:os.system x",
    ),
    *(
        b"!!bool x", b"!!binary eA==", b"!!timestamp 1", b"%TAG ! !\n", b"---\n", b"...\n", b"| \n", b"'", b'"', b"#",
        b":", b",", b";", b"=",
    ),
    *(
        b"#@columns=a:int", b"=cmd|' /C calc'!A0", b'""', b"\\", b"design_row", b"%s%n", b"{0.__class__}",
    ),
    *(
        b"null", b"{}", b'{"a":' * 3000, b'"' + b"a" * 4000 + b'"', b"../../etc/passwd", b"Handle 0x", b"=>", b",,,,",
    ),
    *(
        b"<", b">", b"&amp;", b"&a;", b"]]>", b"<!DOCTYPE a [<!ENTITY b 'c'>]>",
        b'<?xml version="1.0" encoding="shift_jis"?>', b"<a>" * 100,
    ),
]  # fmt: skip
_NUMBER = re.compile(rb"[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?")
_WORD = re.compile(rb"[A-Za-z0-9_.+-]+")


def changed(rng: random.Random, data: bytes, others: list[bytes]) -> tuple[str, bytes]:
    """(what was done, the changed bytes); one to three changes."""
    way = ""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        way, change = rng.choice(_CHANGES)
        data = change(rng, data, others)
    return way, data


def column_replaced(rng: random.Random, table: Any) -> Any:
    """The table of Arrow with a column of one value that hardly any column can have, of a type that may be another."""
    import pyarrow as pa

    name = rng.choice(table.column_names)
    value = rng.choice((None, -1, 1e300, float("nan"), "\x1b[2J", b"\xff", True, [1], 2**40, 2**31 - 1))
    return table.set_column(table.column_names.index(name), name, pa.array([value] * len(table)))


def value_replaced(rng: random.Random, data: bytes) -> bytes:
    """A JSON document with one to three of its values replaced; other bytes as they are."""
    values: list[object] = [
        None, True, -1, 0, 2**70, 10**400, 1e308, float("nan"), float("inf"), "", "\x1b[31m", "../x", "a" * 5000, [],
        {}, [[[]]], {"": {"": ""}}, ["x", 1, None], {"node": 3}, "\ud800", 10**5000,
    ]  # fmt: skip
    try:
        document = json.loads(data)
    except ValueError:
        return data
    places: list[tuple[object, object]] = []

    def walk(value: object) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                places.append((value, key))
                walk(inner)
        elif isinstance(value, list):
            for place, inner in enumerate(value):
                places.append((value, place))
                walk(inner)

    walk(document)
    for _ in range(rng.choice((1, 1, 3))):
        if places:
            holder, key = rng.choice(places)
            holder[key] = rng.choice(values)  # type: ignore[index]
    try:
        return json.dumps(document).encode(errors="surrogatepass")
    except ValueError:  # a number of more digits than Python spells out
        return data


def _flipped(rng: random.Random, data: bytes, _others: list[bytes]) -> bytes:
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if made:
            made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)
    return bytes(made)


def _cut(rng: random.Random, data: bytes, _others: list[bytes]) -> bytes:
    first, last = _span(rng, data)
    return data[:first] if rng.random() < 0.3 else data[:first] + data[last:]


def _repeated(rng: random.Random, data: bytes, _others: list[bytes]) -> bytes:
    first, last = _span(rng, data)
    return data[:last] + data[first:last] * rng.choice((1, 2, 50)) + data[last:]


def _spliced(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    other = rng.choice(others)
    first, last = _span(rng, other)
    at = rng.randrange(len(data) + 1)
    return data[:at] + other[first:last] + data[at:]


def _number(rng: random.Random, data: bytes, _others: list[bytes]) -> bytes:
    return _put(rng, data, _NUMBER)


def _word(rng: random.Random, data: bytes, _others: list[bytes]) -> bytes:
    return _put(rng, data, _WORD)


def _piece(rng: random.Random, data: bytes, _others: list[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(PIECES) + data[at:]


def _lines(rng: random.Random, data: bytes, _others: list[bytes]) -> bytes:
    lines = data.split(b"\n")
    at, to = rng.randrange(len(lines)), rng.randrange(len(lines))
    if rng.random() < 0.5:
        lines.insert(to, lines.pop(at))
    else:
        lines[at] = rng.choice((b"  ", b"\t", b"- ", b"")) + lines[at]
    return b"\n".join(lines)


def _put(rng: random.Random, data: bytes, pattern: re.Pattern[bytes]) -> bytes:
    places = list(pattern.finditer(data))
    if not places:
        return data
    place = rng.choice(places)
    return data[: place.start()] + rng.choice(_VALUES) + data[place.end() :]


def _span(rng: random.Random, data: bytes) -> tuple[int, int]:
    first = rng.randrange(len(data) + 1)
    return first, min(len(data), first + rng.choice((1, 4, 30, 300)))


_CHANGES = [
    ("bits flipped", _flipped), ("cut", _cut), ("repeated", _repeated), ("spliced", _spliced),
    ("number replaced", _number), ("number replaced", _number), ("word replaced", _word), ("word replaced", _word),
    ("piece put in", _piece), ("piece put in", _piece), ("lines", _lines),
]  # fmt: skip
