"""What simulates groups of trials: threads of this process, or processes, here or on a cluster (`dask_pool`)."""

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Protocol

from lepaute.study.simulated import Simulated, simulate

if TYPE_CHECKING:
    from lepaute.study.configuration import Configurations
    from lepaute.study.evaluation import Trial

Group = Sequence["Trial"]


class Pool(Protocol):
    """Simulates groups of trials side by side.

    workers  : how many side by side
    target_s : how long a group should take, so that what it costs besides is little
    """

    workers: int
    target_s: float

    def run(self, groups: Iterator[Group]) -> Iterator[tuple[Group, list[Simulated]]]:
        """Each group with the results of its trials, as they finish. Groups are taken from the iterator when there is
        room for them. A result without a key says why nothing was simulated, and is not to be kept."""
        ...

    def close(self) -> None:
        """Ends what still runs."""
        ...


class Threads:
    """Threads of this process; the core computes without Python's lock."""

    def __init__(self, configurations: "Configurations", workers: int | None = None) -> None:
        from lepaute.simulate.tasks import available_cores

        self.workers = workers or available_cores()
        self.target_s = 0.1
        self._configurations = configurations
        self._pool = ThreadPoolExecutor(self.workers)

    def run(self, groups: Iterator[Group]) -> Iterator[tuple[Group, list[Simulated]]]:
        running: dict[Future[list[Simulated]], Group] = {}
        while True:
            while len(running) < 2 * self.workers and (group := next(groups, None)) is not None:
                running[self._pool.submit(simulate, self._configurations, group)] = group
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result()

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
