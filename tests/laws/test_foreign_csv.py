"""Whatever a table holds, written and read it is the same; each reader accounts for each row."""

import csv
import datetime as dt
import io
import math
import random
import re
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutants.readers import KINDS

from lepaute.errors import InputError, LepauteError
from lepaute.watch.foreign.csv_table import read_csv_table
from lepaute.watch.foreign.mapping import parse_mapping
from lepaute.watch.foreign.rows import Source
from lepaute.watch.foreign.units import EPOCHS, date_reader, si_unit
from lepaute.watch.values import COLUMNS, KEY, check_values

MAPPING = """
cluster: cluster
node: node
cpu: cpu
job: job
date: {column: started, form: FORM}
factor: factor
value: value
unit: {value: 1}
state: {column: state, done: [done], failed: [failed], aborted: [aborted], missing: [missing]}
delimiter: ","
"""
#: Printable, without blanks at the ends, and none that begins a comment where it begins a line.
NAMES = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=1, max_size=8).filter(
    lambda text: text.isprintable() and text == text.strip() and not text.startswith("#")
)
VALUES = st.floats(allow_nan=False, allow_infinity=False)
ROWS = st.lists(
    st.tuples(
        NAMES, NAMES, st.integers(-1, 999_999), NAMES, st.integers(0, 7_258_118_399), st.sampled_from(["a_s", "b_W"]),
        VALUES, st.sampled_from(["done", "done", "failed", "aborted", "missing"]),
    ),
    min_size=1,
    max_size=8,
)  # fmt: skip


@pytest.mark.slow
@given(ROWS, st.booleans(), st.sampled_from(["\n", "\r\n"]))
def test_a_table_that_is_written_and_read_is_the_same(rows: list[tuple[object, ...]], iso: bool, end: str) -> None:
    columns = ["cluster", "node", "cpu", "job", "started_s", "factor", "value", "state"]
    table = pd.DataFrame(rows, columns=columns).drop_duplicates(KEY).assign(stratum="", archive="")
    table.loc[table["state"] != "done", "value"] = math.nan
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=end)
    writer.writerow(["cluster", "node", "cpu", "job", "started", "factor", "value", "state"])
    for row in table[columns].itertuples(index=False):
        date = dt.datetime.fromtimestamp(row.started_s, dt.UTC).isoformat() if iso else row.started_s
        writer.writerow([row.cluster, row.node, row.cpu, row.job, date, row.factor, repr(row.value), row.state])
    mapping = parse_mapping(MAPPING.replace("FORM", "iso" if iso else "epoch_s"), "mapping")
    read = read_csv_table(Source(Path("table.csv"), text.getvalue().encode()), mapping, "", "")
    pd.testing.assert_frame_equal(read, check_values(table[list(COLUMNS)]), check_exact=True)


@given(st.text(max_size=50), st.sampled_from(["iso", *EPOCHS, "%d/%m/%Y"]))
def test_any_text_is_a_date_of_these_centuries_or_refused(text: str, form: str) -> None:
    try:
        date_s = date_reader(form, "Europe/Paris")(text)
    except InputError:
        return
    assert 0.0 <= date_s < 7_258_118_400.0


@given(st.text(max_size=45))
def test_any_text_is_a_unit_with_a_positive_scale_or_none(text: str) -> None:
    unit = si_unit(text)
    if unit is not None:
        assert unit.scale > 0.0
        assert unit.suffix.isprintable()
        assert unit.named(unit.named("x")) == unit.named("x")


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
