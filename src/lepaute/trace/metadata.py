"""What a trace says of its run: the types that its metadata must have, checked where a file comes in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lepaute.errors import InputError
from lepaute.kit.json_values import from_json


@dataclass(frozen=True, slots=True)
class TraceMetadata:
    """The members that something reads; all others are kept as they are.

    nodes    : of each rank, the index of its node: in hosts, and from first_node on in the platform
    begins_s, ends_s : of each rank, when what was recorded of it began and ended
    unsized  : names of calls whose sizes are not known
    """

    source: str | None = None
    application: str | None = None
    platform: str | None = None
    engine: str | None = None
    ranks: int | None = None
    seed: int | None = None
    whole: bool | None = None
    time_s: float | None = None
    resolution_s: float | None = None
    warnings: tuple[str, ...] = ()
    unsized: tuple[str, ...] = ()
    hosts: tuple[str, ...] | None = None
    nodes: tuple[int, ...] | None = None
    first_node: int | None = None
    begins_s: tuple[float, ...] | None = None
    ends_s: tuple[float, ...] | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


def check_metadata(document: object, where: str) -> None:
    """Raises InputError, naming the member, where the metadata of a trace are not what they must be.

    where: the file, for messages
    """
    metadata = from_json(TraceMetadata, document, where)
    numbers = (metadata.ranks, metadata.first_node, *(metadata.nodes or ()))
    if any(number is not None and not 0 <= number < 2**31 for number in numbers):
        raise InputError(f"{where}: ranks or nodes holds an invalid number; the file is damaged")
