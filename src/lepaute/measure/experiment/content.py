"""What the archive of one kind of run holds besides what every run has."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas

    from lepaute.measure.experiment.workspace import Workspace


def _no_warnings(_workspace: "Workspace") -> list[str]:
    return []


@dataclass(frozen=True, slots=True)
class Content:
    """Given by the class of the job, and by whoever closes the workspace of an interrupted run.

    kind    : in the metadata; journals: further ones that become lists
    tables  : of observations, by name; None: a table each of what was recorded
    warnings: about the run as a whole, made when it is archived
    """

    kind: str = "experiment"
    journals: tuple[str, ...] = ()
    tables: "Callable[[Workspace], Iterator[tuple[str, pandas.DataFrame]]] | None" = None
    warnings: "Callable[[Workspace], list[str]]" = _no_warnings


EXPERIMENT = Content()
