"""The parameters of one run of HPL, each described once.

A field carries what is known of it: default, help, bounds and choices (kit/options.py), its place in HPL.dat and its
names in HPL's report (`Dat`). Command line, docstring, HPL.dat, HPL.out, JSON and the mapping to both engines follow.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import partial
from inspect import cleandoc
from math import isqrt
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from lepaute.errors import InputError
from lepaute.kit.hpl_output import flop_count
from lepaute.kit.later import later
from lepaute.kit.notebook import changed_fields
from lepaute.kit.options import check_fields, option, options_of, word_of
from lepaute.kit.quantities import whole_of
from lepaute.simulate.application import Application, Problem
from lepaute.simulate.platform.nodes import fullest_nodes

if TYPE_CHECKING:
    from lepaute.simulate.platform import schema
else:
    schema = later("lepaute.simulate.platform.schema")

Broadcast = Literal["1ring", "1ring-modified", "2ring", "2ring-modified", "long", "long-modified"]
Swap = Literal["binary-exchange", "spread-roll", "mix"]
Factorisation = Literal["left", "crout", "right"]
Form = Literal["transposed", "no-transposed"]
Order = Literal["row", "column"]
Pivots = Literal["random", "first-row"]
#: HPL's own choices by HPL.dat's code, and what its report calls them.
_RINGS = ("1ring", "1ringM", "2ring", "2ringM", "Blong", "BlongM")
BROADCASTS: dict[Broadcast, str] = dict(zip(get_args(Broadcast), _RINGS, strict=False))
SWAPS: dict[Swap, str] = {"binary-exchange": "Binary-exchange", "spread-roll": "Spread-roll (long)", "mix": "Mix"}
FACTORISATIONS: dict[Factorisation, str] = {"left": "Left", "crout": "Crout", "right": "Right"}
FORMS: dict[Form, str] = {"transposed": "transposed form", "no-transposed": "no-transposed form"}
ORDERS: dict[Order, str] = {"row": "Row-major process mapping", "column": "Column-major process mapping"}
SWITCH = {False: "no", True: "yes"}
#: Other words of HPL for its choices: those in the comments of its HPL.dat, and shorter ones for those of its report.
ALIASES = {
    "BCAST": {"1rg": "1ring", "1rM": "1ring-modified", "2rg": "2ring", "2rM": "2ring-modified", "Lng": "long",
              "LnM": "long-modified"},
    "SWAP": {"bin-exch": "binary-exchange", "long": "spread-roll", "Spread-roll": "spread-roll"},
    "PMAP": {"Row-major": "row", "Column-major": "column"},
}  # fmt: skip
#: HPL keeps its parameters in C's int.
MOST = 2**31 - 1
#: The engine keeps this many panels for each rank, and takes this many steps (core/apps/hpl/parameters.hpp).
MAX_DEPTH, MAX_STEPS = 1024, 1 << 26
#: Key of a field's metadata: its place in HPL.dat.
DAT = "HPL.dat"


class Dat(NamedTuple):
    """The place of a parameter in HPL.dat.

    line    : of its value or values; where there are several, their number stands in the line before
    several : what the number counts; empty if there is one value, or the values go with those of `beside`
    loop    : place of HPL's loop over the values, the outermost first; None if there is one value
    codes   : choices by code, and what HPL's report calls them; least : number allowed, where it is not the field's
    report  : what HPL's report says behind the value; title : what messages call it, where not by its name
    """

    line: int
    name: str = ""
    several: str = ""
    beside: str = ""
    loop: int | None = None
    codes: Mapping[Any, str] | None = None
    least: int | None = None
    report: str = ""
    title: str = ""

    @property
    def what(self) -> str:
        return self.title or self.name

    @property
    def words(self) -> dict[str, Any]:
        """The choices by their words, in the order of the codes."""
        return {value if isinstance(value, str) else text: value for value, text in (self.codes or {}).items()}


def parameter(text: str, initial: Any = MISSING, dat: Dat | None = None, **more: Any) -> Any:
    """A field: its help, default (initial), place in HPL.dat, and further attributes of an option."""
    return field(default=initial, metadata={**option(text, heading="" if dat is None else DAT, **more), DAT: dat})


def choice(text: str, words: Any, initial: str, dat: Dat | None = None, **more: Any) -> Any:
    """A field that is one of the words of a Literal."""
    if dat is not None:
        printed = {text: word for word, text in (dat.codes or {}).items()}
        more |= {"numbered": DAT, "aliases": tuple({**printed, **ALIASES.get(dat.name, {})}.items())}
    return parameter(text, initial, dat, choices=get_args(words), **more)


def whole(text: str, initial: Any = MISSING, dat: Dat | None = None, minimum: int | None = 1, **more: Any) -> Any:
    return parameter(text, initial, dat, minimum=minimum, **more)


def switch(text: str) -> bool:
    """0, 1, no or yes."""
    return word_of(text, tuple(SWITCH.values()), "equil") == "yes"


@dataclass(frozen=True, slots=True)
class Hpl(Application):
    """One run of HPL: a matrix of order n in blocks of nb on a grid of p x q processes, and its algorithms.

    Raises
    ------
    InputError : a value that HPL does not have

    Examples
    --------
    >>> import lepaute as lp
    >>> hpl = lp.Hpl(n=20_000, nb=128, p=4, q=4, bcast="2ring-modified")
    >>> hpl.ranks, hpl.memory_bytes
    (16, 3200160000)
    """

    n: int = whole(
        "order of the matrix, which takes 8 n^2 bytes; suffixes k and M",
        dat=Dat(6, "N", "problem sizes", loop=1),
        parse=partial(whole_of, name="n"),
    )
    nb: int = whole("block size", 128, Dat(8, "NB", "block sizes", loop=2))
    p: int = whole(
        "process grid, rows x columns, as 8x8", 1, Dat(11, "P", "process grids", loop=0), name="grid", metavar="PxQ"
    )
    q: int = whole("columns of the process grid", 1, Dat(12, "Q", beside="p"), name="grid")
    depth: int = whole(
        "look-ahead: panels factorised ahead", 1, Dat(25, "DEPTH", "look-ahead depths", loop=3), 0, maximum=MAX_DEPTH
    )
    bcast: Broadcast = choice(
        "broadcast of the panel", Broadcast, "2ring", Dat(23, "BCAST", "broadcasts", loop=4, codes=BROADCASTS)
    )
    swap: Swap = choice("exchange of pivots in a process column", Swap, "binary-exchange", Dat(26, "SWAP", codes=SWAPS))
    swap_threshold: int | None = whole(
        "columns above which mix is spread-roll; else NB", None, Dat(27, title="swapping threshold", least=0), None
    )
    pfact: Factorisation = choice(
        "factorisation in the leaves of the panel's recursion",
        Factorisation,
        "crout",
        Dat(15, "PFACT", "panel factorisations", loop=6, codes=FACTORISATIONS),
    )
    rfact: Factorisation = choice(
        "factorisation in the panel's recursion",
        Factorisation,
        "right",
        Dat(21, "RFACT", "recursive factorisations", loop=5, codes=FACTORISATIONS),
    )
    nbmin: int = whole("columns of a leaf of the recursion", 2, Dat(17, "NBMIN", "recursive stopping criteria", loop=7))
    ndiv: int = whole("parts of a panel in each recursion", 2, Dat(19, "NDIV", "panels in recursion", loop=8), 2)
    pmap: Order = choice("how ranks fill the grid, by row or by column", Order, "row", Dat(9, "PMAP", codes=ORDERS))
    l1: Form = choice("form in which L1 is stored", Form, "transposed", Dat(28, "L1", codes=FORMS))
    u: Form = choice("form in which U is stored", Form, "transposed", Dat(29, "U", codes=FORMS))
    equil: bool = parameter(
        "whether spread-roll evens out first what each process holds",
        True,
        Dat(30, "EQUIL", title="equilibration", codes=SWITCH),
        parse=switch,
        default="1",
        metavar="0|1",
    )
    align: int = whole(
        "alignment, in doubles", 8, Dat(31, "ALIGN", title="memory alignment", report=" double precision words")
    )
    copy_l: bool = parameter("whether HPL was built without derived datatypes, and copies each L", False, hidden=True)
    pivots: Pivots = choice(
        "where pivots come from, as of a random matrix or of equal candidates", Pivots, "random", hidden=True
    )
    threads_per_rank: int = whole("cores that each rank computes on", 1)

    __repr__ = changed_fields

    def __post_init__(self) -> None:
        check_fields(self, largest=MOST)
        if self.steps > MAX_STEPS:
            raise InputError(f"n is {self.n} in blocks of {self.nb}; the largest number of blocks is {MAX_STEPS}")

    @property
    def ranks(self) -> int:
        return self.p * self.q

    @property
    def steps(self) -> int:
        """Number of panels."""
        return -(-self.n // self.nb)

    @property
    def label(self) -> str:
        """With HPL's code of the algorithms: N = 20000  NB = 128  WR12R2C2  8 x 8."""
        return f"N = {self.n}  NB = {self.nb}  {self.variant}  {self.p} x {self.q}"

    @property
    def variant(self) -> str:
        """HPL's code of the algorithms, WR11C2R4: W, mapping, DEPTH, BCAST, RFACT, NDIV, PFACT, NBMIN."""
        pmap, rfact, pfact = (word[0].upper() for word in (self.pmap, self.rfact, self.pfact))
        return f"W{pmap}{self.depth}{get_args(Broadcast).index(self.bcast)}{rfact}{self.ndiv}{pfact}{self.nbmin}"

    @classmethod
    def filling(cls, platform: "schema.Platform", memory_fraction: float, **parameters: Any) -> "Hpl":
        """The largest run whose matrix takes at most a share of the memory of any node, with n a multiple of nb.

        platform : says the memory of a node; ranks fill one node after the other
        memory_fraction : above 0, at most 1; 0.8 leaves room for panels, MPI and the system

        Raises InputError if the platform does not say the memory of a node, and where not even one block fits.

        >>> Hpl.filling(lp.load_platform("dahu"), 0.8, p=16, q=16, nb=128).n
        """
        if not 0.0 < memory_fraction <= 1.0:
            raise InputError(f"memory_fraction is {memory_fraction:g}; it is above 0 and at most 1, such as 0.8")
        if any(part.nodes.memory_bytes is None for part in platform.parts):
            raise InputError(
                f"{platform.name} does not say how much memory a node has; give n, or the platform nodes.memory_bytes"
            )
        smallest = cls(**parameters | {"n": 1})
        doubles = min(
            int(memory_fraction * memory_bytes * smallest.ranks / on_a_node) // 8
            for on_a_node, memory_bytes in fullest_nodes(platform, smallest.ranks, smallest.threads_per_rank)
        )
        n = (isqrt(4 * doubles + 1) - 1) // 2 // smallest.nb * smallest.nb  # n (n + 1) <= doubles
        if n < smallest.nb:
            raise InputError(f"{memory_fraction:g} of the memory of {platform.name} holds no block of {smallest.nb}")
        return replace(smallest, n=n)

    @property
    def flop_count(self) -> float:
        """Operations that HPL counts: 2/3 n^3 + 3/2 n^2."""
        return flop_count(self.n)

    def rate_gflops(self, time_s: float) -> float:
        """HPL's rate for a run of `time_s` seconds, in Gflop/s."""
        return self.flop_count / time_s / 1e9

    @property
    def memory_bytes(self) -> int:
        """Memory of the matrix over all ranks, in bytes (panels and MPI buffers not counted)."""
        return 8 * self.n * (self.n + 1)

    @property
    def unused(self) -> dict[str, str]:
        unused = {"align": "where arrays begin is not simulated"}
        if self.swap != "mix":
            unused["swap_threshold"] = f"rows are swapped by {self.swap}, and mix alone has a threshold"
        if self.swap == "binary-exchange":
            unused["equil"] = "rows are swapped by binary-exchange, and spread-roll alone evens them out"
        return unused

    @property
    def threshold(self) -> int:
        """The swapping threshold in columns."""
        return self.nb if self.swap_threshold is None else self.swap_threshold

    def parameters(self) -> dict[str, Any]:
        return super(Hpl, self).parameters() | {"swap_threshold": self.threshold}

    @property
    def problem(self) -> Problem:
        """N, for which all else may be chosen: a threshold of the row swap that follows NB is the same for each NB."""
        words = {name: dat.name or name for name, dat in places()}
        names = [each.name for each in fields(self) if each.name not in ("n", "p", "q")]
        single = {words.get(name, name): getattr(self, name) for name in names}
        return Problem(f"N = {self.n}", {"P x Q": f"{self.p} x {self.q}", **single})


def places() -> list[tuple[str, Dat]]:
    """Field and place of each parameter that HPL.dat has, in the order of the file."""
    known = [(each.name, each.metadata.get(DAT)) for each in fields(Hpl)]
    return sorted(((name, dat) for name, dat in known if dat is not None), key=lambda place: place[1].line)


def check_sayable(hpl: Hpl, *handled: str) -> None:
    """Raises InputError for what the real HPL does not have: a word without a code, or another value than the default
    of a field that HPL.dat has no line for."""
    known = {*dict(places()), *handled}
    own = [field for field in fields(hpl) if field.name not in known]
    extra = [field.name for field in own if getattr(hpl, field.name) != field.default]
    if extra:
        raise InputError(_not_of_hpl(", ".join(extra)))
    for name, dat in places():
        code_of(dat, getattr(hpl, name) or 0)


def code_of(dat: Dat, value: Any) -> int:
    """A value as HPL.dat has it: a choice is its place among the words. Raises InputError for one that it lacks."""
    if dat.codes is None:
        return int(value)
    if value not in dat.codes:
        raise InputError(_not_of_hpl(f"{dat.name} {value}"))
    return list(dat.codes).index(value)


def _not_of_hpl(what: str) -> str:
    return f"the real HPL does not have {what}; leave the default, or use `lepaute predict hpl`"


def _documented() -> str:
    """The docstring of Hpl with its parameters, as their help describes them."""
    lines = []
    for name, described in options_of(Hpl).items():
        words = [f'"{word}"' for word in described.choices]
        choices = f": {', '.join(words[:-1])} or {words[-1]}" if words else ""
        lines.append(f"{name} : {described.help}{choices}\n")
    before, raises, after = cleandoc(Hpl.__doc__ or "").partition("Raises\n")
    return f"{before}Parameters\n----------\n{''.join(lines)}\n{raises}{after}"


Hpl.__doc__ = _documented()
