"""Workloads of the node test besides dgemm: stressors of stress-ng, each for a part of a node, and users' own commands.

docs/design/decisions/watching.md has the reasons for each stressor.
"""

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.documents import read_yaml
from lepaute.kit.printable import printable

if TYPE_CHECKING:
    from lepaute.measure.layout import Layout
    from lepaute.measure.nodes.group import Nodes
    from lepaute.measure.nodes.results import Result

#: Stands for the number of cores in the text of a stressor: how many there are is no condition of its rate.
CORES = "CORES"
#: Workload -> options of stress-ng; those without CORES are one process.
STRESSORS: Mapping[str, tuple[str, ...]] = {
    "memory": ("--stream", CORES),
    "cache": ("--cache", CORES, "--cache-no-affinity"),
    "branch": ("--branch", CORES),
    "vector": ("--vecmath", CORES),
    "disk": ("--hdd", "1", "--hdd-bytes", "16M", "--hdd-write-size", "4K", "--hdd-opts", "sync,wr-rnd"),
    "network": ("--sock", "1"),
    "syscall": ("--null", CORES),
}
#: On which no other load shall move a workload of one process; a disk waits, wherever its process is.
_ON_ONE_CORE = ("network",)
#: Figures: operations of a stressor, by the wall clock; what a command without a pattern is watched by.
OPERATIONS, DURATION = "ops_per_s", "duration_s"
_RATE = "bogo-ops-per-second-real-time"
INSTALL = "stress-ng is not installed; on Debian: apt-get install stress-ng"
#: The metrics are printed alone: older versions have their log on standard output, too.
_STRESS = 'rm -f stress.yaml; stress-ng "$@" --yaml stress.yaml >&2; cat stress.yaml'
REPETITIONS, QUICK_REPETITIONS = 3, 1
#: Beyond its time; a disk writes what it has kept.
STRESS_LIMIT_S, OWN_LIMIT_S = 120.0, 600.0

#: Parameters of the experiment: `workload.NAME=COMMAND` and `workload_pattern.NAME=PATTERN`.
_COMMAND, _PATTERN = "workload.", "workload_pattern."
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]{0,29}")
_MAX_OWN, _MAX_FIGURES, _MAX_TEXT = 20, 1000, 4000


@dataclass(frozen=True, slots=True)
class Workload:
    """name    : its factors are workload_<name>_<figure>
    command    : what its values have in common where they are compared; for the shell, if it is a user's
    pattern    : named groups match what it prints, by figure and unit. None: a user's command's duration
    stressor   : options of stress-ng; None: a user's command
    """

    name: str
    command: str
    pattern: re.Pattern[str] | None = None
    stressor: tuple[str, ...] | None = None


def parameters_of(commands: Sequence[str], patterns: Sequence[str]) -> dict[str, str]:
    """The parameters of an experiment for NAME=COMMAND and NAME=PATTERN, as a command line has them; InputError."""
    found: dict[str, str] = {}
    for texts, prefix, option, word in (
        (commands, _COMMAND, "--workload", "COMMAND"),
        (patterns, _PATTERN, "--workload-pattern", "REGEX"),
    ):
        for text in texts:
            name, separator, value = text.partition("=")
            if not separator:
                raise InputError(f"{option} is {printable(text)[:80]!r}; write NAME={word}")
            if prefix + name in found:
                raise InputError(f"{option}: {printable(name)[:40]!r} is given twice; name one of them otherwise")
            found[prefix + name] = value
    own_workloads(found)
    return found


def is_of_workloads(parameter: str) -> bool:
    """Whether a parameter of the node test is about workloads, and changes nothing else that it measures."""
    return parameter in ("workloads", "workload_s") or parameter.startswith((_COMMAND, _PATTERN))


def own_workloads(parameters: Mapping[str, object]) -> tuple[Workload, ...]:
    """A user's, by name. Raises InputError for a name, command or pattern that is none."""
    commands, patterns = (
        {name.removeprefix(prefix): str(text) for name, text in parameters.items() if name.startswith(prefix)}
        for prefix in (_COMMAND, _PATTERN)
    )
    for name in patterns.keys() - commands.keys():
        raise InputError(f"there is a pattern of the workload {printable(name)[:40]!r}, and no command; give both")
    if len(commands) > _MAX_OWN:
        raise InputError(f"there are {len(commands)} workloads; give at most {_MAX_OWN}")
    return tuple(_own(name, commands[name], patterns.get(name)) for name in sorted(commands))


def _own(name: str, command: str, pattern: str | None) -> Workload:
    shown = printable(name)[:40]
    if not _NAME.fullmatch(name) or name in STRESSORS:
        raise InputError(
            f"a workload is named {shown!r}; give letters and digits, at most 30, but none of {', '.join(STRESSORS)}"
        )
    if not command.strip() or "\0" in command or len(command) > _MAX_TEXT:
        raise InputError(f"the command of the workload {shown} is {printable(command)[:60]!r}; give one for the shell")
    try:
        program = shlex.split(command)[0]
    except (ValueError, IndexError):
        raise InputError(f"the command of the workload {shown} has an open quote, or no word; correct it") from None
    if "/" in program and not program.startswith(("/", "~")):
        raise InputError(
            f"the workload {shown} starts {printable(program)[:60]!r}; give an absolute path: it runs in a folder of "
            "its own on each node"
        )
    return Workload(name, command, None if pattern is None else _compiled(shown, pattern))


def _compiled(name: str, pattern: str) -> re.Pattern[str]:
    try:
        if len(pattern) > _MAX_TEXT:
            raise ValueError("it is too long")
        compiled = re.compile(pattern, re.MULTILINE)
    except (re.error, ValueError, OverflowError, RecursionError) as problem:
        reason = printable(str(problem))[:100]
        raise InputError(
            f"the pattern of the workload {name} is no regular expression ({reason}); correct it"
        ) from None
    if not compiled.groupindex or any(not re.fullmatch(r"[A-Za-z0-9_]{1,40}", group) for group in compiled.groupindex):
        raise InputError(
            f"the pattern of the workload {name} names no figure; give groups whose names end in their unit, such as "
            r"(?P<triad_B_per_s>[\d.e+]+)"
        )
    return compiled


def chosen_workloads(classes: str, seconds: int, parameters: Mapping[str, object]) -> tuple[Workload, ...]:
    """The stressors of these classes (a list with commas, "all" or "none"), and a user's own. Raises InputError."""
    names = list(STRESSORS) if classes == "all" else [] if classes == "none" else classes.split(",")
    if unknown := [name for name in names if name not in STRESSORS]:
        known = ", ".join(STRESSORS)
        raise InputError(f"workloads is {classes[:60]!r}; {unknown[0][:30]!r} is none of {known}; or give all or none")
    return tuple(
        Workload(name, " ".join(["stress-ng", *STRESSORS[name], "--timeout", f"{seconds}s"]), stressor=STRESSORS[name])
        for name in dict.fromkeys(names)
    ) + own_workloads(parameters)


def stress_version(node: "Nodes") -> str | None:
    """Version of stress-ng on one node; None if it does not run."""
    result = node.run("stress-ng", "--version", check=False, timeout_s=STRESS_LIMIT_S).only
    found = re.search(r"version (\S{1,40})", result.stdout + result.stderr)
    return found[1] if result.ok and found else None


def run_workload(node: "Nodes", layout: "Layout", workload: Workload, seconds: int, disk_folder: str) -> "Result":
    """Once, on one node; raises CommandFailed or NodeLost. What it prints is in the archive's record of commands."""
    if workload.stressor is None:
        return node.shell(workload.command, timeout_s=OWN_LIMIT_S).only
    threads = [core.pu for core in layout.cores]
    words = [str(len(threads)) if word == CORES else word for word in workload.stressor]
    if CORES in workload.stressor or workload.name in _ON_ONE_CORE:
        words += ["--taskset", ",".join(map(str, threads if CORES in workload.stressor else threads[:1]))]
    folder = disk_folder if workload.name == "disk" and disk_folder else "."
    words += ["--timeout", f"{seconds}s", "--temp-path", folder, "--no-rand-seed", "--metrics-brief"]
    return node.shell(_STRESS, *words, timeout_s=seconds + STRESS_LIMIT_S).only


def figures_of(workload: Workload, result: "Result") -> list[tuple[str, float]]:
    """Figure and value of everything that a run has told; raises EnvironmentProblem if that is nothing."""
    if workload.stressor is not None:
        try:
            value = float(read_yaml(result.stdout, "the metrics of stress-ng")["metrics"][0][_RATE])
        except (InputError, TypeError, KeyError, IndexError, ValueError):
            raise EnvironmentProblem(
                "stress-ng wrote no metrics: it does not have this stressor, or not here"
            ) from None
        if not 0.0 < value < math.inf:
            raise EnvironmentProblem("stress-ng made no operation in its time")
        return [(OPERATIONS, value)]
    if workload.pattern is None:
        return [(DURATION, result.duration_s)]
    found = []
    for match in workload.pattern.finditer(result.stdout):
        for figure, text in match.groupdict().items():
            if text is not None:
                found.append((figure, _number(figure, text)))
        if len(found) > _MAX_FIGURES:
            raise EnvironmentProblem(f"it printed more than {_MAX_FIGURES} figures; let the pattern match fewer")
    if not found:
        raise EnvironmentProblem("it printed nothing that its pattern matches")
    return found


def _number(figure: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise EnvironmentProblem(f"it printed {printable(text)[:40]!r} for {figure}, which is no number")
    return value
