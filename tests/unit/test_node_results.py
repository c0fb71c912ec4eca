"""What is told of commands on nodes."""

import pytest

from lepaute.measure.nodes.results import command_text


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (("gcc", "-O2", "a b.c"), "gcc -O2 a b.c"),
        (("sh", "-e", "-c", "\n# builds it:\ncd x\nmake\n", "sh", "x"), "sh -e -c # builds it: ... sh x"),
        (("sh", "-c", "one line\n"), "sh -c one line"),
        (("echo", "a\tb\r\nc"), "echo a b ..."),
    ],
)
def test_a_command_is_told_in_one_line_and_a_script_by_its_first(argv: tuple[str, ...], told: str) -> None:
    assert command_text(argv) == told
