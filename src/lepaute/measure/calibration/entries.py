"""The entries of a calibration's journals."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from lepaute.kit.json_values import ABSENT_IF_NONE
from lepaute.measure.experiment.entries import Entry


@dataclass(frozen=True, slots=True)
class RawFile(Entry):
    """A raw file that was begun, and the attempt it belongs to.

    node: where the run takes place, which for messages is the node of rank 0; host: where this file's rank runs
    link: local or remote; peer: the node at the other end of the messages; both only of messages
    round: of the search for the limits of sends
    core : that this file's rank runs on, the first where it has several threads; active_cores: those of its node that
           compute meanwhile, its own among them; active_socket_cores: those of them on its socket
    distance: between the two cores of messages inside a node, empty where there is no such
    """

    JOURNAL: ClassVar[str] = "raw_files"
    member: str
    node: str
    host: str
    name: str
    block: int
    probe: str
    attempt: int
    round: int | None = field(default=None, metadata=ABSENT_IF_NONE)
    link: str | None = field(default=None, metadata=ABSENT_IF_NONE)
    peer: str | None = field(default=None, metadata=ABSENT_IF_NONE)
    core: int = 0
    active_cores: int = 1
    active_socket_cores: int = 1
    threads: int = 1
    distance: str = ""

    @property
    def key(self) -> tuple[str, int, str, int]:
        """What identifies the attempt."""
        return self.node, self.block, self.name, self.attempt


@dataclass(frozen=True, slots=True)
class AttemptEntry(Entry):
    """An attempt that ended: a line of blocks.json.

    start: ISO 8601 by the node's clock; start_s by its monotonic clock, started_s since the epoch by the controller's
    load, threads: of the planned run
    disturbed: other programs used the machine; causes: what they did; more: the load of the machine meanwhile
    """

    JOURNAL: ClassVar[str] = "blocks"
    node: str
    peer: str | None
    block: int
    name: str
    attempt: int
    probe: str
    run_cores: tuple[int, ...]
    load: str
    threads: int
    seed: int
    start: str
    start_s: float
    started_s: float
    wall_s: float
    disturbed: bool
    causes: tuple[str, ...]
    more: dict[str, Any]

    @property
    def key(self) -> tuple[str, int, str, int]:
        """What identifies the attempt."""
        return self.node, self.block, self.name, self.attempt
