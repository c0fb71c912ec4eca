"""Whatever an option or argument is given: status 0, 1 or 2, one line, no hang, little memory, and nothing left behind.

Options are found by themselves; a new command needs a cheap command line in `cases.BASES`.
"""

import signal
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hostile.cases import BASES, Case, cases_of, commands, further_cases_of, unprintable
from hostile.json_output import wrong_json
from hostile.refusals import Server, golden, serving
from hostile.server import MEMORY_BYTES
from support_limits import HANG_CPU_S, HANG_S

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("in"), tmp_path_factory.mktemp("server")) as server:
        yield server


def _stem(name: str) -> str:
    """What a file was called on the command line: a picture without an ending becomes a PNG and an SVG."""
    return name.removesuffix(".png").removesuffix(".svg")


def complaints(case: Case, answer: dict[str, Any], usual: dict[str, Any]) -> list[str]:
    """What is wrong with how a case ended; usual: how the command ends with nothing hostile in it."""
    status, stderr, left = answer["status"], answer["stderr"], answer["left"]
    wrong = wrong_json(answer, usual) if case.parameter == "--json" else []
    if answer["timed_out"] or status == -signal.SIGPROF:
        wrong.append(f"it did not end within {HANG_S:g} s and {HANG_CPU_S:g} s of CPU time")
    elif status not in (0, 1, 2):
        wrong.append(f"status {status}: {stderr[-600:]}")
    elif not answer["memory_bytes"]:
        wrong.append("it ended its process, whose memory nobody knows, and which had further command lines to run")
    if status == 2 and (len(stderr.splitlines()) > 1 or not (stderr or answer["stdout"])):
        wrong.append(f"{len(stderr.splitlines())} lines: {stderr[:600]!r}")
    if "Traceback" in stderr:
        wrong.append("a traceback")
    if unprintable(answer["stdout"]) or unprintable(stderr):
        wrong.append("control characters are printed")
    if answer["memory_bytes"] > usual["memory_bytes"] + MEMORY_BYTES:
        wrong.append(f"{answer['memory_bytes'] >> 20} MiB, usually {usual['memory_bytes'] >> 20}")
    written = {name for name in left["work"] if not any(_stem(name) in word for word in case.words)}
    if left["tmp"] or left["home"] or (left["work"] if status == 2 else written):
        wrong.append(f"left behind: {left}")
    return wrong


def test_every_command_has_a_command_line_to_start_from() -> None:
    assert set(BASES) == set(commands())


def break_nothing(tried: Sequence[Case], answers: Sequence[dict[str, Any]]) -> None:
    """Asserts that all ended as they should; the first has nothing hostile in it."""
    failures = [
        f"{case.label}: {each}"
        for case, answer in zip(tried, answers, strict=True)
        for each in complaints(case, answer, answers[0])
    ]
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("command", sorted(BASES))
def test_no_value_breaks_and_refusals_have_the_words_that_were_read(command: str, server: Server) -> None:
    cases = list(cases_of(command, server.inputs))
    answers = server.run(cases)
    break_nothing(cases, answers)
    expected = golden(command).read_text() if golden(command).exists() else ""
    assert server.refusals(cases, answers) == expected, "read the change, and write the words anew: hostile/refusals.py"


@pytest.mark.long
@pytest.mark.parametrize("command", sorted(BASES))
def test_no_value_breaks_that_is_otherwise_left_to_other_commands(command: str, server: Server) -> None:
    cases = list(further_cases_of(command, server.inputs))
    break_nothing(cases, server.run(cases))
