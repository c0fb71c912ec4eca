"""What an environment module changes: `module load` in a login shell, where the command is defined."""

import os
from collections.abc import Mapping

from lepaute.errors import InputError
from lepaute.kit.command import run_command

_LIMIT_S = 60.0
_MARK = "lepaute-environment"
_LOAD = f"""
type module >/dev/null 2>&1 || {{ echo 'E: a login shell (bash -l) has no module command' >&2; exit 1; }}
mark() {{ printf '\\0{_MARK}\\0'; }}
mark; env -0; mark
module load "$1" >&2 || exit 1
env -0
"""
_OF_THE_SHELL = ("_", "SHLVL", "PWD", "OLDPWD")


def environment_of_module(module: str) -> dict[str, str]:
    """The variables to set in this process's environment for what the module brings.

    Raises InputError for what cannot be a module's name, EnvironmentProblem where there is no module command or the
    module cannot be loaded.
    """
    if not module or module.startswith("-"):
        raise InputError(f"{module!r} is not the name of an environment module")
    done = run_command(["bash", "-l", "-c", _LOAD, "bash", module], what=f"module load {module}", timeout_s=_LIMIT_S)
    _, before, after = (_variables(part) for part in done.stdout.split(f"\0{_MARK}\0"))
    return _changes(before, after)


def _variables(text: str) -> dict[str, str]:
    pairs = (entry.partition("=") for entry in text.split("\0"))
    return {name: value for name, equals, value in pairs if equals and name.isidentifier()}


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """What the module puts before a list of folders is put before that of this process, which may be another one."""
    changes = {}
    for name, value in after.items():
        old = before.get(name, "")
        if name in _OF_THE_SHELL or (name in before and value == old):
            continue
        if old and name in os.environ and value.endswith(os.pathsep + old):
            changes[name] = value.removesuffix(old) + os.environ[name]
        else:
            changes[name] = value
    return changes
