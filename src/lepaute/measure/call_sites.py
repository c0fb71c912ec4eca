"""Texts for the places in a program where calls were made: return addresses, named by the symbols of their objects.

A text has the innermost function first: `exchange halo.c:31 (solver+0x1a2c) < main halo.c:90 (solver+0x1400)`, lines
where the object has them. Offsets are relative to it, and folders are left out: recordings of one program have the
same texts whatever their number of ranks.
"""

import functools
import re
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.kit.command import attempted

#: How many functions stand in a text.
_DEPTH = 4
#: Libraries that stand between a program in Fortran and the routines of C, and those that start programs and threads.
_FORTRAN = re.compile(r"lib(mpi_mpifh|mpi_usempi|mpichf|mpifort)")
_STARTER = re.compile(r"libc(-|\.so)|libpthread|ld-")
#: What compilers append to the name of a function that they have cut or specialized, and Fortran to an inner one.
_COPY = re.compile(r"\.[\w.]+$")
_NESTED = re.compile(r"_ZNK?((?:\d+\w+?)+)E")
_SYMBOLS, _DYNAMIC_SYMBOLS, _LOADED, _FUNCTIONS = 2, 11, 1, (2, 10)  # of ELF: SHT_*, PT_LOAD, STT_*
_HEADER = numpy.dtype(
    [
        ("ident", "V32"),
        *((name, "<u8") for name in ("segments", "sections")),
        ("flags", "<u4"),
        *(
            (name, "<u2")
            for name in ("bytes", "segment_bytes", "segment_count", "section_bytes", "section_count", "names")
        ),
    ]
)
_SEGMENT = numpy.dtype(
    [
        ("type", "<u4"),
        ("flags", "<u4"),
        *((name, "<u8") for name in ("offset", "address", "physical", "file", "memory", "align")),
    ]
)
_SECTION = numpy.dtype(
    [
        *((name, "<u4") for name in ("name", "type")),
        *((name, "<u8") for name in ("flags", "address", "offset", "bytes")),
        *((name, "<u4") for name in ("link", "info")),
        *((name, "<u8") for name in ("align", "entry")),
    ]
)
_SYMBOL = numpy.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("bytes", "<u8")]
)


_START_BITS = 48
_LINE = re.compile(r"(?:.*/)?([^/:]+:[1-9]\d*)")
_LIMIT_S = 20.0


def sites_of_rows(site_and_start: NDArray[Any]) -> NDArray[Any]:
    """Numbers of sites, from 1, 0 where there is none: the highest bits of a word of each row."""
    return (site_and_start >> _START_BITS).astype("int32")


def starts_of_rows(site_and_start: NDArray[Any], base_ns: int) -> NDArray[Any]:
    """The other bits: nanoseconds since base_ns, from 0 again after 78 hours. Returns stamps of the rank's clock.

    Successive rows start less than half of that apart.
    """
    starts: NDArray[Any] = (site_and_start & ((1 << _START_BITS) - 1)).astype("int64")
    steps = numpy.rint(numpy.diff(starts, prepend=starts[:1]) / (1 << _START_BITS)).astype("int8")
    starts += base_ns - (numpy.cumsum(steps, dtype="int64") << _START_BITS)
    return starts


def joined_sites(numbers: NDArray[Any], texts: tuple[str, ...], known: dict[str, int]) -> NDArray[Any]:
    """Numbers of a rank's sites as indices into `known`, to which the texts used are added; -1 for none."""
    used = [number for number in numpy.unique(numbers).tolist() if 0 < number <= len(texts)]
    indices = numpy.full(1 << (64 - _START_BITS), -1, dtype="int32")
    indices[used] = [known.setdefault(texts[number - 1], len(known)) for number in used]
    joined: NDArray[Any] = indices[numbers]
    return joined


def read_sites(path: Path) -> tuple[str, ...]:
    """The text of each line of a rank's file (probes/record_sites.c); none where there is no such file."""
    if not path.exists():
        return ()
    chains = [_frames(line) for line in path.read_text(errors="replace").split("\n")[:-1]]
    offsets: dict[Path, set[int]] = {}
    for offset, place in chain.from_iterable(chains):
        offsets.setdefault(place, set()).add(offset)
    lines = {place: _source_lines(place, tuple(sorted(these))) for place, these in offsets.items()}
    return tuple(
        " < ".join(_text(offset, place, lines[place].get(offset, "")) for offset, place in frames) for frames in chains
    )


@functools.lru_cache(maxsize=1 << 16)
def _frames(line: str) -> list[tuple[int, Path]]:
    """Offset and object of the functions of the program."""
    words = (word.partition(" ") for word in line.split("\t")[:-1])
    frames = [(int(offset, 16), Path(path)) for offset, _, path in words]
    program = takewhile(lambda frame: not _STARTER.match(frame[1].name), frames)
    return list(islice((frame for frame in program if not _FORTRAN.match(frame[1].name)), _DEPTH))


def _text(offset: int, path: Path, line: str) -> str:
    base, starts, ends, names = _functions(path)
    at = int(numpy.searchsorted(starts, base + offset - 1, side="right")) - 1  # it returns behind the call
    name = names[at] if at >= 0 and base + offset - 1 < ends[at] else ""
    return " ".join(word for word in (name, line, f"({path.name}+{offset:#x})") if word)


@functools.lru_cache(maxsize=256)
def _source_lines(path: Path, offsets: tuple[int, ...]) -> dict[int, str]:
    """File and line of calls, where the object has them and binutils are installed."""
    addresses = [hex(_functions(path)[0] + offset - 1) for offset in offsets]
    done = attempted(["addr2line", "-e", path, *addresses], {}, _LIMIT_S)
    found = [] if done is None or done.returncode else [_LINE.match(text) for text in done.stdout.splitlines()]
    return {offset: line[1] for offset, line in zip(offsets, found, strict=False) if line}


_Functions = tuple[int, NDArray[Any], NDArray[Any], tuple[str, ...]]


@functools.lru_cache(maxsize=64)
def _functions(path: Path) -> _Functions:
    """Of an ELF file of 64 bits where it is loaded by its own addresses, and start, end and name of its functions."""
    none: _Functions = (0, numpy.zeros(0, dtype="u8"), numpy.zeros(0, dtype="u8"), ())
    try:
        content = path.read_bytes()
    except OSError:
        return none
    if content[:6] != b"\x7fELF\x02\x01" or len(content) < _HEADER.itemsize:
        return none
    try:
        header = numpy.frombuffer(content, _HEADER, count=1)[0]
        segments = _table(content, _SEGMENT, header["segments"], header["segment_count"])
        sections = _table(content, _SECTION, header["sections"], header["section_count"])
        base = int(segments["address"][segments["type"] == _LOADED].min(initial=1 << 63)) & ~0xFFF
        tables = sections[numpy.isin(sections["type"], (_SYMBOLS, _DYNAMIC_SYMBOLS))]
        if not len(tables):
            return none
        table = tables[numpy.argmin(tables["type"])]  # the dynamic symbols lack static functions
        symbols = _table(content, _SYMBOL, table["offset"], table["bytes"] // _SYMBOL.itemsize)
        texts = sections[table["link"]]
        text = content[int(texts["offset"]) : int(texts["offset"]) + int(texts["bytes"])]
    except (ValueError, IndexError):  # a damaged file has no names
        return none
    symbols = symbols[numpy.isin(symbols["info"] & 15, _FUNCTIONS) & (symbols["bytes"] > 0)]
    symbols = symbols[numpy.argsort(symbols["value"])]
    starts = symbols["value"].astype("i8")
    names = tuple(
        _readable(text[at : text.find(b"\0", at)].decode(errors="replace")) for at in symbols["name"].tolist()
    )
    return base if base < 1 << 62 else 0, starts, starts + symbols["bytes"].astype("i8"), names


def _table(content: bytes, entry: Any, offset: Any, count: Any) -> NDArray[Any]:
    return numpy.frombuffer(content, entry, offset=int(offset), count=int(count))


def _readable(symbol: str) -> str:
    """Its name in the source: of C++ the nested name, without arguments, where it is simple."""
    nested = _NESTED.match(symbol)
    if nested is None:
        return _COPY.sub("", symbol)
    text, parts = nested[1], []
    while size := re.match(r"\d+", text):
        end = size.end() + int(size[0])
        parts.append(text[size.end() : end])
        text = text[end:]
    return symbol if text else "::".join(parts)
