"""Made-up trees of control files: nodes that this machine is not."""

import errno
from pathlib import Path

from lepaute.measure.node_agent.system_files import SystemFiles

CPU = "sys/devices/system/cpu"


def write(root: Path, files: dict[str, str]) -> SystemFiles:
    """A tree with these files below root."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return SystemFiles(root)


def tree(root: Path) -> dict[str, str]:
    """What every file below root says."""
    return {str(path.relative_to(root)): path.read_text().strip() for path in root.rglob("*") if path.is_file()}


def _common(cpus: int, threads: int = 2) -> dict[str, str]:
    cores = cpus // threads
    files = {
        f"{CPU}/online": f"0-{cpus - 1}",
        f"{CPU}/present": f"0-{cpus - 1}",
        "proc/self/status": f"Name:\tx\nCpus_allowed_list:\t0-{cpus - 1}",
        "proc/sys/kernel/random/boot_id": "5f0c",
    }
    for cpu in range(cpus):
        siblings = ",".join(str(cpu % cores + k * cores) for k in range(threads))
        files[f"{CPU}/cpu{cpu}/topology/thread_siblings_list"] = siblings
        if cpu:
            files[f"{CPU}/cpu{cpu}/online"] = "1"
    return files


def intel(root: Path, cpus: int = 4) -> SystemFiles:
    """intel_pstate, hyper-threading on, three idle states a CPU, two memory nodes, RAPL, temperatures."""
    files = _common(cpus) | {
        f"{CPU}/smt/control": "on",
        f"{CPU}/intel_pstate/no_turbo": "0",
        "sys/devices/system/node/node0/cpulist": "0,2",
        "sys/devices/system/node/node1/cpulist": "1,3",
    }
    for cpu in range(cpus):
        files |= {
            f"{CPU}/cpufreq/policy{cpu}/{name}": value
            for name, value in {
                "scaling_governor": "powersave",
                "scaling_available_governors": "performance powersave",
                "scaling_min_freq": "1000000",
                "scaling_max_freq": "3700000",
                "cpuinfo_min_freq": "1000000",
                "cpuinfo_max_freq": "3700000",
            }.items()
        }
        for state, (name, latency) in enumerate([("POLL", 0), ("C1", 2), ("C6", 133)]):
            files[f"{CPU}/cpu{cpu}/cpuidle/state{state}/disable"] = "0"
            files[f"{CPU}/cpu{cpu}/cpuidle/state{state}/name"] = name
            files[f"{CPU}/cpu{cpu}/cpuidle/state{state}/latency"] = str(latency)
    return write(root, files)


def acpi(root: Path) -> SystemFiles:
    """acpi-cpufreq without policy folders, a boost switch, no switch for the threads of a core."""
    files = _common(4) | {f"{CPU}/cpufreq/boost": "1", f"{CPU}/smt/control": "notimplemented"}
    for cpu in range(4):
        files |= {
            f"{CPU}/cpu{cpu}/cpufreq/scaling_governor": "ondemand",
            f"{CPU}/cpu{cpu}/cpufreq/scaling_available_governors": "ondemand performance userspace",
            f"{CPU}/cpu{cpu}/cpufreq/scaling_min_freq": "1200000",
            f"{CPU}/cpu{cpu}/cpufreq/scaling_max_freq": "2600000",
        }
    return write(root, files)


def amd(root: Path) -> SystemFiles:
    """amd-pstate: a boost switch a policy."""
    files = _common(2, threads=1) | {f"{CPU}/smt/control": "off"}
    for cpu in range(2):
        files |= {
            f"{CPU}/cpufreq/policy{cpu}/boost": "1",
            f"{CPU}/cpufreq/policy{cpu}/scaling_governor": "schedutil",
            f"{CPU}/cpufreq/policy{cpu}/scaling_min_freq": "1500000",
            f"{CPU}/cpufreq/policy{cpu}/scaling_max_freq": "3300000",
        }
    return write(root, files)


def bare(root: Path) -> SystemFiles:
    """A virtual machine that shows nothing of its host's hardware."""
    files = {f"{CPU}/online": "0-1", f"{CPU}/present": "0-1", f"{CPU}/smt/control": "notsupported"}
    files["proc/self/status"] = "Cpus_allowed_list:\t0-1"
    return write(root, files)


class KernelThatRefuses(SystemFiles):
    """Nothing may be written, as for a user without rights."""

    def write(self, name: str, value: str) -> None:  # noqa: ARG002
        raise PermissionError(errno.EACCES, "Permission denied")

    def open(self, name: str, flags: int = 0) -> int:
        if flags:
            raise PermissionError(errno.EACCES, "Permission denied")
        return super().open(name, flags)


class KernelThatIgnores(SystemFiles):
    """Takes every value and keeps the old one."""

    def write(self, name: str, value: str) -> None:  # noqa: ARG002
        self.setting(name)
