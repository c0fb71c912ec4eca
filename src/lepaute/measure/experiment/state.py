"""The state of a run: what it was started with and what became of each session; state.json in its workspace."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lepaute.archive.metadata import Failure, LostNode, Phase, Session
from lepaute.kit.json_values import ABSENT_IF_NONE, from_json, to_json


@dataclass(frozen=True, slots=True)
class Settings:
    """How the machines are set (see docs/experiments.md) and watched; 0 for not at all."""

    control: Mapping[str, Any] = field(default_factory=dict)
    warm_up_s: float = 0.0
    monitor_period_s: float = 0.0
    reference_period_s: float = 0.0


@dataclass(slots=True)
class RunState:
    """Grows while the run goes on; only the controller's main thread replaces what stands in it.

    kind      : of the run, where it is not a plain experiment
    created   : ISO 8601, UTC
    scheduler : its name, and what it says of the allocation
    nodes     : all that any session had, in order
    status    : complete, failed or partial, once the run has ended
    more      : what this kind of run adds to the metadata, and members of other versions
    """

    run_id: str = ""
    kind: str | None = field(default=None, metadata=ABSENT_IF_NONE)
    name: str = ""
    script: str | None = None
    created: str = ""
    lepaute_version: str | None = field(default=None, metadata=ABSENT_IF_NONE)
    python: str | None = field(default=None, metadata=ABSENT_IF_NONE)
    seed: int = 1
    parameters: dict[str, str] = field(default_factory=dict)
    scheduler: dict[str, Any] = field(default_factory=dict)
    settings: Settings | None = field(default=None, metadata=ABSENT_IF_NONE)
    nodes: list[str] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)
    lost_nodes: list[LostNode] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)
    status: str | None = field(default=None, metadata=ABSENT_IF_NONE)
    failure: Failure | None = field(default=None, metadata=ABSENT_IF_NONE)
    more: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, document: object, where: str) -> "RunState":
        """The state in state.json; raises InputError naming what is wrong in it."""
        return from_json(cls, document, where)

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = to_json(self)
        return document
