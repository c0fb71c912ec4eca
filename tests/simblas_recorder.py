"""simblas' entries, compiled with a recorder in the place of the runtime, and called through ctypes."""

import ctypes
import functools
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support_limits import HANG_S, ran

from lepaute.kit.builds import built_once, digests
from lepaute.simulate.smpi.entries import generate
from lepaute.simulate.smpi.routines import Block, read_routines

SOURCE = Path(__file__).parents[1] / "simblas"
PRODUCT = "libsimblas_recorded.so"
FLAGS = ("-std=c++20", "-O1", "-fPIC", "-Wall", "-Wextra", "-Werror")

RECORDER = Path(__file__).parent.joinpath("data", "programs", "simblas_recorder.cpp").read_text()

NO_TRANS, TRANS, CONJ_TRANS = 111, 112, 113
ROW_MAJOR, COLUMN_MAJOR = 101, 102
UPPER, LOWER, NON_UNIT, LEFT, RIGHT = 121, 122, 131, 141, 142


class _Recorded(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("kernel", ctypes.c_char_p),
        *((name, ctypes.c_double) for name in ("m", "n", "k", "flops")),
    )


@dataclass(frozen=True)
class Charge:
    name: str
    kernel: str
    m: float
    n: float
    k: float
    flops: float

    @property
    def size(self) -> tuple[float, float, float]:
        return self.m, self.n, self.k


@functools.cache
def table() -> tuple[Block, ...]:
    path = SOURCE / "routines.txt"
    return read_routines(path.read_text(), path.name)


def _build(folder: Path) -> None:
    (folder / "entries.cpp").write_text(generate(table()))
    (folder / "recorder.cpp").write_text(RECORDER)
    sources = [folder / "entries.cpp", folder / "recorder.cpp", SOURCE / "scalars.cpp"]
    command = ["g++", *FLAGS, f"-I{SOURCE}", "-shared", "-o", folder / PRODUCT, *sources]
    subprocess.run(command, check=True, timeout=HANG_S)


class Library:
    """The shared library; `fortran` and `c` call an entry, `charges` takes what was charged since the last time."""

    def __init__(self) -> None:
        compiler = ran(["g++", "--version"], check=True).stdout
        inputs = (compiler, *FLAGS, generate(table()), RECORDER, *digests(SOURCE.glob("*.*")))
        self.path = built_once("simblas-recorded", inputs, PRODUCT, _build) / PRODUCT
        self.loaded = ctypes.CDLL(str(self.path))

    def charges(self) -> list[Charge]:
        count = ctypes.c_int.in_dll(self.loaded, "call_count")
        recorded = (_Recorded * 1000).in_dll(self.loaded, "calls")
        taken = [
            Charge(call.name.decode(), call.kernel.decode(), call.m, call.n, call.k, call.flops)
            for call in recorded[: count.value]
        ]
        count.value = 0
        return taken

    def charge(self) -> Charge:
        """The one charge since the last time."""
        (only,) = self.charges()
        return only

    @contextmanager
    def answering(self, place: int) -> Iterator[None]:
        answer = ctypes.c_int.in_dll(self.loaded, "answer")
        answer.value = place
        yield
        answer.value = 0

    def fortran(self, name: str, *arguments: Any, result: Any = None) -> Any:
        """Everything by address: str letters, int 32-bit integers, float doubles; arrays as they are."""
        function = self.loaded[name + "_"]
        function.restype = result
        return function(*(_address(argument) for argument in arguments))

    def c(self, name: str, *arguments: Any, result: Any = None) -> Any:
        """By value: int, float as double; a str is a character."""
        function = self.loaded[name]
        function.restype = result
        return function(*(_value(argument) for argument in arguments))


def _address(argument: Any) -> Any:
    match argument:
        case str():
            return ctypes.c_char_p(argument.encode())
        case int():
            return ctypes.byref(ctypes.c_int(argument))
        case float():
            return ctypes.byref(ctypes.c_double(argument))
        case _:
            return argument


def _value(argument: Any) -> Any:
    match argument:
        case str():
            return ctypes.c_char(argument.encode())
        case float():
            return ctypes.c_double(argument)
        case _:
            return argument


@functools.cache
def library() -> Library:
    """Compiled once, for all processes of tests."""
    return Library()


def doubles(*values: float) -> "ctypes.Array[ctypes.c_double]":
    return (ctypes.c_double * len(values))(*values)


def integers(*values: int) -> "ctypes.Array[ctypes.c_int]":
    return (ctypes.c_int * len(values))(*values)
