"""What an experiment is to the person who writes it: a class with setup, run and teardown."""

import math
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, ClassVar, Self

from lepaute.design import Design
from lepaute.errors import EnvironmentProblem, InputError
from lepaute.measure.experiment.helpers import Helpers
from lepaute.measure.experiment.journal import Value
from lepaute.measure.experiment.machine import Machine
from lepaute.measure.experiment.options import Options, options_from
from lepaute.measure.experiment.record import Record, now
from lepaute.measure.experiment.rounds import Until, rounds
from lepaute.measure.experiment.workspace import Workspace, folder_of
from lepaute.measure.nodes.group import Nodes
from lepaute.measure.nodes.pool import Pool
from lepaute.measure.schedulers import scheduler
from lepaute.measure.schedulers.types import Allocation
from lepaute.version import __version__

#: The configuration for ssh, where mpirun is started.
_SSH_CONFIG = "ssh_config"


class Job(Helpers):
    """An experiment. A subclass says what is done before, in and after the measurement; `lepaute run` does the rest.

    class Sizes(lp.Job):
        def design(self):
            return lp.design.full_factorial({"size_bytes": [1024, 65536]}, replications=10, seed=self.seed)

        def run(self):
            for row in self.rows():
                for node, result in self.nodes.run("./bench", row["size_bytes"]).items():
                    self.record(node=node, duration_s=float(result.stdout))

    Every step that `lepaute run` makes by itself is a method too, so that the same can be done by hand, in a Python
    session: `with lp.Job(...) as job: job.nodes.run("uname", "-a")`.

    control, warm_up_s, monitor_period_s, reference_period_s: defaults of the class for what `Options` has; None: those
    of `Options`
    """

    control: ClassVar[Mapping[str, Any]] = {}
    warm_up_s: ClassVar[float | None] = None
    monitor_period_s: ClassVar[float | None] = None
    reference_period_s: ClassVar[float | None] = None

    def __init__(
        self, options: Options | None = None, say: Callable[[str], None] | None = None, **settings: Any
    ) -> None:
        """options: or else `settings`, the fields of `Options` and of a scheduler's `Request`, by name."""
        self.options = options = options if options is not None else options_from(type(self).__name__, settings)
        self.seed = options.seed
        self.parameters = dict(options.parameters)
        self._say = say
        self._row: Mapping[str, Value] | None = None
        self._stack = ExitStack()
        self._nodes: Nodes | None = None
        self._allocation: Allocation | None = None
        self._pool: Pool | None = None

    # What a subclass overrides.

    def design(self) -> Design | None:
        """What is to be measured, in the order of execution; drawn once, written down, and only then executed."""
        return None

    def setup(self) -> None:
        """Brings the nodes into the state in which the measurement finds them; also when an interrupted run goes on."""

    def run(self) -> None:
        """Measures."""

    def teardown(self) -> None:
        """Puts things back; done also when run() has failed."""

    # What a subclass uses.

    @property
    def nodes(self) -> Nodes:
        """The nodes that still answer."""
        if self._nodes is None:
            raise EnvironmentProblem("this experiment is not connected to its nodes; open() it first")
        return self._nodes

    def rows(self, until: Until | None = None) -> Iterator[Mapping[str, Value]]:
        """The rows of the design that are still to be measured, in its order; one is done when the next is asked for.

        until: go on with further rounds of the design's levels until their intervals are narrow enough
        What is recorded meanwhile carries the row's number and factors. Between rows the machine is checked.
        """
        design = self.workspace.design
        if design is None:
            raise InputError("rows() needs a design; define the method design()")
        done = self.workspace.done()
        for number, row in enumerate(design):
            if number not in done:
                yield from self._measuring(number, row)
        if until is not None:
            for number, further in rounds(self.workspace, design, until, self.seed, self.record_of_run.log):
                yield from self._measuring(number, further)
        self.machine.check()

    def _measuring(self, number: int, row: Mapping[str, Value]) -> Iterator[Mapping[str, Value]]:
        self.machine.check_if_due()
        self._row = {"design_row": number, **row}
        try:
            yield self._row
        finally:
            self._row = None
        self.workspace.journal("done").add({"design_row": number, "date": now()})
        if not len(self.nodes):
            raise EnvironmentProblem("no node is left; what was measured until now is kept")

    def record(self, table: str = "observations", **columns: Value) -> None:
        """Writes down one measurement: a row of a table, on the disk before this returns.

        columns: what was seen, units in the names (duration_s); the row of the design that is being measured, if one
        is, and the date are added
        """
        row = {**(self._row or {}), **columns}
        for name, value in row.items():
            if callable(scalar := getattr(value, "item", None)):  # of NumPy
                row[name] = scalar()
            elif isinstance(value, float) and not math.isfinite(value):
                raise InputError(f"{name} is {value}; a measurement that failed is no row")
        self.record_of_run.row(table, {**row, "recorded_s": time.time()})

    # The steps, in the order in which `execute` makes them.

    @property
    def workspace(self) -> Workspace:
        return self.record_of_run.workspace

    def begin(self, resume: bool = False) -> None:
        """Makes the workspace, or takes up that of an interrupted run."""
        folder = folder_of(self.options.archive)
        workspace = Workspace.reopen(folder) if resume else Workspace.create(self.options.archive, self._state())
        self.record_of_run = Record(workspace, self._say)
        self._stack.callback(workspace.close)
        if resume:
            self._take_up(workspace)
        elif (design := self.design()) is not None:
            workspace.keep_design(design)
        if self.options.script is not None:
            name = (
                self.options.script.name
                if not resume
                else f"{len(workspace.state['sessions'])}-{self.options.script.name}"
            )
            self.record_of_run.keep(f"experiment/{name}", self.options.script.read_bytes())
        if self.options.installation is not None:
            self.record_of_run.keep("experiment/installation.yaml", self.options.installation.read_bytes())
        workspace.state["sessions"].append({"start": now()})
        workspace.save()

    def _state(self) -> dict[str, Any]:
        options = self.options
        return {
            "run_id": secrets.token_hex(4),
            "name": type(self).__name__,
            "script": options.script.name if options.script is not None else None,
            "created": now(),
            "lepaute_version": __version__,
            "python": sys.version.split()[0],
            "seed": options.seed,
            "parameters": dict(options.parameters),
            "scheduler": {"name": options.scheduler},
            "nodes": [],
            "phases": [],
            "lost_nodes": [],
            "warnings": [],
            "sessions": [],
        }

    def _take_up(self, workspace: Workspace) -> None:
        """Seed and parameters are those of the run's beginning: its design was drawn with them."""
        state = workspace.state
        self.seed, self.parameters = int(state["seed"]), dict(state["parameters"])
        for ended in ("failure", "status"):
            state.pop(ended, None)
        state["phases"].append({"name": "resumed", "start": now(), "duration_s": 0.0, "status": "done"})
        if state["name"] != type(self).__name__:
            raise InputError(f"{workspace.folder}: was begun by {state['name']}, not by {type(self).__name__}")

    def acquire(self) -> None:
        """Gets the nodes from the scheduler, and waits for them."""
        options = self.options
        self.record_of_run.log(f"asking {options.scheduler} for nodes")
        self._allocation = scheduler(options.scheduler).acquire(options.request, self.record_of_run.log)
        self._stack.callback(self._allocation.release)
        state = self.workspace.state
        facts = self.record_of_run.clean(dict(self._allocation.facts))
        state["scheduler"] = {"name": options.scheduler, **facts}
        state["nodes"] = sorted(
            {*state["nodes"], *(node.name for node in self._allocation.nodes)}, key=state_order(state)
        )
        self.workspace.save()

    def connect(self) -> None:
        """Starts an agent on each node."""
        if self._allocation is None:
            self.acquire()
        assert self._allocation is not None
        state = self.workspace.state
        pool = Pool(
            self._allocation.nodes,
            python=self.python_on_nodes,
            folder=f"lepaute-{state['run_id']}-{len(state['sessions'])}",
            keep=self.options.keep_folders,
            on_lost=self.record_of_run.lost,
            root=self.options.system_root,
        )
        self._pool = self._stack.enter_context(pool)
        self.use(Nodes(pool.channels, self.record_of_run))
        self.record_of_run.log(f"connected to {len(pool.channels)} node(s): {', '.join(self.nodes.names[:8])}")

    @property
    def python_on_nodes(self) -> str:
        """The interpreter that runs there."""
        return self.options.python or (sys.executable if self.options.scheduler == "local" else "python3")

    def _between_nodes(self, first: Nodes) -> list[str]:
        """How mpirun on the first node reaches others: as the engine reaches all of them."""
        if self.options.scheduler == "oar":
            return ["--mca", "plm_rsh_agent", "oarsh"]
        config = self.options.request.ssh_config
        if config is None:
            return []
        first.put(config, _SSH_CONFIG)
        place = f"{first.channels[0].hello['folder']}/{_SSH_CONFIG}"
        return ["--mca", "plm_rsh_agent", f"ssh -F {place} -o BatchMode=yes"]

    def use(self, nodes: Nodes) -> None:
        """From now on these are the experiment's nodes."""
        self._nodes = nodes
        self.machine = Machine(nodes, self.record_of_run, self.period("reference_period_s"))

    def period(self, name: str) -> float:
        """What the options say, or the class where it says something and the options have their default."""
        own = getattr(type(self), name)
        given = getattr(self.options, name)
        default = Options.__dataclass_fields__[name].default
        return float(own) if own is not None and given == default else float(given)

    def prepare_machine(self) -> None:
        """Writes down what the nodes are, sets them to what is asked for, warms them up, and begins to watch them."""
        self.machine.record_environment()
        self.machine.record_clocks()
        self.machine.control({**type(self).control, **self.options.control})
        self.machine.warm_up(self.period("warm_up_s"))
        self.machine.start_monitoring(self.period("monitor_period_s"))
        self.machine.check()

    def release_machine(self) -> None:
        """Ends the watching and undoes every setting."""
        if self._nodes is not None and self._nodes.channels:
            self.machine.record_clocks()
            self.machine.stop_monitoring()
            self.machine.undo()

    # By hand.

    def open(self) -> Self:
        """All steps before setup(), for use by hand."""
        try:
            self.begin()
            self.connect()
            self.prepare_machine()
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Ends the connections and gives the nodes back; the workspace stays until it is archived."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from lepaute.measure.experiment.life import finish

        finish(self, error)


def state_order(state: Mapping[str, Sequence[str]]) -> Callable[[str], tuple[int, str]]:
    """Nodes known from an earlier session first, in their order."""
    known = {name: position for position, name in enumerate(state["nodes"])}
    return lambda name: (known.get(name, len(known)), name)
