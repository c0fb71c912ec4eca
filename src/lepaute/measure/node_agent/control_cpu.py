"""Which files make a processor's speed steady: threads of a core, turbo, governor, frequency, C-states.

Each function looks at a node and returns the changes to make, and the records of what cannot be had. Sources: the
kernel's admin-guide/pm/{cpufreq,cpuidle,intel_pstate,amd-pstate} and ABI/testing/sysfs-devices-system-cpu.
"""

from __future__ import annotations

import re
from typing import Any

from .control_record import Change, Record, record, warning
from .system_files import SystemFiles

_CPU = "sys/devices/system/cpu"
Plan = tuple[list[Change], list[Record]]


def hyper_threading(files: SystemFiles, enabled: bool) -> Plan:
    """Through the kernel's one switch, else by taking the second threads of the cores off line."""
    name, switch = "hyper_threading", f"{_CPU}/smt/control"
    state = files.read_or(switch, "notimplemented")
    if state in {"on", "off"}:
        return [Change(name, switch, "on" if enabled else "off")], []
    if state == "forceoff":
        status = "warning" if enabled else "unchanged"
        return [], [record(name, switch, status, "it was turned off for good when the node started", state, state)]
    online, cores = files.cpus(), files.cores()
    if not online:
        return [], [warning(name, switch, "the kernel does not tell which CPUs there are")]
    if enabled:
        others = [cpu for cpu in files.cpus("present") if cpu not in set(online)]
    else:
        others = [cpu for cpu in online if cpu not in set(cores)]
    if not others:
        alone = len(online) == len(cores)
        if alone and enabled:
            return [], [warning(name, switch, "the processor shows one thread a core: there is none to turn on")]
        return [], [record(name, switch, "unchanged", "" if enabled else "every core has one thread", state, state)]
    changes = [Change(name, f"{_CPU}/cpu{cpu}/online", "1" if enabled else "0") for cpu in others]
    return changes, []


def turbo(files: SystemFiles, enabled: bool) -> Plan:
    """intel_pstate counts the other way round; newer drivers have a switch a policy."""
    name, no_turbo, boost = "turbo", f"{_CPU}/intel_pstate/no_turbo", f"{_CPU}/cpufreq/boost"
    if files.exists(no_turbo):
        return [Change(name, no_turbo, "0" if enabled else "1")], []
    if files.exists(boost):
        return [Change(name, boost, "1" if enabled else "0")], []
    switches = [f"{policy}/boost" for policy in policies(files) if files.exists(f"{policy}/boost")]
    if switches:
        return [Change(name, switch, "1" if enabled else "0") for switch in switches], []
    return [], [warning(name, boost, "this node has no switch for turbo (a virtual machine, or set by its firmware)")]


def governor(files: SystemFiles, chosen: str) -> Plan:
    """The same for all CPUs."""
    name, changes, records = "governor", [], []
    for policy in policies(files):
        target = f"{policy}/scaling_governor"
        available = files.read_or(f"{policy}/scaling_available_governors").split()
        if available and chosen not in available:
            records.append(warning(name, target, f"there is no governor {chosen}; there are: {', '.join(available)}"))
        else:
            changes.append(Change(name, target, chosen))
    return changes, records if changes or records else [_no_cpufreq(name)]


def frequency(files: SystemFiles, range_hz: dict[str, Any]) -> Plan:
    """Limits in kilohertz; in the order in which the lower one is never above the upper one."""
    name, changes, records = "frequency", [], []
    low = range_hz.get("fixed_hz", range_hz.get("min_hz"))
    high = range_hz.get("fixed_hz", range_hz.get("max_hz"))
    for policy in policies(files):
        limits = [_kilohertz(files, f"{policy}/cpuinfo_{end}_freq") for end in ("min", "max")]
        for value in sorted({end for end in (low, high) if end is not None}):
            if limits[0] and limits[1] and not limits[0] <= round(value / 1e3) <= limits[1]:
                message = f"{value / 1e9:g} GHz is outside what the processor has: {_range(limits)}"
                records.append(warning(name, policy + "/", message))
        ends = []
        if low is not None:
            ends.append(Change(name, f"{policy}/scaling_min_freq", str(round(low / 1e3))))
        if high is not None:
            upper = Change(name, f"{policy}/scaling_max_freq", str(round(high / 1e3)))
            current = _kilohertz(files, f"{policy}/scaling_max_freq")
            rises = low is not None and current is not None and round(low / 1e3) > current
            ends.insert(0 if rises else len(ends), upper)
        changes.extend(ends)
    return changes, records if changes or records else [_no_cpufreq(name)]


def c_states(files: SystemFiles, setting: dict[str, Any] | bool) -> Plan:
    """Disables the idle states deeper than the one given by number or name; state 0 always remains."""
    name = "c_states"
    states = [state for state in files.glob(f"{_CPU}/cpu[0-9]*/cpuidle/state[0-9]*/disable") if _state(state) > 0]
    if not files.glob(f"{_CPU}/cpu[0-9]*/cpuidle/state[0-9]*"):
        return [], [warning(name, f"{_CPU}/cpu0/cpuidle", "the kernel does not manage idle states on this node")]
    if not states:
        return [], [warning(name, f"{_CPU}/cpu0/cpuidle", "the kernel has no switch for each idle state on this node")]
    most = 0 if setting is False else setting["max"]  # type: ignore[index]
    if isinstance(most, str):
        named = [state for state in states if files.read_or(state.replace("/disable", "/name")) == most]
        if not named:
            names = [files.read_or(state.replace("/disable", "/name")) for state in states if "/cpu0/" in state]
            message = f"there is no idle state {most}; there are: {', '.join(names) or 'none that can be turned off'}"
            return [], [warning(name, f"{_CPU}/cpu0/cpuidle", message)]
        most = _state(named[0])
    changes = [Change(name, state, "1") for state in states if _state(state) > most]
    if not changes:
        return [], [record(name, f"{_CPU}/cpu0/cpuidle", "unchanged", f"no idle state is deeper than number {most}")]
    return changes, []


def latency_us(files: SystemFiles, setting: dict[str, Any] | bool) -> int:
    """Wake-up time of the deepest state allowed, for the request through /dev/cpu_dma_latency: 0 keeps state 0."""
    most = 0 if setting is False else setting["max"]  # type: ignore[index]
    for state in files.glob(f"{_CPU}/cpu0/cpuidle/state[0-9]*"):
        if most in {_state(state + "/disable"), files.read_or(f"{state}/name")}:
            text = files.read_or(f"{state}/latency")
            return int(text) if text.isdecimal() else 0
    return 0


def policies(files: SystemFiles) -> list[str]:
    """The folders of cpufreq: one a group of CPUs that share a clock, in older kernels one a CPU."""
    return files.glob(f"{_CPU}/cpufreq/policy[0-9]*") or files.glob(f"{_CPU}/cpu[0-9]*/cpufreq")


def _no_cpufreq(name: str) -> Record:
    message = "this node has no frequency control (a virtual machine, or left to its firmware)"
    return warning(name, f"{_CPU}/cpu0/cpufreq", message)


def _state(target: str) -> int:
    match = re.search(r"/state([0-9]+)/", target)
    return int(match.group(1)) if match else -1


def _kilohertz(files: SystemFiles, name: str) -> int | None:
    text = files.read_or(name)
    return int(text) if text.isdecimal() else None


def _range(limits: list[int | None]) -> str:
    return f"{(limits[0] or 0) / 1e6:g} to {(limits[1] or 0) / 1e6:g} GHz"
