"""What is asked of a scheduler: one description of each field, from which commands and messages derive."""

import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lepaute.errors import InputError
from lepaute.kit.node_sets import MOST_NODES, parse_node_set
from lepaute.kit.options import flag_of, option, options_of

#: A reservation is for so long unless something else is asked for, and none is longer than MOST_WALLTIME_S.
DEFAULT_WALLTIME_S = 3600.0
MOST_WALLTIME_S = 366 * 86400.0
#: The fields that say which nodes of an existing job to use.
USED_IN_A_JOB = ("job", "nodes", "count")


def walltime_of(text: str) -> float:
    """Seconds of 90, 1:30 (minutes), or 2:00:00; raises InputError for an invalid walltime."""
    parts = text.split(":")
    if len(parts) > 3 or not all(re.fullmatch("[0-9]{1,9}", each) for each in parts) or not int("".join(parts)):
        raise InputError(f"--walltime is {text!r}; give seconds, or h:mm:ss such as 2:00:00")
    seconds = 0
    for part in parts:
        seconds = 60 * seconds + int(part)
    return float(seconds)


@dataclass(frozen=True, slots=True)
class Request:
    """Which nodes, for how long; a scheduler refuses a field that it does not support with InputError.

    A further field is a line here; commands, `words` and messages follow. walltime_s: DEFAULT_WALLTIME_S where None.
    """

    nodes: str | None = field(default=None, metadata=option("Node set such as node[1-32]."))
    count: int | None = field(default=None, metadata=option("How many nodes to ask for.", minimum=1))
    walltime_s: float | None = field(
        default=None,
        metadata=option(
            "Length of the reservation: seconds, or h:mm:ss; an hour unless given.",
            name="walltime",
            metavar="TIME",
            parse=walltime_of,
        ),
    )
    queue: str | None = field(default=None, metadata=option("Queue; partition of Slurm."))
    account: str | None = field(default=None, metadata=option("Account or project to charge."))
    site: str | None = field(default=None, metadata=option("Site of Grid'5000."))
    cluster: str | None = field(default=None, metadata=option("Cluster of Grid'5000."))
    image: str | None = field(default=None, metadata=option("System image to deploy on nodes of Grid'5000."))
    properties: str | None = field(
        default=None, metadata=option("Constraint of Slurm, properties of OAR.", name="constraint")
    )
    job: str | None = field(default=None, metadata=option("Use the nodes of this existing job."))
    ssh_config: Path | None = field(default=None, metadata=option("Configuration file for ssh."))

    def node_names(self) -> tuple[str, ...]:
        """The nodes that are requested by name; () where none are. Raises InputError as `parse_node_set`."""
        return () if self.nodes is None else parse_node_set(self.nodes)

    def given(self) -> list[str]:
        """The fields that are set, in their order."""
        return [name for name in options_of(Request) if getattr(self, name) is not None]

    def flags_besides(self, fields: Collection[str]) -> list[str]:
        """The fields that are set and not among these, as the command line spells them."""
        return [flag(name) for name in self.given() if name not in fields]

    def words(self) -> list[str]:
        """The same request on the command line."""
        values = {name: getattr(self, name) for name in self.given()}
        if "walltime_s" in values:
            values["walltime_s"] = math.ceil(values["walltime_s"])
        return [f"{flag(name)}={value}" for name, value in values.items()]

    def refuse_all_but(self, supported: Collection[str], by: str) -> None:
        """Raises InputError for a field that is set and not supported; by: the scheduler, for the message."""
        for unsupported in self.flags_besides(supported):
            known = ", ".join(map(flag, supported)) or "none"
            raise InputError(f"{by} does not support {unsupported}; supported: {known}")

    def duration_s(self) -> int:
        """How long to reserve nodes for, in whole seconds, at least one; raises InputError for an invalid walltime."""
        walltime_s = DEFAULT_WALLTIME_S if self.walltime_s is None else self.walltime_s
        if not 0 < walltime_s < MOST_WALLTIME_S:
            raise InputError(f"--walltime is {walltime_s:g} s; give more than 0 s and less than a year")
        return math.ceil(walltime_s)

    def size(self, names: Sequence[str] = ()) -> int:
        """How many nodes to ask for; names: those asked for by name. 1 where nothing says it."""
        if names and self.count is not None and self.count != len(names):
            raise InputError(f"--count is {self.count}, but --nodes names {len(names)}; give one of them")
        if self.count is not None and not 0 < self.count <= MOST_NODES:
            raise InputError(f"--count is {self.count}; give 1 to {MOST_NODES} nodes")
        return len(names) or self.count or 1

    def choose(self, job_nodes: tuple[str, ...], job: str, names: tuple[str, ...]) -> tuple[str, ...]:
        """Of the nodes of an existing job those asked for: `names`, or the first `count`, or all."""
        if names:
            self.size(names)
            absent = [name for name in names if name not in job_nodes]
            if absent:
                raise InputError(f"job {job} has nodes {', '.join(job_nodes[:8])}, but not {', '.join(absent[:5])}")
            return names
        count = self.size() if self.count is not None else len(job_nodes)
        if count > len(job_nodes):
            raise InputError(f"--count is {count}, but job {job} has {len(job_nodes)} nodes")
        return job_nodes[:count]


def flag(field_name: str) -> str:
    """A field of Request as the command line spells it."""
    return flag_of(Request, field_name)


def warn_of_unused(request: Request, job: str, tell: Callable[[str], None]) -> None:
    """Says which options only a new job would use; job: the existing one, such as "Slurm job 7"."""
    if unused := request.flags_besides(USED_IN_A_JOB):
        tell(f"using the existing {job}; {', '.join(unused)} {'is' if len(unused) == 1 else 'are'} ignored")


def check_word(field_name: str, value: str) -> str:
    """A value that goes to a scheduler's own command or interface as one word; raises InputError for others."""
    if not value or not value.isprintable() or value.startswith("-"):
        raise InputError(
            f"{flag(field_name)} is {value[:60]!r}; give printable text that is not empty and does not start with -"
        )
    return value
