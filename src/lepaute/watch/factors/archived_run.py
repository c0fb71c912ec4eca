"""A run as its archive tells it: what became of its nodes, their processors, when it began, how it measured."""

import json
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, TypeVar

import pandas as pd

from lepaute.errors import ArchiveError, FitError, InputError
from lepaute.kit.printable import printable
from lepaute.measure.archive import Archive
from lepaute.measure.archive.documents import mapping, number, sequence, text
from lepaute.measure.archive.setups import facts as setup_facts
from lepaute.measure.archive.setups.topology import packages_of_threads
from lepaute.measure.node_test_workloads import is_of_workloads
from lepaute.watch.factors.value import cells_text, fingerprint
from lepaute.watch.store.rows import archived_date, node_states
from lepaute.watch.values import WHOLE_NODE

Made = TypeVar("Made")

DESIGN = "design.csv"
#: Columns of a design that number its rows, or say where and in which order they are measured.
PLACES = frozenset("design_row node host peer replication block order seed position".split())
_TABLES, _PARQUET = "observations/", ".parquet"
_BLAS = re.compile(
    r"(lib)?(openblas|blis|atlas|mkl|intel-oneapi-mkl|intel-mkl|blas|flexiblas|nvpl-blas)", re.IGNORECASE
)
_MPI = re.compile(r"(lib)?(openmpi|mpich|intel-mpi|intel-oneapi-mpi|mvapich)", re.IGNORECASE)
_BLAS_VARIABLES = re.compile(r"(OPENBLAS|GOTO|OMP|MKL|BLIS|KMP)_[A-Z0-9_]+")
_MAX_ENVIRONMENT_BYTES = 16 << 20
#: The class of `lepaute run node-test`.
_NODE_TEST = "NodeTest"


class ArchivedRun:
    """What all kinds of factors ask of an archive; see the module."""

    def __init__(self, archive: "Archive") -> None:
        self.archive = archive
        self.about = archive.about
        #: Node -> done, failed, aborted or missing.
        self.states = {node: state for node, (state, _) in node_states(archive.about).items()}
        self._made: dict[str, Any] = {}

    @property
    def is_calibration(self) -> bool:
        return self.about.kind == "calibration"

    @property
    def job(self) -> str:
        """The number of the job that was submitted for this run alone, else the archive's id."""
        facts = self.about.scheduler
        job = facts.get("job")
        if isinstance(job, int) and not isinstance(job, bool) and 0 <= job < 2**63:
            job = str(job)
        submitted = facts.get("submitted") is True and isinstance(job, str) and job
        return printable(str(job)[:100]) if submitted else self.archive.id

    @cached_property
    def started_s(self) -> float:
        """When measuring began: the phase `run`, else the first one; seconds since the epoch by the controller's clock.

        Raises InputError if the archive has no date.
        """
        starts = {phase.name: when for phase in reversed(self.about.phases) if (when := archived_date(phase.start))}
        when = starts.get("run") or min(starts.values(), default=None) or archived_date(self.about.created)
        if when is None:
            raise InputError(f"{self.archive.path}: says nowhere when it was measured, so it has no place among others")
        return when.timestamp()

    @cached_property
    def measuring(self) -> tuple[float, float] | None:
        """Beginning (s since the epoch) and duration (s) of the phase `run`, of a resumed run the longest; None: it has
        not ended."""
        ended = [
            (start.timestamp(), phase.duration_s)
            for phase in self.about.phases
            if phase.name == "run" and phase.duration_s and (start := archived_date(phase.start))
        ]
        return max(ended, key=lambda phase: phase[1], default=None)

    def clock_offset_s(self, node: str) -> float:
        """The node's clock minus the controller's, at the beginning; 0 if it was not measured."""
        if "clock.json" not in self.archive.members():
            return 0.0
        for entry in map(mapping, sequence(self.archive.json("clock.json"))):
            if text(entry.get("node")) == node:
                return number(entry.get("offset_s")) or 0.0
        return 0.0

    def tables(self) -> tuple[str, ...]:
        """Names of the members that are tables of observations."""
        return tuple(name for name in self.archive.members() if name.startswith(_TABLES) and name.endswith(_PARQUET))

    def once(self, name: str, make: Callable[[], Made]) -> Made:
        """A value that several kinds of factors take, made when it is first asked for."""
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]  # type: ignore[no-any-return]

    def nodes_of(self, frame: "pd.DataFrame") -> "pd.Series[str] | None":
        """The node of each row; None if rows do not name theirs and there are several."""
        for name in ("node", "host"):
            if name in frame:
                return frame[name].astype(str).map(printable)
        if len(self.states) != 1:
            return None
        return pd.Series([next(iter(self.states))] * len(frame), index=frame.index)

    def named_nodes(self, frame: "pd.DataFrame", member: str) -> "pd.Series[str]":
        """As `nodes_of`, of the rows of a table; raises FitError if they do not name their nodes."""
        nodes = self.nodes_of(frame)
        if nodes is None:
            remedy = "measure again" if self.is_calibration else "record a column `node`"
            raise FitError(f"{self.archive.path}: {member} does not name the nodes of its rows; {remedy}")
        return nodes

    @cached_property
    def _sockets(self) -> dict[str, dict[int, int]]:
        """Node -> hardware thread -> number of its processor, as far as that is known."""
        found = {}
        for node in {*self.states, *self.about.machines}:
            known = packages_of_threads(self._environment(node, "lstopo.xml"))
            machine = self.about.machines.get(node)
            if machine is not None and machine.layout is not None:
                known |= dict(zip(machine.layout.pu, machine.layout.socket, strict=False))
            found[printable(node)] = known
        return found

    def cpu_of(self, node: str, thread: int) -> int:
        """The processor of a hardware thread; WHOLE_NODE where that is not known."""
        return self._sockets.get(node, {}).get(thread, WHOLE_NODE)

    def cpus(self, node: str) -> tuple[int, ...]:
        """The processors of a node; none where they are not known."""
        return tuple(sorted(set(self._sockets.get(node, {}).values())))

    @cached_property
    def design_columns(self) -> tuple[str, ...]:
        """The factors of the experiment's own design; none where it has no design."""
        return tuple(map(str, self.design.columns)) if self.design is not None else ()

    @cached_property
    def design(self) -> "pd.DataFrame | None":
        """The design of an experiment; None of runs without one."""
        return self.archive.table(DESIGN) if DESIGN in self.archive.members() else None

    @cached_property
    def protocol(self) -> Mapping[str, str]:
        """Conditions that every value of the run has."""
        about = self.about
        settings = mapping(self.archive.metadata.get("settings"))
        known = {"Lepaute": about.lepaute_version, "kind of run": about.kind}
        known |= {f"control {name}": _json(value) for name, value in mapping(settings.get("control")).items()}
        if warm_up_s := number(settings.get("warm_up_s")):
            known["warm-up"] = f"{warm_up_s:g} s"
        if self.is_calibration:
            for name in ("quick", "threads"):
                known[name] = _json(self.archive.metadata.get(name))
        else:
            known["experiment"] = about.name
            members = self.archive.members()
            files = {name: member.sha256 for name, member in members.items() if name.startswith("experiment/")}
            known["files of the experiment"] = fingerprint(sorted(files.items())) if files else ""
            parameters = {
                name: value
                for name, value in about.parameters.items()
                if not (about.name == _NODE_TEST and is_of_workloads(name))  # conditions of workloads alone
            }
            known |= {f"parameter {name}": _json(value) for name, value in parameters.items()}
            known |= self._repositories()
        return {printable(name): printable(value) for name, value in known.items() if value}

    @cached_property
    def plan(self) -> Mapping[str, str]:
        """Plan of the whole run, for factors that depend on all of it, such as a temperature."""
        if self.is_calibration:
            keys = ("seed", "nbs", "network_bytes", "most_n", "blocks", "most_message_bytes")
            return {name: _json(self.archive.metadata.get(name)) for name in keys}
        if self.design is None:
            return {}
        return {"design": cells_text(self.design, [name for name in self.design_columns if name not in PLACES])}

    def blas(self, node: str) -> dict[str, str]:
        """The BLAS of a node, and variables that change what it does; not which kernels it chose for the processor."""
        machine = self.about.machines.get(node)
        facts = machine.blas if machine is not None else self.about.blas
        variables = {
            fact.what: str(fact.value) for fact in setup_facts.variables(self._environment(node, "variables.json"))
        }
        known = {f"variable {name}": value for name, value in variables.items() if _BLAS_VARIABLES.fullmatch(name)}
        if facts.library and facts.config:
            words = [word for word in facts.config.split() if word.lower() != (facts.core or "").lower()]
            return {"BLAS": " ".join(words), **known}
        return {"BLAS": self._packages(node, _BLAS), **known}

    def mpi(self, node: str) -> dict[str, str]:
        machine = self.about.machines.get(node)
        version = (machine.mpi if machine is not None else None) or self.about.mpi.version
        return {"MPI": version or self._packages(node, _MPI)}

    def _packages(self, node: str, wanted: re.Pattern[str]) -> str:
        found = set()
        for file in ("openblas.txt", "packages.txt"):
            for fact in setup_facts.packages(self._environment(node, file)):
                name = fact.what.removeprefix("package ")
                if wanted.match(name) and not name.partition(":")[0].endswith("-dev"):
                    found.add(f"{name.partition(':')[0]} {fact.value}")
        return ", ".join(sorted(found))

    def _repositories(self) -> dict[str, str]:
        if "repositories.json" not in self.archive.members():
            return {}
        cloned = map(mapping, sequence(self.archive.json("repositories.json")))
        commits = {(text(git.get("url")) or text(git.get("folder")), text(git.get("commit"))) for git in cloned}
        return {f"git {url}": commit for url, commit in sorted(commits) if commit}

    def _environment(self, node: str, file: str) -> str:
        member = self.archive.members().get(f"environment/{node}/{file}")
        if member is None or member.size_bytes > _MAX_ENVIRONMENT_BYTES:
            return ""
        return self.archive.read_bytes(f"environment/{node}/{file}").decode(errors="replace")


def last_attempts(table: "pd.DataFrame", *keys: str) -> "pd.DataFrame":
    """Only the last attempt at what other load disturbed, by those of the keys that the table has."""
    if "attempt" not in table or len(table) == 0:
        return table
    keys = tuple(name for name in keys if name in table)
    return table[table["attempt"] == table.groupby(list(keys), dropna=False)["attempt"].transform("max")]


def _json(value: object) -> str:
    try:
        return "" if value is None else json.dumps(value, sort_keys=True)
    except (TypeError, ValueError) as problem:
        raise ArchiveError(f"metadata.json holds a value that is none: {problem}") from None
