"""Each reader accounts for each row: with one less, one twice or one damaged the answer is another, or it is refused.

What is left out is part of the answer. The kinds of input are those of the fuzzer (tests/mutants/readers.py).
"""

import random
import re
from pathlib import Path

import pytest
from mutants.readers import KINDS

from lepaute.errors import LepauteError

#: Rows that may be there twice: where several of a processor and day are worth their mean.
AS_BEFORE = {("coefficients", "twice")}
MAX_ROWS = 12


def _variants(lines: list[bytes], at: int) -> dict[str, list[bytes]]:
    return {
        "removed": lines[:at] + lines[at + 1 :],
        "twice": lines[: at + 1] + lines[at:],
        "damaged": [*lines[:at], re.sub(rb"[\w.]+(?=\W*$)", b"7x7", lines[at]), *lines[at + 1 :]],
    }


def _read(name: str, data: bytes, folder: Path) -> str:
    (folder / f"x.{name}").write_bytes(data)
    try:
        return repr(KINDS[name].read(folder / f"x.{name}"))
    except LepauteError as refusal:
        return f"refused: {refusal}"


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.rows])
def test_a_row_more_or_less_or_damaged_is_another_answer_or_refused(name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    ignored = []
    for number, data in enumerate(dict.fromkeys(kind.originals())):
        if data[:2] == b"\x1f\x8b":
            continue
        answer = _read(name, data, tmp_path)
        if answer.startswith("refused"):  # a file of another kind, that shows a refusal
            continue
        lines = data.splitlines(keepends=True)
        rows = [at for at, line in enumerate(lines) if re.match(kind.rows.encode(), line)]
        for at in random.Random(number).sample(rows, min(MAX_ROWS, len(rows))):
            for way, changed in _variants(lines, at).items():
                if (
                    (name, way) not in AS_BEFORE
                    and b"".join(changed) != data
                    and _read(name, b"".join(changed), tmp_path) == answer
                ):
                    ignored.append(f"file {number}, line {at + 1} {way}: {lines[at][:60]!r}")
    assert not ignored, "\n".join(ignored)
