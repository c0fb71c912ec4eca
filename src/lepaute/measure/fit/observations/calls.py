"""Measured kernel calls as arrays: what the fits take; with the time of phases of HPL that no kernel covers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas

from lepaute.errors import FitError
from lepaute.measure.fit.numeric import Booleans, Floats, Integers, subset
from lepaute.measure.fit.observations.calibrations import LOAD, NodeShape, probe_under_load, with_loads
from lepaute.measure.fit.observations.columns import check_columns, net_seconds
from lepaute.measure.observation_columns import ABSENT, KERNELS, MAX_CORES, NEEDED

#: Phases, not kernels: what they contain is timed as well; `glue_calls` makes kernels of the rest.
PHASES: Mapping[str, str] = {"pdfact": "pdfact_glue", "pdupdate": "pdupdate_glue"}
#: Kernel of n bytes that a process has not written before. No kernel that HPL calls, but what its workspaces cost once.
FIRST_TOUCH = "first_touch"
#: Kernels that a platform can hold; the time of any other is part of the glue around it.
MODELLED = frozenset(
    {
        *("dgemm", "dgemm_nn", "dtrsm", "dtrsm_left"),
        *("dgemv", "dger", "dtrsv", "dscal", "idamax", "daxpy", "dcopy", "dlocswp"),
        *("dlaswp00N", "dlaswp01N", "dlaswp01T", "dlaswp02N", "dlaswp03N", "dlaswp03T", "dlaswp04N", "dlaswp04T"),
        *("dlaswp05N", "dlaswp05T", "dlaswp06N", "dlaswp06T", "dlaswp10N", "dlatcpy", "dlacpy"),
    }
)
#: Kernels whose m * n is a matrix that they update.
PRODUCTS = frozenset({"dgemm", "dgemm_nn"})
#: Kernels whose k is the rows of the trailing matrix (of dcopy the leading dimension): what an element of a row costs
#: depends on how much of the matrix a cache holds.
WALKS_ROWS = frozenset(
    {
        *("dcopy", "dlocswp", "dlaswp00N", "dlaswp02N", "dlaswp10N", "dlatcpy"),
        *(f"dlaswp0{number}{form}" for number in (1, 4, 5, 6) for form in "NT"),
    }
)
#: A product of matrices of so many bytes streams through the caches: its calls in a first step are as good as any.
STREAMED_BYTES = 16_000_000
#: Starts the name of the probes that time kernels where HPL calls them.
IN_CONTEXT = "hpl_steps"
#: Only here: with more ranks in a grid the phases also hold messages.
PROBE = "hpl_steps_1x1"


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of one kernel, all vectors of shape (calls,).

    m, n, k     : parameters, 0 if the kernel has none
    duration_s  : clock's cost subtracted, >= 0
    cpu, block  : the core, see `place_of`; the block of the campaign, numbered over all archives
    probe       : code of the probe, in the order of `probes`
    in_context  : timed inside steps of HPL, not alone
    cold        : in the first step of its design row, when caches hold other data, and not streamed (STREAMED_BYTES)
    weight      : how many calls each stands for, or None: one
    launch      : number of the start that its process had in common with others (the ranks of one mpirun), or None:
                  each (block, cpu, probe) is a process started by itself
    share       : of the other cores of its socket, those that did the same work meanwhile, 0 to 1; None: 0
    socket      : number of its socket among those of all nodes, or None: that of the node
    """

    kernel: str
    m: Floats
    n: Floats
    k: Floats
    duration_s: Floats
    cpu: Integers
    block: Integers
    probe: Integers
    in_context: Booleans
    cold: Booleans
    probes: tuple[str, ...]
    weight: Floats | None = None
    launch: Integers | None = None
    share: Floats | None = None
    socket: Integers | None = None

    def __len__(self) -> int:
        return len(self.duration_s)

    def where(self, mask: Booleans | Integers) -> "Calls":
        """Calls for which `mask` is true, or those of these rows, in their order."""
        return subset(self, mask)

    def shares(self) -> Floats:
        """Share of the other cores of its socket that computed during each call, shape (calls,)."""
        return np.zeros(len(self)) if self.share is None else self.share

    def sockets(self) -> Integers:
        """Number of the socket of each call among those of all nodes, shape (calls,)."""
        return self.cpu // MAX_CORES if self.socket is None else self.socket

    def at_full_load(self) -> Booleans:
        """Which calls were made while all cores of the socket computed, or as many as ever did; shape (calls,)."""
        shares = self.shares()
        result: Booleans = shares >= shares.max(initial=0.0)
        return result

    def launches(self) -> Integers:
        """Number of the launch of each call, shape (calls,)."""
        return numbered((self.block, self.cpu, self.probe)) if self.launch is None else self.launch

    def nonempty(self) -> Booleans:
        """Which calls have work to do: no parameter that others have is 0; shape (calls,)."""
        result = np.ones(len(self), dtype=bool)
        for letter in (self.m, self.n, self.k):
            if np.any(letter > 0):
                result &= letter > 0
        return result

    def work(self) -> Floats:
        """Product of the parameters that the kernel has: the size of a call, for classes of size.

        The rows of the matrix, which k is for kernels that walk along rows, are no amount of work.
        """
        result = np.ones(len(self))
        for letter in (self.m, self.n) if self.kernel in WALKS_ROWS else (self.m, self.n, self.k):
            if np.any(letter > 0):
                result = result * np.maximum(letter, 1.0)
        return result


def numbered(keys: Sequence[Integers]) -> Integers:
    """A number for each combination of values that occurs, from 0 without gaps; keys: vectors of one shape."""
    result = np.zeros(len(keys[0]), dtype=np.int64)
    for key in keys:
        _, code = np.unique(key, return_inverse=True)
        _, joined = np.unique(result * (int(code.max(initial=0)) + 1) + code, return_inverse=True)
        result = joined.astype(np.int64)
    return result


def pooled_observations(
    frames: Sequence["pandas.DataFrame"], hosts: Sequence[str] = (), shape: NodeShape | None = None
) -> "pandas.DataFrame":
    """One table of the kernel observations of several archives, blocks renumbered so that they do not meet.

    hosts : the nodes that were measured, where they are several
    shape : of the nodes; None: one socket of as many cores as the table names
    The column `cpu` becomes the number of a core of one node among all cores of all nodes, see `place_of`. The column
    `launch` numbers the starts of processes: the ranks of one mpirun have it in common, see `_launches_of`. `probe`
    tells loads and threads apart, see `probe_under_load`; `share` is that of the other cores of the row's socket that
    computed, and `socket` its number among those of all nodes; `archive` numbers the frames.
    Raises FitError when a column is missing or there is no row.
    """
    parts, blocks = [], 0
    for number, frame in enumerate(frames):
        check_columns(frame, KERNELS)
        if len(frame) == 0:
            continue
        part = with_loads(frame).loc[:, [*NEEDED[KERNELS], *ABSENT]].copy()
        part["attempt"] = part["attempt"].astype("int64")
        part["block"] = part["block"].astype("int64") + blocks
        part["node"] = positions(frame, hosts)
        part["archive"] = number
        blocks = int(part["block"].max()) + 1
        parts.append(part)
    if not parts:
        raise FitError("the archives hold no kernel observations; calibrate again")
    table = pandas.concat(parts, ignore_index=True)
    core, *load = (table[column].to_numpy(dtype=np.int64) for column in ("cpu", *LOAD))
    shape = NodeShape((0,) * (int(core.max(initial=0)) + 1)) if shape is None else shape
    table["share"] = shape.shares(core, *load)
    table["socket"] = shape.socket_of(core) + shape.sockets * table["node"]
    table["cpu"] = core + MAX_CORES * table["node"]
    table["probe"] = probe_under_load(table)
    for column in ("kernel", "probe"):
        table[column] = table[column].astype("category")
    table["launch"] = _launches_of(table)
    return table


def _launches_of(table: "pandas.DataFrame") -> Integers:
    """Number of the launch of each row: same node, block, probe and attempt, and the same core unless there are ranks.

    A probe of one process is started once for each core, and its rank is 0 on all of them; where a rank above 0 occurs,
    the rows are those of one mpirun.
    """
    keys = [table[column].to_numpy(dtype=np.int64) for column in ("node", "block", "attempt")]
    start = numbered([*keys, table["probe"].cat.codes.to_numpy().astype(np.int64)])
    ranks = np.bincount(start, table["rank"].to_numpy(dtype=np.int64) > 0) > 0
    return numbered([start, np.where(ranks[start], -1, table["cpu"].to_numpy(dtype=np.int64))])


def positions(frame: "pandas.DataFrame", hosts: Sequence[str]) -> Integers:
    """The position among `hosts` of the node of each row; 0 throughout where there is only one."""
    if len(hosts) < 2:
        return np.zeros(len(frame), dtype=np.int64)
    known = {host: position for position, host in enumerate(hosts)}
    code, names = pandas.factorize(frame["host"].astype(str))
    strange = sorted(set(names) - set(known)) if "host" in frame.columns else ["none"]
    if strange:
        raise FitError(f"the observations name the node {strange[0]}, which the archive does not describe")
    return np.array([known[name] for name in names], dtype=np.int64)[code]


def place_of(cpu: int) -> tuple[int, int]:
    """(position of the node among those measured, number of the core there) of a value of `Calls.cpu`."""
    return divmod(cpu, MAX_CORES)


def calls_by_kernel(table: "pandas.DataFrame") -> dict[str, Calls]:
    """Calls of every kernel that a platform can hold and FIRST_TOUCH, by name in alphabetical order, without phases."""
    every = _calls(table, "", np.maximum(net_seconds(table), 0.0))
    codes = table["kernel"].cat.codes.to_numpy()
    result: dict[str, Calls] = {}
    for code, name in enumerate(table["kernel"].cat.categories):
        if name not in MODELLED and name != FIRST_TOUCH:
            continue
        calls = every.where(np.flatnonzero(codes == code))
        streamed = name in PRODUCTS and 8.0 * calls.m * calls.n >= STREAMED_BYTES
        cold = calls.cold & ~np.asarray(streamed) & (name != FIRST_TOUCH)
        result[str(name)] = replace(calls, kernel=str(name), cold=cold)
    return result


def _calls(table: "pandas.DataFrame", kernel: str, duration_s: Floats) -> Calls:
    """The rows of a table as calls, those in a first step inside HPL cold."""
    probes = tuple(str(name) for name in table["probe"].cat.categories)
    probe: Integers = table["probe"].cat.codes.to_numpy(dtype=np.int64).astype(np.int64)
    inside = np.array([name.startswith(IN_CONTEXT) for name in probes], dtype=np.bool_)[probe]
    m, n, k, share = (table[name].to_numpy(dtype=np.float64) for name in ("m", "n", "k", "share"))
    cpu, block, launch, socket = (table[name].to_numpy(dtype=np.int64) for name in ("cpu", "block", "launch", "socket"))
    cold = inside & (table["position"].to_numpy() == 0)
    return Calls(
        kernel, m, n, k, duration_s, cpu, block, probe, inside, cold, probes, launch=launch, share=share, socket=socket
    )


def glue_calls(table: "pandas.DataFrame") -> dict[str, Calls]:
    """One "call" of `pdfact_glue` or `pdupdate_glue` for every such phase that one process alone went through.

    table  : observations as `pooled_observations` makes them
    The duration of the glue is that of the phase, less its modelled kernels, less the cost of timing: each timed call
    adds one reading of the clock inside its stamps and one outside. Kept below zero too: a cut would bias the mean.
    """
    mine = [code for code, name in enumerate(table["probe"].cat.categories) if str(name).split(" ")[0] == PROBE]
    alone = table[np.isin(table["probe"].cat.codes.to_numpy(), mine)]
    if len(alone) == 0:
        return {}
    names = alone["kernel"].astype(str).to_numpy()
    phase = np.isin(names, list(PHASES))
    if not phase.any():
        return {}
    group = numbered([alone[column].to_numpy(dtype=np.int64) for column in ("launch", "rank", "design_row")])
    duration = alone["duration_s"].to_numpy(dtype=np.float64)
    clock = alone["clock_cost_s"].to_numpy(dtype=np.float64)
    owner = _owners(group, alone["start_s"].to_numpy(dtype=np.float64), duration, phase)
    inner = (~phase) & (owner >= 0)
    spent = np.where(np.isin(names, list(MODELLED)), duration + clock, 2 * clock)
    covered = np.bincount(owner[inner], weights=spent[inner], minlength=int(phase.sum()))
    rows = np.flatnonzero(phase)
    rest = duration[rows] - clock[rows] - covered
    result: dict[str, Calls] = {}
    for name, glue in PHASES.items():
        of_phase = names[rows] == name
        if of_phase.any():
            result[glue] = _calls(alone.iloc[rows[of_phase]], glue, rest[of_phase])
    return result


def _owners(group: Integers, start: Floats, duration: Floats, phase: Booleans) -> Integers:
    """Index (among the phases, in row order) of the phase that contains each row in time; -1 for none."""
    order = np.lexsort((~phase, start, group))  # a phase before the kernel that starts with it
    number_of_phase = np.cumsum(phase) - 1
    latest = np.maximum.accumulate(np.where(phase[order], np.arange(len(order)), -1))
    owner = np.full(len(order), -1, dtype=np.int64)
    candidate = order[np.maximum(latest, 0)]
    end = start + duration
    tolerance = 2e-9  # stamps are written with nanoseconds
    held = (latest >= 0) & (group[candidate] == group[order]) & (end[order] <= end[candidate] + tolerance)
    owner[order[held]] = number_of_phase[candidate[held]]
    return owner
