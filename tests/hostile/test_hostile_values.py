"""Whatever an option or argument is given: status 0, 1 or 2, one line, no hang, little memory, and nothing left behind.

Options are found by themselves; a new command needs a cheap command line in `cases.BASES`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hostile.cases import BASES, Case, cases_of, commands, further_cases_of
from hostile.complaints import complaints
from hostile.refusals import Server, golden, serving

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("in"), tmp_path_factory.mktemp("server")) as server:
        yield server


def test_every_command_has_a_command_line_to_start_from() -> None:
    assert set(BASES) == set(commands())


def break_nothing(tried: Sequence[Case], answers: Sequence[dict[str, Any]]) -> None:
    """Asserts that all ended as they should; the first has nothing hostile in it."""
    failures = [
        f"{case.label}: {complaint}"
        for case, answer in zip(tried, answers, strict=True)
        for complaint in complaints(case, answer, answers[0])
    ]
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("command", sorted(BASES))
def test_no_value_breaks_and_refusals_have_the_words_that_were_read(command: str, server: Server) -> None:
    cases = list(cases_of(command, server.inputs))
    answers = server.run(cases)
    break_nothing(cases, answers)
    expected = golden(command).read_text() if golden(command).exists() else ""
    remedy = f"read the change: PYTHONPATH=src:tests .venv/bin/python tests/hostile/refusals.py '{command}'"
    assert server.refusals(cases, answers) == expected, remedy


@pytest.mark.long
@pytest.mark.parametrize("command", sorted(BASES))
def test_no_value_breaks_that_is_otherwise_left_to_other_commands(command: str, server: Server) -> None:
    cases = list(further_cases_of(command, server.inputs))
    break_nothing(cases, server.run(cases))
