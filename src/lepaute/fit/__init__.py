"""Models from archives: kernels (polynomials with noise), network (segments), the spread between days."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from lepaute.archive import Archive
    from lepaute.fit.diagnostics import Diagnosis
    from lepaute.fit.diagnostics.diagnosis import Models
    from lepaute.fit.duration_tables import DurationTable
    from lepaute.fit.fitted_models import FittedModels
    from lepaute.fit.kernels.form import Form
    from lepaute.fit.kernels.quality import QualityRow
    from lepaute.fit.segmentation import JointlySegmented, SegmentedLine
    from lepaute.platform.schema import Platform

__all__ = [
    "diagnose",
    "models",
    "platform_and_models",
    "platform_from_archive",
    "read_durations",
    "segment",
    "segment_jointly",
]


# NumPy, SciPy and pandas are loaded by the first call, not by `import lepaute`.
def models(
    archives: "Archive | Iterable[Archive]",
    *,
    kernel_model: str | Sequence[str] = (),
    network_condition: str | None = None,
) -> "FittedModels":
    """Kernel models, network and spread between blocks; see `fitted_models.models`.

    kernel_model : auto, FORM or KERNEL=FORM, or several of these; see `form.requested_forms`
    """
    from lepaute.fit import fitted_models
    from lepaute.fit.kernels.form import requested_forms

    texts = [kernel_model] if isinstance(kernel_model, str) else kernel_model
    return fitted_models.models(archives, requested_forms(texts), network_condition)


def platform_from_archive(archives: "Archive | Iterable[Archive]", name: str) -> "tuple[Platform, list[QualityRow]]":
    """The platform that the archives measured, and the quality of its models; see `fitted_models`."""
    from lepaute.fit import fitted_models

    return fitted_models.platform_from_archive(archives, name)


def platform_and_models(
    archives: "Archive | Iterable[Archive]",
    name: str,
    forms: "Mapping[str, Form] | None" = None,
    network_condition: str | None = None,
) -> "tuple[Platform, FittedModels]":
    """The platform that the archives measured, and its models with quality and warnings; see `fitted_models`."""
    from lepaute.fit import fitted_models

    return fitted_models.platform_and_models(archives, name, forms, network_condition)


def diagnose(archives: "Archive | Iterable[Archive]", models: "Models", **options: Any) -> "Diagnosis":
    """What is wrong with models, or a platform, by the observations of archives; see `diagnostics.diagnose`."""
    from lepaute.fit import diagnostics

    return diagnostics.diagnose(archives, models, **options)


def segment(x: Any, y: Any, **options: Any) -> "SegmentedLine":
    """Affine pieces with jumps; see `segmentation.segment`, whose options these are."""
    from lepaute.fit import segmentation

    return segmentation.segment(x, y, **options)


def read_durations(
    path: "str | Path",
    *,
    x: str | None = None,
    y: str | None = None,
    unit: str | None = None,
    only: Mapping[str, str] | None = None,
) -> "tuple[DurationTable, ...]":
    """Tables of sizes and durations: output of the OSU and Intel MPI benchmarks, CSV; see `reading.read_durations`."""
    from lepaute.fit import duration_tables

    return duration_tables.read_durations(path, x=x, y=y, unit=unit, only=only)


def segment_jointly(series: "Sequence[tuple[Any, Any]]", **options: Any) -> "JointlySegmented":
    """Affine pieces of several series that share their breakpoints; see `segmentation.segment_jointly`."""
    from lepaute.fit import segmentation

    return segmentation.segment_jointly(series, **options)
