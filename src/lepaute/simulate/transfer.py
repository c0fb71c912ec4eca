"""A layer learnt from other validated studies: how far predictions of other machines were off.

It is off unless asked for: all other layers come from measurements of the machine itself.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import hypot, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError

if TYPE_CHECKING:
    from lepaute.simulate.application import Application

FIELDS = ("source", "relative_sd", "studies")
OF_CONFIGURATION = "configuration_relative_sd"  # may be left out
_STREAM, _STREAM_OF_CONFIGURATION = 0x54524E53, 0x54524E43  # of draws
LARGEST_SD = 1.0


@dataclass(frozen=True, slots=True)
class Transfer:
    """Relative errors of a prediction, whose standard deviations other studies had.

    relative_sd : of the logarithm of measured over predicted time, between studies: common to all that is predicted of
        a machine, so that it cancels in differences
    studies     : those that it was learnt from; none of them may be what is predicted
    configuration_relative_sd : the same between the configurations of a study: of the parameters of the application,
        so that it cancels where two predictions differ in the platform alone
    """

    source: str
    relative_sd: float
    studies: tuple[str, ...]
    configuration_relative_sd: float = 0.0

    def factor(self, seed: int, application: "Application") -> float:
        """What the run of this seed takes longer by: log-normal, with mean 1."""
        from lepaute import _core

        (normal,) = _core.normals(seed, _STREAM, 1, 1)
        factor = _core.exponential(self.relative_sd * (normal - 0.5 * self.relative_sd))
        sd = self.configuration_relative_sd
        if sd == 0.0:
            return factor
        (normal,) = _core.normals(seed ^ _key(application), _STREAM_OF_CONFIGURATION, 1, 1)
        return factor * _core.exponential(sd * (normal - 0.5 * sd))

    @property
    def total_sd(self) -> float:
        """Of both errors together."""
        return hypot(self.relative_sd, self.configuration_relative_sd)

    def to_dict(self) -> dict[str, Any]:
        """As the file and the JSON have it."""
        of_configuration = {OF_CONFIGURATION: self.configuration_relative_sd} if self.configuration_relative_sd else {}
        return {
            "source": self.source,
            "relative_sd": self.relative_sd,
            **of_configuration,
            "studies": list(self.studies),
        }


def _key(application: "Application") -> int:
    """63 bits that name the parameters of an application."""
    parameters = json.dumps([application.name, application.parameters()], sort_keys=True, default=str)
    return int.from_bytes(hashlib.sha256(parameters.encode()).digest()[:8]) >> 1


def read_transfer(path: str | Path) -> Transfer:
    """The layer in a YAML file {source, relative_sd, studies}; raises InputError with one line for any other."""
    from lepaute.kit.documents import read_text, read_yaml

    content = read_yaml(read_text(Path(path), "a file of a transfer layer"), str(path))
    return transfer_of(content, str(path))


def transfer_of(content: object, origin: str) -> Transfer:
    """The layer of plain values; raises InputError."""
    if not isinstance(content, Mapping) or set(content) - {OF_CONFIGURATION} != set(FIELDS):
        raise InputError(
            f"{origin}: is no transfer layer; it has the fields {', '.join(FIELDS)}, may have {OF_CONFIGURATION}, and "
            "no others"
        )
    source, _, studies = (content[name] for name in FIELDS)
    if not isinstance(source, str) or not source.strip():
        raise InputError(f"{origin}: source is {str(source)[:80]!r}; say where relative_sd comes from")
    common_sd, configuration_sd = (_sd(content, name, origin) for name in ("relative_sd", OF_CONFIGURATION))
    if not isinstance(studies, list) or not studies or not all(isinstance(each, str) and each for each in studies):
        raise InputError(f"{origin}: studies is {str(studies)[:80]}; it is a list of names, one at least")
    return Transfer(source, common_sd, tuple(studies), configuration_sd)


def _sd(content: Mapping[str, Any], name: str, origin: str) -> float:
    sd = content.get(name, 0.0)
    if isinstance(sd, bool) or not isinstance(sd, int | float) or not (isfinite(sd) and 0.0 <= sd <= LARGEST_SD):
        raise InputError(f"{origin}: {name} is {str(sd)[:80]}; it is a number from 0 to {LARGEST_SD:g}")
    return float(sd)
