"""What reductions reduce: a datatype and an operator, as MPI calls them; `probes/reductions.c` has the same ones."""

from dataclasses import dataclass

from lepaute.errors import InputError

DATATYPE, OPERATOR = "MPI_DOUBLE", "MPI_SUM"
#: Bytes of an element of each datatype.
DATATYPES = {"MPI_BYTE": 1, "MPI_INT8_T": 1, "MPI_INT": 4, "MPI_LONG": 8, "MPI_FLOAT": 4, "MPI_DOUBLE": 8}
_ARITHMETIC = ("MPI_SUM", "MPI_PROD", "MPI_MAX", "MPI_MIN")
_BITWISE = ("MPI_BAND", "MPI_BOR", "MPI_BXOR")
OPERATORS = (*_ARITHMETIC, *_BITWISE, "MPI_LAND", "MPI_LOR")
#: Section 6.9.2 of the standard: that not every operator is for every datatype.
_OPERATORS_OF = {"MPI_BYTE": _BITWISE, "MPI_FLOAT": _ARITHMETIC, "MPI_DOUBLE": _ARITHMETIC}


@dataclass(frozen=True, slots=True)
class Reduction:
    """Of every reduction of a campaign, whatever its size: sizes are whole counts of the datatype."""

    datatype: str = DATATYPE
    op: str = OPERATOR

    def __post_init__(self) -> None:
        for option, name, known in (("--datatype", self.datatype, DATATYPES), ("--op", self.op, OPERATORS)):
            if name not in known:
                raise InputError(f"{option} is {name[:40]!r}; choose one of {', '.join(known)}")
        defined = _OPERATORS_OF.get(self.datatype, OPERATORS)
        if self.op not in defined:
            raise InputError(f"MPI does not define {self.op} for {self.datatype}; choose --op {', '.join(defined)}")

    @property
    def element_bytes(self) -> int:
        return DATATYPES[self.datatype]

    def __str__(self) -> str:
        return f"{self.op} of {self.datatype}"


def reduction_of(datatype: str, op: str) -> Reduction:
    """By names in any case, with or without MPI_ before; raises InputError for others."""
    return Reduction(*(f"MPI_{name.strip().upper().removeprefix('MPI_')}" for name in (datatype, op)))
