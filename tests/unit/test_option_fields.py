"""Options of a command made of the fields of a dataclass."""

from dataclasses import dataclass, field
from typing import Annotated

import typer
from typer.testing import CliRunner

from lepaute.cli.options import App, with_options_of
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


def test_what_a_field_does_not_allow_is_refused() -> None:
    app, seen = _app()
    assert _run(app, "--first=1", "--size=0").exit_code == 2
    assert isinstance(_run(app, "--first=1", "--width=x").exception, InputError)
    assert not seen


def test_a_command_may_keep_a_field_to_itself_and_make_something_else() -> None:
    app, seen = _app(leave_out=("size",), make=dict)
    assert _run(app, "--first=1", "--size=7").exit_code == 2
    assert _run(app, "--first=1").exit_code == 0
    assert seen == [(1, {"width_s": None, "on": True}, False)]
