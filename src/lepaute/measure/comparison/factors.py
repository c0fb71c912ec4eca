"""The experimental factors of a campaign with their levels: table VI of "MPI Benchmarking Revisited", and more."""

from collections.abc import Sequence
from pathlib import Path

from lepaute.archive.mpi_campaign import LibraryFacts, settings_text
from lepaute.kit.text import seconds
from lepaute.measure.comparison.asked import Asked
from lepaute.measure.comparison.mpirun import Setting
from lepaute.measure.node_agent.facts import cpuinfo_field

UNKNOWN = "unknown"
#: Members of environment/NODE/ that a factor is read from.
_CLOCK_RATE = ("governor.txt", "frequency_driver.txt", "boost.txt", "no_turbo.txt")


def factors_of(
    asked: Asked,
    setting: Setting,
    libraries: Sequence[LibraryFacts],
    environment: Path,
    cores: int,
    mpiruns: int,
    seed: int,
) -> dict[str, str]:
    """Name and level of each factor.

    environment: the folder with what the node is and runs; cores: that the ranks may use; mpiruns: of each library
    """

    def read(name: str) -> str:
        path = environment / name
        return path.read_text(errors="replace").strip() if path.is_file() else ""

    rates = [f"{name.removesuffix('.txt')} {text}" for name in _CLOCK_RATE if (text := read(name))]
    cpu = read("cpuinfo.txt")
    megahertz = cpuinfo_field("cpu MHz", cpu)
    waits = {"window": "window-based", "round-time": "round-time (a moment of rank 0's clock, sent before each call)"}
    synchronisation = waits.get(setting.synchronisation, setting.synchronisation)
    oversubscribed = f"; {setting.ranks} ranks share {cores} cores" if setting.ranks > cores else ""
    bound = ",".join(map(str, setting.pus)) if setting.pus is not None else ""
    return {
        **{f"MPI implementation: {each.label}": each.text for each in libraries},
        **{f"configuration: {each.label}": each.build for each in libraries},
        **{f"compiler and flags: {each.label}": f"{each.compiler}: {each.flags}" for each in libraries},
        **{f"variables: {each.label}": settings_text(each.settings) or "none" for each in libraries},
        "network": "shared memory of one machine",
        "processes": f"{setting.ranks} ranks on one node{oversubscribed}",
        "message sizes": f"{len(asked.sizes_bytes)} from {asked.sizes_bytes[0]} to {asked.sizes_bytes[-1]} bytes",
        "reductions": str(asked.reduction),
        "root": f"rank {asked.root}",
        **(
            {"overlap": f"{seconds(asked.compute_s)} of work before operations are waited for"}
            if asked.compute_s
            else {}
        ),
        "synchronization method": synchronisation,
        "clock synchronization": setting.clock_method,
        "clock source": f"{setting.clock} (kernel: {read('clocksource.txt') or UNKNOWN})",
        "window size": "of each case, in the facts and in each row; adapted after the calls to warm up",
        "mpirun": f"{mpiruns} distinct calls for each library, shuffled in blocks of several of each; seed {seed}",
        "calls": "of each case, in the facts; in batches of all cases in shuffled order",
        "warm-up": f"{setting.warm_up} calls before each batch, kept with negative numbers",
        "DVFS level": "; ".join(rates) or "unknown: this machine has no cpufreq",
        "clock rate": f"{megahertz} MHz when the campaign began" if megahertz else UNKNOWN,
        "cache": (
            f"cold: {setting.cold_bytes} bytes are overwritten before each call"
            if setting.cold_bytes
            else "warm: no cache control, buffers are reused"
        ),
        "pinning": f"rank r on hardware thread r of {bound}" if bound else "none",
        "outliers": "none removed; marks of late starts and of long calls are kept",
        "processor": cpuinfo_field("model name", cpu) or UNKNOWN,
        "operating system": read("uname.txt") or UNKNOWN,
        "disturbed mpiruns": "by CPU time of other processes and of the hypervisor, blind to durations; repeated, kept",
    }
