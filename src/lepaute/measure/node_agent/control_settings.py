"""What machine control can be asked for: what is wrong with a demand, and which changes of the node it comes to.

Each stage looks at a node and returns the changes to make, and the records of what cannot be had. Sources: the kernel's
admin-guide/pm/{cpufreq,cpuidle,intel_pstate,amd-pstate}, ABI/testing/sysfs-devices-system-cpu.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from .control_journal import Change, Record, record, warning
from .system_files import SystemFiles, format_cpus, parse_cpus

#: Those that change the node for everybody on it; the rest only concerns the commands that the agent starts.
MACHINE = ("hyper_threading", "turbo", "c_states", "governor", "frequency", "warm_up")
_CLASSES = {"fifo": os.SCHED_FIFO, "rr": os.SCHED_RR, "batch": os.SCHED_BATCH, "other": os.SCHED_OTHER}
_REAL_TIME = ("fifo", "rr")
_CPU = "sys/devices/system/cpu"

Plan = tuple[list[Change], list[Record]]
#: {"cpus": [..]} and {"scheduling": {"class", "priority", "nice"}} for started_as(), each only where it was asked for
#: and works.
Launch = dict[str, Any]
Started = TypeVar("Started")


# ---- what is wrong with a demand -------------------------------------------------------------------------------------


def problems(settings: Mapping[str, Any]) -> dict[str, str]:
    """Name of each control whose demand cannot be understood, and what is wrong with it; empty when all are fine."""
    complaints = {}
    for name, value in settings.items():
        if name not in _RULES:
            complaints[name] = f"no such control; there are: {', '.join(_RULES)}"
        elif message := _complaint(name, value):
            complaints[name] = message
    return complaints


class _Rule(NamedTuple):
    """What a value must be."""

    words: str
    fits: Callable[[Any], Any]


def _number(least: float, most: float, words: str = "") -> _Rule:
    def fits(value: Any) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= most

    return _Rule(words or f"from {least:g} to {most:g}", fits)


def _one_of(*names: str) -> _Rule:
    return _Rule(f"one of: {', '.join(names)}", lambda value: isinstance(value, str) and value in names)


def _numbers(most: int, words: str) -> _Rule:
    one = _number(0, most)
    return _Rule(words, lambda value: isinstance(value, (list, tuple)) and value and all(map(one.fits, value)))


_FLAG = _Rule("true or false", lambda value: isinstance(value, bool))
_HERTZ = _number(1e6, 1e11, "in hertz, from 1e6 to 1e11")
_CPUS = _numbers(1 << 20, "'cores' or a list of CPU numbers")
_STATE = _number(0, 99)
#: A rule for each control, or one for each of the fields that it may have; a control with fields has at least one.
_RULES: dict[str, _Rule | dict[str, _Rule]] = {
    "hyper_threading": _FLAG,
    "turbo": _FLAG,
    "c_states": {
        "max": _Rule(
            "the number (from 0) or the name of the deepest state allowed",
            lambda most: most != "" if isinstance(most, str) else _STATE.fits(most) and most == int(most),
        )
    },
    "governor": _Rule(
        "the name of a governor, such as performance",
        lambda value: isinstance(value, str) and re.fullmatch(r"[a-z_]{1,15}", value),
    ),
    "frequency": dict.fromkeys(("min_hz", "max_hz", "fixed_hz"), _HERTZ),
    "pinning": _Rule(
        _CPUS.words, lambda value: value == "cores" or (_CPUS.fits(value) and all(cpu == int(cpu) for cpu in value))
    ),
    "scheduling": {
        "class": _one_of(*_CLASSES),
        "priority": _number(0, 99, "from 1 to 99 in the classes fifo and rr, which alone have one"),
        "nice": _number(-20, 19),
    },
    "warm_up": {"duration_s": _number(0.1, 86400, "from 0.1 s to a day")},
}


def _complaint(name: str, value: Any) -> str:
    rules = _RULES[name]
    if isinstance(rules, _Rule):
        return "" if rules.fits(value) else f"{value!r} is not {rules.words}"
    if name == "c_states" and value is False:
        return ""  # none but the shallowest
    if not isinstance(value, Mapping) or not value:
        also = "; false is also possible: none but the shallowest" if name == "c_states" else ""
        return f"{value!r} is not a mapping with some of: {', '.join(rules)}{also}"
    for key, part in value.items():
        if key not in rules:
            return f"{str(key)!r} is not one of: {', '.join(rules)}"
        if not rules[key].fits(part):
            return f"{key} is {part!r}; it is {rules[key].words}"
    if name == "frequency":
        if "fixed_hz" in value and len(value) > 1:
            return "fixed_hz goes without min_hz and max_hz"
        if value.get("min_hz", 0) > value.get("max_hz", 1e12):
            return f"min_hz ({value['min_hz']:g}) is above max_hz ({value['max_hz']:g})"
    if name == "scheduling" and "priority" in value:
        priority = value["priority"]
        if priority < 1 if value.get("class") in _REAL_TIME else priority != 0:
            return f"priority is {priority!r}; it is {rules['priority'].words}"
    return ""


# ---- what the kernel decides for the whole node ----------------------------------------------------------------------


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
    others = sorted(set(files.cpus("present")) - set(online) if enabled else set(online) - set(cores))
    if others:
        return [Change(name, f"{_CPU}/cpu{cpu}/online", "1" if enabled else "0") for cpu in others], []
    if enabled and len(online) == len(cores):
        return [], [warning(name, switch, "the processor shows one thread a core: there is none to turn on")]
    return [], [record(name, switch, "unchanged", "" if enabled else "every core has one thread", state, state)]


def turbo(files: SystemFiles, enabled: bool) -> Plan:
    """intel_pstate counts the other way round; newer drivers have a switch a policy."""
    name, no_turbo, boost = "turbo", f"{_CPU}/intel_pstate/no_turbo", f"{_CPU}/cpufreq/boost"
    if files.exists(no_turbo):
        return [Change(name, no_turbo, "0" if enabled else "1")], []
    for switches in ([boost], [f"{policy}/boost" for policy in _policies(files)]):
        if present := [switch for switch in switches if files.exists(switch)]:
            return [Change(name, switch, "1" if enabled else "0") for switch in present], []
    return [], [warning(name, boost, "this node has no switch for turbo (a virtual machine, or set by its firmware)")]


def governor(files: SystemFiles, chosen: str) -> Plan:
    """The same for all CPUs."""
    name, changes, records = "governor", [], []
    for policy in _policies(files):
        target = f"{policy}/scaling_governor"
        available = files.read_or(f"{policy}/scaling_available_governors").split()
        if available and chosen not in available:
            records.append(warning(name, target, f"there is no governor {chosen}; there are: {', '.join(available)}"))
        else:
            changes.append(Change(name, target, chosen))
    return changes, records if changes or records else [_no_cpufreq(name)]


def frequency(files: SystemFiles, range_hz: dict[str, Any]) -> Plan:
    """Limits in kilohertz; in the order in which the lower one is never above the upper one."""
    name, records = "frequency", []
    changes: list[Change] = []
    low = range_hz.get("fixed_hz", range_hz.get("min_hz"))
    high = range_hz.get("fixed_hz", range_hz.get("max_hz"))
    for policy in _policies(files):
        least, most, current = (
            _integer(files, f"{policy}/{end}_freq") for end in ("cpuinfo_min", "cpuinfo_max", "scaling_max")
        )
        for value in sorted({end for end in (low, high) if end is not None}):
            if least and most and not least <= round(value / 1e3) <= most:
                has = f"{least / 1e6:g} to {most / 1e6:g} GHz"
                message = f"{value / 1e9:g} GHz is outside what the processor has: {has}"
                records.append(warning(name, policy + "/", message))
        ends = [
            Change(name, f"{policy}/scaling_{end}_freq", str(round(value / 1e3)))
            for end, value in (("min", low), ("max", high))
            if value is not None
        ]
        rises = low is not None and current is not None and round(low / 1e3) > current
        changes.extend(reversed(ends) if rises else ends)
    return changes, records if changes or records else [_no_cpufreq(name)]


def c_states(files: SystemFiles, setting: dict[str, Any] | bool) -> Plan:
    """Disables the idle states deeper than the one given by number or name; state 0 always remains."""
    name, place = "c_states", f"{_CPU}/cpu0/cpuidle"
    states = [state for state in files.glob(f"{_CPU}/cpu[0-9]*/cpuidle/state[0-9]*/disable") if _state(state) > 0]
    if not files.glob(f"{_CPU}/cpu[0-9]*/cpuidle/state[0-9]*"):
        return [], [warning(name, place, "the kernel does not manage idle states on this node")]
    if not states:
        return [], [warning(name, place, "the kernel has no switch for each idle state on this node")]
    most = 0 if setting is False else setting["max"]  # type: ignore[index]
    if isinstance(most, str):
        named = [state for state in states if files.read_or(state.replace("/disable", "/name")) == most]
        if not named:
            names = [files.read_or(state.replace("/disable", "/name")) for state in states if "/cpu0/" in state]
            message = f"there is no idle state {most}; there are: {', '.join(names) or 'none that can be turned off'}"
            return [], [warning(name, place, message)]
        most = _state(named[0])
    if changes := [Change(name, state, "1") for state in states if _state(state) > most]:
        return changes, []
    return [], [record(name, place, "unchanged", f"no idle state is deeper than number {most}")]


def latency_us(files: SystemFiles, setting: dict[str, Any] | bool) -> int:
    """Wake-up time of the deepest state allowed, for the request through /dev/cpu_dma_latency: 0 keeps state 0."""
    most = 0 if setting is False else setting["max"]  # type: ignore[index]
    for state in files.glob(f"{_CPU}/cpu0/cpuidle/state[0-9]*"):
        if most in {_state(state + "/disable"), files.read_or(f"{state}/name")}:
            return _integer(files, f"{state}/latency") or 0
    return 0


def _policies(files: SystemFiles) -> list[str]:
    """The folders of cpufreq: one a group of CPUs that share a clock, in older kernels one a CPU."""
    return files.glob(f"{_CPU}/cpufreq/policy[0-9]*") or files.glob(f"{_CPU}/cpu[0-9]*/cpufreq")


def _no_cpufreq(name: str) -> Record:
    message = "this node has no frequency control (a virtual machine, or left to its firmware)"
    return warning(name, f"{_CPU}/cpu0/cpufreq", message)


def _state(target: str) -> int:
    match = re.search(r"/state([0-9]+)/", target)
    return int(match.group(1)) if match else -1


def _integer(files: SystemFiles, name: str) -> int | None:
    text = files.read_or(name)
    return int(text) if text.isdecimal() else None


# ---- how commands are started ----------------------------------------------------------------------------------------


def started_as(launch: Launch, start: Callable[[], Started]) -> Started:
    """What start() returns (or raises), called in a thread that has the CPUs and the class of `launch`.

    A process inherits them from the thread that makes it; the thread ends afterwards, so the agent stays as it was.
    (A process that asks for a signal at the death of its parent would get it then: PR_SET_PDEATHSIG is by thread.)
    """
    if not {"cpus", "scheduling"} & set(launch):
        return start()
    outcome: list[Started] = []
    failure: list[BaseException] = []

    def body() -> None:
        try:
            _become(launch)
            outcome.append(start())
        except BaseException as error:  # noqa: BLE001  it belongs to the caller, who gets it below
            failure.append(error)

    thread = threading.Thread(target=body, name="launch")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


def _become(launch: Launch) -> None:
    """Changes the calling thread (in Linux, id 0 is the thread's own in all three calls)."""
    if "cpus" in launch:
        os.sched_setaffinity(0, launch["cpus"])
    scheduling = launch.get("scheduling", {})
    if "nice" in scheduling:
        os.setpriority(os.PRIO_PROCESS, 0, int(scheduling["nice"]))
    if "class" in scheduling:
        name = scheduling["class"]
        priority = int(scheduling.get("priority", 1)) if name in _REAL_TIME else 0
        os.sched_setscheduler(0, _CLASSES[name], os.sched_param(priority))


def pinning(files: SystemFiles, cores: str | list[int]) -> tuple[Launch, Record]:
    """One CPU a physical core, or those given; of these only such as this process may use."""
    allowed = allowed_cpus(files)
    asked = files.cores() if cores == "cores" else [int(cpu) for cpu in cores]
    cpus = [cpu for cpu in asked if cpu in allowed] if allowed else asked
    before, after = format_cpus(sorted(allowed)), format_cpus(cpus)
    if not cpus:
        return {}, warning("pinning", "launch", f"none of the CPUs {format_cpus(asked)} may be used (only {before})")
    if not _works({"cpus": cpus}):
        return {}, warning("pinning", "launch", f"the kernel refuses the CPUs {after}")
    lost = sorted(set(asked) - set(cpus))
    message = f"not allowed to use the CPUs {format_cpus(lost)}" if lost else ""
    return {"cpus": cpus}, record("pinning", "launch", "warning" if lost else "done", message, before, after)


def scheduling(policy: dict[str, Any]) -> tuple[Launch, Record]:
    """The class, priority and nice value, if a thread of ours may have them."""
    name = policy.get("class", "other")
    words = [name]
    words += [f"priority {int(policy.get('priority', 1))}"] if name in _REAL_TIME else []
    words += [f"nice {int(policy['nice'])}"] if "nice" in policy else []
    after = ", ".join(words)
    if not _works({"scheduling": policy}):
        message = f"{after} is not allowed (it takes root, or a limit on rtprio or nice that allows it)"
        return {}, warning("scheduling", "launch", message)
    return {"scheduling": dict(policy)}, record("scheduling", "launch", "done", "", _class_name(), after)


def _works(launch: Launch) -> bool:
    try:
        return started_as(launch, lambda: True)
    except (OSError, ValueError):
        return False


def _class_name() -> str:
    policy = os.sched_getscheduler(0)
    name = next((name for name, number in _CLASSES.items() if number == policy), str(policy))
    return f"{name}, nice {os.getpriority(os.PRIO_PROCESS, 0)}"


def allowed_cpus(files: SystemFiles) -> set[int]:
    """The CPUs that this process may use."""
    for line in files.read_or("proc/self/status").splitlines():
        if line.startswith("Cpus_allowed_list:"):
            return set(parse_cpus(line.split(":", 1)[1]))
    return set(files.cpus())
