"""What can be read of a node while it works: found once, then read with one system call each.

Sources: the kernel's ABI/testing/sysfs-class-powercap and sysfs-class-hwmon, admin-guide/pm/cpufreq, proc(5);
the InfiniBand port counters count words of four bytes (InfiniBand Architecture, volume 1, PortCountersExtended).
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from .system_files import SystemFiles, why

#: A disk asked for its temperature gets a command among those of the experiment; such sensors are left out.
_SLOWEST_S = 2e-3
Row = dict[str, object]


class Absent(NamedTuple):
    """A kind of sensor that the node does not show, and why."""

    sensor: str
    message: str


class Opened:
    """A file kept open; read again from its start at each sample."""

    def __init__(self, files: SystemFiles, name: str, size: int = 64) -> None:
        self._descriptor = files.open(name)
        self._size = size

    def text(self) -> bytes:
        return os.pread(self._descriptor, self._size, 0)

    def number(self) -> int:
        return int(self.text())

    def close(self) -> None:
        os.close(self._descriptor)


class Sensor:
    """Puts its columns, names with units, into a row; read once when it is made, since one that fails then is none."""

    columns: tuple[str, ...] = ()

    def __init__(self, opened: Opened, *columns: str) -> None:
        self._opened = opened
        self.columns = columns or self.columns

    def read(self, row: Row, now_s: float) -> None:
        """now_s: monotonic time of this sample. Raises OSError or ValueError when it cannot."""
        raise NotImplementedError


class Gauge(Sensor):
    """A number that is a quantity itself, in a unit of `scale` of the column's."""

    def __init__(self, opened: Opened, column: str, scale: float) -> None:
        super().__init__(opened, column)
        self._scale = scale
        opened.number()

    def read(self, row: Row, now_s: float) -> None:  # noqa: ARG002  the same for all sensors
        row[self.columns[0]] = self._opened.number() * self._scale


class Counter(Sensor):
    """A number that grows: the column is what was added since the sensor was made.

    A counter that falls was started anew (a driver loaded again): what it then says is what was added since.
    """

    def __init__(self, opened: Opened, column: str, scale: int = 1) -> None:
        super().__init__(opened, column)
        self._scale = scale
        self._last = opened.number()
        self._total = 0

    def read(self, row: Row, now_s: float) -> None:  # noqa: ARG002
        current = self._opened.number()
        self._total += current - self._last if current >= self._last else current
        self._last = current
        row[self.columns[0]] = self._total * self._scale


class Energy(Sensor):
    """Mean power since the sample before, from a counter of microjoules that starts again after its range."""

    def __init__(self, opened: Opened, column: str, range_uj: str, now_s: float) -> None:
        super().__init__(opened, column)
        self._range_uj = int(range_uj)
        self._last_uj, self._last_s = opened.number(), now_s

    def read(self, row: Row, now_s: float) -> None:
        current_uj = self._opened.number()
        used_uj = current_uj - self._last_uj
        if used_uj < 0:  # at most one turn is seen: 262 kJ are 9 minutes at 500 W
            used_uj += self._range_uj
        passed_s = now_s - self._last_s
        self._last_uj, self._last_s = current_uj, now_s
        row[self.columns[0]] = used_uj / 1e6 / passed_s if passed_s > 0 and used_uj >= 0 else None


class Memory(Sensor):
    """Memory in use and what programs can still have, by the kernel's estimate."""

    columns = ("memory_used_bytes", "memory_available_bytes")

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self.read({}, 0.0)

    def read(self, row: Row, now_s: float) -> None:  # noqa: ARG002
        text = self._opened.text()
        total, available = (_meminfo(text, name) for name in (b"MemTotal:", b"MemAvailable:"))
        row["memory_used_bytes"] = total - available
        row["memory_available_bytes"] = available


class Processors(Sensor):
    """Shares of the time of all CPUs since the sample before: busy, waiting for disks, taken by the hypervisor."""

    columns = ("cpu_busy_share", "cpu_iowait_share", "steal_share")

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self._last = self._ticks()

    def _ticks(self) -> list[int]:
        return [int(word) for word in self._opened.text().split(b"\n", 1)[0].split()[1:9]]

    def read(self, row: Row, now_s: float) -> None:  # noqa: ARG002
        ticks = self._ticks()
        user, nice, system, idle, iowait, irq, softirq, steal = (
            max(0, ticks[k] - self._last[k]) for k in range(8)
        )  # iowait may fall a little (proc(5))
        self._last = ticks
        busy = user + nice + system + irq + softirq
        total = busy + idle + iowait + steal
        for name, part in (("cpu_busy_share", busy), ("cpu_iowait_share", iowait), ("steal_share", steal)):
            row[name] = part / total if total else None


class Load(Sensor):
    """Runnable tasks, averaged over a minute."""

    columns = ("load1",)

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self.read({}, 0.0)

    def read(self, row: Row, now_s: float) -> None:  # noqa: ARG002
        row["load1"] = float(self._opened.text().split()[0])


class Clocks(Sensor):
    """Frequencies from /proc/cpuinfo, which are measured ones where the processor counts its cycles (aperfmperf)."""

    def __init__(self, opened: Opened, cpus: list[int]) -> None:
        super().__init__(opened, *(f"frequency_core{cpu}_hz" for cpu in cpus))
        self._cpus = cpus
        self.read({}, 0.0)

    def read(self, row: Row, now_s: float) -> None:  # noqa: ARG002
        rows = re.findall(rb"^processor\s*:\s*([0-9]+)|^cpu MHz\s*:\s*([0-9.]+)", self._opened.text(), re.MULTILINE)
        megahertz: dict[int, float] = {}
        cpu = -1
        for processor, value in rows:
            if processor:
                cpu = int(processor)
            else:
                megahertz[cpu] = float(value)
        for cpu in self._cpus:
            row[f"frequency_core{cpu}_hz"] = megahertz[cpu] * 1e6 if cpu in megahertz else None


class Found:
    """The sensors of a node, and those it does not have. To be closed."""

    def __init__(self, files: SystemFiles, now_s: float) -> None:
        self.sensors: list[Sensor] = []
        self.absent: list[Absent] = []
        self._files = files
        self._opened: list[Opened] = []
        self._names: set[str] = set()
        self._frequencies()
        self._temperatures()
        self._powers(now_s)
        makers: tuple[tuple[str, str, int, Any], ...] = (
            ("memory", "proc/meminfo", 8192, Memory),
            ("load", "proc/loadavg", 128, Load),
            ("processors", "proc/stat", 1024, Processors),
        )
        for what, name, size, make in makers:
            if problem := self._add(make, name, size=size):
                self.absent.append(Absent(what, f"/{name}: {problem}"))
        self._networks()

    def close(self) -> None:
        for opened in self._opened:
            opened.close()
        self._opened.clear()

    def _open(self, name: str, size: int = 64) -> Opened:
        self._opened.append(Opened(self._files, name, size))
        return self._opened[-1]

    def _add(self, make: Callable[..., Sensor], name: str, *arguments: Any, size: int = 64) -> str:
        """Opens the file of a sensor and makes it; why there is none, else ""."""
        try:
            self.sensors.append(make(self._open(name, size), *arguments))
        except (OSError, ValueError) as error:
            return _reason(error)
        return ""

    def _name(self, text: str) -> str:
        """A column's part from a label; a second one of a name gets a number."""
        base = _column_part(text) or "unnamed"
        name, number = base, 2
        while name in self._names:
            name, number = f"{base}_{number}", number + 1
        self._names.add(name)
        return name

    def _frequencies(self) -> None:
        files, cores = self._files, self._files.cores()
        places = {cpu: f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq" for cpu in cores}
        failures = [self._add(Gauge, name, f"frequency_core{cpu}_hz", 1e3) for cpu, name in places.items()]
        if "" in failures:
            return
        if re.search(r"^flags\s*:.*\baperfmperf\b", files.read_or("proc/cpuinfo"), re.MULTILINE) and cores:
            self.sensors.append(Clocks(self._open("proc/cpuinfo", 1 << 22), cores))
            return
        message = failures[0] if failures else "the kernel does not tell which CPUs there are"
        self.absent.append(Absent("frequency", f"cpufreq: {message}; and the processor shows no count of its cycles"))

    def _temperatures(self) -> None:
        """Temperatures of hwmon; if there are none, those of the thermal zones."""
        files = self._files
        failures = []
        before = len(self.sensors)
        for pattern in ("sys/class/hwmon/hwmon[0-9]*/temp[0-9]*_input", "sys/class/thermal/thermal_zone[0-9]*/temp"):
            for name in files.glob(pattern) if len(self.sensors) == before else ():
                folder, _, file = name.rpartition("/")
                if file == "temp":
                    label = files.read_or(f"{folder}/type", "zone")
                else:
                    part = files.read_or(name.replace("_input", "_label")) or file.replace("_input", "")
                    label = f"{files.read_or(f'{folder}/name', 'hwmon')} {part}"
                try:
                    opened = self._open(name)
                    took_s = _reading_time_s(opened)
                except (OSError, ValueError) as error:
                    failures.append(f"{label}: {_reason(error)}")
                    continue
                if took_s > _SLOWEST_S and file != "temp":
                    failures.append(f"{label}: left out, a reading takes {took_s * 1e3:.1f} ms")
                    continue
                self.sensors.append(Gauge(opened, f"temperature_{self._name(label)}_celsius", 1e-3))
        if failures or len(self.sensors) == before:
            message = "; ".join(failures) or "the kernel shows no sensor (a virtual machine, or a driver is missing)"
            self.absent.append(Absent("temperature", message))

    def _powers(self, now_s: float) -> None:
        files = self._files
        failures = []
        seen: set[str] = set()
        places = files.glob("sys/class/powercap/intel-rapl:*/energy_uj")
        for name in places + files.glob("sys/class/powercap/intel-rapl-*/energy_uj"):
            folder = name.rsplit("/", 1)[0]
            column = _power_column(files, folder)
            if column in seen:
                continue  # the same package through another interface (intel-rapl-mmio)
            if problem := self._add(Energy, name, column, files.read_or(f"{folder}/max_energy_range_uj") or "0", now_s):
                failures.append(f"{column}: {problem}")
            else:
                seen.add(column)
        if failures or not seen:
            message = (
                "; ".join(failures) or "the kernel shows no RAPL counter (a virtual machine, or no intel_rapl_msr)"
            )
            self.absent.append(Absent("power", message))

    def _networks(self) -> None:
        files = self._files
        before = len(self.sensors)
        places = [
            (name.split("/")[3], name.rsplit("/", 1)[0] + "/rx_bytes", name, 1)
            for name in files.glob("sys/class/net/*/statistics/tx_bytes")
        ]
        places += [
            (f"{name.split('/')[3]} port{name.split('/')[5]}", name, name.replace("_rcv_", "_xmit_"), 4)
            for name in files.glob("sys/class/infiniband/*/ports/*/counters/port_rcv_data")
        ]
        for label, received, sent, scale in places:
            if label == "lo":
                continue
            column = self._name(label)
            unread = self._add(Counter, received, f"network_{column}_received_bytes", scale)
            if problem := unread or self._add(Counter, sent, f"network_{column}_sent_bytes", scale):
                self.absent.append(Absent(f"network {label}", problem))
        if len(self.sensors) == before:
            self.absent.append(Absent("network", "the node has no interface but its loopback"))


def _power_column(files: SystemFiles, folder: str) -> str:
    """power_package0_watt, power_dram0_watt: a part has the number of the package it belongs to."""
    name = files.read_or(f"{folder}/name", folder.rsplit("/", 1)[1])
    numbers = folder.rsplit("/", 1)[1].split(":")[1:]
    if name.startswith("package-"):
        label = name.replace("package-", "package", 1)
    elif len(numbers) == 2:
        package = files.read_or(f"{folder.rsplit(':', 1)[0]}/name").replace("package-", "", 1)
        label = f"{name}{package or numbers[0]}"
    else:
        label = name
    return f"power_{_column_part(label)}_watt"


def _column_part(label: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", label.lower()).strip("_")


def _reading_time_s(opened: Opened) -> float:
    """The shorter of two readings: the first may have to wake a device. Raises OSError, ValueError."""
    took = []
    for _ in range(2):
        start_s = time.perf_counter()
        opened.number()
        took.append(time.perf_counter() - start_s)
    return min(took)


def _meminfo(text: bytes, name: bytes) -> int:
    """Bytes of a field of /proc/meminfo; ValueError if it is not there."""
    return int(text[text.index(name) + len(name) :].split(None, 1)[0]) * 1024


def _reason(error: Exception) -> str:
    return why(error) if isinstance(error, OSError) else "it gives no number"
