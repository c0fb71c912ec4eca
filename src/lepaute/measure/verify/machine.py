"""The machine of a campaign against that of the platform: whether it is the same, and how fast it is by its sentinels.

The predictions stay as they were sealed. What the machine has become slower by is taken out of the measured times
beside them: a run whose sentinels were slower by a share x took as much longer as its ranks compute or wait for each
other, which is all of the predicted time but the moving of messages.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from math import exp, isnan, log, sqrt
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError
from lepaute.kit.later import pandas
from lepaute.kit.text import signed_percent, significant, with_interval
from lepaute.simulate.platform.nodes import refuse_groups
from lepaute.stats.student import student_quantile

if TYPE_CHECKING:
    from lepaute.measure.sentinel import Guard
    from lepaute.simulate import Application, Prediction
    from lepaute.simulate.platform import Platform
    from lepaute.simulate.platform.schema import Sentinel

REMEDY = "calibrate this machine, or give --other-machine to compare all the same"


@dataclass(frozen=True, slots=True)
class SeenNode:
    """Facts of a node; blas_core: OpenBLAS' name for the kernels that run there, None if that was not looked at."""

    name: str
    cpu_model: str
    cores: int
    blas_core: str | None


def check_same_machine(platform: "Platform", seen: Sequence[SeenNode], *, other_machine: bool) -> list[str]:
    """What the platform does not say of its nodes, or with `other_machine` what differs from these; one line each.

    Raises InputError if something differs, unless `other_machine`; of nodes that differ alike, the first is named.
    """
    refuse_groups(platform, "real runs to verify it by")
    nodes, blas = platform.nodes, platform.blas
    described: tuple[tuple[str, str | int | None, list[str | int | None]], ...] = (
        ("processor", nodes.cpu_model, [node.cpu_model for node in seen]),
        ("cores", nodes.cores, [node.cores for node in seen]),
        ("BLAS kernels", None if blas is None else blas.core, [node.blas_core for node in seen]),
    )
    different, unknown = [], []
    for what, of_platform, of_nodes in described:
        if of_platform is None:
            unknown.append(what)
            continue
        other = next((i for i, value in enumerate(of_nodes) if value not in (None, of_platform)), None)
        if other is not None:
            different.append(f"{what}: {of_platform}, on {seen[other].name} {of_nodes[other]}")
    if len(seen) > nodes.count:
        different.append(f"nodes: {nodes.count}, here {len(seen)}")
    if different and not other_machine:
        raise InputError(f"{platform.name} is the platform of another machine ({'; '.join(different)}); {REMEDY}")
    lines = [f"the platform is of another machine: {difference}" for difference in different]
    if unknown:
        lines.append(
            f"the platform does not say its {' and '.join(unknown)}: whether it is of this machine was only checked by "
            "the rest"
        )
    return lines


#: A difference is told where it is at least so large, and chance alone has it in one campaign of a hundred.
MIN_PERCENT, CONFIDENCE = 1.0, 0.99
#: Of the sentinel's rate that HPL reaches, and seconds that a real run takes besides: for when runs will be made.
_HPL_SHARE, _RUN_S = 0.8, 1.5


@dataclass(frozen=True, slots=True)
class MachineDrift:
    """The machine during the campaign against the calibration.

    percent        : by which its sentinels take longer, mean over the campaign; negative where it is faster
    standard_error : of that, in per cent
    gflops         : of a core, when it was calibrated and now
    significant    : worth saying
    """

    percent: float
    standard_error: float
    gflops: tuple[float, float]
    significant: bool
    sentinels: int

    @property
    def sentence(self) -> str:
        """This machine is 6.1 % (95 %: 5.2 to 7.0 %) slower than when it was calibrated (60 -> 56.5 Gflop/s a core)."""
        now = f"{' -> '.join(map(significant, self.gflops))} Gflop/s a core, {self.sentinels} sentinels"
        half = student_quantile(0.975, max(1, self.sentinels - 1)) * self.standard_error
        if not self.significant:
            change = signed_percent(self.percent / 100.0, (self.percent - half) / 100.0, (self.percent + half) / 100.0)
            return f"No change of the machine's speed since its calibration is known: {change}; {now}."
        size, way = abs(self.percent), "slower" if self.percent > 0 else "faster"
        change = with_interval(size, size - half, size + half, "%")
        return f"This machine is {change} {way} than when it was calibrated ({now})."

    def to_dict(self) -> dict[str, Any]:
        return {
            "percent": self.percent,
            "standard_error_percent": self.standard_error,
            "significant": self.significant,
            "calibrated_gflops": self.gflops[0],
            "gflops": self.gflops[1],
            "sentinels": self.sentinels,
        }


def machine_drift(readings_s: Sequence[float], sentinel: "Sentinel") -> MachineDrift | None:
    """Drift of the sentinels of a campaign, in the order of time; None without any.

    The standard error is that of both means, by the differences of successive sentinels (von Neumann's): what the
    machine wandered during the campaign is no error of its mean.
    """
    if not readings_s:
        return None
    logs = [log(value / sentinel.duration_s) for value in readings_s]
    mean = fmean(logs)
    squares = [(after - before) ** 2 / 2.0 for before, after in zip(logs, logs[1:], strict=False)]
    variance = fmean(squares) / len(logs) if squares else sentinel.relative_error**2
    error = sqrt(variance + sentinel.relative_error**2)
    beyond = student_quantile(0.5 + CONFIDENCE / 2.0, max(1, len(logs) - 1)) * error
    percent = 100.0 * (exp(mean) - 1.0)
    significant = abs(percent) >= MIN_PERCENT and abs(mean) > beyond
    return MachineDrift(percent, 100.0 * error, (sentinel.gflops, sentinel.gflops * exp(-mean)), significant, len(logs))


def readings_of(runs: "pandas.DataFrame") -> list[float]:
    """Each sentinel once, in the order of time: the one after a run is mostly also the one before the next."""
    columns = ["sentinel_before_s", "sentinel_after_s"]
    if not set(columns) <= set(runs.columns):
        return []
    values = runs.sort_values("order")[columns].to_numpy(dtype=float).ravel().tolist()
    return [value for value, _ in groupby(value for value in values if not isnan(value))]


def compute_share(prediction: "Prediction") -> float:
    """Share of the predicted time that goes with the cores' speed: all but moving messages; 1 if unknown."""
    return 1.0 if prediction.first is None else min(1.0, max(0.0, 1.0 - prediction.first.moving))


def time_without_drift(time_s: float, share: float, ratio: float) -> float:
    """What a run would have taken on the calibrated machine; ratio: of its sentinels over the calibrated one."""
    return time_s / (1.0 + share * (ratio - 1.0))


def lag_of_campaign(
    platform: "Platform", applications: "Sequence[Application]", repeats: int, now: datetime | None = None
) -> float:
    """Seconds from the end of the calibration to about the middle of the campaign; 0 if it has no date."""
    from lepaute.simulate import Hpl, predict

    sentinel = platform.sentinel
    if sentinel is None:
        return 0.0

    def about_s(application: "Application") -> float:
        if not isinstance(application, Hpl):
            return predict(application, platform, runs=1).time_s.mean
        cores = application.ranks * application.threads_per_rank
        return application.flop_count / (cores * _HPL_SHARE * sentinel.gflops * 1e9)

    campaign_s = repeats * sum(about_s(application) + _RUN_S for application in applications)
    return float(round(sentinel.lag_s(now or datetime.now(UTC)) + campaign_s / 2.0))


def guard_of(platform: "Platform", program: Path, coretype: str | None) -> "Guard | None":
    from lepaute.measure.sentinel import Guard, calls_of

    sentinel = platform.sentinel
    if sentinel is None:
        return None
    size = (sentinel.m, sentinel.n, sentinel.k)
    return Guard(program, size, calls_of(sentinel.duration_s), platform.nodes.cores, coretype)
