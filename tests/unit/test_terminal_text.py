"""What commands print: the answer in the first line, tables that fit a terminal, one row a line in a file."""

import pytest

from lepaute.cli.prediction_answer import answered, answered_scaling, answered_sweep
from lepaute.cli.terminal import answer_text
from lepaute.kit.printable import UNLIMITED
from lepaute.kit.tables import shown_table
from lepaute.kit.text import caveat_line, folded, with_interval
from lepaute.simulate import Hpl, Prediction, PredictionRequest, predict_all
from lepaute.simulate.platform import load_platform, shipped_names
from lepaute.simulate.platform.overview import facts, in_one_line
from lepaute.simulate.prediction.sweep import Sweep, scaling

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
    text = "computing 72.5 % (dgemm 52.5 %), 3.2 GB of 412.3 GB in 54.9 s, 4.078 µs a_word_of_some_length"
    for width in range(24, 100):
        lines = folded(text, width, 2).split("\n")
        assert words(" ".join(lines)) == words(text)
        assert all(len(line) <= width for line in lines)
        assert not any(line.split()[0].strip("(),") in ("%", "GB", "s", "µs") for line in lines)
    assert folded(text, UNLIMITED, 2) == text


@pytest.mark.parametrize("width", [20, 30, 40, 80])
def test_a_table_on_a_terminal_has_all_cells_whole_within_its_width(width):
    shown = shown_table(TITLES, ROWS, width, left=(0, 3))
    assert all(len(line) <= width for line in shown.splitlines())
    for cell in ("dlaswp04T", "42.7 s", "4317", *ROWS[0][3].split()):
        assert cell in shown


def test_columns_that_may_be_dropped_go_in_their_order_and_are_named():
    shown = shown_table(TITLES, ROWS, 36, left=(0, 3), drop=(3, 1))
    assert shown.splitlines()[0].split() == ["kernel", "calls", "time"]
    assert "without ranges and a note" in " ".join(shown.split())


def test_a_table_in_a_file_has_a_line_a_row_no_padding_and_no_empty_cell():
    lines = shown_table(TITLES, ROWS, UNLIMITED, left=(0, 3), drop=(3,)).splitlines()
    assert lines[1:] == ["dgemm_nn  4317  42.7 s  m 1-8192, n 1-7896, k 1-256", "dlaswp04T  325  148 ms  -"]


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
