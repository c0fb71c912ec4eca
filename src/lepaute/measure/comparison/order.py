"""In which order libraries, and inside an mpirun batches of calls, are measured: shuffled, from a seed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lepaute.design.sizes import Draws
from lepaute.measure.comparison.cases import BLOCKING, NOTHING, OVERLAPPED, Case

#: The calls of a case come in so many batches, far apart, each of at least so many calls: a moment's disturbance hits
#: few calls of many cases and not all calls of one.
MOST_BATCHES, FEWEST_IN_BATCH = 4, 5
#: Calls of nothing in each mpirun: their starts show how the synchronisation lets ranks go.
NOTHING_CALLS = 50
_COLUMNS = "design_row,operation,form,size_bytes,calls,synchronisation,compute_ns,window_ns"


@dataclass(frozen=True, slots=True)
class Batch:
    """Calls of one case in a row; window_ns: the probe's first window, or the lead of round-time."""

    case: Case
    calls: int
    window_ns: int


def library_order(labels: Sequence[str], mpiruns: int, block: int, seed: int) -> tuple[str, ...]:
    """The libraries of a block, each as often as `mpiruns` says, all in one random order.

    Every block is drawn by itself, so that all orders are equally likely, as the test takes them to be; a neighbour
    that comes back every few mpiruns is no difference then.
    """
    return tuple(Draws(seed, "libraries", str(block)).shuffled([label for label in labels for _ in range(mpiruns)]))


def batches_of(calls: int) -> int:
    """How many batches so many calls come in."""
    return max(1, min(MOST_BATCHES, calls // FEWEST_IN_BATCH))


def shuffled_batches(
    calls: Mapping[Case, int], windows_ns: Mapping[Case, int], seed: int, *, split: bool = True
) -> tuple[Batch, ...]:
    """The batches of an mpirun, those of all cases in one random order; calls of nothing are among them.

    calls     : of each case in all, divided among its batches as evenly as can be
    windows_ns: of each case, and of NOTHING
    split     : False for one batch a case
    """
    nothing = Case(NOTHING, BLOCKING, 0)
    batches = []
    for case, count in {**calls, nothing: NOTHING_CALLS}.items():
        number = batches_of(count) if split else 1
        shares = [count // number + (place < count % number) for place in range(number)]
        batches += [Batch(case, share, windows_ns[case]) for share in shares]
    return tuple(Draws(seed, "batches").shuffled(batches))


def design_text(batches: Sequence[Batch], synchronisation: str, seed: int, compute_ns: int = 0) -> str:
    """The table that the probe reads; compute_ns: work of overlapped operations."""
    rows = [
        f"{number},{each.case.operation},{each.case.form},{each.case.size_bytes},{each.calls},{synchronisation},"
        f"{compute_ns if each.case.form == OVERLAPPED else 0},{each.window_ns}"
        for number, each in enumerate(batches)
    ]
    return "\n".join(["#@generator=lepaute compare", f"#@seed={seed}", _COLUMNS, *rows]) + "\n"


def mpirun_seed(seed: int, block: int, place: int, label: str, attempt: int) -> int:
    """The seed of a start: of its order, so that a repetition has another one."""
    return Draws(seed, "mpirun", str(block), str(place), label, str(attempt)).below(1 << 31)
