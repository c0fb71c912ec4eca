"""One factor of one machine, and its stratum: values are compared only where they were measured alike.

A stratum is the conditions of a value: name -> text. Part of it is what measures: sizes and contents of the design, the
protocol (program, parameters, settings that were asked for), the version of Lepaute, and the library that is timed
(BLAS, MPI). Not part of it is what is watched: processor, microcode, BIOS, kernel, and what these make a library choose
(the kernels of a BLAS for this processor). A change of those shall raise an alarm, not begin a new reference.
"""

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd, isnan
from typing import Any

import pandas as pd

from lepaute.errors import InputError
from lepaute.kit.numbers import plain
from lepaute.watch.values import WHOLE_NODE

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}")


def stratum_of(conditions: Mapping[str, str]) -> str:
    """The hash of the conditions, in hexadecimal digits."""
    text = json.dumps(sorted(conditions.items()), ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def differences(a: Mapping[str, str], b: Mapping[str, str]) -> tuple[str, ...]:
    """Why values with the conditions `a` are not comparable with those of `b`, a line a condition; none if they are."""

    def shown(text: str | None) -> str:
        return "(none)" if text is None else text or "(empty)"

    names = [name for name in sorted({*a, *b}) if a.get(name) != b.get(name)]
    return tuple(f"{name}: {shown(a.get(name))} -> {shown(b.get(name))}" for name in names)


def fingerprint(items: Iterable[object]) -> str:
    """Twelve digits of a hash of the items, in their order."""
    digest = hashlib.sha256()
    for item in items:
        digest.update(f"{item}\n".encode(errors="surrogatepass"))
    return digest.hexdigest()[:12]


def cells_text(frame: "pd.DataFrame", columns: Sequence[str]) -> str:
    """Number, range and fingerprint of the combinations of `columns` that occur, with their relative frequencies.

    Two runs with the same text measured the same mixture of sizes: more cores or repetitions of all combinations, or
    another order, change nothing; one size more, or one twice as often, does. A file of sizes that was drawn anew moved
    the published performance by 3 %.
    """
    if len(frame) == 0 or not columns:
        return "none"
    texts = {
        # cells that are no numbers may be anything, also lists
        name: frame[name] if pd.api.types.is_numeric_dtype(frame[name]) else frame[name].map(_plain)
        for name in columns
    }
    counts: Counter[str] = Counter()
    for key, count in pd.DataFrame(texts).value_counts(sort=False, dropna=False).items():
        counts["\t".join(map(_plain, key if isinstance(key, tuple) else (key,)))] += int(count)
    common = gcd(*counts.values())
    lines = sorted(f"{key}\t{count // common}" for key, count in counts.items())
    ranges = [_range_text(name, frame[name]) for name in columns if pd.api.types.is_numeric_dtype(frame[name])]
    return f"{len(lines)} of {', '.join(ranges or columns)} (sha256 {fingerprint([*columns, *lines])})"


def _plain(value: object) -> str:
    """A cell as text, the same whether a column of whole numbers was read as such or as floats."""
    if value is None or value is pd.NA:
        return ""
    if isinstance(value, float):
        return "" if isnan(value) else str(int(value)) if value.is_integer() else str(value)
    return str(value)


def _range_text(name: str, column: "pd.Series[float]") -> str:
    known = column.dropna()
    low, high = (f"{float(value):.15g}" for value in ((known.min(), known.max()) if len(known) else (0, 0)))
    return f"{name} {low}" + (f" to {high}" if high != low else "")


@dataclass(frozen=True, slots=True)
class FactorValue:
    """A factor of a processor, or of a whole node.

    node       : as the archive names it
    factor     : with its unit, such as dgemm_rate_flops
    value      : SI; NaN if it should have been measured and was not
    cpu        : number of the processor (socket); WHOLE_NODE for what is of all of it
    conditions : what a value must have in common with this one to be comparable, besides the protocol of the run and
                 Lepaute's version, which are added: name -> text
    Raises InputError for a name that is none, a value that is no number or infinite, and a cpu below WHOLE_NODE.
    """

    node: str
    factor: str
    value: float
    cpu: int = WHOLE_NODE
    conditions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.factor, str) or not _NAME.fullmatch(self.factor):
            raise InputError(
                f"{str(self.factor)[:60]!r} is not a name of a factor; give letters, digits and underscores, and the "
                "unit at the end, such as stream_triad_B_per_s"
            )
        cpu = plain(self.cpu)
        if type(cpu) is not int or cpu < WHOLE_NODE:
            raise InputError(f"{self.factor}: the cpu is {self.cpu!r}; give its number, or {WHOLE_NODE} for the node")
        if not isinstance(self.node, str) or not self.node:
            raise InputError(f"{self.factor}: the node is {self.node!r}; give its name as the archive has it")
        try:
            infinite = math.isinf(self.value)
            object.__setattr__(self, "value", float(self.value))
        except (TypeError, OverflowError):
            raise InputError(f"{self.factor} of node {self.node}: {self.value!r} is not a number") from None
        if infinite:
            raise InputError(f"{self.factor} of node {self.node} is infinite; give NaN where nothing was measured")
        object.__setattr__(self, "cpu", cpu)
        object.__setattr__(self, "conditions", {str(name): str(text) for name, text in self.conditions.items()})


def rate_of(work: Any, duration_s: Any) -> float:
    """All work over all time, of two arrays or columns; NaN if there is no time."""
    time_s = float(duration_s.sum())
    return float(work.sum()) / time_s if time_s > 0 else math.nan
