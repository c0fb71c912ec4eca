"""A prediction for some time after the calibration: the effect of the day grows by what the machine drifts."""

from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING

from lepaute.errors import InputError
from lepaute.kit.text import duration, percent

if TYPE_CHECKING:
    from lepaute.platform.schema import Drift, Platform

#: Without a lag, a prediction says so where the effect of the day is this much larger an hour later.
WORTH_TELLING, WORTH_TELLING_RELATIVE_SD, HOUR_S = 2.0, 0.02, 3600.0


@dataclass(frozen=True, slots=True)
class Lag:
    """How long after its calibration a platform is used.

    lag_s : None: about then, within the time that the calibration took
    platform_sha256 : of the platform as it was calibrated
    """

    lag_s: float | None
    platform_sha256: str
    drift: "Drift | None" = field(default=None, repr=False)
    common_relative_sd: float | None = None

    @property
    def warnings(self) -> list[str]:
        """What a reader must know of the drift: that it is not known, extrapolated, or large and left out."""
        if self.lag_s is None:
            return self._left_out()
        if self.drift is None:
            return ["the platform does not say how the machine drifts: the lag changes nothing; calibrate it anew"]
        if self.lag_s <= self.drift.span_s:
            return []
        return [
            f"the drift of the machine was measured over {duration(self.drift.span_s)}: over a lag of "
            f"{duration(self.lag_s)} it is extrapolated, to {percent(self.drift.relative_sd(self.lag_s))}"
        ]

    def _left_out(self) -> list[str]:
        if self.drift is None or self.common_relative_sd is None:
            return []
        later = self.drift.day_relative_sd(self.common_relative_sd, HOUR_S)
        if later < max(WORTH_TELLING_RELATIVE_SD, WORTH_TELLING * self.common_relative_sd):
            return []
        return [
            f"the machine drifts: the interval is for a run within {duration(self.drift.span_s)} of the calibration; "
            f"an hour later the effect of the day is {percent(later)} instead of {percent(self.common_relative_sd)} "
            "(--lag 1h)"
        ]


def at_lag(platform: "Platform", lag_s: float | None) -> "tuple[Platform, Lag]":
    """The platform so long after its calibration, and the lag.

    Raises InputError for a lag that cannot be.
    """
    days = platform.days
    drift, common = (None, None) if days is None else (days.drift, days.common_relative_sd)
    lag = Lag(lag_s, platform.sha256, drift, common)
    if lag_s is None:
        return platform, lag
    if not (isfinite(lag_s) and lag_s >= 0.0):
        raise InputError(f"the lag is {lag_s} s; it is the time since the calibration, 0 or more")
    if days is None or drift is None:
        return platform, lag
    return platform.model_copy(update={"days": days.at_lag(lag_s)}), lag
