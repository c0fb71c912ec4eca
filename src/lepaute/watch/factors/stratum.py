"""Strata: values are compared only where they were measured alike, and what differs can be said in words.

A stratum is the conditions of a value: name -> text. Part of it is what measures: sizes and contents of the design, the
protocol (program, parameters, settings that were asked for), the version of Lepaute, and the library that is timed
(BLAS, MPI). Not part of it is what is watched: processor, microcode, BIOS, kernel, and what these make a library choose
(the kernels of a BLAS for this processor). A change of those shall raise an alarm, not begin a new reference.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping

_DIGITS = 16


def stratum_of(conditions: Mapping[str, str]) -> str:
    """The hash of the conditions, in hexadecimal digits."""
    text = json.dumps(sorted(conditions.items()), ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def differences(a: Mapping[str, str], b: Mapping[str, str]) -> tuple[str, ...]:
    """Why values with the conditions `a` are not comparable with those of `b`, a line a condition; none if they are."""
    lines = []
    for name in sorted({*a, *b}):
        before, after = a.get(name), b.get(name)
        if before != after:
            lines.append(f"{name}: {_shown(before)} -> {_shown(after)}")
    return tuple(lines)


def _shown(text: str | None) -> str:
    return "(none)" if text is None else text or "(empty)"


def fingerprint(items: Iterable[object]) -> str:
    """Twelve digits of a hash of the items, in their order."""
    digest = hashlib.sha256()
    for item in items:
        digest.update(f"{item}\n".encode(errors="surrogatepass"))
    return digest.hexdigest()[:12]
