"""How the agent starts commands under machine control: on which CPUs, in which class, with which memory policy."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from .command_run import Run
from .control_record import Record, record, warning
from .system_files import SystemFiles, format_cpus, parse_cpus

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
