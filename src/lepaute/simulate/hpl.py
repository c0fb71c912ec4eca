"""The parameters of one run of HPL, as HPL.dat has them, checked once."""

from dataclasses import dataclass
from typing import Any

from lepaute.errors import InputError

BROADCASTS = ("1ring", "1ring-modified", "2ring", "2ring-modified", "long", "long-modified")  # HPL.dat's codes 0..5
SWAPS = ("binary-exchange", "spread-roll", "mix")  # 0..2
FACTORISATIONS = ("left", "crout", "right")  # 0..2
FORMS = ("transposed", "no-transposed")  # 0..1
ORDERS = ("row", "column")  # 0..1
PIVOTS = ("random", "first-row")
#: HPL keeps its parameters in C's int.
MOST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Hpl:
    """One HPL run: matrix of order n in blocks of nb on a grid of p x q processes, and its algorithms.

    Values are the words of the command line. swap_threshold is in columns, None means nb; align is in doubles; copy_l:
    built without derived datatypes, HPL copies L in every panel. pivots random: uniform among the rows left, as for a
    random matrix; first-row: all of the first process row, as where nothing is computed and all candidates are equal.
    Raises InputError for a value that HPL does not have.
    """

    n: int
    nb: int = 128
    p: int = 1
    q: int = 1
    depth: int = 1
    bcast: str = "2ring"
    swap: str = "binary-exchange"
    swap_threshold: int | None = None
    pfact: str = "crout"
    rfact: str = "right"
    nbmin: int = 2
    ndiv: int = 2
    pmap: str = "row"
    l1: str = "transposed"
    u: str = "transposed"
    equil: bool = True
    align: int = 8
    copy_l: bool = False
    pivots: str = "random"
    threads_per_rank: int = 1

    def __post_init__(self) -> None:
        for name, least in (
            ("n", 1),
            ("nb", 1),
            ("p", 1),
            ("q", 1),
            ("depth", 0),
            ("nbmin", 1),
            ("ndiv", 2),
            ("align", 1),
            ("threads_per_rank", 1),
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise InputError(f"{name} is {value!r}; HPL needs a whole number >= {least}")
            if value > MOST:
                raise InputError(f"{name} is {value:.3g}; HPL's whole numbers end at {MOST}")
        if self.swap_threshold is not None and abs(self.swap_threshold) > MOST:
            raise InputError(f"swap_threshold is {self.swap_threshold:.3g}; HPL's whole numbers end at {MOST}")
        for name, allowed in (
            ("bcast", BROADCASTS),
            ("swap", SWAPS),
            ("pfact", FACTORISATIONS),
            ("rfact", FACTORISATIONS),
            ("pmap", ORDERS),
            ("l1", FORMS),
            ("u", FORMS),
            ("pivots", PIVOTS),
        ):
            value = getattr(self, name)
            if value not in allowed:
                raise InputError(f"{name} is {value!r}; it is one of {', '.join(allowed)}")

    @property
    def ranks(self) -> int:
        """Number of MPI processes."""
        return self.p * self.q

    @property
    def steps(self) -> int:
        """Number of panels."""
        return -(-self.n // self.nb)

    @property
    def flop_count(self) -> float:
        """Operations that HPL counts: 2/3 n^3 + 3/2 n^2."""
        return (2.0 / 3.0) * self.n**3 + 1.5 * self.n**2

    def rate_gflops(self, time_s: float) -> float:
        """HPL's rate for a run of `time_s` seconds, in Gflop/s."""
        return self.flop_count / time_s / 1e9

    @property
    def memory_bytes(self) -> int:
        """Memory of the matrix over all ranks, in bytes (panels and MPI buffers not counted)."""
        return 8 * self.n * (self.n + 1)

    def parameters(self) -> dict[str, Any]:
        """The parameters by name, as a prediction's JSON shows them."""
        values = {name: getattr(self, name) for name in self.__slots__}
        values["swap_threshold"] = self.nb if self.swap_threshold is None else self.swap_threshold
        return values


def by_code(word: str, allowed: tuple[str, ...], name: str) -> str:
    """The word that HPL.dat's code or the word itself stands for; raises InputError for anything else."""
    if word.isdigit() and int(word) < len(allowed):
        return allowed[int(word)]
    if word in allowed:
        return word
    raise InputError(f"{name} is {word!r}; it is one of {', '.join(allowed)} (or 0 to {len(allowed) - 1})")
