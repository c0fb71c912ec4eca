"""The kinds of factors: those of this package, and those that were plugged in.

A kind is a function that takes an archive and gives values. Two ways to plug one in:

* a distribution declares it as an entry point of the group `lepaute.watch.factors`:

      [project.entry-points."lepaute.watch.factors"]
      stream = "my_package.stream:stream_factors"

* a program registers it: `lepaute.watch.factors.register("stream", stream_factors)`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from lepaute.errors import InputError, LepauteError
from lepaute.kit.printable import printable
from lepaute.watch.factors.archived_run import ArchivedRun
from lepaute.watch.factors.disk import disk
from lepaute.watch.factors.memory import memory
from lepaute.watch.factors.monitoring import monitoring
from lepaute.watch.factors.network import network
from lepaute.watch.factors.performance import performance
from lepaute.watch.factors.regression import coefficients
from lepaute.watch.factors.value import FactorValue

if TYPE_CHECKING:
    from lepaute.archive import Archive

GROUP = "lepaute.watch.factors"
Measure = Callable[["Archive"], Iterable[FactorValue]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of factors.

    everywhere : each node measures them all, so that a node without one has lost it
    """

    name: str
    measure: Callable[[ArchivedRun], Iterable[FactorValue]]
    everywhere: bool = False


BUILT_IN = (
    Kind("performance", performance, everywhere=True),
    Kind("regression", coefficients, everywhere=True),
    Kind("monitoring", monitoring),
    Kind("memory", memory, everywhere=True),
    Kind("network", network),
    Kind("disk", disk, everywhere=True),
)
_registered: dict[str, Measure] = {}


def register(name: str, measure: Measure) -> None:
    """Adds a kind of factors for the archives that this program ingests from now on.

    measure : takes a lepaute.Archive, gives FactorValues; nothing for archives without these factors
    Raises InputError for a name that is taken by another function.
    """
    if name in {kind.name for kind in BUILT_IN} or _registered.get(name, measure) is not measure:
        raise InputError(f"there is a kind of factors {printable(str(name)[:60])!r} already; give another name")
    _registered[name] = measure


def unregister(name: str) -> None:
    """Removes a kind that was registered; one that is not there is no error."""
    _registered.pop(name, None)


def kinds() -> tuple[Kind, ...]:
    """All of them: of this package, of installed distributions in the order of their names, and those registered.

    Raises InputError where one of a distribution cannot be loaded, or two have the same name.
    """
    found = {kind.name: kind for kind in BUILT_IN}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        if point.name in found:
            raise InputError(
                f"two kinds of factors are named {printable(point.name)!r} ({_from(point)}); uninstall one"
            )
        found[point.name] = Kind(point.name, _guarded(point.name, _loaded(point), _from(point)))
    for name, measure in _registered.items():
        if name in found:
            raise InputError(f"two kinds of factors are named {printable(name)!r}; register it under another name")
        found[name] = Kind(name, _guarded(name, measure, "registered"))
    return tuple(found.values())


def _loaded(point: EntryPoint) -> Measure:
    try:
        measure = point.load()
    except Exception as problem:  # noqa: BLE001  whatever foreign code raises
        raise InputError(
            f"the factors {printable(point.name)!r} of {_from(point)} cannot be loaded: {_said(problem)}; "
            "mend or uninstall it"
        ) from None
    if not callable(measure):
        raise InputError(f"the factors {printable(point.name)!r} of {_from(point)} are no function")
    return measure  # type: ignore[no-any-return]


def _guarded(name: str, measure: Measure, origin: str) -> Callable[[ArchivedRun], Iterable[FactorValue]]:
    """The function of somebody else, with one clear line for whatever it does wrong."""

    def guarded(run: ArchivedRun) -> Iterable[FactorValue]:
        try:
            values = list(measure(run.archive))
        except LepauteError:
            raise
        except Exception as problem:
            raise InputError(
                f"{run.archive.path}: the factors {printable(name)!r} ({origin}) failed: {_said(problem)}"
            ) from problem
        for value in values:
            if not isinstance(value, FactorValue):
                raise InputError(
                    f"the factors {printable(name)!r} ({origin}) gave a {type(value).__name__}; they give FactorValues"
                )
        return values

    return guarded


def _from(point: EntryPoint) -> str:
    return printable(point.dist.name) if point.dist is not None else "an installed distribution"


def _said(problem: Exception) -> str:
    return printable(f"{type(problem).__name__}: {problem}")[:300]
