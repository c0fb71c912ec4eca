"""Every option and key that a command accepts changes its answer, is named in it, or is refused: none is ignored.

The command lines, and what is tried on each, are in the tables of `tests/effects`; a new option needs a row there, but
for those of HPL.
"""

import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from effects.lines import all_lines, ignored, options_of
from hostile.cases import commands
from long_tests import long_but
from pydantic import BaseModel

from lepaute.study.schema import Study

#: The lines that begin so are tried at each change, the others in long tests.
QUICK = (
    "segment",
    "trace",
    "design fractional",
    "platform new",
    "fit -- ",
    "study tune --scheduler=threads --output=out -- {in}",
    "run",
    "watch events import",
)


def names_of(*of: str) -> set[str]:
    return {row.option for line in all_lines() if line.command in of for row in line.rows}


def test_every_option_is_tried_or_has_its_reason() -> None:
    untried = {command: options_of(command).keys() - names_of(command) for command in commands()}
    for line in all_lines():
        untried[line.command] -= line.untried.keys()
    assert {name: options for name, options in untried.items() if options} == {}


def test_every_key_of_a_study_is_tried() -> None:
    rows = [row for line in all_lines() if line.command.startswith("study") for row in line.rows]
    words = {word for row in rows for text in row.tried for word in re.findall(r"\w+", text)}
    # Bounds are of distributions, which are tried whole.
    assert set(keys_of(Study)) - words - {"format", "question", "low", "high"} == set()


def keys_of(model: type[BaseModel]) -> Iterator[str]:
    """The names of the fields of a document, and of those in it."""
    for name, field in model.model_fields.items():
        yield name
        for part in models_in(field.annotation):
            yield from keys_of(part)


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from models_in(part)


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", long_but(all_lines(), *(each for each in all_lines() if str(each).startswith(QUICK))), ids=str
)
def test_no_option_is_ignored(line, server):
    failures = ignored(line, server)
    assert not failures, "\n".join(failures)
