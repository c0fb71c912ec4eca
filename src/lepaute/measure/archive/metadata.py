"""What an archive says of its run: the typed view of metadata.json, and the values of which it is made.

The controller of experiments writes the values. Archives are untrusted: a member of another type counts as missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lepaute.kit.json_values import ABSENT_IF_NONE, from_json

COMPLETE, PARTIAL, FAILED = "complete", "partial", "failed"


@dataclass(frozen=True, slots=True)
class Phase:
    """A step of a run: acquire, connect, prepare, setup, run, teardown; status: running, done, failed, interrupted."""

    name: str = ""
    start: str = ""
    duration_s: float | None = None
    status: str = ""


@dataclass(frozen=True, slots=True)
class Session:
    """One start of `lepaute run`; end and status are absent where it was killed."""

    start: str = ""
    end: str | None = field(default=None, metadata=ABSENT_IF_NONE)
    status: str | None = field(default=None, metadata=ABSENT_IF_NONE)


@dataclass(frozen=True, slots=True)
class LostNode:
    """A node that dropped out, when (ISO 8601), why, and in which phase."""

    node: str = ""
    when: str = ""
    why: str = ""
    phase: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run failed.

    command   : number of the failed command in commands.json; argv and returncode are its
    where     : script and line
    """

    phase: str = ""
    type: str = ""
    message: str = ""
    node: str | None = None
    command: int | None = None
    where: str | None = None
    stderr_tail: str = ""
    argv: tuple[str, ...] | None = field(default=None, metadata=ABSENT_IF_NONE)
    returncode: int | None = field(default=None, metadata=ABSENT_IF_NONE)


@dataclass(frozen=True, slots=True)
class DesignProgress:
    """Rows of the design, those of them that were measured, and rows that were added by further rounds."""

    rows: float | None = None
    done: float | None = None
    further: float | None = None

    @property
    def text(self) -> str:
        """16 of 16 rows measured; empty if there are none."""
        return f"{self.done:.0f} of {self.rows:.0f} rows measured" if self.rows and self.done is not None else ""


@dataclass(frozen=True, slots=True)
class BlasFacts:
    """The BLAS of a node: library, its kernels (core), build, OPENBLAS_CORETYPE, and the rate of dgemm."""

    library: str | None = None
    core: str | None = None
    config: str | None = None
    coretype_env: str | None = None
    dgemm_gflops: float | None = None


@dataclass(frozen=True, slots=True)
class MpiFacts:
    """The MPI library of the nodes: the first line that its launcher prints as its version."""

    version: str | None = None


@dataclass(frozen=True, slots=True)
class LayoutFacts:
    """How the cores of a node lie: of each core, by its number, the hardware thread that it is bound to, and the
    numbers of its socket, NUMA node and last-level cache. source: hwloc, sysfs, or the variable that made it up."""

    source: str = ""
    pu: tuple[int, ...] = ()
    socket: tuple[int, ...] = ()
    numa: tuple[int, ...] = ()
    l3: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """A node that a calibration measured.

    machine: equal for all names of one machine
    cores  : those measured; cpus: hardware threads that the node lends; node_cores: how many cores it has
    layout : None in archives of earlier versions, whose cores are hardware threads
    """

    machine: str = ""
    cores: tuple[int, ...] = ()
    cpus: tuple[int, ...] = ()
    node_cores: int | None = None
    cpu_model: str | None = None
    memory_bytes: int | None = None
    mpi: str | None = None
    blas: BlasFacts = BlasFacts()
    layout: LayoutFacts | None = field(default=None, metadata=ABSENT_IF_NONE)


@dataclass(frozen=True, slots=True)
class Metadata:
    """metadata.json of any archive; fields that a kind of run does not have are empty or None.

    kind        : experiment, calibration, ...
    partial_cause: of archives of older versions, in the place of failure
    cores .. machines: of calibrations; those of the first node, and of all by name; switches: the nodes of each
    more        : all else that stands there
    """

    kind: str = ""
    created: str = ""
    name: str = ""
    host: str = ""
    script: str = ""
    run_id: str = ""
    lepaute_version: str = ""
    seed: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    scheduler: Mapping[str, Any] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()
    phases: tuple[Phase, ...] = ()
    lost_nodes: tuple[LostNode, ...] = ()
    warnings: tuple[str, ...] = ()
    status: str = ""
    partial: bool = False
    partial_cause: str = ""
    failure: Failure = Failure()
    design: DesignProgress = DesignProgress()
    author: str = ""
    license: str = ""
    cpu_model: str | None = None
    node_cores: int | None = None
    memory_bytes: int | None = None
    cores: tuple[int, ...] = ()
    blas: BlasFacts = BlasFacts()
    mpi: MpiFacts = MpiFacts()
    machines: Mapping[str, MachineFacts] = field(default_factory=dict)
    switches: tuple[tuple[str, ...], ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, document: object) -> "Metadata":
        """The view of a document of any content."""
        return from_json(cls, document, lenient=True)

    @property
    def outcome(self) -> str:
        """complete, partial or failed; old calibrations say only whether they are partial."""
        if self.status in (COMPLETE, PARTIAL, FAILED):
            return self.status
        return PARTIAL if self.partial else COMPLETE

    @property
    def cause(self) -> str:
        """Why the run did not complete, in one line; empty if it is not recorded."""
        return self.failure.message or self.partial_cause
