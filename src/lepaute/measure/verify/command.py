"""Real runs of a command of the user's, which prints the time that was predicted."""

import hashlib
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.command import run_command
from lepaute.kit.quantities import checked_pattern, value_in
from lepaute.measure.kernel_set import CORETYPE
from lepaute.measure.machine_load import load_between, sample
from lepaute.measure.verify.real_run import Here, RealRun, check_cores
from lepaute.simulate import Application
from lepaute.simulate.prediction.document import cell_of

#: {ranks}, {grid} and {grid[0]}; a variable of a shell, ${HOME}, is none.
_PLACEHOLDER = re.compile(r"(?<!\$)\{([A-Za-z_]\w*)(?:\[(\d{1,3})\])?\}")


@dataclass(frozen=True, slots=True)
class Command(Here):
    """A command whose words may have parameters of the application in braces.

    pattern  : finds the seconds in what it prints on standard output; the last match counts
    timeout_s: of a run, instead of what the campaign gives it
    coretype : value of OPENBLAS_CORETYPE, that of the calibration; None leaves it as it is
    Raises InputError for a pattern that is none.
    """

    words: tuple[str, ...]
    pattern: str
    timeout_s: float | None = None
    coretype: str | None = None

    def __post_init__(self) -> None:
        checked_pattern(self.pattern)

    def of(self, application: Application) -> tuple[str, ...]:
        """Its words for one run; raises InputError for what is in braces and no parameter."""
        values = application.parameters() | {"ranks": application.ranks}

        def filled(match: re.Match[str]) -> str:
            name, place = match[1], match[2]
            value = values.get(name)
            parts = value if isinstance(value, list) else []
            if name not in values or (place and int(place) >= len(parts)):
                known = ", ".join(f"{{{each}}}" for each in values)
                raise InputError(f"the command has {match[0]:.80}, which {application.title} has not; it has {known}")
            return str(cell_of(parts[int(place)] if place else value))

        return tuple(_PLACEHOLDER.sub(filled, word) for word in self.words)

    def check(self, application: Application) -> None:
        """Raises InputError if there is no such program, or this machine has too few cores."""
        program = self.of(application)[0]
        if shutil.which(program) is None:
            raise InputError(f"{program:.200}: no such program; the command to run comes after two dashes")
        check_cores(application, application.label, "Take fewer ranks.")

    def run(self, application: Application, timeout_s: float) -> RealRun:
        """Raises EnvironmentProblem if it fails, prints no time, or takes longer than timeout_s."""
        before = sample()
        record = run_command(
            self.of(application),
            what="the command",
            timeout_s=self.timeout_s or timeout_s,
            environment={} if self.coretype is None else {CORETYPE: self.coretype},
        )
        machine = load_between(before, sample(), os.cpu_count() or 1)
        try:
            time_s = value_in(record.stdout.splitlines(), self.pattern)
        except ValueError as problem:
            raise EnvironmentProblem(str(problem)) from None
        if time_s == 0.0:
            raise EnvironmentProblem("the program printed a time of 0 s, which tells nothing; let it print more digits")
        return RealRun(time_s, (), machine)

    def sealed(self) -> dict[str, Any]:
        """With the SHA-256 of the programs among its words."""
        found = {word: shutil.which(word) for word in self.words}
        programs = {word: hashlib.sha256(Path(path).read_bytes()).hexdigest() for word, path in found.items() if path}
        return {
            "command": list(self.words),
            "sha256": programs,
            "time_pattern": self.pattern,
            "coretype": self.coretype,
        }
