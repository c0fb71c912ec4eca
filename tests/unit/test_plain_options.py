"""Options whose texts are plain are converted without Pydantic: to what Typer makes of them with it, and no others."""

from pathlib import Path
from typing import Any

import pytest
import typer

from lepaute.cli.options import App
from lepaute.cli.parsing import NOT_PLAIN

TEXTS = [
    *("", "0", "7", "-7", "+7", "007", "1_000", " 8", "8.0", "1e3", "0.5", "-0.5", ".5", "5.", "1e-300", "1e400"),
    *("nan", "inf", "0x10", "٣", "9" * 16, "9" * 30, "0.1000000000000000055", "abc", "-", "/", "nowhere/x", "x\0y"),
]


@pytest.mark.parametrize(
    ("type_", "limits"),
    [(int, {}), (int, {"min": 0, "max": 100}), (float, {}), (float, {"min": 0.0}), (str, {}), (Path, {})],
)
@pytest.mark.parametrize("several", [False, True])
def test_a_plain_text_is_what_typer_makes_of_it(type_: Any, limits: dict[str, float], several: bool) -> None:
    app = App()

    def command(value: Any = None) -> None:
        """Takes a value."""

    hint = list[type_] if several else type_
    command.__annotations__["value"] = hint | None
    command.__defaults__ = (typer.Option(None, "--value", **limits),)
    app.command()(command)
    made: Any = typer.main.get_command(app)
    (parameter,) = [param for param in made.params if param.name == "value"]
    context = typer.Context(made)
    plain = 0
    for given in [None, *([text] if several else text for text in TEXTS)]:
        usual = outcome(typer.core.TyperOption.process_value, parameter, context, given)
        assert outcome(parameter.converted, context, given) == usual, given
        plain += parameter.plain(given) is not NOT_PLAIN
    assert plain > 3


def outcome(convert: Any, *arguments: Any) -> tuple[str, str]:
    try:
        value = convert(*arguments)
    except typer.BadParameter as refusal:
        return "refused", refusal.message
    return type(value).__name__, repr(value)
