"""What one factor was on one machine, and under which conditions it was measured."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lepaute.errors import InputError
from lepaute.kit.numbers import plain
from lepaute.watch.values import WHOLE_NODE

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True, slots=True)
class FactorValue:
    """A factor of a processor, or of a whole node.

    node       : as the archive names it
    factor     : with its unit, such as dgemm_rate_flops
    value      : SI; NaN where it should have been measured and was not
    cpu        : number of the processor (socket); WHOLE_NODE for what is of all of it
    conditions : what a value must have in common with this one to be comparable, besides the protocol of the run and
                 Lepaute's version, which are added: name -> text
    Raises InputError for a name that is none, a value that is no number or infinite, and a cpu below WHOLE_NODE.
    """

    node: str
    factor: str
    value: float
    cpu: int = WHOLE_NODE
    conditions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.factor, str) or not _NAME.fullmatch(self.factor):
            raise InputError(
                f"{str(self.factor)[:60]!r} is no name of a factor; give letters, digits and underscores, and the unit "
                "at the end, such as stream_triad_B_per_s"
            )
        cpu = plain(self.cpu)
        if type(cpu) is not int or cpu < WHOLE_NODE:
            raise InputError(f"{self.factor}: the cpu is {self.cpu!r}; give its number, or {WHOLE_NODE} for the node")
        if not isinstance(self.node, str) or not self.node:
            raise InputError(f"{self.factor}: the node is {self.node!r}; give its name as the archive has it")
        try:
            infinite = math.isinf(self.value)
            object.__setattr__(self, "value", float(self.value))
        except (TypeError, OverflowError):
            raise InputError(f"{self.factor} of node {self.node}: {self.value!r} is not a number") from None
        if infinite:
            raise InputError(f"{self.factor} of node {self.node} is infinite; give NaN where nothing was measured")
        object.__setattr__(self, "cpu", cpu)
        object.__setattr__(self, "conditions", {str(name): str(text) for name, text in self.conditions.items()})
