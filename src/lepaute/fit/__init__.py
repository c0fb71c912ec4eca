"""Models from archives: kernels (polynomials with noise), network (segments), the spread between days."""

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lepaute.archive import Archive
    from lepaute.fit.diagnostics import diagnose as diagnose
    from lepaute.fit.duration_tables import read_durations as read_durations
    from lepaute.fit.experiments import findings as findings
    from lepaute.fit.fitted_models import FittedModels
    from lepaute.fit.fitted_models import platform_and_models as platform_and_models
    from lepaute.fit.fitted_models import platform_from_archive as platform_from_archive
    from lepaute.fit.observations.factors import factor_frame as factor_frame
    from lepaute.fit.observations.factors import factor_tests as factor_tests
    from lepaute.fit.segmentation import segment as segment
    from lepaute.fit.segmentation import segment_jointly as segment_jointly

__all__ = [
    "diagnose",
    "factor_frame",
    "factor_tests",
    "findings",
    "models",
    "platform_and_models",
    "platform_from_archive",
    "read_durations",
    "segment",
    "segment_jointly",
]


#: Loaded when they are first used, with NumPy, SciPy and pandas.
_MODULE_OF = {
    "diagnose": "diagnostics",
    "factor_frame": "observations.factors",
    "factor_tests": "observations.factors",
    "findings": "experiments",
    "platform_and_models": "fitted_models",
    "platform_from_archive": "fitted_models",
    "read_durations": "duration_tables",
    "segment": "segmentation",
    "segment_jointly": "segmentation",
}


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


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(f"lepaute.fit.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module 'lepaute.fit' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted([*__all__, "__doc__", "__file__", "__name__", "__path__"])
