"""What this machine is and runs: the node agent's collection, for a process that needs no agent."""

import os
import platform
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from lepaute.measure.node_agent.command_run import run_command
from lepaute.measure.node_agent.environment import COMMAND_LIMIT_S, chosen_variables, collect
from lepaute.measure.node_agent.redact import Redactor
from lepaute.measure.node_agent.system_files import SystemFiles


def collect_environment(environment: Mapping[str, str] | None = None) -> dict[str, bytes]:
    """The node's provenance: member name (without folder) to content; absent.json tells what the node does not have.

    environment: variables to record, by default those of this process; values are kept only where they can
                 change a measurement, and never where the name or the value looks like a secret.
    """
    return collect(SystemFiles(), environ=os.environ if environment is None else environment)


def redact(environment: Mapping[str, str]) -> dict[str, object]:
    """{"values": of the relevant variables, "other_names": of the rest}; secret-looking values are replaced."""
    return chosen_variables(environment, Redactor(environment))


def redact_text(text: str) -> str:
    """The text without what looks like a secret, and without the values of this process's secret variables."""
    return Redactor(os.environ).text(text)


def command_output(argv: tuple[str, ...]) -> str | None:
    """What a short command printed on both streams; None when it is not there, fails to start or hangs."""
    if shutil.which(argv[0]) is None:
        return None
    ran = run_command(list(argv), COMMAND_LIMIT_S)
    return None if ran.returncode is None else (ran.stdout + ran.stderr).decode(errors="replace")


def first_line(argv: tuple[str, ...]) -> str | None:
    """The first line a short command printed, or None."""
    output = command_output(argv)
    return output.splitlines()[0].strip() if output and output.strip() else None


def cpu_model() -> str:
    """The processor's name as the kernel gives it, or the architecture where it gives none."""
    return cpuinfo_field("model name") or platform.machine()


def cpu_flags() -> frozenset[str]:
    """Instruction-set flags of the first processor; empty where the kernel lists none."""
    return frozenset((cpuinfo_field("flags") or "").split())


def cpuinfo_field(field: str, text: str | None = None) -> str | None:
    """The first value of a field of /proc/cpuinfo (or of `text`), or None."""
    if text is None:
        try:
            text = Path("/proc/cpuinfo").read_text(errors="replace")
        except OSError:
            return None
    match = re.search(rf"^{re.escape(field)}[ \t]*:[ \t]*(.*)$", text, re.MULTILINE)
    return match.group(1).strip() if match else None


def memory_bytes() -> int:
    """Physical memory of the node."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
