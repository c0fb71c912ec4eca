"""Settings of a platform that change nothing in a prediction: what was asked for has to be done, or said not to be."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: Beginnings of fields that segments of messages may overrule, and what to turn in their place.
_OVERRULED = ("network.node_link.", "network.switch", "topology.")
_KNOBS = {"bandwidth_Bps": "scale.bandwidth", "latency_s": "scale.latency"}


def idle_settings(
    settings: Mapping[str, str], times_s: Sequence[float], time_without: "Callable[[int, Mapping[str, str]], float]"
) -> tuple[str, ...]:
    """A sentence for each of the settings without which every application takes as long, to the last digit.

    times_s     : of the first run of each application, with all settings
    time_without: of the same run of an application, by its place, with these settings alone
    """
    lines = []
    for field in settings:
        others = {name: value for name, value in settings.items() if name != field}
        if all(time_without(at, others) == time_s for at, time_s in enumerate(times_s)):
            lines.append(f"the setting {field}={settings[field]} changes no time of this run{_instead(field)}")
    return tuple(lines)


def _instead(field: str) -> str:
    knob = _KNOBS.get(field.rpartition(".")[2])
    if knob is None or not field.startswith(_OVERRULED):
        return ""
    return f"; where the segments of messages decide, {knob}=FACTOR turns them and the links"
