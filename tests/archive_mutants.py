"""Archives damaged on purpose, at every layer: the bytes of the zip, the manifest, and what members say.

Damage below the seal ends at the seal; so most mutants are sealed again, and many get a manifest that agrees with them,
that the layers behind are reached.
"""

import io
import json
import random
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from lepaute.measure.archive.container import seal
from lepaute.measure.archive.documents import MANIFEST, Member, manifest_bytes

#: What parsers stumble over.
_TOKENS = [
    b"", b"\0", b"\x1b[2J\x1b]0;owned\x07", b"null", b"[]", b"{}", b"-1", b"1e999", b"9" * 5000, b"NaN", b"true",
    b'"' + b"a" * 4000 + b'"', b"[" * 3000, b'{"a":' * 3000, b"\xff\xfe\x80", b"../../etc/passwd", b"\xe2\x80\xae",
    b"<!ENTITY a 'b'>", b"\n" * 50, b"Handle 0x", b"x" * 3000, b"18446744073709551616", b"'", b"=>", b",,,,",
]  # fmt: skip


def mutate_archives(originals: list[Path], target: Path, count: int, seed: int) -> Iterator[str]:
    """Writes `count` mutants one after the other to `target`; yields what was done to each. Same seed, same mutants."""
    rng = random.Random(seed)
    files = [path.read_bytes() for path in originals]
    contents = [_members(data) for data in files]
    ways: list[tuple[str, Callable[[], bytes]]] = [
        ("raw bytes", lambda: _bytes(rng, rng.choice(files), files)),
        ("bytes, sealed again", lambda: _sealed(target, _bytes(rng, rng.choice(files), files))),
        ("members, in order again", lambda: _built(rng, _changed(rng, rng.choice(contents), contents))),
        ("document, in order again", lambda: _built(rng, _document(rng, rng.choice(contents)))),
        ("manifest or names", lambda: _built(rng, dict(rng.choice(contents)), honest=False)),
    ]
    for _ in range(count):
        # Inner layers hold most of the code: they get most of the mutants.
        way, make = rng.choices(ways, weights=(1, 3, 3, 5, 1))[0]
        target.write_bytes(make())
        if "in order" in way or "names" in way:
            seal(target)
        yield way


def _members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        return {name: packed.read(name) for name in packed.namelist() if name != MANIFEST}


def _bytes(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """Flips, cuts, repeats, insertions, splices."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        at = rng.randrange(len(changed) + 1)
        way = rng.randrange(7)
        if way == 0 and at < len(changed):
            changed[at] ^= 1 << rng.randrange(8)
        elif way == 1 and at < len(changed):
            changed[at] = rng.randrange(256)
        elif way == 2:
            del changed[at : at + rng.choice((1, 4, 100, 10_000))]
        elif way == 3:
            changed[at:at] = rng.choice(_TOKENS)
        elif way == 4:
            changed[at:at] = changed[at : at + rng.choice((4, 46, 500))]
        elif way == 5:
            other = rng.choice(others)
            begin = rng.randrange(len(other) + 1)
            changed[at : at + 64] = other[begin : begin + rng.choice((16, 64, 2000))]
        else:
            del changed[rng.randrange(len(changed) + 1) :]
        if not changed:
            break
    return bytes(changed)


def _sealed(path: Path, data: bytes) -> bytes:
    """The bytes with a seal that agrees, where there is a record to seal."""
    end = data.rfind(b"PK\x05\x06")
    if end < 0 or end + 22 > len(data):
        return data
    path.write_bytes(data[: end + 20] + b"\0\0")
    seal(path)
    return path.read_bytes()


def _changed(rng: random.Random, members: dict[str, bytes], others: list[dict[str, bytes]]) -> dict[str, bytes]:
    """Members damaged, swapped, dropped, renamed, taken from another archive."""
    changed = dict(members)
    for _ in range(rng.choice((1, 2, 5))):
        name, other = rng.choice(list(changed)), rng.choice(list(changed))
        way = rng.randrange(6)
        if way <= 1:
            changed[name] = _bytes(rng, changed[name] or b"0", list(changed.values()))
        elif way == 2:
            changed[name], changed[other] = changed[other], changed[name]
        elif way == 3 and len(changed) > 1:
            del changed[name]
        elif way == 4:
            changed[other + rng.choice(("", ".csv", "/x", "é", " "))] = changed[name]
        else:
            changed[name] = rng.choice(list(rng.choice(others).values()))
    return changed


def _document(rng: random.Random, members: dict[str, bytes]) -> dict[str, bytes]:
    """One value of a JSON document replaced, or a token put into a text, or bytes of a table changed."""
    changed = dict(members)
    documents = [name for name in changed if name.endswith(".json") and "/" not in name]
    name = rng.choice(documents if rng.random() < 0.5 else list(changed))
    data = changed[name]
    if name.endswith(".json") and rng.random() < 0.8:
        changed[name] = value_replaced(rng, data)
    elif rng.random() < 0.5:
        at = rng.randrange(len(data) + 1)
        changed[name] = data[:at] + rng.choice(_TOKENS) + data[at + rng.choice((0, 1, 20)) :]
    else:
        changed[name] = _bytes(rng, data or b"0", list(changed.values()))
    return changed


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


def _built(rng: random.Random, members: dict[str, bytes], *, honest: bool = True) -> bytes:
    """A zip of the members with a manifest; a dishonest one lists or names something else."""
    listed = {name: Member.of(data) for name, data in members.items()}
    manifest = manifest_bytes(listed)
    named = dict(members)
    if not honest:
        way = rng.randrange(4)
        name = rng.choice(list(members))
        if way == 0:
            manifest = _bytes(rng, manifest, [manifest])
        elif way == 1:
            manifest = value_replaced(rng, manifest)
        elif way == 2:
            bad = rng.choice(
                ("../" + name, "/" + name, "C:" + name, name + "/", name + "\\x", "a" * 300, "\x1b[2J", ".")
            )
            named[bad] = named.pop(name)
            manifest = manifest_bytes({**listed, bad: listed[name]})
        else:
            named[name] = rng.choice(list(members.values()))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED))) as packed:
        for name, data in named.items():
            # without the date of today, which would make the same seed give other bytes
            packed.writestr(zipfile.ZipInfo(name), data, packed.compression)
        packed.writestr(zipfile.ZipInfo(MANIFEST), manifest, packed.compression)
    return out.getvalue()
