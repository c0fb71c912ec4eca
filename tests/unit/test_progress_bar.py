"""The progress bar: on a terminal only, and only for what takes long."""

import io
import sys

import pytest

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


def test_neither_it_nor_what_is_printed_meanwhile_controls_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert "\x1b[41m" not in text


def test_its_own_escape_sequences_reach_the_terminal_under_the_frame_of_a_command(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    terminal = sys.stderr

    def run() -> int:
        with progress_bar() as tell:
            tell("simulating", 0.25)
            tell("simulating", 0.5)
        return 0

    assert guarded(run) == 0
    text = terminal.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[" in text
    assert "\\x1b" not in text


def test_it_is_not_drawn_before_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(monkeypatch, Terminal(), 60.0) == ""


def test_it_is_not_drawn_where_standard_error_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(monkeypatch, io.StringIO(), 0.0) == ""
