"""How a program is emulated, as options of the command line and fields of a study."""

import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from lepaute.errors import InputError
from lepaute.kit.options import check_fields, option_field
from lepaute.kit.quantities import PATTERN_HELP, parse_size
from lepaute.simulate.smpi.process import Limits

if TYPE_CHECKING:
    from lepaute.simulate.smpi.emulate import Options
    from lepaute.simulate.smpi.request import Private


@dataclass(frozen=True, kw_only=True)
class ProgramSettings:
    """`Options` in the words of a command line. Raises InputError for a value that cannot be."""

    time_pattern: str | None = option_field(None, PATTERN_HELP)
    fold: str | None = option_field(None, "allocations of this size or more share memory: 1M")
    private: list[str] | None = option_field(None, "WHERE[@FIRST-LAST]: not folded; WHERE: file.c[:LINE] or a function")
    shared_globals: bool = option_field(False, "global variables are the same for all ranks")
    computing: str = option_field("measured", "outside of BLAS and LAPACK: measured here, or none")
    contention: bool = option_field(
        True, "run once more to measure memory contention between ranks", name="contention/--no-contention"
    )
    memory_share: float | None = option_field(
        None,
        "share of the program's own computing bound by memory, 0 to 1, instead of that run",
        minimum=0.0,
        maximum=1.0,
    )
    collectives: str | None = option_field(
        None, "algorithms as in openmpi, mpich, mvapich2 or intelmpi; default: each run draws one"
    )
    stack: int = option_field(1024, "KiB of each rank", minimum=64, maximum=1 << 30)
    stall: float = option_field(120.0, "wall seconds without an MPI call or simulated time")
    timeout: float = option_field(3600.0, "wall seconds of a run")
    every_probe: bool = option_field(False, "simulate each turn of a loop of probes")

    def __post_init__(self) -> None:
        check_fields(self, largest=2**31)
        for field in fields(self):
            given, kind = getattr(self, field.name), field.type
            if kind in (str, str | None) and not (isinstance(given, str) or (given is None and kind is not str)):
                raise InputError(f"{field.name} is {given!r:.80}; it must be a text")
        if not isinstance(self.private, list | None) or not all(isinstance(text, str) for text in self.private or ()):
            raise InputError(f"private is {self.private!r:.80}; it must be a list of texts such as [panel.c:120]")
        if self.computing not in ("none", "measured"):
            raise InputError(f"computing is {self.computing!r:.80}; it is measured or none")

    def for_engine(self) -> "Options":
        """As the engine takes them; raises InputError for any of them that cannot be."""
        from lepaute.simulate.smpi.emulate import Options
        from lepaute.simulate.smpi.request import Folding

        if self.fold is None and self.private:
            raise InputError("--private says what is not folded, and nothing is: give --fold SIZE")
        from_bytes = None if self.fold is None else parse_size(self.fold, "--fold")
        return Options(
            computing="measured" if self.computing == "measured" else "none",
            contention=self.contention,
            memory_share=self.memory_share,
            privatize=not self.shared_globals,
            folding=Folding(from_bytes, private=tuple(map(private_of, self.private or ()))),
            limits=Limits(self.timeout, self.stall),
            stack_kib=self.stack,
            value_pattern=self.time_pattern,
            collectives=self.collectives,
            sleeping_probes=not self.every_probe,
        )


def private_of(text: str) -> "Private":
    """WHERE or WHERE@FIRST-LAST; raises InputError for anything else."""
    from lepaute.simulate.smpi.request import Private

    where, separator, span = text.partition("@")
    if not where or any(character.isspace() for character in where):
        raise InputError(
            f"--private {text!r}: name a file, file:line or function, such as panel.c:120 or panel.c@0-4096"
        )
    if not separator:
        return Private(where)
    match = re.fullmatch(r"(-?[0-9]{1,18})-(-?[0-9]{1,18})", span)
    if match is None:
        raise InputError(f"--private {text[:80]!r}: bytes are FIRST-LAST, such as 0-4096 or -64--1 (from the end)")
    return Private(where, int(match[1]), int(match[2]))
