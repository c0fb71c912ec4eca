"""What a command on many nodes costs: the experiment engine against ClusterShell's clush, on the same hosts.

    .venv/bin/python benchmarks/ssh_nodes.py [--nodes 100] [--rounds 5] [--monitor-s 20] [--environments]

The hosts are names on this machine with real sshd's and keys made for this (tests/farms/sshd.py). Two commands: echo,
and one that prints 64 KiB. The engine's figures hold all that an experiment does for a command: journal, log, removal
of secrets. clush runs with its default fan-out of 64 and with one of as many as there are nodes, each with a connection
a command, and over connections that stand already (ControlMaster of ssh, opened before and not counted). All are run in
turn, in an order drawn anew each round; medians. Every answer is checked. CPU time: of the engine's or clush's process
and its ssh's. Then what the monitor takes of one CPU, by its own count and by the kernel's for the whole agent.

Prints tables and the load of the machine; exits with 1 where an answer was wrong, and with 0 and a reason where sshd or
clush is not installed.
"""

import argparse
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from farms.daemons import missing_programs
from farms.sshd import SshdFarm, sshd_farm

import lepaute as lp

ECHO = 'echo "$LEPAUTE_NODE"'
LINE = "0123456789abcdef" * 3 + "0123456789abcde"
LINES = 1024
LONG = f"yes {LINE} | head -n {LINES}"
COMMANDS = {"echo": ECHO, "64 KiB": LONG}
#: Names that share one sshd: it forks for each connection, so this changes nothing but the number of processes.
NAMES_A_DAEMON = 25
#: Commands in a row whose mean is one value of the engine; clush's are long enough alone.
IN_A_ROW = 5
DEFAULT_FAN_OUT = 64


@dataclass
class Timed:
    """One way's values of one command, a command each."""

    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)


def main() -> int:
    arguments = _arguments()
    clush = shutil.which("clush", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    missing = [*missing_programs(["sshd", "ssh", "ssh-keygen"]), *(["clush"] if clush is None else [])]
    if missing or clush is None:
        print(f"not run: {', '.join(missing)} not installed (Debian: openssh-server, clustershell)")
        return 0
    print(f"load before: {_load()}")
    names = [f"node{number}" for number in range(1, arguments.nodes + 1)]
    with tempfile.TemporaryDirectory(prefix="lp-") as place:
        folder = Path(place)
        with sshd_farm(folder / "farm", names, daemons=max(1, len(names) // NAMES_A_DAEMON)) as farm:
            wrong = _nodes(farm, folder, clush, arguments)
        _monitor(folder, arguments.monitor_s)
    print(f"load after: {_load()}")
    for line in wrong:
        print(f"wrong: {line}")
    return 1 if wrong else 0


def _nodes(farm: SshdFarm, folder: Path, clush: str, arguments: argparse.Namespace) -> list[str]:
    """The comparison; what was answered wrongly."""
    wrong: list[str] = []
    node_set = f"node[1-{len(farm.names)}]"
    job = lp.Job(
        say=lambda _line: None,
        nodes=node_set,
        ssh_config=farm.ssh_config,
        archive=folder / "x.zip",
        monitor_period_s=0.0,
        reference_period_s=0.0,
    )
    engine = psutil.Process()
    job.begin()
    job.acquire()
    bytes_before = engine.memory_info().rss
    connect_s = _wall(job.connect)
    agents_cpu_s: list[float] = []
    ways = _ways(job, farm, folder, clush, node_set, agents_cpu_s)
    start_up_s = statistics.median(_wall(lambda: _clush_alone(clush)) for _ in range(5))
    found = {(way, what): Timed() for way in ways for what in COMMANDS}
    chance = random.Random(1)
    with _masters(farm, folder, clush, node_set):
        for _ in range(arguments.rounds):
            order = list(found)
            chance.shuffle(order)
            for way, what in order:
                timed, answers = ways[way](COMMANDS[what])
                found[way, what].wall_s.append(timed[0])
                found[way, what].cpu_s.append(timed[1])
                wrong += _wrong(way, what, farm.names, answers)
    memory = engine.memory_info().rss - bytes_before
    agents = [psutil.Process(channel.hello["pid"]) for channel in job.nodes.channels[:10]]
    agent_bytes = statistics.median(process.memory_full_info().pss for process in agents)
    ssh_bytes = sum(process.memory_full_info().pss for process in _clients(engine))
    environment_s = _wall(job.machine.record_environment) if arguments.environments else None
    stop_s = _wall(job.close)
    _print_commands(found, len(farm.names))
    print(f"\n| of all {len(farm.names)} nodes | |\n|---|---|")
    print(f"| connecting, agents started | {connect_s:.1f} s |")
    if environment_s is not None:
        print(f"| collecting the environments | {environment_s:.1f} s |")
    print(f"| ending the connections, folders removed | {stop_s:.1f} s |")
    print(f"| memory of the engine's process, growth by connecting and all commands | {memory / 1e6:.0f} MB |")
    print(f"| memory of all its ssh processes | {ssh_bytes / 1e6:.0f} MB |")
    print(f"| memory of an agent, median of {len(agents)} | {agent_bytes / 1e6:.1f} MB |")
    print(f"| CPU time of an agent and its program, per command | {1000 * statistics.median(agents_cpu_s):.1f} ms |")
    print(f"| clush alone: start-up and one local command | {start_up_s:.2f} s |")
    return wrong


#: Runs a command on all nodes: (wall s, CPU s) of one, and the answers by node.
Way = Callable[[str], tuple[tuple[float, float], Mapping[str, str]]]


def _ways(job: lp.Job, farm: SshdFarm, folder: Path, clush: str, node_set: str, agents: list[float]) -> dict[str, Way]:
    """By name; `agents` gets the CPU time that an agent and its program took for a command of the engine."""

    def engine(command: str) -> tuple[tuple[float, float], Mapping[str, str]]:
        agents_before = _cpu_of_agents(job)
        cpu_before, start = _cpu_with_clients(), time.perf_counter()
        for _ in range(IN_A_ROW):
            results = job.nodes.shell(command)
        wall_s = time.perf_counter() - start
        cpu_s = _cpu_with_clients() - cpu_before
        agents.append((_cpu_of_agents(job) - agents_before) / IN_A_ROW / len(farm.names))
        answers = {node: result.stdout for node, result in results.items()}
        return (wall_s / IN_A_ROW, cpu_s / IN_A_ROW), answers

    def by_clush(config: Path, fan_out: int) -> Way:
        def run(command: str) -> tuple[tuple[float, float], Mapping[str, str]]:
            argv = [clush, "-q", "-f", str(fan_out), "-o", f"-F {config}", "-w", node_set, command]
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
            wall_s = time.perf_counter() - start
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            answers: dict[str, list[str]] = {}
            for line in done.stdout.splitlines():
                node, _, text = line.partition(": ")
                answers.setdefault(node, []).append(f"{text}\n")
            return (wall_s, cpu_s), {node: "".join(lines) for node, lines in answers.items()}

        return run

    many = len(farm.names)
    return {
        "the engine": engine,
        f"clush, fan-out {DEFAULT_FAN_OUT}": by_clush(farm.ssh_config, DEFAULT_FAN_OUT),
        f"clush, fan-out {many}": by_clush(farm.ssh_config, many),
        f"clush over standing connections, fan-out {DEFAULT_FAN_OUT}": by_clush(folder / "masters", DEFAULT_FAN_OUT),
        f"clush over standing connections, fan-out {many}": by_clush(folder / "masters", many),
    }


class _masters:  # noqa: N801 - reads as a function where it is used
    """Connections that clush's ssh's share, opened before anything is timed; ended afterwards."""

    def __init__(self, farm: SshdFarm, folder: Path, clush: str, node_set: str) -> None:
        self._config, self._names = folder / "masters", farm.names
        sockets = folder / "m"
        sockets.mkdir()
        shared = f'Host *\n  ControlMaster auto\n  ControlPath "{sockets}/%n"\n  ControlPersist 600\n'
        self._config.write_text(f"{shared}\n{farm.ssh_config.read_text()}")
        self._open = [clush, "-q", "-f", "8", "-o", f"-F {self._config}", "-w", node_set, "true"]

    def __enter__(self) -> None:
        # The masters keep the standard error of who started them open: nobody may wait for its end.
        subprocess.run(self._open, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)

    def __exit__(self, *_: object) -> None:
        for name in self._names:
            argv = ["ssh", "-F", str(self._config), "-O", "exit", name]
            subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def _clush_alone(clush: str) -> None:
    subprocess.run([clush, "-q", "-R", "exec", "-w", "here", "true"], check=True, capture_output=True)


def _wrong(way: str, what: str, names: tuple[str, ...], answers: Mapping[str, str]) -> list[str]:
    """What is wrong with the answers: each node says its own name, or all of the lines."""
    bad = [name for name in names if answers.get(name) != (f"{name}\n" if what == "echo" else f"{LINE}\n" * LINES)]
    return [f"{way}, {what}: {len(bad)} of {len(names)} ({', '.join(bad[:3])})"] if bad else []


def _print_commands(found: Mapping[tuple[str, str], Timed], nodes: int) -> None:
    print("| command | tool | wall s | ms per node | relative to the engine | smallest, largest | CPU s |")
    print("|---|---|---|---|---|---|---|")
    for what in COMMANDS:
        ours = statistics.median(found["the engine", what].wall_s)
        for (way, command), timed in found.items():
            if command == what:
                wall_s, cpu_s = statistics.median(timed.wall_s), statistics.median(timed.cpu_s)
                spread = f"{min(timed.wall_s):.3f}, {max(timed.wall_s):.3f}"
                each = f"{1000 * wall_s / nodes:.2f}"
                print(f"| {what} | {way} | {wall_s:.3f} | {each} | {wall_s / ours:.1f} | {spread} | {cpu_s:.2f} |")


def _monitor(folder: Path, duration_s: float) -> None:
    """What an agent takes of one CPU, with and without its monitor."""
    print(f"\n| monitor, {duration_s:g} s each | monitor's own count | whole agent, by the kernel |\n|---|---|---|")
    for period_s in (0.0, 1.0, 0.1):
        job = lp.Job(
            say=lambda _line: None,
            archive=folder / f"monitor-{period_s}.zip",
            monitor_period_s=period_s,
            reference_period_s=0.0,
        )
        job.begin()
        job.connect()
        (channel,) = job.nodes.channels
        agent = psutil.Process(channel.hello["pid"])
        job.machine.start_monitoring(period_s)
        time.sleep(1.0)  # what finding the sensors takes is paid once
        before, start = sum(agent.cpu_times()[:2]), time.monotonic()
        time.sleep(duration_s)
        share = (sum(agent.cpu_times()[:2]) - before) / (time.monotonic() - start)
        summary = channel.call("unmonitor") if period_s else None
        job.close()
        own = f"{100 * summary['monitor_share_of_one_cpu']:.2f} %" if summary else "-"
        samples = f" ({summary['samples']} samples, {summary['missed']} missed)" if summary else ""
        name = f"each {period_s:g} s{samples}" if period_s else "none"
        print(f"| {name} | {own} | {100 * share:.2f} % of one CPU |")


def _clients(engine: psutil.Process) -> list[psutil.Process]:
    return [process for process in engine.children() if process.name() == "ssh"]


def _cpu_with_clients() -> float:
    """CPU time of this process and of its living ssh's."""
    engine = psutil.Process()
    return sum(sum(process.cpu_times()[:2]) for process in (engine, *_clients(engine)))


def _cpu_of_agents(job: lp.Job) -> float:
    """CPU time of the agents and of the programs that they have seen end."""
    return sum(sum(psutil.Process(channel.hello["pid"]).cpu_times()[:4]) for channel in job.nodes.channels)


def _wall(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _load() -> str:
    return f"{', '.join(f'{value:.1f}' for value in os.getloadavg())} on {os.cpu_count()} CPUs"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--monitor-s", type=float, default=20.0)
    parser.add_argument("--environments", action="store_true", help="also collect all of them, on this one machine")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
