"""A layer learnt from other validated studies: how far predictions of other machines were off as a whole.

It is off unless asked for: all other layers come from measurements of the machine itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from lepaute.errors import InputError

FIELDS = ("source", "relative_sd", "studies")
_STREAM = 0x54524E53  # of draws
LARGEST_SD = 1.0


@dataclass(frozen=True, slots=True)
class Transfer:
    """A relative error common to all of a prediction, whose standard deviation other studies had.

    relative_sd : of the logarithm of measured over predicted time, between studies
    studies     : those that it was learnt from; none of them may be what is predicted
    """

    source: str
    relative_sd: float
    studies: tuple[str, ...]

    def factor(self, seed: int) -> float:
        """What the run of this seed takes longer by: log-normal, with mean 1."""
        from lepaute import _core

        (normal,) = _core.normals(seed, _STREAM, 1, 1)
        return _core.exponential(self.relative_sd * (normal - 0.5 * self.relative_sd))

    def to_dict(self) -> dict[str, Any]:
        """As the file and the JSON have it."""
        return {"source": self.source, "relative_sd": self.relative_sd, "studies": list(self.studies)}


def read_transfer(path: str | Path) -> Transfer:
    """The layer in a YAML file {source, relative_sd, studies}; raises InputError with one line for any other."""
    from lepaute.kit.documents import read_text, read_yaml

    content = read_yaml(read_text(Path(path), "a file of a transfer layer"), str(path))
    return transfer_of(content, str(path))


def transfer_of(content: object, origin: str) -> Transfer:
    """The layer of plain values; raises InputError."""
    if not isinstance(content, Mapping) or set(content) != set(FIELDS):
        raise InputError(f"{origin}: is no transfer layer; it has the fields {', '.join(FIELDS)} and no others")
    source, sd, studies = (content[name] for name in FIELDS)
    if not isinstance(source, str) or not source.strip():
        raise InputError(f"{origin}: source is {str(source)[:80]!r}; say where relative_sd comes from")
    if isinstance(sd, bool) or not isinstance(sd, int | float) or not (isfinite(sd) and 0.0 <= sd <= LARGEST_SD):
        raise InputError(f"{origin}: relative_sd is {str(sd)[:80]}; it is a number from 0 to {LARGEST_SD:g}")
    if not isinstance(studies, list) or not studies or not all(isinstance(each, str) and each for each in studies):
        raise InputError(f"{origin}: studies is {str(studies)[:80]}; it is a list of names, one at least")
    return Transfer(source, float(sd), tuple(studies))
