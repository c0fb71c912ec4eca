"""What a user may set of a node test: `--set NAME=VALUE`."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

from lepaute.errors import InputError

WARM_UP_S, DGEMM_S = 60.0, 240.0
MOST_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Parameters:
    """warm_up_s  : dgemm on all cores before anything is measured
    dgemm_s    : no block of dgemm begins later than this; four minutes, so that the steady window is whole
    disk_folder: where the disk is probed; the folder of temporary files by default
    quick      : a few seconds of each part, to try the test out; not comparable with whole tests
    """

    warm_up_s: float = WARM_UP_S
    dgemm_s: float = DGEMM_S
    disk_folder: str = ""
    quick: bool = False

    @classmethod
    def of(cls, given: Mapping[str, object]) -> Self:
        """Raises InputError for an unknown name, or a value that cannot be."""
        known = [each.name for each in fields(cls)]
        if unknown := sorted(set(given) - set(known)):  # a typing error would measure something else
            raise InputError(f"there is no parameter {unknown[0][:60]}; known: {', '.join(known)}")
        quick = _flag(given.get("quick", "false"))
        warm_up_s, dgemm_s = (0.5, 0.0) if quick else (WARM_UP_S, DGEMM_S)
        return cls(
            _seconds(given.get("warm_up_s", warm_up_s), "warm_up_s"),
            _seconds(given.get("dgemm_s", dgemm_s), "dgemm_s"),
            str(given.get("disk_folder", "")),
            quick,
        )


def _seconds(value: object, name: str) -> float:
    try:
        seconds = float(str(value))
    except ValueError:
        seconds = math.nan
    if not 0.0 <= seconds <= MOST_S:
        raise InputError(f"{name} is {str(value)[:60]!r}; it is a number of seconds, up to a day")
    return seconds


def _flag(value: object) -> bool:
    text = str(value).lower()
    if text not in ("true", "false", "1", "0", "yes", "no"):
        raise InputError(f"quick is {text[:60]!r}; it is true or false")
    return text in ("true", "1", "yes")
