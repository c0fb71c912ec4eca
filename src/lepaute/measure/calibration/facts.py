"""What the metadata of a calibration say besides those of every run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lepaute.archive.metadata import BlasFacts, MachineFacts, MpiFacts
from lepaute.design.hpl_step import DEFAULT_NBS
from lepaute.kit.json_values import ABSENT_IF_NONE, from_json, to_json


@dataclass(frozen=True, slots=True)
class CalibrationFacts:
    """What was asked for; and, once the nodes are known, what they are and how large the largest measurements are.

    nbs, threads: block sizes of HPL's steps, and BLAS threads of a process; archives of older versions have `nb`, one
    cores .. mpi: of the first node, as all are alike; memory_bytes: of the smallest
    blocks, most_n, most_message_bytes: of the plan
    switches: the nodes of each switch, empty where that is not known
    """

    quick: bool = False
    network_bytes: int | None = None
    nbs: tuple[int, ...] = DEFAULT_NBS
    threads: tuple[int, ...] = (1,)
    machines: Mapping[str, MachineFacts] | None = field(default=None, metadata=ABSENT_IF_NONE)
    cores: tuple[int, ...] | None = field(default=None, metadata=ABSENT_IF_NONE)
    node_cores: int | None = field(default=None, metadata=ABSENT_IF_NONE)
    cpu_model: str | None = field(default=None, metadata=ABSENT_IF_NONE)
    memory_bytes: int | None = field(default=None, metadata=ABSENT_IF_NONE)
    blas: BlasFacts | None = field(default=None, metadata=ABSENT_IF_NONE)
    mpi: MpiFacts | None = field(default=None, metadata=ABSENT_IF_NONE)
    blocks: int | None = field(default=None, metadata=ABSENT_IF_NONE)
    most_n: int | None = field(default=None, metadata=ABSENT_IF_NONE)
    most_message_bytes: int | None = field(default=None, metadata=ABSENT_IF_NONE)
    switches: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> "CalibrationFacts":
        """The facts in the state of a run; raises InputError naming what is wrong."""
        return from_json(cls, dict(document), "state.json")

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = to_json(self)
        return document
