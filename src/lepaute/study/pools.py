"""What simulates groups of trials: threads of this process, or processes, here or as jobs of a batch system, by Dask.

A process that is killed is replaced, and what it simulated is simulated again: by itself, one trial after the other,
where that has happened to a group several times. A trial that then kills its workers alone is refused by name. Workers
that end in an orderly way (preempted, or at the end of their job's time) count as no failure.
"""

import logging
import shlex
import signal
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, Protocol

from lepaute.errors import EnvironmentProblem, InputError, LepauteError
from lepaute.measure import schedulers
from lepaute.simulate.tasks import available_cores
from lepaute.study.configuration import Configurations
from lepaute.study.evaluation import Trial
from lepaute.study.results import Simulated, simulate

Group = Sequence["Trial"]

#: Workers that a task may kill before it is given up; those of a batch system are also killed for other reasons.
_KILLS_HERE, _KILLS_OF_JOBS = 2, 9
#: Workers end in an orderly way after this share of their job's time.
_LIFETIME = ("--lifetime", "50m", "--lifetime-stagger", "5m")
_WALLTIME = "01:00:00"
_MEMORY = "2GiB"
#: Processes that are stopped for a while (Ctrl-Z, a suspended machine) are no dead ones.
_PATIENCE = "30 minutes"

#: Schedulers serve pages that nobody asked for: to this machine alone, at any port, since another study has the usual.
_DASHBOARD_ADDRESS = "127.0.0.1:0"

#: What watches schedulers and workers takes processor time from the simulations: a tick 50 times a second in each, the
#: stacks of workers 100 times a second.
QUIET: Mapping[str, Any] = {
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "1 minute",
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.scheduler.work-stealing-interval": "1s",
    "distributed.worker.profile.enabled": False,
}

#: Of this process, for `simulate_on_worker`.
STUDIES: dict[str, Configurations] = {}


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

    def __init__(self, configurations: Configurations, workers: int | None = None) -> None:
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


def worker_schedulers() -> tuple[str, ...]:
    """The names of the schedulers that can start workers, "local" among them."""
    return ("local", *schedulers.names_with("worker_jobs"))


class DaskPool:
    """A pool of processes; see `Pool`.

    scheduler : local, or one that submits workers; queue, walltime, memory and the like of jobs as dask-jobqueue's
                configuration (~/.config/dask/jobqueue.yaml) has them
    workers   : processes; as many as this process may use cores, unless given (of a batch system: 1)
    folder    : of the output of jobs
    Raises InputError for a scheduler that is none of these, EnvironmentProblem if it cannot be used.
    """

    def __init__(
        self,
        configurations: Configurations,
        *,
        scheduler: str = "local",
        workers: int | None = None,
        folder: Path | None = None,
    ) -> None:
        known = worker_schedulers()
        if scheduler not in known:
            raise InputError(f"the scheduler is {scheduler[:60]!r}; it is one of {', '.join(known)}")
        if workers is not None and workers < 1:
            raise InputError(f"workers is {workers}; at least one process simulates")
        self.workers = workers or (available_cores() if scheduler == "local" else 1)
        self.target_s = 1.0
        self._name = uuid.uuid4().hex
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        import_module("dask.config").set(
            {
                "distributed.scheduler.allowed-failures": _KILLS_HERE if scheduler == "local" else _KILLS_OF_JOBS,
                "distributed.scheduler.worker-saturation": 1.0,  # a task that has not begun dies with no worker
                "distributed.scheduler.worker-ttl": _PATIENCE,
                "distributed.comm.timeouts.tcp": _PATIENCE,
                "distributed.comm.timeouts.connect": "5 minutes",
                "distributed.admin.tick.limit": "1 hour",
                **QUIET,
            }
        )
        try:
            with _deaf_to_interrupts():
                self._cluster = _local(self.workers) if scheduler == "local" else _jobs(scheduler, self.workers, folder)
                self._client: Any = import_module("distributed").Client(self._cluster, set_as_default=False)
        except LepauteError:
            raise
        except (OSError, ValueError, RuntimeError, ImportError, TimeoutError) as error:
            raise EnvironmentProblem(f"no workers by {scheduler}: {' '.join(str(error).split())[:300]}") from None
        self._client.register_plugin(_plugin(self._name, configurations))

    def run(self, groups: Iterator[Group]) -> Iterator[tuple[Group, list[Simulated]]]:
        distributed = import_module("distributed")
        finished = distributed.as_completed(loop=self._client.loop, raise_errors=False)
        running: dict[Any, Group] = {}

        def submit(group: Group) -> None:
            future = self._client.submit(simulate_on_worker, self._name, group, pure=False)
            running[future] = group
            finished.add(future)

        while True:
            while len(running) < 2 * self.workers + 1 and (group := next(groups, None)) is not None:
                submit(group)
            if not running:
                return
            future = next(finished)
            group = running.pop(future)
            if future.status == "finished":
                yield group, future.result()
            elif future.status == "error" and not isinstance(error := future.exception(), distributed.KilledWorker):
                raise error
            elif future.status != "error":  # what it was computed from is gone
                submit(group)
            elif len(group) > 1:
                for trial in group:
                    submit([trial])
            else:
                (trial,) = group
                refusal = (
                    f"it killed every worker that simulated it (at {trial.point}, seed {trial.seed}); most often for "
                    "want of memory: make it smaller, or give workers more"
                )
                yield group, [Simulated("", refusal=refusal)]
            future.release()

    def close(self) -> None:
        self._client.close()
        self._cluster.close()


def simulate_on_worker(name: str, trials: Group) -> list[Simulated]:
    """The results of trials of the study that was sent to this process."""
    return simulate(STUDIES[name], trials)


def _plugin(name: str, configurations: Configurations) -> Any:
    """What sends the study to all workers, those that come later too."""
    base: Any = import_module("distributed").WorkerPlugin

    class Study(base):  # type: ignore[misc]
        def __init__(self) -> None:
            self.name = f"lepaute-study-{name}"
            self.configurations = configurations

        def setup(self, **_: Any) -> None:
            # Imported here: this class is sent by value, with a copy of the globals that it names.
            from lepaute.study.pools import STUDIES

            STUDIES[name] = self.configurations

    return Study()


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Threads and processes that are started within, and all that they start later, never see Ctrl-C: it is sent to
    every process of a terminal, and this one ends its workers itself. Here it is noticed afterwards."""
    # Its start, with the first process, would lift the mask. What an interrupted start of workers leaves to it, it
    # cleans up: nobody needs to hear of that.
    sys.warnoptions.append(warning := "ignore:resource_tracker:UserWarning")
    try:
        resource_tracker.ensure_running()
    finally:
        sys.warnoptions.remove(warning)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _local(workers: int) -> Any:
    cluster = import_module("distributed").LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=_DASHBOARD_ADDRESS,
        memory_limit=0,
        silence_logs=logging.CRITICAL,
    )
    # A worker that dies while it starts is not started again otherwise.
    cluster.adapt(minimum=workers, maximum=workers, interval="2s", wait_count=10**9)
    return cluster


def _jobs(scheduler: str, workers: int, folder: Path | None) -> Any:
    """Jobs that are submitted again when they end before the study does."""
    cluster_class = getattr(import_module("dask_jobqueue"), str(schedulers.scheduler(scheduler).worker_jobs))
    known = import_module("dask.config").get(f"jobqueue.{scheduler}", {})

    def chosen(name: str, usual: Any) -> Any:
        return usual if known.get(name) is None else known[name]

    # Jobs begin without the settings of this process.
    quiet = [
        f"export DASK_{name.upper().replace('.', '__').replace('-', '_')}={shlex.quote(str(value))}"
        for name, value in QUIET.items()
    ]
    usual_walltime = known.get("walltime") in (None, "00:30:00")  # the latter is what dask-jobqueue ships
    cluster = cluster_class(
        cores=chosen("cores", 1),
        processes=chosen("processes", chosen("cores", 1)),
        memory=chosen("memory", _MEMORY),
        walltime=_WALLTIME if usual_walltime else known["walltime"],
        worker_extra_args=list(_LIFETIME) if usual_walltime else chosen("worker_extra_args", []),
        job_script_prologue=[*chosen("job-script-prologue", []), *quiet],
        log_directory=str(folder / "jobs") if folder is not None else None,
        scheduler_options={"dashboard": False, "dashboard_address": _DASHBOARD_ADDRESS},
        silence_logs="critical",
    )
    cluster.adapt(minimum=workers, maximum=workers, interval="2s")
    return cluster
