"""Models from archives: kernels (polynomials with noise), network (segments), the spread between days."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lepaute.kit.later import later, public_names

if TYPE_CHECKING:
    from lepaute.measure import archive
    from lepaute.measure.fit import fitted_models
    from lepaute.measure.fit.diagnostics import diagnose as diagnose
    from lepaute.measure.fit.duration_tables import read_durations as read_durations
    from lepaute.measure.fit.experiments import findings as findings
    from lepaute.measure.fit.fitted_models import FittedModels as FittedModels
    from lepaute.measure.fit.fitted_models import platform_and_models as platform_and_models
    from lepaute.measure.fit.fitted_models import platform_from_archive as platform_from_archive
    from lepaute.measure.fit.observations.factors import factor_frame as factor_frame
    from lepaute.measure.fit.observations.factors import factor_tests as factor_tests
    from lepaute.measure.fit.segmentation import SegmentedLine as SegmentedLine
    from lepaute.measure.fit.segmentation import segment as segment
    from lepaute.measure.fit.segmentation import segment_jointly as segment_jointly
else:
    archive, fitted_models = later("lepaute.measure.archive"), later("lepaute.measure.fit.fitted_models")

__getattr__, __dir__, __all__ = public_names(__name__, "models")


def models(
    archives: "archive.Archives", *, kernel_model: str | Sequence[str] = (), network_condition: str | None = None
) -> "fitted_models.FittedModels":
    """Models of kernels and messages, and the spread between blocks, from the archives of a calibration.

    Parameters
    ----------
    archives : of calibrations of the same nodes, or their files
    kernel_model : auto, FORM or KERNEL=FORM, or several of these; see `form.requested_forms`
    network_condition : of the messages that are fitted, where they were measured under several

    Returns
    -------
    `FittedModels`: means in seconds, errors relative; `to_frame()` has a row a kernel

    Raises
    ------
    FitError : where the data do not determine the models

    Examples
    --------
    >>> import lepaute as lp
    >>> lp.fit.models("calibration.zip").to_frame()  # doctest: +SKIP
    """
    from lepaute.measure.fit.kernels.form import requested_forms

    texts = [kernel_model] if isinstance(kernel_model, str) else kernel_model
    return fitted_models.models(archives, requested_forms(texts), network_condition)
