"""Which sensors the monitor of a node did not see."""

from collections.abc import Iterable, Mapping

#: What is absent, and how the names of its columns begin.
SENSORS = {
    "frequency of the cores": ("frequency_core",),
    "temperature": ("temperature_",),
    "power": ("power_",),
}


def absent_sensors(samples: Iterable[Mapping[str, object]]) -> list[str]:
    """Those without a number in any sample."""
    seen = {name for sample in samples for name, value in sample.items() if isinstance(value, int | float)}
    return [what for what, prefixes in SENSORS.items() if not any(name.startswith(prefixes) for name in seen)]
