"""How precise predictions by a calibration are: those of the mean of an HPL run on all cores of one of its nodes."""

from collections.abc import Callable
from dataclasses import asdict
from math import sqrt
from typing import Any

from lepaute.errors import LepauteError
from lepaute.kit.text import seconds
from lepaute.measure.archive import Archive
from lepaute.measure.calibration.precision import LATER_S, Goal, Reached
from lepaute.measure.fit.fitted_models import FittedModels, platform_and_models
from lepaute.measure.fit.kernels.form import Form
from lepaute.simulate.apps.hpl import Hpl
from lepaute.simulate.conditions import Layers
from lepaute.simulate.platform import Platform
from lepaute.simulate.prediction.predicting import predict

#: The reference takes about so long, and has this block size; simulated runs of it.
REFERENCE_S, NB, RUNS = 10.0, 128, 40
_FIRST_N, _MIN_N, _MEMORY_SHARE = 8192, 1024, 0.6
#: In the mean of runs on one day; all else differs between single runs.
_LASTING = ("days", "discrepancy", "network", "overheads", "extrapolation")
#: Degrees of freedom of a day known from endlessly many blocks; each costs a random number.
_ENDLESS = 1000
_LIMITS = {
    "days": "how the machine differs between blocks",
    "coefficients": "the model of {kernel}",
    "discrepancy": "the model of {kernel}",
    "extrapolation": "the largest sizes measured",
}


def precision_of(goal: Goal, archive: Archive, platform: Platform, fitted: FittedModels) -> tuple[str, dict[str, Any]]:
    """Precision reached and what another minute would buy: a line, and the facts for programs, None if unknown."""
    try:
        attempts, reached = archive.json("blocks.json"), _reached_by(platform, fitted, later=True)
    except LepauteError as problem:
        return f"the precision remains unknown: {problem}", {"precision": None}
    walls_s: dict[int, float] = {}
    for entry in attempts:
        walls_s[entry["block"]] = walls_s.get(entry["block"], 0.0) + entry["wall_s"]
    last_s = max(1e-3, walls_s[max(walls_s)] / max(1, len(fitted.hosts)))
    return goal.text(reached, len(walls_s), 60.0 / last_s), {"precision": asdict(reached)}


def assessment() -> Callable[[Archive], Reached]:
    """Assessor of a calibration again and again; shapes of models are selected the first time only."""
    forms: dict[str, Form] = {}

    def assess(archive: Archive) -> Reached:
        platform, fitted = platform_and_models(archive, "reference", forms)
        fewest = min(choice.threads for choice in fitted.selections)
        forms.update({choice.kernel: choice.form for choice in fitted.selections if choice.threads == fewest})
        return _reached_by(platform, fitted)

    return assess


def _reached_by(platform: Platform, fitted: FittedModels, *, later: bool = False) -> Reached:
    """The precision that the fitted models give; later: that for some time after the calibration, too."""
    if platform.days is not None:  # of a mean: without what runs and cores differ by on one day
        of_mean = platform.days.model_copy(update={"run_relative_sd": 0.0, "cpu_relative_sd": 0.0})
        platform = platform.model_copy(update={"days": of_mean})
        endless = platform.model_copy(update={"days": of_mean.model_copy(update={"degrees_of_freedom": _ENDLESS})})
    else:
        endless = platform
    reference, time_s = _reference_on(platform)
    layers = Layers.only("coefficients", *_LASTING)
    now = predict(reference, platform, runs=RUNS, layers=layers, parts=True)
    floor = predict(reference, endless, runs=RUNS, layers=Layers.only(*_LASTING))
    drifts = later and platform.days is not None and platform.days.drift is not None
    after = [predict(reference, platform, runs=RUNS, layers=layers, lag_s=LATER_S)] if drifts else []
    half_width, least, *drifted = (0.01 * (each.time_s.half_width_percent or 0.0) for each in (now, floor, *after))
    spreads = {} if now.parts is None else now.parts.relative_sd
    layer = next((name for name in spreads if name in Layers.names()), "")
    kernel = max(fitted.quality, key=lambda row: row.time_s * row.discrepancy).kernel
    text = f"HPL (N = {reference.n}, {reference.p}x{reference.q}, {seconds(time_s)})"
    limit = _LIMITS.get(layer, "messages").format(kernel=kernel)
    return Reached(half_width, min(least, half_width), text, layer, limit, *drifted)


def _reference_on(platform: Platform) -> tuple[Hpl, float]:
    """HPL on all cores of a node that takes about REFERENCE_S and fits into memory, and how long it takes."""
    threads = min(model.threads for model in platform.kernels)
    ranks = max(1, platform.nodes.cores // threads)
    p = max(count for count in range(1, int(sqrt(ranks)) + 1) if ranks % count == 0)
    memory_bytes = platform.nodes.memory_bytes
    most_n = _FIRST_N * 16 if memory_bytes is None else int(sqrt(_MEMORY_SHARE * memory_bytes / 8))
    n = _FIRST_N
    for _ in range(2):
        n = max(_MIN_N, min(n, most_n)) // NB * NB
        reference = Hpl(n=n, nb=NB, p=p, q=ranks // p, threads_per_rank=threads)
        time_s = predict(reference, platform, runs=1, layers=Layers.only()).time_s.mean
        n = round(n * (REFERENCE_S / time_s) ** (1.0 / 3.0))
    return reference, time_s
