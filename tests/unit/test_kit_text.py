"""Numbers, quantities and tables as text, what commands print on a terminal, and values from JSON objects."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lepaute.cli.prediction_answer import answered, answered_scaling, answered_sweep
from lepaute.cli.terminal import answer_text
from lepaute.errors import InputError
from lepaute.kit.json_values import ABSENT_IF_NONE, from_json, to_json
from lepaute.kit.printable import UNLIMITED
from lepaute.kit.quantities import box_of, grid_of, numbers_of, parse_size, ranges_of, whole_of
from lepaute.kit.tables import shown_table
from lepaute.kit.text import (
    caveat_line,
    change_in_words,
    duration,
    exact_number,
    exact_seconds,
    exact_size,
    folded,
    moment,
    p_text,
    percent,
    quantity,
    scaled_unit,
    seconds,
    signed_percent,
    significant,
    size_text,
    time_unit,
    with_interval,
    without_figures,
)
from lepaute.measure.experiment.entries import RunState
from lepaute.measure.experiment.workspace import Workspace
from lepaute.simulate import Hpl, Prediction, PredictionRequest, predict_all
from lepaute.simulate.platform import load_platform, shipped_names
from lepaute.simulate.platform.summary import facts, in_one_line
from lepaute.simulate.prediction.sweep import Sweep, scaling


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (seconds(0), "0"), (seconds(1.2e-5), "12.0 µs"), (seconds(3.2e-9), "3.20 ns"), (seconds(-0.5), "-500 ms"),
        (seconds(0.9999), "1.00 s"), (seconds(9.996e-4), "1.00 ms"), (seconds(9.996e-7), "1.00 µs"),
        (seconds(3.3e-24), "0"), (exact_seconds(0.0025), "2.5 ms"), (exact_seconds(90.0), "90 s"),
        (significant(1.5), "1.50"), (significant(150.0, 2), "150"), (significant(1234.5), "1234"),
        (significant(0.99996, 4), "1.000"), (significant(1.2e-12, 2), "1.2e-12"), (significant(math.inf), "inf"),
        (exact_number(0.5), "0.5"), (exact_number(20000.0), "20,000"), (exact_number(0.1 + 0.2), "0.3"),
        (signed_percent(0.018), "+1.8 %"), (signed_percent(-0.5), "-50 %"), (signed_percent(0.0), "0 %"),
        (p_text(0.05), "p = 0.050"), (p_text(6.6e-6), "p = 6.6e-6"), (p_text(1e-9), "p < 0.000001"),
        (change_in_words(1.5, "slower"), "50 % slower"), (change_in_words(0.98, low=0.97, high=0.99), "2.0 % less"),
        (signed_percent(-0.096, -0.099, -0.093), "-9.60 % (95 %: -9.90 to -9.30 %)"),
        (signed_percent(0.1, -0.2, math.inf), "+10 %, interval unlimited"),
        (signed_percent(0.1, None, None), "+10 %"),
        (seconds(9.994e-7), "999 ns"), (quantity(5200.4, "Gflop/s"), "5200 Gflop/s"),
        (quantity(2.604e6, "Gflop/s"), "2.604 Pflop/s"), (quantity(101378763939.0, "cells/s"), "101.4 Gcells/s"),
        (quantity(9999.6, "Gflop/s"), "10.00 Tflop/s"), (quantity(1.2e9, "Gflop/s"), "1.200 Eflop/s"),
        (quantity(3.2e7, "J"), "32.00 MJ"), (quantity(0.5, "W"), "0.5000 W"), (quantity(43578.6, "s"), "43,579 s"),
        (significant(0.0000512345, 4), "0.00005123"), (significant(0.0), "0"), (significant(-123456.0), "-123,456"),
        (seconds(12345.6), "12,346 s"), (size_text(0), "0 B"), (size_text(1023), "1023 B"),
        (size_text(1536), "1.5 KiB"), (size_text(1023 * 1024), "1023 KiB"), (size_text(64 << 20), "64 MiB"),
        (exact_size(0), "0 B"), (exact_size(1500), "1500 B"), (exact_size(1536), "1.5 KiB"),
        (exact_size(100_000), "100000 B"), (exact_size(1 << 20), "1 MiB"),
        (size_text(5000 << 30), "5000 GiB"), (percent(0.1234), "12.3 %"), (percent(math.nan), "-"),
        (duration(8.2), "8.2 s"), (duration(270), "4.5 min"), (duration(7560), "2.1 h"), (moment(3.251), "3.25 s"),
        (moment(102), "1 min 42 s"), (moment(7205), "2 h 0 min 5 s"), (time_unit(2.0, 10.0)[0], "ms"),
    ],
)  # fmt: skip
def test_numbers_are_short_and_in_the_unit_that_suits(text: str, expected: str) -> None:
    assert text == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("20000", 20000), ("20k", 20000), ("1.5K", 1500), ("2M", 2 * 10**6), ("1g", 10**9), ("4Ki", 4096),
        ("1e3", 1000), ("-5", -5), ("9007199254740993", 9007199254740993),
    ],
)  # fmt: skip
def test_whole_numbers_take_suffixes(text: str, value: int) -> None:
    assert whole_of(text, "n") == value


def test_sizes_are_in_powers_of_1024() -> None:
    sizes = {"4096": 4096, "64K": 65536, "64ki": 65536, "1M": 1 << 20, "1G": 1 << 30}
    assert {text: parse_size(text, "--fold") for text in sizes} == sizes
    for text in ("0", "-1M", "1T", "x", "", "M", "1.5M", "1MB", "1 M", "٣M"):
        with pytest.raises(InputError, match="--fold is"):
            parse_size(text, "--fold")


def test_lists_of_numbers_and_ranges() -> None:
    assert numbers_of("5-7,0, 6", "--ranks") == (0, 5, 6, 7)
    assert ranges_of("3,0-1", "radical") == [range(3, 4), range(2)]
    for text, reason in (("3-1", "a range must increase, such as 1-3"), ("1-9999999", "at most 1000000 numbers")):
        with pytest.raises(InputError, match=reason):
            numbers_of(text, "--ranks")
    for text in ("", "x", "1-", "-1", "1,,2", "1:2", "²"):
        with pytest.raises(InputError, match="it must be a list of whole numbers and ranges such as 0,5-7"):
            numbers_of(text, "--ranks")


def test_grids_are_products_of_whole_numbers() -> None:
    assert grid_of("8X4", "grid") == (8, 4)
    assert box_of("1kx2x3", "cells", "8x8x8") == (1000, 2, 3)
    for text in ("8", "8x", "8x4x2"):
        with pytest.raises(InputError, match="it must be P x Q such as 8x8"):
            grid_of(text, "grid")
    for text in ("ax2", "²x2"):
        with pytest.raises(InputError, match="it must be a whole number"):
            grid_of(text, "grid")


@pytest.mark.parametrize("unit", ["Gflop/s", "Gcell/s", "J", "W"])
def test_no_value_is_printed_with_an_exponent_or_in_many_digits(unit: str) -> None:
    for power in range(-9, 13):
        for digits in (1.0, 2.604, 9.9994, 9.9996):
            value = digits * 10.0**power
            number, _, of = quantity(value, unit).partition(" ")
            assert "e" not in number or abs(value) < 1e-6
            assert float(number.replace(",", "")) == pytest.approx(value * scaled_unit(unit, value)[1], rel=6e-4)
            assert of.endswith(unit.removeprefix("G"))
            assert len(number) <= 5 or value < 1.0
            assert "e" not in seconds(value)
            assert time_unit(value)[0] in ("s", "ms", "µs", "ns")


@pytest.mark.parametrize(
    ("text", "about"),
    [
        (
            "not modelled, so taken to cost nothing: dlocswp (320000 calls)",
            "not modelled, so taken to cost nothing: dlocswp",
        ),
        (
            "47 % of dgemm time is outside the fitted ranges: m = 2..5054, fitted in 108..15493; k = 2..128",
            "part of dgemm time is outside the fitted ranges",
        ),
        (
            "the data need 1.5 GB, a node of dahu-2020-01 has 192.0 GB",
            "the data need … GB, a node of dahu-2020-01 has … GB",
        ),
        ("the setting scale.bandwidth=2 changes no time", "the setting scale.bandwidth=2 changes no time"),
        (
            "an hour later the effect is 3.2e-2 instead of 1,000 (--lag 1h)",
            "an hour later the effect is … instead of … (--lag 1h)",
        ),
    ],
)
def test_what_a_message_is_about_has_no_figures_and_keeps_names(text: str, about: str) -> None:
    assert without_figures(text) == about


@dataclass(frozen=True)
class Inner:
    size: int = 0
    share: float | None = None


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Inner = Inner()
    all: tuple[Inner, ...] = ()
    by_name: Mapping[str, int] = field(default_factory=dict)
    end: str | None = field(default=None, metadata=ABSENT_IF_NONE)
    more: Mapping[str, Any] = field(default_factory=dict)


WHOLE = {"name": "a", "inner": {"size": 1, "share": 0.5}, "all": [{"size": 2, "share": None}], "by_name": {"x": 3}}


def test_an_object_becomes_a_value_and_the_same_object_again() -> None:
    value = from_json(Outer, {**WHOLE, "unknown": [1, {"b": 2}]})
    assert value == Outer("a", Inner(1, 0.5), (Inner(2),), {"x": 3}, more={"unknown": [1, {"b": 2}]})
    assert to_json(value) == {**WHOLE, "unknown": [1, {"b": 2}]}
    assert to_json(from_json(Outer, {**WHOLE, "end": "e"})) == {**WHOLE, "end": "e"}


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ([], "f.json: is not a JSON object"),
        ({}, "f.json: has no name"),
        ({"name": 3}, "f.json: name is 3; it must be text"),
        ({"name": "a", "inner": 3}, "inner is 3; it must be an object"),
        ({"name": "a", "inner": {"size": True}}, "size is True; it must be an integer"),
        ({"name": "a", "inner": {"size": 1.5}}, "size is 1.5; it must be an integer"),
        ({"name": "a", "all": {}}, "all is {}; it must be a list"),
        ({"name": "a", "inner": {"share": 10**400}}, "share is 10+; it must be a number of 64 bits"),
        ({"name": "a", "by_name": {"x": "y"}}, "by_name is .*; it must be an integer"),
        ({"name": "a", "end": 1}, "end is 1; it must be text"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(document: object, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        from_json(Outer, document, "f.json")


def test_a_damaged_state_of_a_run_is_refused_by_file_and_field(tmp_path: Path) -> None:
    Workspace.create(tmp_path / "x.zip", RunState(run_id="r", nodes=["n"])).close()
    state = tmp_path / "x.work" / "state.json"
    state.write_text(state.read_text().replace('["n"]', "7"))
    with pytest.raises(InputError, match=r"x.work/state.json: nodes is 7; it must be a list"):
        Workspace.reopen(tmp_path / "x.work")


NARROW = 80
TITLES = ("kernel", "calls", "time", "ranges and a note")
ROWS = [("dgemm_nn", 4317, "42.7 s", "m 1-8192, n 1-7896, k 1-256"), ("dlaswp04T", 325, "148 ms", "")]


@pytest.fixture(scope="module")
def predictions() -> list[Prediction]:
    grids = ((1, 1), (1, 2), (2, 2))
    return predict_all([Hpl(n=3000, nb=128, p=p, q=q) for p, q in grids], "dahu", PredictionRequest(runs=4))


def words(text: str) -> list[str]:
    return text.split()


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (54.87, 52.98, 57.02, "54.9 s (95 %: 53.0 to 57.0 s)"),
        (1237.0, 1161.0, 1308.0, "1237 s (95 %: 1161 to 1308 s)"),
        (0.002, 0.00199, 0.00201, "0.002000 s (95 %: 0.001990 to 0.002010 s)"),
        (2.0, None, None, "2.000 s"),
        (2.0, 2.0, 2.0, "2 s"),
        (3027.4, 2310.0, 3890.0, "3030 s (95 %: 2310 to 3890 s)"),
        (0.225, 0.005, 9.81, "0.2 s (95 %: up to 9.8 s)"),
        (0.0368, 0.0005, 32.0, "less than 32 s"),
        (2.31e-11, 2.275e-11, 2.345e-11, "2.310e-11 s (95 %: 2.275e-11 to 2.345e-11 s)"),
    ],
)
def test_half_an_interval_has_two_digits_and_the_value_as_many_decimals(value, low, high, text):
    assert with_interval(value, low, high, "s") == text


def test_no_line_is_broken_inside_a_word_or_between_a_number_and_its_unit():
    text = "computing 72.5 % (± 0.3 %), 3.2 GB in 54.9 s, N = 2000, × 2, 1 x 16, p < 0.01, 4.078 µs a_word_of_a_length"
    for width in range(24, 100):
        lines = folded(text, width, 2).split("\n")
        assert words(" ".join(lines)) == words(text)
        assert all(len(line) <= width for line in lines)
        assert not {line.split()[0].strip("(),") for line in lines} & set("% GB s µs = < 2000 x 16".split())
        assert not {line.split()[-1].strip("(") for line in lines} & set("± × x N p = <".split())
    assert folded(text, UNLIMITED, 2) == text


@pytest.mark.parametrize("width", [20, 30, 40, 80])
def test_a_table_on_a_terminal_has_all_cells_whole_within_its_width(width):
    shown = shown_table(TITLES, ROWS, width, left=(0, 3))
    assert all(len(line) <= width for line in shown.splitlines())
    for cell in ("dlaswp04T", "42.7 s", "4317", *ROWS[0][3].split()):
        assert cell in shown
    keys = [line.split()[:2] for line in shown_table(TITLES, ROWS, 24, left=(0, 3), keys=2).splitlines()]
    assert keys.count(["dgemm_nn", "4317"]) > 1, "each part says what its rows are of"


def test_columns_are_dropped_in_their_order_and_named_and_in_a_file_they_are_all_there_aligned():
    shown = shown_table(TITLES, ROWS, 36, left=(0, 3), drop=(3, 1))
    assert shown.splitlines()[0].split() == ["kernel", "calls", "time"]
    assert "(columns left out: ranges and a note" in " ".join(shown.split())
    assert shown_table(TITLES, ROWS, 36, left=(0, 3), drop=(3,), note="--details").endswith("\n(--details)")
    lines = shown_table(TITLES, ROWS, UNLIMITED, left=(0, 3), drop=(3,)).splitlines()
    assert lines[1] == "dgemm_nn    4317  42.7 s  m 1-8192, n 1-7896, k 1-256"
    assert lines[2] == "dlaswp04T    325  148 ms  -"


def test_caveats_are_one_line_with_their_count_and_the_way_to_all():
    assert caveat_line(["a is so: because"], NARROW) == "1 caveat: a is so; --details"
    assert caveat_line([f"no {i} is so" for i in range(5)], NARROW).startswith("5 caveats: no 0 is so; no 1 is so; ")
    alike = caveat_line(["a is so: 1", "a is so: 2", *(f"no {i} is so" for i in range(6))], UNLIMITED)
    assert alike == "8 caveats: a is so; no 0 is so; no 1 is so; and 5 more; --details"  # 3 + 5
    assert answer_text("x", (), (), NARROW) == "x"


@pytest.mark.parametrize("details", [False, True])
def test_predictions_begin_with_the_answer_and_fit_80_columns(predictions, details):
    first = predictions[0]
    texts = {
        "HPL takes ": lambda width: answered(first, width, details=details),
        "Fastest of 3: ": lambda width: answered_sweep(Sweep(tuple(predictions)), width, details=details),
        "HPL on 4 ranks takes ": lambda width: answered_scaling(scaling(predictions), width, details=details),
    }
    for begin, text in texts.items():
        narrow, piped = text(NARROW), text(UNLIMITED)
        assert narrow.startswith(begin)
        assert " s (95 %: " in narrow.splitlines()[0]
        assert all(len(line) <= NARROW for line in narrow.splitlines())
        if begin != "HPL on 4 ranks takes ":  # whose table drops columns
            assert words(narrow) == words(piped)  # so no word is broken
        if not details:
            assert len(piped.splitlines()) <= 1 + 5 + 1 + (begin.startswith("HPL on") and 4)


@pytest.mark.parametrize("name", shipped_names())
def test_a_platform_fits_on_a_screen_of_24_lines(name):
    platform = load_platform(name)
    lines = answer_text(in_one_line(platform), facts(platform), ["a caveat"], NARROW).splitlines()
    assert len(lines) <= 22  # the caveats may take three
    assert all(len(line) <= NARROW for line in lines)
    assert "Gflop/s" in lines[0] or "Tflop/s" in lines[0]
