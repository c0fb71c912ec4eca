"""What a run was asked for, on the command line and in its installation file."""

import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lepaute.errors import InputError
from lepaute.kit.documents import read_text, read_yaml
from lepaute.kit.outputs import check_archive_output
from lepaute.measure.experiment.workspace import latest_workspace
from lepaute.measure.schedulers import RankLaunch, Request, default_scheduler, scheduler
from lepaute.measure.schedulers.types import check_word

if TYPE_CHECKING:
    from pydantic import BaseModel

Model = TypeVar("Model", bound="BaseModel")
DEFAULT_MONITOR_PERIOD_S = 1.0
DEFAULT_REFERENCE_PERIOD_S = 10.0


@dataclass(frozen=True, slots=True)
class Options:
    """Options of one run.

    archive           : the file it will leave
    control           : what the machine is set to, see docs/howto/experiments.md; undone at the end
    warm_up_s         : stress-ng on all cores before the run; 0 for none
    monitor_period_s  : between samples of the monitor on each node; 0 for none
    reference_period_s: between runs of the reference kernel on each node, made between design rows; 0 for none
    parameters        : the experiment's own, as text
    python            : the interpreter on the nodes, where it is not this one
    system_root       : under which nodes look for the system's control files
    """

    archive: Path
    scheduler: str = "local"
    request: Request = field(default_factory=Request)
    seed: int = 1
    control: Mapping[str, Any] = field(default_factory=dict)
    warm_up_s: float = 0.0
    monitor_period_s: float = DEFAULT_MONITOR_PERIOD_S
    reference_period_s: float = DEFAULT_REFERENCE_PERIOD_S
    parameters: Mapping[str, str] = field(default_factory=dict)
    installation: Path | None = None
    script: Path | None = None
    python: str | None = None
    keep_folders: bool = False
    system_root: str = "/"

    def __post_init__(self) -> None:
        if self.python is not None:
            check_word("--python", self.python)
        if not 0 <= self.seed < 2**63:
            raise InputError(f"seed is {self.seed}; give an integer from 0 to 2^63 - 1")
        for name in ("warm_up_s", "monitor_period_s", "reference_period_s"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise InputError(f"{name} is {getattr(self, name)}; give a number of seconds, 0 for none")
        if 0 < self.monitor_period_s < 0.05:
            raise InputError(f"monitor_period_s is {self.monitor_period_s}; 0.05 s is the shortest: more would disturb")

    @property
    def on_this_machine(self) -> bool:
        """Whether programs are started without ssh or the like."""
        return scheduler(self.scheduler).on_this_machine

    def rank_launch(self) -> RankLaunch:
        return scheduler(self.scheduler).rank_launch(self.request)


class Parameters(dict[str, str]):
    """Parameters of an experiment, which know what was looked at: nobody reads a name that is spelt wrong."""

    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__(values)
        self._unread = {*values}

    def __getitem__(self, name: str) -> str:
        self._unread.discard(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self._unread -= {name}
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self._unread.discard(name)
        return super().get(name, default)

    def __iter__(self) -> Iterator[str]:
        self._unread.clear()
        return super().__iter__()

    def items(self) -> Any:
        self._unread.clear()
        return super().items()

    def unread_text(self) -> str:
        """Names those that nobody has looked at; empty if there are none."""
        return f"parameter {', '.join(sorted(self._unread))}: the experiment did not look at it" if self._unread else ""


@dataclass(frozen=True, slots=True)
class Installation:
    """Contents of an installation file; None and empty if it is silent."""

    control: Mapping[str, Any] = field(default_factory=dict)
    warm_up_s: float | None = None
    monitor_period_s: float | None = None
    reference_period_s: float | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)


def read_installation(path: Path) -> Installation:
    """The installation file, YAML with the fields of `Installation`. Raises InputError saying what is wrong where."""
    document = read_yaml(read_text(path, "an installation file"), str(path)) or {}
    known = Installation.__dataclass_fields__
    if not isinstance(document, dict):
        raise InputError(f"{path}: is a {type(document).__name__}; give fields: {', '.join(known)}")
    for name, value in document.items():
        if name not in known:
            raise InputError(f"{path}: there is no field {str(name)[:40]!r}; the fields are {', '.join(known)}")
        if name in ("control", "parameters"):
            if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
                raise InputError(f"{path}: {name} is {value!r:.60}; give names and values")
        elif isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{path}: {name} is {value!r:.60}; give a number of seconds")
    parameters = {key: str(value) for key, value in document.pop("parameters", {}).items()}
    return Installation(**document, parameters=parameters)


def options_of(
    *,
    script: Path,
    archive: Path | None,
    installation: Path | None,
    parameters: Mapping[str, str],
    monitor_period_s: float | None,
    resume: bool,
    force: bool = False,
    **options: Any,
) -> Options:
    """The options of a run from the command line: what it says goes before the installation file, that before defaults.

    Without an archive: EXPERIMENT-DATE-XXXX.zip here, or when resuming that of the last interrupted run of the script.
    options: further fields of `Options`. Raises InputError.
    """
    file = read_installation(installation) if installation is not None else Installation()
    if archive is None:
        archive = latest_workspace(Path(), script.stem).with_suffix(".zip") if resume else new_name(script.stem)
    check_archive(archive, force=force)
    periods = {"warm_up_s": file.warm_up_s, "reference_period_s": file.reference_period_s}
    periods["monitor_period_s"] = monitor_period_s if monitor_period_s is not None else file.monitor_period_s
    options |= {name: float(value) for name, value in periods.items() if value is not None}
    return Options(
        archive=archive,
        control=file.control,
        parameters={**file.parameters, **parameters},
        installation=installation,
        script=script,
        system_root=os.environ.get("LEPAUTE_SYSTEM_ROOT", "/"),
        **options,
    )


def check_archive(archive: Path, *, force: bool = False) -> None:
    """Raises InputError if no archive can be written there, or one exists already, unless `force`."""
    if archive.suffix != ".zip":
        raise InputError(f"{archive}: the name of an archive ends in .zip; add it")
    check_archive_output(archive, force=force)


def new_name(stem: str) -> Path:
    """An archive's name that no other run has."""
    return Path(f"{stem}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}.zip")


def options_from(stem: str, settings: Mapping[str, Any], *, force: bool = False) -> Options:
    """Options from the names of their fields and of a request's, for use by hand; `ssh` where nodes are given.

    force: an archive of that name will be replaced
    """
    of_request = {name: value for name, value in settings.items() if name in Request.__dataclass_fields__}
    rest = {name: value for name, value in settings.items() if name not in of_request}
    for name in rest:
        if name not in Options.__dataclass_fields__:
            known = ", ".join((*Options.__dataclass_fields__, *Request.__dataclass_fields__))
            raise InputError(f"an experiment has no setting {name!r}; it has {known}")
    rest["archive"] = Path(rest.get("archive") or new_name(stem.lower()))
    check_archive(rest["archive"], force=force)
    rest["parameters"] = {name: str(value) for name, value in rest.get("parameters", {}).items()}
    rest.setdefault("scheduler", default_scheduler(of_request.get("nodes")))
    return Options(**rest, request=Request(**of_request))


def parsed_parameters(model: "type[Model]", given: Mapping[str, object]) -> "Model":
    """The parameters of an experiment by a model that has a field for each.

    Raises InputError for a value that does not fit, and for an unknown name, such as a typing error.
    """
    from pydantic import ValidationError

    try:
        return model.model_validate(dict(given))
    except ValidationError as problem:
        error = problem.errors()[0]
        name = str(error["loc"][0])
        if error["type"] == "extra_forbidden":
            raise InputError(f"there is no parameter {name[:60]}; known: {', '.join(model.model_fields)}") from None
        raise InputError(f"{name} is {str(given[name])[:60]!r}; {error['msg'][:200]}") from None
