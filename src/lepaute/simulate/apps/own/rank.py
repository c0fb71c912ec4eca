"""What an application's `run(self, me)` has in `me`: each method makes an operation, which `run` yields."""

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from lepaute.errors import InputError
from lepaute.kit.numbers import plain
from lepaute.simulate.apps.own.sides import balanced_sides
from lepaute.simulate.apps.own.values import Cost, Grid

if TYPE_CHECKING:
    from lepaute.simulate.apps.own.laying import Track

ANY = 2**32 - 1  # as the core has it
MAX_TAG = 2**31 - 1
MAX_AMOUNT = 1e15
#: By operation, the first one unless another is asked for.
ALGORITHMS = {
    "barrier": ("dissemination",),
    "bcast": ("binomial",),
    "reduce": ("binomial",),
    "allreduce": ("recursive-doubling", "ring", "binomial", "rabenseifner"),
    "gather": ("binomial",),
    "scatter": ("binomial",),
    "allgather": ("ring", "bruck", "recursive-doubling", "neighbours"),
    "alltoall": ("pairwise", "bruck", "linear-posted", "exclusive-or"),
    "reduce_scatter": ("halving", "ring", "butterfly", "pairwise"),
    "scan": ("recursive-doubling",),
    **dict.fromkeys(("gatherv", "scatterv", "allgatherv", "alltoallv"), ("usual",)),
}


class Operation(NamedTuple):
    """Operation that a rank yields; what: name of a kernel, Cost, requests, neighbours and sizes, or communicator."""

    code: str
    peer: int = 0
    tag: int = 0
    m: float = 0.0
    n: float = 0.0
    k: float = 0.0
    algorithm: str = "usual"
    what: Any = None


class Request:
    """Handle of a nonblocking operation: what `yield me.isend(...)` and `yield me.irecv(...)` give back, for a wait."""

    __slots__ = ("is_open", "number", "rank")

    def __init__(self, rank: int, number: int) -> None:
        self.rank, self.number, self.is_open = rank, number, True


class Came(NamedTuple):
    """Result of `yield` for a receive, a probe, and a wait for a receive: sender, tag and bytes of the message,
    the value that `send(..., value=)` has put in, and the request that a wait was for; source is -1 of a send."""

    source: int
    tag: int
    bytes: float
    value: Any = None
    request: Request | None = None


class Carried(NamedTuple):
    """A value on its way."""

    value: Any


class Neighbours:
    """Ranks of an exchange, and bytes that each is sent. Its hash is kept: an exchange is looked up in each step."""

    __slots__ = ("_hash", "ranks", "sizes")

    def __init__(self, ranks: tuple[int, ...], sizes: tuple[float, ...]) -> None:
        self.ranks, self.sizes, self._hash = ranks, sizes, hash((ranks, sizes))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Neighbours) and self.ranks == other.ranks and self.sizes == other.sizes
        )


def amount_of(value: Any, name: str) -> float:
    """A number of bytes or of units; raises InputError."""
    if type(value) is not int and type(value) is not float:
        value = plain(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{name} is {value!r:.80}; it is a number of 0 or more")
    if not 0 <= value <= MAX_AMOUNT:
        raise InputError(f"{name} is {value!r:.80}; it is from 0 to {MAX_AMOUNT:g}")
    return float(value)


def _check_index(value: Any, count: int, name: str) -> int:
    value = value if type(value) is int else plain(value)
    if type(value) is not int or not 0 <= value < count:
        raise InputError(f"{name} is {value!r:.80}; it is a whole number from 0 to {count - 1}")
    return value


class Communicator:
    """Ranks that communicate together: all of them, or those of one colour of a split.

    rank : of this process among them;  size : how many they are;  ranks : each one's rank among all
    Sizes are bytes of each rank: what MPI calls a block. Algorithms are those of `ALGORITHMS`.
    """

    def __init__(self, ranks: Sequence[int], rank: int, number: int) -> None:
        self.ranks, self.rank, self.number, self.size = ranks, rank, number, len(ranks)
        self._made: dict[Any, Operation] = {}  # collective operations, which repeat each other

    def barrier(self) -> Operation:
        """MPI_Barrier."""
        return self._collective("barrier", 0.0)

    def bcast(self, size_bytes: float, root: int = 0) -> Operation:
        """MPI_Bcast from `root`."""
        return self._collective("bcast", size_bytes, root)

    def reduce(self, size_bytes: float, root: int = 0) -> Operation:
        """MPI_Reduce to `root`."""
        return self._collective("reduce", size_bytes, root)

    def allreduce(self, size_bytes: float, algorithm: str | None = None) -> Operation:
        """MPI_Allreduce; algorithm: one of `ALGORITHMS`, recursive-doubling unless given."""
        return self._collective("allreduce", size_bytes, 0, algorithm)

    def gather(self, size_bytes: float, root: int = 0) -> Operation:
        """MPI_Gather of this many bytes of each rank to `root`."""
        return self._collective("gather", size_bytes, root)

    def scatter(self, size_bytes: float, root: int = 0) -> Operation:
        """MPI_Scatter of this many bytes to each rank from `root`."""
        return self._collective("scatter", size_bytes, root)

    def allgather(self, size_bytes: float, algorithm: str | None = None) -> Operation:
        """MPI_Allgather of this many bytes of each rank; algorithm: ring unless given."""
        return self._collective("allgather", size_bytes, 0, algorithm)

    def alltoall(self, size_bytes: float, algorithm: str | None = None) -> Operation:
        """MPI_Alltoall of this many bytes from each rank to each other; algorithm: pairwise unless given."""
        return self._collective("alltoall", size_bytes, 0, algorithm)

    def reduce_scatter(self, size_bytes: float, algorithm: str | None = None) -> Operation:
        """MPI_Reduce_scatter_block of this many bytes for each rank; algorithm: halving unless given."""
        return self._collective("reduce_scatter", size_bytes, 0, algorithm)

    def scan(self, size_bytes: float) -> Operation:
        """MPI_Scan or MPI_Exscan, as an allreduce where no library's rules are chosen."""
        return self._collective("scan", size_bytes)

    def gatherv(self, size_bytes: float, root: int = 0) -> Operation:
        """MPI_Gatherv, bytes of each rank on average: a gather for which a library has rules of its own."""
        return self._collective("gatherv", size_bytes, root)

    def scatterv(self, size_bytes: float, root: int = 0) -> Operation:
        """MPI_Scatterv; see gatherv."""
        return self._collective("scatterv", size_bytes, root)

    def allgatherv(self, size_bytes: float) -> Operation:
        """MPI_Allgatherv; see gatherv."""
        return self._collective("allgatherv", size_bytes)

    def alltoallv(self, size_bytes: float) -> Operation:
        """MPI_Alltoallv; see gatherv."""
        return self._collective("alltoallv", size_bytes)

    def split(self, colour: int | None, key: int = 0) -> Operation:
        """MPI_Comm_split, which costs an allgather of eight bytes. `yield` gives back the Communicator of the ranks
        with this colour, in the order of their keys; None for the colour None."""
        for name, value in (("colour", colour), ("key", key)):
            if value is not None and type(plain(value)) is not int:
                raise InputError(f"{name} is {value!r:.80}; it is a whole number")
        return Operation("split", what=(self, colour, key))

    def _collective(self, code: str, size_bytes: float, root: int = 0, algorithm: str | None = None) -> Operation:
        made = self._made.get((code, size_bytes, root, algorithm))
        if made is not None:
            return made
        known = ALGORITHMS[code]
        if algorithm is not None and algorithm not in known:
            raise InputError(f"algorithm of {code} is {algorithm!r:.80}; it is one of {', '.join(known)}")
        whole_bytes = float(round(amount_of(size_bytes, "size_bytes")))
        word = "usual" if algorithm in (None, known[0]) else algorithm
        made = Operation(code, _check_index(root, self.size, "root"), 0, whole_bytes, algorithm=str(word), what=self)
        self._made[code, size_bytes, root, algorithm] = made
        return made


class Cartesian:
    """Ranks on a grid; see `Me.cartesian`."""

    def __init__(self, rank: int, grid: Grid, periodic: bool) -> None:
        self.grid, self.periodic = grid, periodic
        rest, found = rank, []
        for side in reversed(grid):
            rest, at = divmod(rest, side)
            found.append(at)
        self.coordinates = tuple(reversed(found))

    def rank_at(self, coordinates: Sequence[int]) -> int | None:
        """The rank at these coordinates; None beyond an end that is not periodic."""
        rank = 0
        for at, side in zip(coordinates, self.grid, strict=True):
            if not (self.periodic or 0 <= at < side):
                return None
            rank = rank * side + at % side
        return rank

    def shift(self, dimension: int, distance: int = 1) -> int | None:
        """The rank so far along a dimension; None beyond an end that is not periodic."""
        moved = list(self.coordinates)
        moved[dimension] += distance
        return self.rank_at(moved)

    def neighbours(self, points: int) -> list[tuple[int, int]]:
        """(rank, number of dimensions in which it differs) of each neighbour in a stencil of this many points.

        points : itself counted; 3 on a line, 5 or 9 in the plane, 7 or 27 in space
        """
        dimensions = len(self.grid)
        if points not in (3**dimensions, 2 * dimensions + 1):
            raise InputError(
                f"points is {points!r:.80}; on a grid of {dimensions} dimensions it is {2 * dimensions + 1} or "
                f"{3**dimensions}"
            )
        found = []
        for offset in product((-1, 0, 1), repeat=dimensions):
            order = sum(map(abs, offset))
            if order == 0 or (order > 1 and points == 2 * dimensions + 1):
                continue
            moved = [at + by for at, by in zip(self.coordinates, offset, strict=True)]
            rank = self.rank_at(moved)
            if rank is not None and moved != list(self.coordinates) and rank != self.rank_at(self.coordinates):
                found.append((rank, order))
        return found


class Me(Communicator):
    """One rank of the application, and the communicator of all: what it calls is yielded.

    A source or a tag that is not given is any; bytes are of the message.
    """

    def __init__(self, track: "Track", ranks: Sequence[int], seed: int) -> None:
        super().__init__(ranks, track.rank, 0)
        self._track, self._seed = track, seed
        self._random: random.Random | None = None
        self._exchanged: tuple[Any, Any, Operation] = (None, None, Operation("none"))

    def send(
        self, to: int, size_bytes: float, tag: int = 0, *, value: Any = None, synchronous: bool = False
    ) -> Operation:
        """MPI_Send, or MPI_Ssend; value: what the receiver is given back, which costs nothing."""
        return self._sent("ssend" if synchronous else "send", to, size_bytes, tag, value)

    def isend(self, to: int, size_bytes: float, tag: int = 0, *, value: Any = None) -> Operation:
        """MPI_Isend; `yield` gives back the request."""
        return self._sent("isend", to, size_bytes, tag, value)

    def receive(self, source: int | None = None, tag: int | None = None) -> Operation:
        """MPI_Recv; `yield` gives back what came, a `Came`: source, tag, bytes, value."""
        return self._received("receive", source, tag)

    def irecv(self, source: int | None = None, tag: int | None = None) -> Operation:
        """MPI_Irecv; `yield` gives back the request."""
        return self._received("irecv", source, tag)

    def probe(self, source: int | None = None, tag: int | None = None) -> Operation:
        """MPI_Probe: waits until a message is there that a receive would take; `yield` gives its source, tag, bytes."""
        return self._received("probe", source, tag)

    def start(self, collective: Operation) -> Operation:
        """A collective operation that does not block, such as MPI_Iallreduce: `yield me.start(me.allreduce(8))` gives
        back the request. Its algorithm is that of the library's rules for it, if any are chosen."""
        if not isinstance(collective.what, Communicator):
            raise InputError(f"start is given {collective!r:.60}; it is given what a collective operation makes")
        return collective._replace(tag=ANY)

    def wait(self, request: Request) -> Operation:
        """MPI_Wait; of a receive, `yield` gives back what came."""
        return self._waits("waitall", [request])._replace(m=1.0)

    def waitall(self, requests: Iterable[Request]) -> Operation:
        """MPI_Waitall; `yield` gives back what came, None for a send. What has been waited for is passed over."""
        return self._waits("waitall", requests)

    def waitany(self, requests: Iterable[Request]) -> Operation:
        """MPI_Waitany: goes on with the first that ends, the `request` of what `yield` gives back; those that have been
        waited for are passed over."""
        return self._waits("waitany", requests)

    def exchange(self, neighbours: Iterable[tuple[int, float]], tag: int = 0) -> Operation:
        """An MPI_Irecv from each of the neighbours, an MPI_Isend to each, and MPI_Waitall.

        neighbours : rank, and bytes that it is sent
        """
        if neighbours is self._exchanged[0] and neighbours == self._exchanged[1] and tag == self._exchanged[2].tag:
            return self._exchanged[2]  # the list of the step before
        ranks, sizes, count = [], [], self.size
        neighbours = neighbours if isinstance(neighbours, list) else list(neighbours)
        for rank, size_bytes in neighbours:
            known = type(rank) is int and 0 <= rank < count
            ranks.append(rank if known else _check_index(rank, count, "the rank of a neighbour"))
            sizes.append(size_bytes if 0 <= size_bytes < inf else amount_of(size_bytes, "size_bytes"))
        tag = _check_index(tag, MAX_TAG + 1, "tag")
        self._exchanged = (
            neighbours,
            list(neighbours),
            Operation("exchange", 0, tag, what=Neighbours(tuple(ranks), tuple(sizes))),
        )
        return self._exchanged[2]

    def compute(self, what: Cost | str, m: float = 1, n: float = 0, k: float = 0) -> Operation:
        """Computing: `m` units of a Cost, or a call of a kernel of the platform, such as ("dgemm", m, n, k)."""
        m = amount_of(m, "m of compute")
        if isinstance(what, Cost):
            return Operation("compute", n=m, what=what)
        if not isinstance(what, str):
            raise InputError(f"compute is given {what!r:.80}; it is given a Cost, or the name of a kernel")
        return Operation("compute", m=m, n=amount_of(n, "n"), k=amount_of(k, "k"), what=what)

    def dims_create(self, dimensions: int) -> Grid:
        """Sides of a balanced grid of all ranks, the largest first, as MPI_Dims_create makes them."""
        return Grid(balanced_sides(self.size, _check_index(dimensions, 9, "dimensions")))

    def cartesian(self, grid: "Grid | str | Iterable[int]", *, periodic: bool = False) -> Cartesian:
        """This process on a grid of all, in the order of MPI_Cart_create."""
        grid = grid if isinstance(grid, Grid) else Grid(grid)
        if grid.size != self.size:
            raise InputError(f"the grid {grid} has {grid.size} places for {self.size} ranks")
        return Cartesian(self.rank, grid, periodic)

    def steps(self, count: int) -> Iterator[int]:
        """`for step in me.steps(n)`: the steps of the application, which progress and traces count."""
        for step in range(_check_index(count, 2**31, "the number of steps")):
            self._track.begin_step()
            yield step

    @property
    def random(self) -> random.Random:
        """Random numbers of this rank, others in each run: the only ones that a seed repeats."""
        if self._random is None:
            self._random = random.Random(f"{self._seed} {self.rank}")
            self._track.draws()
        return self._random

    def _sent(self, code: str, to: int, size_bytes: float, tag: int, value: Any) -> Operation:
        to, tag = _check_index(to, self.size, "the rank sent to"), _check_index(tag, MAX_TAG + 1, "tag")
        what = None if value is None else Carried(value)
        return Operation(code, to, tag, amount_of(size_bytes, "size_bytes"), what=what)

    def _received(self, code: str, source: int | None, tag: int | None) -> Operation:
        peer = ANY if source is None else _check_index(source, self.size, "the rank received from")
        return Operation(code, peer, ANY if tag is None else _check_index(tag, MAX_TAG + 1, "tag"))

    def _waits(self, code: str, requests: Iterable[Request]) -> Operation:
        found = tuple(requests)
        for request in found:
            if not isinstance(request, Request) or request.rank != self.rank:
                raise InputError(f"{code} is given {request!r:.80}; it takes what yield gives back for a request")
        if len(set(found)) < len(found):
            raise InputError(f"{code} is given one request twice")
        return Operation(code, what=found)
