"""The progress bar: on a terminal only, and only for what takes long."""

import io
import sys

import pytest

from lepaute.cli import terminal
from lepaute.cli.entry import guarded
from lepaute.cli.terminal import progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def drawn(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, after_s: float) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar(after_s) as tell:
        tell("simulating", 0.25)
        tell("simulating", 0.5)
    return stream.getvalue()


def test_it_is_drawn_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    text = drawn(monkeypatch, Terminal(), 0.0)
    assert "simulating" in text
    assert "50 %" in text


def test_it_alone_controls_the_terminal_and_nothing_that_is_printed_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    terminal = sys.stderr

    def run() -> int:
        with progress_bar() as tell:
            tell("\x1b]0;title\x07[red]", 0.25)
            print("\x1b[41mline", file=sys.stderr)
        print("after\x1b[2J", file=sys.stderr)
        return 0

    assert guarded(run) == 0
    assert sys.stderr is terminal
    text = terminal.getvalue()  # type: ignore[attr-defined]
    for words in ("\\x1b]0;title\\x07[red]", "\\x1b[41mline", "after\\x1b[2J"):
        assert words in text
    assert "\x1b[" in text, "its own sequences"
    assert "\x1b[41m" not in text


def test_it_is_not_drawn_before_its_time_nor_where_standard_error_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert drawn(monkeypatch, Terminal(), 60.0) == ""
    assert drawn(monkeypatch, io.StringIO(), 0.0) == ""


def test_into_a_file_a_line_a_minute_says_what_is_done_and_how_long_it_will_take(monkeypatch) -> None:
    clock = iter([0.0, 30.0, 61.0, 100.0, 125.0])
    monkeypatch.setattr(terminal.time, "monotonic", lambda: next(clock))
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar() as tell:
        for share in (0.1, 0.25, 0.4, 0.5):
            tell("simulating", share)
    # a quarter in 61 s: three quarters take 183 s, which is 3 min
    assert stream.getvalue() == (
        "lepaute: simulating, 25 %, about 3 min left\nlepaute: simulating, 50 %, about 2.1 min left\n"
    )


@pytest.mark.parametrize("no_color", ["", "1"])
def test_an_answer_has_the_colour_of_its_meaning_on_a_terminal_that_shows_colours(no_color, monkeypatch):
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setattr(sys, "stdout", Terminal())
    terminal.say("  missing  mpicc\x1b[5m", 2, "bad", "missing")
    coloured = "  \033[1;31mmissing\033[0m  mpicc\\x1b[5m\n"
    assert sys.stdout.getvalue() == ("  missing  mpicc\x1b[5m\n" if no_color else coloured)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    terminal.say("missing", 2, "bad")
    assert sys.stdout.getvalue() == "missing\n"


def test_a_program_prints_below_the_line_of_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, now_s = Terminal(), [0.0]
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now_s[0])
    with terminal.simulated_date(4, 3600.0, 2.0) as (tell, tell_share, _):
        tell_share(0.25)
        now_s[0] = 30.0
        tell(1.0)
    assert "\r\033[Ksimulated 1.00 s in 30 s, 38 %, about 50 s left " in stream.getvalue()
    stream, now_s[0] = Terminal(), 0.0
    monkeypatch.setattr(sys, "stderr", stream)
    with terminal.simulated_date(1, 3600.0) as (tell, _, end_line):
        end_line()
        assert stream.getvalue() == ""
        now_s[0] = 5.0
        tell(0.00920702)
        end_line()
        end_line()
    assert stream.getvalue() == (
        "lepaute: emulating 1 run; its duration is not known in advance: as long as all\n"
        "  ranks compute, on one core, 60 min at most; a recorded run is replayed in\n"
        "  seconds (lepaute record, predict trace)\n"
        "\r\033[Ksimulated 9.21 ms in 5 s \n"
    )


def test_the_time_left_is_of_the_piece_of_work_that_has_begun() -> None:
    left = terminal._Pace(0.0)
    assert left.text(10.0, 0.5) == "about 10 s left"
    assert left.text(20.0, 1.0) == ""
    assert left.text(21.0, 0.0) == ""  # another piece
    assert left.text(31.0, 0.25) == "about 30 s left"
