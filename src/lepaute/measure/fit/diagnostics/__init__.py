"""A diagnosis: every subject of a fit with its checks, the machine in the course of time, and the flags of all."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import numpy as np

from lepaute.measure.archive import Archive, Archives
from lepaute.measure.fit.diagnostics import checks, observed
from lepaute.measure.fit.diagnostics import flag as flagging
from lepaute.measure.fit.diagnostics.course import Machine, machine_of, series_of, slow_change, step
from lepaute.measure.fit.diagnostics.findings import summary
from lepaute.measure.fit.diagnostics.residuals import Classed, Residuals, classed
from lepaute.measure.fit.messages.links import MessageTables
from lepaute.measure.fit.numeric import one_blas_thread, subset
from lepaute.measure.fit.observations.calibrations import (
    calibrations,
    hosts_of,
    seen_hosts,
    shape_of,
    without_disturbed,
)
from lepaute.measure.fit.observations.calls import pooled_observations
from lepaute.measure.fit.observations.factors import usual_conditions
from lepaute.measure.fit.variability.episodes import in_usual_state, without_slow_messages
from lepaute.measure.fit.variability.sentinels import watches
from lepaute.measure.observation_columns import KERNELS, P2P
from lepaute.simulate.platform.kernel_model import KernelModel
from lepaute.simulate.platform.network_model import Network
from lepaute.simulate.platform.schema import Wandering

FORMAT = "lepaute-diagnosis/1"


class Models(Protocol):
    """Models that are judged: FittedModels, or a Platform."""

    @property
    def kernels(self) -> "Sequence[KernelModel]": ...
    @property
    def network(self) -> "Network": ...
    @property
    def wandering(self) -> "Wandering | None": ...


@dataclass(frozen=True, slots=True)
class Subject:
    """One kernel or operation.

    share  : of the time of all kernels, 1 for operations on messages
    ranges : sizes that the model was fitted to, in words
    """

    name: str
    calls: Classed
    share: float
    checks: tuple[flagging.Check, ...]
    ranges: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is wrong with models and with what they were fitted to.

    archives     : what each was: file, id, host, processor, date, seed of its design ("" if unknown)
    flags        : those that matter most first
    missing      : names of kernels that were measured and have no model
    factor_tests : of the fit, as it has them; dependence: the same
    """

    archives: tuple[dict[str, str], ...]
    subjects: tuple[Subject, ...]
    machines: tuple[Machine, ...]
    flags: tuple[flagging.Flag, ...]
    missing: tuple[str, ...]
    alpha: float
    factor_tests: Any = None
    dependence: Any = None

    def __repr__(self) -> str:
        return f"<Diagnosis: {len(self.serious)} serious of {len(self.flags)} findings on {len(self.subjects)} models>"

    @property
    def serious(self) -> tuple[flagging.Flag, ...]:
        """The flags that speak against using the models."""
        return tuple(flag for flag in self.flags if flag.severity == "serious")

    def of(self, subject: str) -> tuple[flagging.Flag, ...]:
        return tuple(flag for flag in self.flags if flag.subject == subject)

    def to_dict(self) -> dict[str, Any]:
        """The diagnosis as a JSON object: answer, figures, findings, flags, and every check with its numbers."""
        named = [(subject.name, subject.share, len(subject.calls.of), subject.checks) for subject in self.subjects]
        named += [(machine_name(machine), 1.0, 0, machine.checks) for machine in self.machines]
        return {
            "format": FORMAT,
            "archives": list(self.archives),
            "false_alarms": self.alpha,
            **summary(self),
            "flags": [asdict(flag) for flag in self.flags],
            "subjects": [
                {"subject": name, "time_share": share, "calls": calls, "checks": [_check(check) for check in made]}
                for name, share, calls, made in named
            ],
            "without_model": list(self.missing),
        }


@one_blas_thread()
def diagnose(archives: Archives, models: Models, *, alpha: float = flagging.ALPHA, alone: bool = True) -> Diagnosis:
    """Judges models by the observations of archives: those they were fitted to, or others of the same nodes.

    models : FittedModels, or a platform
    alpha  : chance that any flag comes from a test although all is well
    alone  : whether the models are of messages on which nothing else runs, as the measurements between two ranks are;
             otherwise these are compared with their running median
    Raises FitError as `fit.models` does for archives that cannot be fitted together.
    """
    given = calibrations(archives)
    raw_kernels = [archive.table(KERNELS) for archive in given]
    raw_messages = [archive.table(P2P).assign(archive=number) for number, archive in enumerate(given)]
    clocks = observed.clocks_of(list(zip(raw_kernels, raw_messages, strict=True)))
    hosts, _ = seen_hosts(hosts_of(given[0]), raw_kernels)
    several = len(hosts) > 1
    among_probes = ("host", "probe", "cpu") if several else ("probe", "cpu")
    frames, _ = without_disturbed(observed.dated(raw_kernels, clocks), among_probes)
    p2p, _ = without_disturbed(observed.dated(raw_messages, clocks), ("host", "link") if several else ())
    watched = [
        replace(watch, start_s=watch.start_s - clocks[watch.archive].get(watch.host, 0.0)) for watch in watches(given)
    ]
    shape = shape_of(given)
    table = pooled_observations([usual_conditions(frame) for frame in frames], hosts, shape)
    table, sentinels, episodes = in_usual_state(table, watched, hosts)
    kernels = list(observed.kernels(table, hosts, models.kernels, shape))
    missing = observed.without_model(frames, models.kernels)
    if episodes is not None:
        p2p = list(without_slow_messages(MessageTables(p2p), episodes, several)[0].p2p)
    operations = list(observed.messages(p2p, models.network if alone else None, several))
    total_s = sum(float(calls.measured_s.sum()) for calls in kernels) or 1.0
    subjects = [
        subject_of(calls, float(calls.measured_s.sum()) / total_s, wandering=models.wandering is not None)
        for calls in sorted(kernels, key=lambda calls: -float(calls.measured_s.sum()))
    ]
    machines = tuple(
        machine_of(
            host, [classed(part) for subject in subjects if (part := _on_host(subject.calls.of, host))], sentinels
        )
        for host in (hosts if several else ("",))
    )
    held = {observed.kernel_name(model): ranges_of(model) for model in models.kernels}
    subjects = [replace(subject, ranges=held[subject.name]) for subject in subjects]
    subjects += [
        replace(
            subject_of(calls, 1.0, wandering=False),
            ranges=f"{calls.size.min():.0f} to {calls.size.max():.0f} bytes" if calls.size.any() else "",
        )
        for calls in operations
        if len(calls)
    ]
    judged = [(machine_name(machine), 1.0, machine.checks) for machine in machines]
    if episodes is not None:
        by, what = flagging.longer(episodes.slower), episodes.witnesses
        seen = flagging.checked("episode", episodes.slower, episodes.slow_s, None, by=by, what=what)
        judged.append(("machine", 1.0, (seen,)))
    judged += [(subject.name, subject.share, subject.checks) for subject in subjects]
    judged += [
        (f"kernel {name}", 1.0, (flagging.checked("no model", 1.0, float(calls), None, name=name, calls=calls),))
        for name, calls in missing
    ]
    factors, dependence = getattr(models, "factor_tests", None), getattr(models, "dependence", None)
    shares = {subject.name.removeprefix("kernel "): subject.share for subject in subjects}
    flags = [
        *flagging.flags_of(judged, alpha),
        *flagging.factor_flags(factors, shares, alpha),
        *flagging.dependence_flags(dependence, shares),
    ]
    return Diagnosis(
        tuple(_archive_summary(archive) for archive in given),
        tuple(subjects),
        machines,
        tuple(sorted(flags, key=lambda flag: flagging.SEVERITIES.index(flag.severity))),
        tuple(name for name, _ in missing),
        alpha,
        factors,
        dependence,
    )


def subject_of(calls: Residuals, share: float, *, wandering: bool) -> Subject:
    """All checks of one kernel or operation."""
    groups = classed(calls)
    sized = calls.weighs_time or calls.size.any()
    made: list[flagging.Check] = [checks.number_of_calls(calls), checks.one_size(calls)] if sized else []
    made += [checks.constant(calls), checks.tick(calls)]
    if len(calls):
        several_hosts = len(set(calls.hosts)) > 1
        made += [check(groups) for check in (checks.level, checks.size, checks.spread, checks.outliers, checks.scatter)]
        made += [checks.autocorrelation(groups, wandering=wandering), checks.places(groups)]
        if several_hosts:  # whose clocks have nothing in common
            made += [checks.places(groups, "hosts")]
        else:
            series = series_of(groups)
            change = step(series)
            made += [change, slow_change(series, change.size > 0)]
    return Subject(calls.subject, groups, share, tuple(made))


def _on_host(calls: Residuals, host: str) -> Residuals | None:
    """The calls on one host ("": on all); None if there are none."""
    if not host:
        return calls if len(calls) else None
    mine = (np.array(calls.hosts, dtype=object) == host)[calls.place]
    return subset(calls, mine) if mine.any() else None


def ranges_of(model: "KernelModel") -> str:
    """The sizes that any piece of a model was fitted to: "m 1 to 8000, n 1 to 8000"."""
    ends: dict[str, tuple[int, int]] = {}
    for piece in model.pieces:
        for letter, (low, high) in (piece.range or {}).items():
            before = ends.get(letter, (low, high))
            ends[letter] = (min(low, before[0]), max(high, before[1]))
    return ", ".join(f"{letter} {low} to {high}" for letter, (low, high) in sorted(ends.items()))


def machine_name(machine: Machine) -> str:
    """The subject of flags of the machine as a whole."""
    return f"host {machine.host}" if machine.host else "machine"


def _archive_summary(archive: "Archive") -> dict[str, str]:
    return {
        "file": archive.path.name,
        "id": archive.id,
        "host": ", ".join(hosts_of(archive)),
        "cpu_model": archive.about.cpu_model or "unknown",
        "created": archive.about.created or "unknown",
        "seed": "" if archive.about.seed is None else str(archive.about.seed),
    }


def _check(check: flagging.Check) -> dict[str, Any]:
    large = check.able and check.size >= check.limits.notable
    return {
        "kind": check.kind,
        "size": check.size,
        "notable_from": _finite(check.limits.notable),
        "serious_from": _finite(check.limits.serious),
        "statistic": check.statistic,
        "p_value": check.p_value,
        "able": check.able,
        "sentence": check.wrong if large else check.fine,
    }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
