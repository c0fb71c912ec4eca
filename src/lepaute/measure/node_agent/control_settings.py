"""What machine control can be asked for, and what is wrong with a demand."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from .control_journal import Change, Record, record, warning
from .system_files import Run, SystemFiles, format_cpus, parse_cpus, why

#: Those that change the node for everybody on it; the rest only concerns the commands that the agent starts.
MACHINE = ("hyper_threading", "turbo", "c_states", "governor", "frequency", "page_placement", "warm_up", "drop_caches")
CLASSES = ("fifo", "rr", "batch", "other")
POLICIES = ("local", "interleave", "bind")


def problems(settings: Mapping[str, Any]) -> dict[str, str]:
    """Name of each control whose demand cannot be understood, and what is wrong with it; empty when all are fine."""
    complaints = {}
    for name, value in settings.items():
        check = _CHECKS.get(name)
        message = f"no such control; there are: {', '.join(_CHECKS)}" if check is None else check(value)
        if message:
            complaints[name] = message
    return complaints


def _number(value: Any, least: float, most: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= most


def _flag(value: Any) -> str:
    return "" if isinstance(value, bool) else f"{value!r} is neither true nor false"


def _unknown(value: Any, names: tuple[str, ...]) -> str:
    """What is wrong with the keys of a mapping that must be of these names and not empty."""
    if not isinstance(value, Mapping) or not value:
        return f"{value!r} is not a mapping with some of: {', '.join(names)}"
    strange = [str(key) for key in value if key not in names]
    return f"{strange[0]!r} is none of: {', '.join(names)}" if strange else ""


def _c_states(value: Any) -> str:
    if value is False:
        return ""
    message = _unknown(value, ("max",))
    if message:
        return f"{message}; false is also possible: none but the shallowest"
    most = value["max"]
    fine = (_number(most, 0, 99) and most == int(most)) or (isinstance(most, str) and most != "")
    return "" if fine else f"max is {most!r}; it is the number (from 0) or the name of the deepest state allowed"


def _governor(value: Any) -> str:
    fine = isinstance(value, str) and re.fullmatch(r"[a-z_]{1,15}", value)
    return "" if fine else f"{value!r} is not the name of a governor, such as performance"


def _frequency(value: Any) -> str:
    message = _unknown(value, ("min_hz", "max_hz", "fixed_hz"))
    if message:
        return message
    for name, hertz in value.items():
        if not _number(hertz, 1e6, 1e11):
            return f"{name} is {hertz!r}; a frequency is in hertz, from 1e6 to 1e11"
    if "fixed_hz" in value and len(value) > 1:
        return "fixed_hz goes without min_hz and max_hz"
    if value.get("min_hz", 0) > value.get("max_hz", 1e12):
        return f"min_hz ({value['min_hz']:g}) is above max_hz ({value['max_hz']:g})"
    return ""


def _pinning(value: Any) -> str:
    cpus = isinstance(value, (list, tuple)) and value and all(_number(cpu, 0, 1 << 20) for cpu in value)
    whole = cpus and all(cpu == int(cpu) for cpu in value)
    return "" if value == "cores" or whole else f"{value!r} is neither 'cores' nor a list of CPU numbers"


def _scheduling(value: Any) -> str:
    message = _unknown(value, ("class", "priority", "nice"))
    if message:
        return message
    name = value.get("class", "other")
    if name not in CLASSES:
        return f"class is {name!r}; it is one of: {', '.join(CLASSES)}"
    real_time = name in {"fifo", "rr"}
    if real_time and not _number(value.get("priority", 1), 1, 99):
        return f"priority is {value['priority']!r}; of {name} it is from 1 to 99"
    if not real_time and value.get("priority", 0) != 0:
        return f"class {name} has no priority; nice is what it has"
    if not _number(value.get("nice", 0), -20, 19):
        return f"nice is {value['nice']!r}; it is from -20 to 19"
    return ""


def _page_placement(value: Any) -> str:
    message = _unknown(value, ("transparent_hugepage", "numa_balancing", "policy", "nodes", "swappiness"))
    if message:
        return message
    if value.get("transparent_hugepage", "never") not in {"always", "madvise", "never"}:
        return f"transparent_hugepage is {value['transparent_hugepage']!r}; it is always, madvise or never"
    if not isinstance(value.get("numa_balancing", False), bool):
        return f"numa_balancing is {value['numa_balancing']!r}; it is true or false"
    if value.get("policy", "local") not in POLICIES:
        return f"policy is {value['policy']!r}; it is one of: {', '.join(POLICIES)}"
    nodes = value.get("nodes", [0])
    if not isinstance(nodes, (list, tuple)) or not nodes or not all(_number(node, 0, 4095) for node in nodes):
        return f"nodes is {nodes!r}; it is a list of memory node numbers"
    if not _number(value.get("swappiness", 0), 0, 200):
        return f"swappiness is {value['swappiness']!r}; it is from 0 to 200"
    return ""


def _warm_up(value: Any) -> str:
    message = _unknown(value, ("duration_s",))
    if message:
        return message
    fine = _number(value["duration_s"], 0.1, 86400)
    return "" if fine else f"duration_s is {value['duration_s']!r}; it is from 0.1 s to a day"


_CHECKS = {
    "hyper_threading": _flag,
    "turbo": _flag,
    "c_states": _c_states,
    "governor": _governor,
    "frequency": _frequency,
    "pinning": _pinning,
    "scheduling": _scheduling,
    "page_placement": _page_placement,
    "warm_up": _warm_up,
    "drop_caches": _flag,
}


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


_DROP = "proc/sys/vm/drop_caches"
#: A file server that is slow to take what has not been written yet.
_SYNC_LIMIT_S = 120.0


def page_placement(files: SystemFiles, settings: dict[str, Any]) -> tuple[list[Change], list[Record]]:
    """The parts that the kernel decides for the whole node; the policy goes with each command (see launch)."""
    name = "page_placement"
    targets = {
        "transparent_hugepage": "sys/kernel/mm/transparent_hugepage/enabled",
        "numa_balancing": "proc/sys/kernel/numa_balancing",
        "swappiness": "proc/sys/vm/swappiness",
    }
    changes, records = [], []
    for key, target in targets.items():
        if key not in settings:
            continue
        value = settings[key]
        if not files.exists(target):
            absent = key == "numa_balancing" and value is False
            message = "the kernel has no balancing between memory nodes" if absent else "the kernel does not have it"
            records.append(record(name, target, "unchanged" if absent else "warning", message))
        else:
            changes.append(Change(name, target, value if isinstance(value, str) else str(int(value))))
    return changes, records


def drop_caches(files: SystemFiles, run: Run) -> Record:
    """Writes back what is dirty, then empties the page cache and the caches of names: cannot be undone."""
    synced = run(["sync"], _SYNC_LIMIT_S)
    message = "" if synced.returncode == 0 else f"not all was written back first: {synced.problem or 'sync failed'}"
    try:
        files.write(_DROP, "3")
    except OSError as error:
        return warning("drop_caches", _DROP, f"the caches are as they were: {why(error)}")
    return record("drop_caches", _DROP, "warning" if message else "done", message, None, "3")


#: {"cpus": [..]} and {"scheduling": {"class", "priority", "nice"}} for started_as(), {"prefix": [argv..]} for the
#: command line; each only where it was asked for and works.
Launch = dict[str, Any]
Started = TypeVar("Started")

_POLICIES = {"fifo": os.SCHED_FIFO, "rr": os.SCHED_RR, "batch": os.SCHED_BATCH, "other": os.SCHED_OTHER}
_NUMACTL_LIMIT_S = 10.0


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
        priority = int(scheduling.get("priority", 1)) if name in {"fifo", "rr"} else 0
        os.sched_setscheduler(0, _POLICIES[name], os.sched_param(priority))


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
    words += [f"priority {int(policy.get('priority', 1))}"] if name in {"fifo", "rr"} else []
    words += [f"nice {int(policy['nice'])}"] if "nice" in policy else []
    after = ", ".join(words)
    if not _works({"scheduling": policy}):
        message = f"{after} is not allowed (it takes root, or a limit on rtprio or nice that allows it)"
        return {}, warning("scheduling", "launch", message)
    return {"scheduling": dict(policy)}, record("scheduling", "launch", "done", "", _class_name(), after)


def memory_policy(files: SystemFiles, settings: dict[str, Any], launch: Launch, run: Run) -> tuple[Launch, Record]:
    """A prefix of numactl; `bind` is to the nodes given, else to those of the CPUs in `launch`, else to all."""
    policy = settings["policy"]
    nodes = [int(node) for node in settings.get("nodes", [])]
    if not nodes and policy == "bind" and "cpus" in launch:
        nodes = _memory_nodes(files, launch["cpus"])
    where = format_cpus(nodes) or "all"
    option = {"local": "--localalloc", "interleave": f"--interleave={where}", "bind": f"--membind={where}"}[policy]
    prefix = ["numactl", option]
    tried = run([*prefix, "true"], _NUMACTL_LIMIT_S)
    if tried.returncode != 0:
        reason = tried.problem or tried.stderr.decode(errors="replace").strip().split("\n")[0] or "it fails"
        return {}, warning("page_placement", "launch", f"{policy} memory takes numactl: {reason}")
    return {"prefix": prefix}, record("page_placement", "launch", "done", "", None, " ".join(prefix))


def _works(launch: Launch) -> bool:
    try:
        return started_as(launch, lambda: True)
    except (OSError, ValueError):
        return False


def _class_name() -> str:
    policy = os.sched_getscheduler(0)
    name = next((name for name, number in _POLICIES.items() if number == policy), str(policy))
    return f"{name}, nice {os.getpriority(os.PRIO_PROCESS, 0)}"


def allowed_cpus(files: SystemFiles) -> set[int]:
    """The CPUs that this process may use."""
    for line in files.read_or("proc/self/status").splitlines():
        if line.startswith("Cpus_allowed_list:"):
            return set(parse_cpus(line.split(":", 1)[1]))
    return set(files.cpus())


def _memory_nodes(files: SystemFiles, cpus: list[int]) -> list[int]:
    folders = files.glob("sys/devices/system/node/node[0-9]*")
    near = [name for name in folders if set(parse_cpus(files.read_or(f"{name}/cpulist"))) & set(cpus)]
    return [int(name.rsplit("node", 1)[1]) for name in near]
