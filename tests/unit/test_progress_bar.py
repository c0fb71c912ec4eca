"""The progress bar: on a terminal only, and only for what takes long."""

import io
import sys

import pytest

from lepaute.cli.progress import progress_bar


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


def test_it_is_not_drawn_before_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(monkeypatch, Terminal(), 60.0) == ""


def test_it_is_not_drawn_where_standard_error_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(monkeypatch, io.StringIO(), 0.0) == ""
