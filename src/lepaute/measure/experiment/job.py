"""What an experiment is to the person who writes it: a class with setup, run and teardown."""

import math
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import fields
from types import TracebackType
from typing import Any, ClassVar, Self

from lepaute.errors import EnvironmentProblem, InputError, LepauteError
from lepaute.kit.node_sets import fold_node_set
from lepaute.kit.numbers import of_type
from lepaute.kit.python_files import line_in, program_of
from lepaute.kit.text import counted
from lepaute.measure.archive.metadata import Phase, Session
from lepaute.measure.design import Design
from lepaute.measure.experiment.closing import Outcome, finish
from lepaute.measure.experiment.entries import EXPERIMENT, Content, MeasuredRow, RunState, Settings
from lepaute.measure.experiment.helpers import Helpers
from lepaute.measure.experiment.machine import Machine
from lepaute.measure.experiment.options import Options, Parameters, options_from
from lepaute.measure.experiment.record import Record, now, source_of
from lepaute.measure.experiment.rounds import Until, check_recorded, rounds
from lepaute.measure.experiment.workspace import Workspace, folder_of
from lepaute.measure.node_agent.control import problems as control_problems
from lepaute.measure.nodes.channel import NodeLost, NodeRefused
from lepaute.measure.nodes.group import Nodes
from lepaute.measure.nodes.pool import Pool
from lepaute.measure.raw_files import Value
from lepaute.measure.schedulers import scheduler
from lepaute.measure.schedulers.types import Allocation
from lepaute.version import __version__

#: Columns that each table of an experiment gets besides those that are recorded.
WRITTEN = frozenset({"design_row", "machine_changed", "recorded_s"})


class Job(Helpers):
    """An experiment. A subclass says what is done before, in and after the measurement; `lepaute run` does the rest.

    class Sizes(lp.Job):
        def design(self):
            return lp.design.full_factorial({"size_bytes": [1024, 65536]}, replications=10, seed=self.seed)

        def run(self):
            for row in self.rows():
                for node, result in self.nodes.run("./bench", row["size_bytes"]).items():
                    self.record(node=node, duration_s=float(result.stdout))

    `lp.run(Sizes, "sizes.zip")` does the same in a Python session, for a class defined there. Every step is a method
    too: `with lp.Job(archive="hand.zip") as job: job.nodes.run("uname", "-a")`.

    control, warm_up_s, monitor_period_s, reference_period_s: the class's for `Options`; None: those of `Options`
    """

    archive_content: ClassVar[Content] = EXPERIMENT
    control: ClassVar[Mapping[str, Any]] = {}
    warm_up_s: ClassVar[float | None] = None
    monitor_period_s: ClassVar[float | None] = None
    reference_period_s: ClassVar[float | None] = None

    def __init__(
        self, options: Options | None = None, say: Callable[[str], None] | None = None, **settings: Any
    ) -> None:
        """options: or else `settings`, the fields of `Options` and of a scheduler's `Request`, by name."""
        options = options_from(type(self).__name__, settings) if options is None else options
        self.options = of_type(options, "the first argument of a Job", Options, "lp.Job(archive='hand.zip')")
        self.seed = options.seed
        self.parameters = Parameters(options.parameters)
        self.say = say
        self.on_row: Callable[[int], None] = lambda _rows: (
            None
        )  # called with the number of rows that this session has measured
        self._row: Mapping[str, Value] | None = None
        self._rows_done = 0
        self._stack = ExitStack()
        self._nodes: Nodes | None = None
        self._allocation: Allocation | None = None

    # What a subclass overrides.

    def design(self) -> Design | None:
        """Design to be measured, in the order of execution; drawn once, written down, and only then executed."""
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
        checked = until is None or check_recorded(self.workspace, design, until)
        for number, row in enumerate(design):
            if number not in done:
                yield from self._measuring(number, row)
                checked = checked or until is None or check_recorded(self.workspace, design, until)
        if until is not None:
            for number, further in rounds(self.workspace, design, until, self.seed, self.record_of_run.log):
                yield from self._measuring(number, further)
        self.machine.check()

    def _measuring(self, number: int, row: Mapping[str, Value]) -> Iterator[Mapping[str, Value]]:
        self.machine.check_if_due()
        began_s = time.monotonic()
        self._row = {"design_row": number, **row}
        try:
            yield self._row
        finally:
            self._row = None
        self.workspace.note(MeasuredRow(number, now(), time.monotonic() - began_s))
        self._rows_done += 1
        self.on_row(self._rows_done)
        if not len(self.nodes):
            raise EnvironmentProblem(f"{self.nodes.none_left()}; what was measured so far is kept")

    def record(self, table: str = "observations", **columns: Value) -> None:
        """Writes down one measurement: a row of a table, on the disk before this returns.

        columns: what was seen, units in the names (duration_s): numbers, texts, truth values, or None; the row of the
        design that is being measured, if one is, and the date are added
        """
        for name in columns.keys() & (self._row or {}).keys():
            if columns[name] != (self._row or {})[name]:
                raise InputError(
                    f"{name} is a factor of the row that is measured; record the result under another name"
                )
        _check_names("record", columns)
        row = {**(self._row or {}), **columns}
        for name, value in row.items():
            row[name] = _to_cell_value(name, value)
        self.record_of_run.row(table, {**row, "recorded_s": time.time()})

    def set_conditions(self, **controls: Any) -> frozenset[str]:
        """Sets the nodes for the commands that follow, as `control` does for the whole run: the level of a factor.

        controls: such as governor="powersave", turbo=False; undone at the end of the run
        The names of the nodes that could not be set so. Raises InputError for a value that makes no sense.
        """
        for name, problem in control_problems(controls).items():
            raise InputError(f"condition {name}: {problem}")
        return self.machine.control(controls)

    # The steps, in the order in which `execute` makes them.

    @property
    def workspace(self) -> Workspace:
        return self.record_of_run.workspace

    def begin(self, resume: bool = False) -> None:
        """Makes the workspace, or takes up that of an interrupted run.

        Raises InputError if there is one already, or none, and where design() fails; no new workspace is left then.
        """
        for name, problem in control_problems({**type(self).control, **self.options.control}).items():
            raise InputError(f"control {name}: {problem}")
        folder = folder_of(self.options.archive)
        workspace = Workspace.reopen(folder) if resume else Workspace.create(self.options.archive, self._state())
        self._stack.callback(workspace.close)
        self.record_of_run = Record(workspace, self.say, self.options.parameters)
        try:
            self._write_down(workspace, resume)
        except BaseException:
            if not resume:
                workspace.remove()
            raise

    def _write_down(self, workspace: Workspace, resume: bool) -> None:
        if resume:
            self._restore_settings(workspace)
        design = self._drawn_design()
        if not resume and design is not None:
            workspace.keep_design(design)
        elif resume and (begun := workspace.design) is not None and (design is None or begun.rows != design.rows):
            self.record_of_run.warn("the script's design has changed; continuing with the original one")
        installation = self.options.installation
        session = len(workspace.state.sessions)
        if (program := program_of(type(self))) is not None:
            program.keep(lambda name, text: self._keep_source(session, name, text))
            self._stack.callback(program.keep, lambda _name, _source: None)
        elif (source := source_of(type(self))) is not None:
            self._keep_source(session, *source)
        if installation is not None:
            self.record_of_run.keep("experiment/installation.yaml", installation.read_bytes())
        workspace.state.sessions.append(Session(now()))
        workspace.save()

    def _keep_source(self, session: int, name: str, text: bytes) -> None:
        """A file of the script as it is in a session; says where it is another one than in the session before."""
        folder = self.workspace.folder / "experiment"
        *before, now = [f"{number}-{name}" if number else name for number in range(session + 1)]
        self.record_of_run.keep(f"experiment/{now}", text)
        latest = next((file for file in reversed(before) if (folder / file).is_file()), None)
        if latest is not None and (folder / latest).read_bytes() != (folder / now).read_bytes():
            self.record_of_run.warn(
                f"{name} has changed since the run was interrupted: rows until then are of experiment/{latest}, "
                f"the others of experiment/{now}"
            )

    def _drawn_design(self) -> Design | None:
        try:
            design = self.design()
        except (LepauteError, OSError):
            raise
        except Exception as problem:
            where = f"{self.options.script}{line_in(problem, self.options.script)}: " if self.options.script else ""
            raise InputError(f"{where}design() failed: {type(problem).__name__}: {problem}") from problem
        if design is not None and not isinstance(design, Design):
            raise InputError(
                f"design() gave a {type(design).__name__}; give what lepaute.design makes, such as full_factorial()"
            )
        _check_names("the design", () if design is None else design.columns)
        return design

    def _state(self) -> RunState:
        options, kind = self.options, self.archive_content.kind
        source = source_of(type(self))
        return RunState(
            run_id=secrets.token_hex(4),
            kind=None if kind == EXPERIMENT.kind else kind,
            name=type(self).__name__,
            script=source[0] if source is not None else None,
            created=now(),
            lepaute_version=__version__,
            python=sys.version.split()[0],
            seed=options.seed,
            parameters=dict(options.parameters),
            scheduler={"name": options.scheduler},
            settings=self._settings(),
            more=self._more_metadata(),
        )

    def _more_metadata(self) -> dict[str, Any]:
        return {}

    def _settings(self) -> Settings:
        return Settings(
            control={**type(self).control, **self.options.control},
            warm_up_s=self.period("warm_up_s"),
            monitor_period_s=self.period("monitor_period_s"),
            reference_period_s=self.period("reference_period_s"),
        )

    def _restore_settings(self, workspace: Workspace) -> None:
        """Seed and parameters are those of the run's beginning: its design was drawn with them."""
        state, warn = workspace.state, self.record_of_run.warn
        if self.options.seed not in (state.seed, Options.__dataclass_fields__["seed"].default):
            warn(f"resumed with the original seed {state.seed}; {self.options.seed} is ignored")
        for name in sorted(self.options.parameters):
            if self.options.parameters[name] != state.parameters.get(name):
                warn(f"resumed with the original parameters; the new value of {name} is ignored")
        settings = self._settings()
        state.settings = before = state.settings or settings
        for field in fields(settings):
            if (value := getattr(settings, field.name)) != (old := getattr(before, field.name)):
                warn(f"resumed with {field.name} {value!r}; until then it was {old!r}")
        self.seed, self.parameters = state.seed, Parameters(state.parameters)
        state.failure = state.status = None
        state.phases.append(Phase("resumed", now(), 0.0, "done"))
        if state.name != type(self).__name__:
            raise InputError(f"{workspace.folder}: was begun by {state.name}, not by {type(self).__name__}")

    def acquire(self) -> None:
        """Gets the nodes from the scheduler, and waits for them."""
        options = self.options
        self.record_of_run.log(f"asking {options.scheduler} for nodes")
        self._allocation = scheduler(options.scheduler).acquire(options.request, self.record_of_run.log)
        self._stack.callback(self._allocation.release)
        state = self.workspace.state
        state.scheduler = {"name": options.scheduler, **self.record_of_run.clean(dict(self._allocation.facts))}
        names = [node.name for node in self._allocation.nodes]
        new = [name for name in names if name not in state.nodes]
        if new and state.nodes:
            self.record_of_run.warn(
                f"resumed on {fold_node_set(tuple(names))}, with other nodes than it was begun on "
                f"({fold_node_set(tuple(state.nodes))}): the tables hold rows of all of them"
            )
        state.nodes += new
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
            folder=f"lepaute-{state.run_id}-{len(state.sessions)}",
            keep=self.options.keep_folders,
            on_lost=self.record_of_run.lost,
            root=self.options.system_root,
        )
        self._stack.enter_context(pool)
        self.use(Nodes(pool.channels, self.record_of_run, spares=lambda: self._row is not None))
        self.record_of_run.log(f"connected to {counted(len(pool.channels), 'node')}: {', '.join(self.nodes.names[:8])}")

    @property
    def python_on_nodes(self) -> str:
        return self.options.python or (sys.executable if self.options.on_this_machine else "python3")

    def use(self, nodes: Nodes) -> None:
        """From now on these are the experiment's nodes."""
        self._nodes = nodes
        self.machine = Machine(nodes, self.record_of_run, self.period("reference_period_s"))

    def period(self, name: str) -> float:
        """What the options say, or the class where it says something and the options have their default."""
        of_class = getattr(type(self), name)
        given = getattr(self.options, name)
        if of_class is None or given != Options.__dataclass_fields__[name].default:
            return float(given)
        if isinstance(of_class, bool) or not isinstance(of_class, int | float) or not 0 <= of_class < math.inf:
            raise InputError(f"{type(self).__name__}.{name} is {of_class!r}; give a number of seconds, 0 for none")
        return float(of_class)

    def prepare_machine(self) -> None:
        """Writes down what the nodes are, sets them to what is asked for, warms them up, and begins to watch them."""
        self.machine.record_environment()
        self.machine.record_clocks()
        self.machine.control({**type(self).control, **self.options.control})
        self.machine.warm_up(self.period("warm_up_s"))
        self.machine.start_monitoring(self.period("monitor_period_s"))
        self.machine.check()

    def release_machine(self) -> None:
        """Ends the watching and undoes every setting; what a node refuses is a warning, and stops no other step."""
        if self._nodes is None:
            return
        for step in (self.machine.record_clocks, self.machine.stop_monitoring, self.machine.undo):
            try:
                if self._nodes.channels:
                    step()
            except NodeLost:
                continue  # reported when it was lost
            except NodeRefused as problem:
                self.record_of_run.warn(f"{step.__name__.replace('_', ' ')}: {problem}")

    # By hand.

    def open(self) -> Self:
        """All steps before setup(), for use by hand. What fails leaves no workspace."""
        try:
            self.begin()
        except BaseException:
            self.close()
            raise
        try:
            self.connect()
            self.prepare_machine()
        except BaseException:
            self.close()
            self.workspace.remove()
            raise
        return self

    def close(self) -> None:
        """Ends the connections and gives the nodes back; the workspace stays until it is archived, see `end`."""
        self._stack.close()

    def end(self, error: BaseException | None = None) -> Outcome:
        """Undoes every setting, gives the nodes back, and writes the archive: NAME.partial.zip after an error."""
        outcome = finish(self, error)
        self.record_of_run.tell(outcome.headline)
        return outcome

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(error)


def _check_names(where: str, names: Iterable[str]) -> None:
    """Raises InputError for a column that the archive writes itself."""
    if both := sorted(WRITTEN.intersection(names)):
        raise InputError(
            f"{where} has a column {both[0]}, which every table of an experiment gets; give it another name"
        )


def _to_cell_value(name: str, value: Any) -> Value:
    """Converts a value, also a scalar of NumPy, for a cell of a table; raises InputError for anything else."""
    if callable(item := getattr(value, "item", None)) and getattr(value, "ndim", 0) == 0:
        value = item()
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{name} is {value}; a measurement that failed is no row")
    if value is not None and not isinstance(value, str | int | float):
        raise InputError(f"{name} is a {type(value).__name__}; record numbers, texts, truth values or None")
    return value
