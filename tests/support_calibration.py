"""A machine whose probes and mpirun are scripts that write raw files as the real ones do, in no time."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lepaute.measure import raw_files
from lepaute.measure.calibration import campaign, machines
from lepaute.measure.calibration.attempt import Attempts, Sentinels, Site
from lepaute.measure.experiment import job
from lepaute.measure.kernel_set import KernelSet
from lepaute.measure.layout import made_up_layout
from lepaute.measure.machine_load import Sample
from lepaute.measure.plan import QUICK, plan, room
from lepaute.measure.probes import Probes
from lepaute.measure.schedulers.types import Allocation, NodeAddress

#: Runs of a quick calibration of one node, and of each block; the tests of send-completion semantics come after.
TWO = made_up_layout("1x2", (0, 1))
LIMITS = room(QUICK, 64 << 30, 2)
RUNS = len(plan(QUICK, 1, TWO, LIMITS))
BLOCK = RUNS // QUICK.blocks
#: Tables of durations.
KINDS = ("kernels", "p2p", "ring")

_HEAD = "#@clock_cost_s=2e-8\\n#@blas_core="
_KERNELS = f"{_HEAD}Zen\\ndesign_row,kind,position,kernel,m,n,k,start_s,duration_s,rank,cpu\\n"
_RING = f"{_HEAD}Zen\\ndesign_row,operation,condition,size_bytes,call,start_s,duration_s,rank,cpu\\n"
_MESSAGES = f"{_HEAD}none\\ndesign_row,operation,size_bytes,start_s,duration_s,rank,cpu\\n"
#: `fatal` holds the number of the run that breaks, and how; each run adds a line to `runs`.
_PROBE = Path(__file__).parent.joinpath("data", "programs", "calibration_probe.sh").read_text()
#: A library that sends up to 1000 bytes without asking, in rows as the probe of semantics writes them.
_SEMANTICS = Path(__file__).parent.joinpath("data", "programs", "calibration_semantics.sh").read_text()
#: Rounds of a search there: powers of four, then 48, 3 and 1 sizes apart; sends at the limit that copies have.
SEMANTIC_ROUNDS = 5
_MPIRUN = Path(__file__).parent.joinpath("data", "programs", "calibration_mpirun.sh").read_text()


@dataclass
class FakeMachine:
    """break_at: the run of that number, from 1, breaks off in the middle of a row.

    how: it fails, all that follow do (fail-from), its node is lost (lose), or the engine gets a Ctrl-C (interrupt);
    hang: of the tests of sends all that block hang
    """

    folder: Path
    nodes: list[str] = field(default_factory=lambda: ["alone"])

    def break_at(self, number: int, how: str) -> None:
        (self.folder / "fatal").write_text(f"{number} {how}\n")

    def write_steps(self, slow: set[int]) -> None:
        """Probes of HPL's steps make twelve of 0.2 s, four of which take twice as long in runs of these numbers."""
        for name, factor in (("steps", 1.0), ("slow_steps", 2.0)):
            lines, start_s = [], 2.0
            for row in range(12):
                duration_s = 0.2 * (1.0 + 0.01 * (row % 3)) * (factor if 4 <= row < 8 else 1.0)
                lines.append(f"{row + 1},hpl_step,1,dgemm,{4000 + row},4000,128,{start_s},{duration_s},0,0\n")
                start_s += duration_s
            (self.folder / name).write_text("".join(lines))
        (self.folder / "slow").write_text("".join(f"{number}\n" for number in sorted(slow)))

    def runs(self) -> list[str]:
        return (self.folder / "runs").read_text().split()

    def acquire(self, _request: object, _tell: object) -> Allocation:
        return Allocation(tuple(NodeAddress(name) for name in self.nodes))


def fake_machine(folder: Path, monkeypatch: pytest.MonkeyPatch, engine: int, *, sentinels: bool = False) -> FakeMachine:
    """Replaces the build, the timing of BLAS, the nodes, mpirun and the load of others, which is none.

    sentinels: whether they are run; when they are due depends on the time that all takes
    """
    folder.mkdir()
    rows = {"kernels": "0,dgemm,0,dgemm,5,6,7,1.5,0.001,0,0", "messages": "0,recv,8,1.5,0.001,0,0"}
    rows["ring"] = "0,shift,idle,8,exchange,1.5,0.001,0,0"
    programs = {"probe-dgemm": ("kernels", _KERNELS), "probe-hpl-steps": ("kernels", _KERNELS)}
    programs |= {"probe-p2p": ("messages", _MESSAGES), "probe-ring": ("ring", _RING)}
    for name, (kind, head) in programs.items():
        text = _PROBE.replace("FOLDER", str(folder)).replace("ENGINE", str(engine))
        write_program(folder / name, text.replace("HEADROW", head + rows[kind]).replace("CUT", rows[kind][:-4]))
    write_program(folder / "probe-semantics", _SEMANTICS.replace("FOLDER", str(folder)))
    write_program(folder / "mpirun", _MPIRUN)
    (folder / "runs").write_text("")
    (folder / "fatal").write_text("0 never\n")
    machine = FakeMachine(folder)
    names = ("probe-dgemm", "probe-hpl-steps", "probe-p2p", "probe-semantics", "probe-ring", "none")
    probes = Probes(*(folder / name for name in names))
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setattr(campaign, "build_probes", lambda **_options: probes)
    monkeypatch.setattr(machines, "choose_kernel_set", lambda **_options: KernelSet("Zen", None, 50.0, (), "test"))
    monkeypatch.setattr(job, "scheduler", lambda _name: machine)
    monkeypatch.setattr(Attempts, "_take_samples", lambda _self, _site: [Sample(0.0, 0.0, 0.0, 0.0)])
    monkeypatch.setattr(raw_files, "FOLLOW_S", 0.05)
    if not sentinels:
        monkeypatch.setattr(Sentinels, "watch", lambda _self, _site, _block: None)
    return machine


def names_in(place: Path) -> list[str]:
    """The files beside an archive, and it."""
    return sorted(path.name for path in place.parent.iterdir())


def write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def disturb(monkeypatch: pytest.MonkeyPatch, disturbed: set[int], wall_s: float = 1.0) -> None:
    """Lets every attempt last `wall_s` and others use two cores during those of these numbers, from 0."""
    calls: Iterator[int] = itertools.count()
    others_s = 0.0

    def samples(_self: Attempts, site: Site) -> list[Sample]:
        nonlocal others_s
        number, ends = divmod(next(calls), 2)
        others_s += 2.0 * site.measured[0].node_pus * ends * (number in disturbed)
        return [Sample((number + ends) * wall_s, others_s, 0.0, 0.0)]

    monkeypatch.setattr(Attempts, "_take_samples", samples)
