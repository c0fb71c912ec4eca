"""Reading Paje traces: lines of events whose fields the file itself defines.

The head of such a file says for each kind of event which fields a line has, in which order. Then types, containers
(what things happen to: a host, a rank) and values (names of states) are defined, and used by their alias. Nothing is
known here of who wrote the file; SimGrid's is read by smpi.py.
Source: "Paje trace file format", Schnorr, Stein and Kergommeaux, 2013; checked with SimGrid 3.32.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from lepaute.errors import InputError, LepauteError
from lepaute.kit.documents import unpacked

#: Kinds of events that are told.
POP, RESET, PUSH, SET, START, END, CREATE, DESTROY = range(8)
#: Others that a file may have and that say nothing about who did what when.
_DEFINE_CONTAINER, _DEFINE_TYPE, _DEFINE_LINK, _DEFINE_VALUE, _PASSED_OVER = range(8, 13)

#: Kind, fields that must be there, fields that may be. Names of fields as in _FIELDS.
_KINDS: dict[str, tuple[int, tuple[str, ...]]] = {
    "PajeDefineContainerType": (_DEFINE_CONTAINER, ("alias", "type", "name")),
    **{f"PajeDefine{what}Type": (_DEFINE_TYPE, ("alias", "type", "name")) for what in ("State", "Event", "Variable")},
    "PajeDefineLinkType": (_DEFINE_LINK, ("alias", "type", "name")),
    "PajeDefineEntityValue": (_DEFINE_VALUE, ("alias", "type", "name")),
    "PajeCreateContainer": (CREATE, ("time", "alias", "type", "container", "name")),
    "PajeDestroyContainer": (DESTROY, ("time", "type", "name")),
    "PajePushState": (PUSH, ("time", "type", "container", "value")),
    "PajePopState": (POP, ("time", "type", "container")),
    "PajeSetState": (SET, ("time", "type", "container", "value")),
    "PajeResetState": (RESET, ("time", "type", "container")),
    "PajeStartLink": (START, ("time", "type", "start", "key")),
    "PajeEndLink": (END, ("time", "type", "end", "key")),
}

#: How the head calls them; the older names of the ends of links too.
_FIELDS = {
    **{name: (name.capitalize(),) for name in ("time", "alias", "type", "name", "container", "value", "key")},
    "start": ("StartContainer", "SourceContainer"),
    "end": ("EndContainer", "DestContainer"),
}

#: Dates from here on are no seconds of anything.
LATEST_S = 1e15
NAN = float("nan")

#: Kind, number of the line, date in seconds, type, container, value, size. Type and container are places in the lists
#: of the reader; value is a place in its values (PUSH, SET), the key (START, END) or nothing; size is what the field
#: Size says, NaN without.
Event = tuple[int, int, float, int, int, "int | bytes", float]


@dataclass(frozen=True, slots=True)
class Container:
    """Container of events; parent is a place in the reader's containers, -1 for the root."""

    name: str
    type: int
    parent: int


class PajeReader:
    """The events of a file, one after the other; what has been defined until then is in the lists.

    comments     : the lines that begin with #, before the first event
    digits       : decimals of the dates
    Raises InputError with the number of the line for what is no Paje, is cut, is not defined, or goes back in time.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.types: list[str] = ["0"]
        self.values: list[str] = []
        self.containers: list[Container] = [Container("0", 0, -1)]
        self.comments: list[str] = []
        self.digits = 0
        self._type_of: dict[bytes, int] = {b"0": 0}
        self._value_of: dict[bytes, int] = {}
        self._container_of: dict[bytes, int] = {b"0": 0}
        self._last_s: list[float] = [0.0]  # of each container; infinite where it is over
        self._layouts: dict[bytes, tuple[int, tuple[int, ...], int]] = {}
        self.lines = 0

    def is_over(self, container: int) -> bool:
        return self._last_s[container] == float("inf")

    def __iter__(self) -> Iterator[Event]:
        with unpacked(self.path, "a Paje trace") as file:
            first = file.readline(1 << 16)
            if not first.startswith((b"#", b"%")):
                raise InputError(
                    f"{self.path}, line 1: not a Paje trace, which begins with %EventDef; smpirun -trace writes one"
                )
            yield from self._events(chain((first,), file))

    def _events(self, file: Iterator[bytes]) -> Iterator[Event]:
        layouts, type_of, value_of, container_of = self._layouts, self._type_of, self._value_of, self._container_of
        last_s = self._last_s
        number = 0
        words: list[bytes] = []
        line = b"\n"
        try:
            for number, line in enumerate(file, 1):
                if line[0] < 48:  # below "0": %, #, blanks
                    words = []
                    self._head(line, number)
                    continue
                words = line.split() if b'"' not in line else _quoted(line)
                kind, places, size_at = layouts[words[0]]
                if kind <= END:
                    time_s = float(words[places[0]])
                    container = container_of[words[places[2]]]
                    if not last_s[container] <= time_s < LATEST_S:
                        raise self._wrong_date(number, words[places[0]], container)
                    last_s[container] = time_s
                    value: int | bytes = 0
                    if kind >= PUSH:
                        value = words[places[3]] if kind >= START else value_of[words[places[3]]]
                    size = float(words[size_at]) if 0 < size_at < len(words) and words[size_at] != b"NA" else NAN
                    yield kind, number, time_s, type_of[words[places[1]]], container, value, size
                elif kind != _PASSED_OVER:
                    event = self._definition(kind, [words[place] for place in places], number)
                    if event is not None:
                        yield event
            if not line.endswith(b"\n"):
                raise InputError(f"{self.path}, line {number}: the last line is incomplete; the file is truncated")
        except LepauteError:
            raise
        except (KeyError, IndexError, ValueError):
            raise self._complaint(number, words) from None
        finally:
            self.lines = number
        if not layouts:
            raise InputError(
                f"{self.path}, line {number}: no event is defined (%EventDef); not a Paje trace, or truncated"
            )

    def _definition(self, kind: int, fields: list[bytes], number: int) -> Event | None:
        """Takes in what a line defines; CREATE and DESTROY are events as well."""
        if kind == CREATE:
            time, alias, type_, parent, name = fields
            time_s, parent_at = float(time), self._container_of[parent]
            if not 0.0 <= time_s < LATEST_S:
                raise self._wrong_date(number, time, parent_at)
            if alias in self._container_of and not self.is_over(self._container_of[alias]):
                raise InputError(f"{self.path}, line {number}: the container {_shown(alias)} is already defined")
            at = len(self.containers)
            self.containers.append(Container(_text(name), self._type_of[type_], parent_at))
            self._container_of[alias] = at
            self._container_of.setdefault(name, at)
            self._last_s.append(time_s)
            self.digits = max(self.digits, len(time.partition(b".")[2]))
            return CREATE, number, time_s, self.containers[at].type, at, 0, NAN
        if kind == DESTROY:
            time, type_, name = fields
            at, time_s = self._container_of[name], float(time)
            if not self._last_s[at] <= time_s < LATEST_S:
                raise self._wrong_date(number, time, at)
            self._last_s[at] = float("inf")
            return DESTROY, number, time_s, self._type_of[type_], at, 0, NAN
        alias, type_, name = fields
        if type_ not in self._type_of:
            raise KeyError
        places, names = (self._value_of, self.values) if kind == _DEFINE_VALUE else (self._type_of, self.types)
        places[alias] = len(names)
        names.append(_text(name))
        return None

    def _head(self, line: bytes, number: int) -> None:
        """A line that is no event: a comment, a blank one, or part of a definition of fields."""
        if line.startswith(b"#"):
            if not self._layouts:
                self.comments.append(_text(line[1:].strip()))
            return
        if not line.strip():
            return
        words = line.replace(b"%", b" ", 1).split()
        if not line.startswith(b"%") or not words:
            raise InputError(f"{self.path}, line {number}: begins with {_shown(line[:20])}, which is not an event")
        if words[0] == b"EventDef":
            _, name, code = words  # ValueError for anything else
            if code in self._layouts or not code.isdigit():
                raise InputError(
                    f"{self.path}, line {number}: the event {_shown(code)} is defined twice or is not a number"
                )
            self._defined = (_text(name), code, [])
        elif words[0] == b"EndEventDef":
            name_, code, fields = self._defined
            self._layouts[code] = self._layout(name_, fields, number)
        else:
            self._defined[2].append(_text(words[0]))

    _defined: tuple[str, bytes, list[str]] = ("", b"", [])

    def _layout(self, name: str, fields: list[str], number: int) -> tuple[int, tuple[int, ...], int]:
        """Kind, places of the fields it needs, place of the size (0 without)."""
        if not name:
            raise InputError(f"{self.path}, line {number}: %EndEventDef without %EventDef")
        kind, needed = _KINDS.get(name, (_PASSED_OVER, ()))
        places = []
        for field in needed:
            positions = [1 + fields.index(one) for one in _FIELDS[field] if one in fields]
            if not positions:
                raise InputError(f"{self.path}, line {number}: {name} is defined without the field {_FIELDS[field][0]}")
            places.append(positions[0])
        return kind, tuple(places), 1 + fields.index("Size") if "Size" in fields else 0

    def _wrong_date(self, number: int, time: bytes, container: int) -> InputError:
        where, last_s = f"{self.path}, line {number}", self._last_s[container]
        name = self.containers[container].name[:40]
        if last_s == float("inf"):
            return InputError(f"{where}: event for {name!r} after its end")
        if float(time) < last_s:
            return InputError(f"{where}: time goes backwards, from {last_s:.9g} to {_shown(time)} s for {name!r}")
        return InputError(f"{where}: the date {_shown(time)} is not a valid simulated time")

    def _complaint(self, number: int, words: list[bytes]) -> InputError:
        """What is wrong with a line that could not be read: found by looking at it slowly."""
        where = f"{self.path}, line {number}"
        if not words or words[0] not in self._layouts:
            what = (
                f"the event {_shown(words[0])} is not defined"
                if words
                else "the line does not match the fields of its %EventDef"
            )
            return InputError(f"{where}: {what}; not a Paje trace, or damaged")
        kind, places, size_at = self._layouts[words[0]]
        if places and max(places) >= len(words):
            return InputError(f"{where}: has {len(words)} words, expected {1 + max(places)}; the line is truncated")
        of_container = ("container", "start", "end", *(["name"] if kind == DESTROY else []))
        known_of = {"type": self._type_of, "value": self._value_of, **dict.fromkeys(of_container, self._container_of)}
        for name, place in zip(next(needed for known, needed in _KINDS.values() if known == kind), places, strict=True):
            word = _shown(words[place])
            if name in known_of and words[place] not in known_of[name]:
                what = "container" if name in ("start", "end", "name") else name
                return InputError(f"{where}: the {what} {word} is not defined")
            if name == "time" and not _is_number(words[place]):
                return InputError(f"{where}: the date is {word}, which is not a number")
        if 0 < size_at < len(words) and not _is_number(words[size_at]):
            return InputError(f"{where}: the size is {_shown(words[size_at])}, which is not a number")
        return InputError(f"{where}: cannot be read")


def _quoted(line: bytes) -> list[bytes]:
    """Words of a line in which "some are several"."""
    return [word for place, part in enumerate(line.split(b'"')) for word in ([part] if place % 2 else part.split())]


def _text(words: bytes) -> str:
    return words.decode("utf-8", "replace")


def _shown(word: bytes) -> str:
    """A word as it stands in a message: short, and without what would break the line."""
    return repr(_text(word[:40]))


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
