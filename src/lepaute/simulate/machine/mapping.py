"""Which core of the machine each rank sits on."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from lepaute.errors import InputError
from lepaute.kit.numbers import whole
from lepaute.kit.text import ranks_text

if TYPE_CHECKING:
    from lepaute.platform.schema import Platform

MASK = 2**64 - 1
MappingKind = Literal["sequential", "random", "rankfile"]
#: Of a simulation: each takes some hundred bytes before the first event.
MOST_RANKS = 1 << 22


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for one rank: the first of its cores on a node (index of the node, not its number)."""

    node: int
    core: int


@dataclass(frozen=True, slots=True)
class Mapping:
    """How ranks are laid on slots.

    kind : "sequential" takes the slots in their order, "random" in an order drawn from `seed`, "rankfile" gives each
        rank its slot
    slots : in the order of a hostfile or of the ranks of a rankfile; None for all slots of the platform, node by node
    source : name of the file of the slots, for messages
    """

    kind: MappingKind = "sequential"
    seed: int = 1
    slots: tuple[Slot, ...] | None = None
    source: str | None = None

    def __post_init__(self) -> None:
        kinds = get_args(MappingKind)
        if self.kind not in kinds:
            raise InputError(f"the mapping is {self.kind!r:.80}; it must be one of {', '.join(kinds)}")
        seed = whole(self.seed, "the seed of the mapping", 0, MASK + 1, "0 to 2^64 - 1")
        object.__setattr__(self, "seed", seed)

    def cores(self, platform: "Platform", ranks: int, threads: int = 1) -> list[int]:
        """Global core (node index * cores per node + core) of each rank, the first of its `threads` cores.

        Raises InputError when there are fewer slots than ranks.
        """
        if ranks > MOST_RANKS:
            raise InputError(f"{ranks} ranks are asked for; at most {MOST_RANKS} are simulated: take a smaller grid")
        slots = platform_slots(platform, ranks, threads) if self.slots is None else list(self.slots)
        if ranks > len(slots):
            source = self.source or "the hostfile"
            raise InputError(
                f"{source} has {len(slots)} slots, too few for {ranks} ranks; add hosts or take a smaller grid"
            )
        if self.kind == "random":
            slots = permuted(slots, self.seed)
        return [slot.node * platform.nodes.cores + slot.core for slot in slots[:ranks]]

    def to_dict(self, platform: "Platform", ranks: int, threads: int) -> dict[str, Any]:
        """What repeats the mapping, as a prediction's parameters show it.

        `mapping_slots` (where a file gave them) are node numbers and first cores, rank by rank, runs of cores
        abbreviated: "1:0-31 2:0-31".
        """
        recorded: dict[str, Any] = {
            "mapping": self.kind if self.kind != "sequential" or self.slots is None else "hostfile"
        }
        if self.kind == "random":
            recorded["mapping_seed"] = self.seed
        if self.slots is not None:
            recorded["mapping_slots"] = abbreviated(self.cores(platform, ranks, threads), platform)
        return recorded


def platform_slots(platform: "Platform", ranks: int, threads: int = 1) -> list[Slot]:
    """The slots of the nodes that `ranks` ranks of `threads` threads fill, node by node; all slots of each such node.

    Raises InputError when the machine has fewer cores than ranks * threads needs.
    """
    nodes = platform.nodes
    per_node = nodes.cores // threads
    if ranks > per_node * nodes.count:
        of_threads = f" of {threads} threads" if threads > 1 else ""
        raise InputError(
            f"{ranks_text(ranks)}{of_threads} do not fit on platform {platform.name}, which has "
            f"{nodes.count} x {nodes.cores} cores; take fewer ranks, another platform or --set nodes.count=N"
        )
    return [Slot(node, slot * threads) for node in range(-(-ranks // per_node)) for slot in range(per_node)]


def permuted(slots: list[Slot], seed: int) -> list[Slot]:
    """`slots` in an order drawn from `seed`, every order equally likely.

    The shuffle of Fisher and Yates over the SplitMix64 generator: ours, since those of the standard library may change
    between versions of Python, and a prediction repeats.
    """
    order = list(slots)
    draws = splitmix64(seed)
    for last in range(len(order) - 1, 0, -1):
        limit = 2**64 - 2**64 % (last + 1)  # draws from there on would favour the first places
        chosen = next(draw for draw in draws if draw < limit) % (last + 1)
        order[last], order[chosen] = order[chosen], order[last]
    return order


def splitmix64(state: int) -> Iterator[int]:
    """Whole numbers below 2^64, by the generator of that name (Steele, Lea and Flood, 2014)."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        draw = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        draw = ((draw ^ (draw >> 27)) * 0x94D049BB133111EB) & MASK
        yield draw ^ (draw >> 31)


def thinned(cores: list[int], whole: tuple[int, int], small: tuple[int, int], *, by_row: bool) -> list[int]:
    """Cores for a `small` grid (P, Q) spread over those of the `whole` one: ranks that share a node still do."""
    (whole_p, whole_q), (p, q) = whole, small
    rows = [i * whole_p // p for i in range(p)]
    columns = [j * whole_q // q for j in range(q)]
    if by_row:
        return [cores[row * whole_q + column] for row in rows for column in columns]
    return [cores[column * whole_p + row] for column in columns for row in rows]


def abbreviated(cores: list[int], platform: "Platform") -> str:
    """Global cores as "node number:cores", runs of successive cores of a node joined: "1:0-31 2:0-31"."""
    nodes = platform.nodes
    runs: list[list[int]] = []
    for core in cores:
        if runs and core == runs[-1][1] + 1 and core % nodes.cores:
            runs[-1][1] = core
        else:
            runs.append([core, core])
    words = []
    for first, last in runs:
        node, core = divmod(first, nodes.cores)
        span = f"{core}" if first == last else f"{core}-{last % nodes.cores}"
        words.append(f"{node + nodes.first_number}:{span}")
    return " ".join(words)
