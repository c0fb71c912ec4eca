"""What is wrong with how a command line ended."""

import signal
from typing import Any

from hostile.cases import Case, unprintable
from hostile.json_output import wrong_json
from hostile.server import MEMORY_BYTES
from support_limits import HANG_CPU_S, HANG_S


def _stem(name: str) -> str:
    """What a file was called on the command line: a picture without an ending becomes two files, a study a folder."""
    return name.removesuffix(".png").removesuffix(".svg").removesuffix(".results")


def complaints(case: Case, answer: dict[str, Any], usual: dict[str, Any]) -> list[str]:
    """What is wrong with how a case ended; usual: how the command ends with nothing hostile in it."""
    status, stderr, left = answer["status"], answer["stderr"], answer["left"]
    wrong = wrong_json(answer, usual) if case.parameter == "--json" else []
    if answer["timed_out"] or status == -signal.SIGPROF:
        wrong.append(f"it did not end within {HANG_S:g} s and {HANG_CPU_S:g} s of CPU time")
    elif status not in range(5):
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
