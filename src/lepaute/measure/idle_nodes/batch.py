"""What a batch system is asked about tests of its nodes: which are idle, who waits for nodes, and jobs of our own."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Protocol

#: The name of all jobs of tests.
JOB_NAME = "lepaute-node-test"
JobState = Literal["pending", "running"]


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """Somebody else's job that waits for nodes. nodes: those that it names, none where any will do; count: how many."""

    job: str
    count: int = 1
    nodes: frozenset[str] = frozenset()


class BatchSystem(Protocol):
    """Each method raises EnvironmentProblem where the batch system does not answer, or refuses.

    evicts: whether it ends our jobs itself when others want their nodes; `waiting` may be empty then
    """

    scheduler: ClassVar[str]
    evicts: ClassVar[bool] = False

    def idle(self) -> dict[str, bool]:
        """Nodes that tests may use, and whether each is idle. Raises InputError where there is none."""
        ...

    def waiting(self) -> list[WaitingJob]:
        """Jobs of others that could start if more of these nodes were free."""
        ...

    def states(self, jobs: Collection[str]) -> dict[str, JobState]:
        """Of these jobs of ours, those that have not ended."""
        ...

    def submit(self, node: str, words: Sequence[str], log: Path, walltime_s: int) -> str:
        """Submits a command for one whole node, below the priority of other jobs; its job id."""
        ...

    def cancel(self, job: str) -> None: ...
