"""Options of a command made of the fields of a dataclass, and those whose texts are plain."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from lepaute.cli.options import App, with_options_of
from lepaute.cli.parsing import NOT_PLAIN
from lepaute.errors import InputError
from lepaute.kit.options import option, option_field
from lepaute.kit.quantities import time_of


def _doubled(text: str) -> int:
    if not text.isdigit():
        raise InputError(f"{text} is no number")
    return 2 * int(text)


@dataclass(frozen=True)
class Described:
    size: int = field(default=3, metadata=option("How large.", minimum=1))
    width_s: int | None = field(default=None, metadata=option("Twice that.", name="width", parse=_doubled))
    on: bool = field(default=True, metadata=option("0 or 1", given_as=int, parse=bool, maximum=1))
    hidden: str = "not an option"


def _app(**settings: object) -> tuple[typer.Typer, list[object]]:
    app, seen = typer.Typer(rich_markup_mode=None), []

    @app.command()
    @with_options_of(Described, "value", **settings)
    def command(first: Annotated[int, typer.Option("--first")], value: Described, last: bool = False) -> None:
        seen.append((first, value, last))

    return app, seen


def _run(app: typer.Typer, *words: str) -> object:
    return CliRunner().invoke(app, list(words))


def test_the_command_gets_the_value_and_its_own_arguments() -> None:
    app, seen = _app()
    assert _run(app, "--first=1", "--size=7", "--width=4", "--on=0", "--last").exit_code == 0
    assert _run(app, "--first=2").exit_code == 0
    assert seen == [(1, Described(7, 8, False), True), (2, Described(), False)]


@dataclass(frozen=True)
class Timed:
    budget_s: float = option_field("5min", "How long.", name="budget", quantity=time_of)
    limit_s: float | None = option_field(None, "At most.", name="limit", quantity=time_of)


def test_an_app_has_the_options_of_dataclasses_and_quantities_are_read_with_their_option_named() -> None:
    app, seen = App(), []

    @app.command()
    def command(value: Described, timed: Timed) -> None:
        seen.append((value, timed))

    assert _run(app, "--size=7", "--limit=2s").exit_code == 0
    assert seen == [(Described(7), Timed(300.0, 2.0))]
    assert Timed() == Timed(300.0, None)
    assert "--budget is 'x'" in str(_run(app, "--budget=x").exception)


def test_what_a_field_does_not_allow_is_refused_and_a_command_may_keep_a_field_to_itself() -> None:
    app, seen = _app()
    assert _run(app, "--first=1", "--size=0").exit_code == 2
    assert isinstance(_run(app, "--first=1", "--width=x").exception, InputError)
    assert not seen
    app, seen = _app(leave_out=("size",), make=dict)
    assert _run(app, "--first=1", "--size=7").exit_code == 2
    assert _run(app, "--first=1").exit_code == 0
    assert seen == [(1, {"width_s": None, "on": True}, False)]


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
