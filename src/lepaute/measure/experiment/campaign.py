"""A campaign of Lepaute's own, calibration or comparison: a run whose steps follow from a request, and show a bar."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar

from lepaute.errors import EnvironmentProblem, InputError, LibraryFailure
from lepaute.kit.files import check_output
from lepaute.kit.json_values import to_json
from lepaute.measure.experiment.closing import partial_name
from lepaute.measure.experiment.job import Job
from lepaute.measure.experiment.life import execute
from lepaute.measure.experiment.options import Options
from lepaute.measure.schedulers import Request

#: Called with what is being done and the share of the work that is done, from 0 to 1.
Progress = Callable[[str, float], None]
_MAX_SHOWN = 80


#: Called once with how long the measurements will take, in seconds, and what they are.
Announce = Callable[[float, str], None]


def silent(_message: str, _share: float) -> None:
    """Progress that is not shown."""


def ignore_announcement(_wall_s: float, _what: str) -> None:
    """An `Announce` that does nothing."""


class Campaign(Job):
    """A job without a script. What differs: its request, `archive_content`, `prepare_machine` and `run`.

    Blocks have the same measurements, which are the reference: none runs in between.
    """

    monitor_period_s: ClassVar[float | None] = 5.0
    reference_period_s: ClassVar[float | None] = 0.0

    def __init__(self, options: Options, tell: Progress) -> None:
        super().__init__(options, say=lambda _line: None)  # the log is in the archive
        self.tell = tell
        self.announce: Announce = ignore_announcement

    def warn(self, text: str) -> None:
        self.record_of_run.warn(text)

    def to_the_end(self, *, resume: bool) -> Path:
        """Runs the campaign; the path of its archive.

        Raises EnvironmentProblem if it failed, KeyboardInterrupt where it was stopped; a note names the partial
        archive.
        """
        outcome = execute(self, resume)
        if outcome.status in ("complete", "incomplete"):
            self.tell("done", 1.0)
            return outcome.archive
        type_of = LibraryFailure if isinstance(outcome.problem, LibraryFailure) else EnvironmentProblem
        problem = type_of(outcome.failure) if outcome.status == "failed" else KeyboardInterrupt()
        partial = partial_name(self.options.archive)
        problem.add_note(f"what was measured until then is in {partial}; resume with --resume")
        raise problem


def campaign_options(
    archive: str | Path, seed: int, scheduler: str = "local", request: Request | None = None, python: str | None = None
) -> Options:
    """The options of a campaign; raises InputError if its archive cannot be written."""
    check_output(Path(archive))
    return Options(
        archive=Path(archive),
        scheduler=scheduler,
        request=request or Request(),
        seed=seed,
        python=python,
        system_root=os.environ.get("LEPAUTE_SYSTEM_ROOT", "/"),
    )


def check_begun_with(what: str, begun: object, given: object) -> None:
    """Raises InputError, one line, where a campaign that goes on was begun with something else.

    what: the campaign; begun, given: values by name, such as that of an option, or requests that have them
    """
    known, values = (
        each if isinstance(each, Mapping) else {name.replace("_", " "): value for name, value in to_json(each).items()}
        for each in (begun, given)
    )
    for name, value in values.items():
        if (before := known.get(name, value)) != value:
            raise InputError(
                f"the {what} was begun with other {name} ({_shown(before)}, now {_shown(value)}); resume it as it was "
                "begun"
            )


def _shown(value: object) -> str:
    text = ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
    return (text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}...") or "none"
