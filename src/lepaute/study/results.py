"""Results of simulations in a store: written as they come, so that a kill loses the last moments only."""

import json
import time
from collections.abc import Collection
from types import TracebackType
from typing import TYPE_CHECKING, Self

from lepaute.study.evaluation import Trial
from lepaute.study.simulated import Simulated
from lepaute.version import __version__

if TYPE_CHECKING:
    from lepaute.store import Store
    from lepaute.study.configuration import Configuration

#: Results that are not written yet are at most so many, and so old when another one comes.
MOST_HELD, LONGEST_HELD_S = 2_000, 2.0


class Results:
    """Results by key: of this process, and of a store where there is one. As a context it writes at the end, too."""

    def __init__(self, store: "Store | None" = None) -> None:
        self._store = store
        self._known: dict[str, Simulated] = {}
        self._held: list[dict[str, object]] = []
        self._written_s = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.write()

    @property
    def any(self) -> bool:
        """Whether there is a result yet."""
        return bool(self._known)

    def known(self, keys: Collection[str]) -> dict[str, Simulated]:
        """Those of the keys that have a result."""
        unknown = [key for key in keys if key not in self._known]
        if unknown and self._store is not None:
            for row in self._store.simulations(unknown).to_dict("records"):
                found = Simulated.of_row({str(name): value for name, value in row.items()})
                self._known[found.key] = found
        return {key: self._known[key] for key in keys if key in self._known}

    def add(self, configuration: "Configuration", trial: Trial, simulated: Simulated) -> None:
        """Keeps a result; written with others, soon."""
        if simulated.key in self._known:
            return
        self._known[simulated.key] = simulated
        if self._store is None:
            return
        if not self._held:
            self._written_s = time.monotonic()
        self._held.append(_row(configuration, trial, simulated))
        if len(self._held) >= MOST_HELD or time.monotonic() - self._written_s >= LONGEST_HELD_S:
            self.write()

    def write(self) -> None:
        """Writes what has not been written; raises EnvironmentProblem where that fails, the store being as it was."""
        if self._store is None or not self._held:
            return
        import pandas

        from lepaute.store.tables import SIMULATIONS

        held, self._held = self._held, []
        frame = pandas.DataFrame(held, columns=list(SIMULATIONS.columns))
        for name, kind in SIMULATIONS.columns.items():
            if kind == "real":
                frame[name] = frame[name].astype("float64")
        self._store.add_simulations(frame)
        self._written_s = time.monotonic()


def _row(configuration: "Configuration", trial: Trial, simulated: Simulated) -> dict[str, object]:
    return {
        **{name: getattr(simulated, name) for name in Simulated.__slots__ if name != "notes"},
        "about": json.dumps(
            configuration.about
            | ({"drawn": trial.drawn} if trial.drawn else {})
            | ({"notes": dict(simulated.notes)} if simulated.notes else {}),
            sort_keys=True,
            separators=(",", ":"),
            default=str,
        ),
        "platform_sha256": configuration.conditions.platform_sha256,
        "seed": trial.seed,
        "repeat": trial.repeat,
        "version": __version__,
    }
