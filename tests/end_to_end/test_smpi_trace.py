"""A real program under SimGrid's SMPI: its trace has the durations of the platform, and the calls of a real run."""

import shutil
import subprocess
from pathlib import Path

import pytest
from oracles.recorded_hpl import MPIRUN, lepaute
from support_limits import HANG_S, ran

from lepaute.simulate.trace import Trace, read_trace
from lepaute.simulate.trace.compare import compare_traces
from lepaute.simulate.trace.messages import match_messages

pytestmark = pytest.mark.machine

RANKS = 4
LATENCY_S, BYTES_PER_S = 10e-6, 1e9
LARGE = 100_000  # numbers of 8 bytes: more than SMPI sends without waiting for the receiver

PROGRAM = Path(__file__).parents[1].joinpath("data", "programs", "smpi_trace_program.c").read_text()


def platform() -> str:
    hosts = "".join(f'<host id="h{rank}" speed="1Gf"/>' for rank in range(RANKS))
    links = routes = ""
    for one in range(RANKS):
        for other in range(one + 1, RANKS):
            links += f'<link id="l{one}{other}" bandwidth="1GBps" latency="10us"/>'
            routes += f'<route src="h{one}" dst="h{other}"><link_ctn id="l{one}{other}"/></route>'
    return (
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
        f'<zone id="z" routing="Full">{hosts}{links}{routes}</zone></platform>'
    )


PLAIN = (
    "smpi/lat-factor:0:1", "smpi/bw-factor:0:1", "network/crosstraffic:no", "network/TCP-gamma:0", "network/weight-S:0",
    "smpi/simulate-computation:no",
)  # fmt: skip
TRACED = ("computing:yes", "sleeping:yes", "display-sizes:yes")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for tool in ("smpicc", "smpirun"):
        if shutil.which(tool) is None:
            pytest.skip(f"SimGrid is not installed: there is no {tool}")
    made = tmp_path_factory.mktemp("smpi")
    (made / "program.c").write_text(PROGRAM)
    (made / "platform.xml").write_text(platform())
    (made / "hosts").write_text("".join(f"h{rank}\n" for rank in range(RANKS)))
    subprocess.run(["smpicc", "-O1", "-o", "emulated", "program.c"], cwd=made, check=True, timeout=HANG_S)
    return made


@pytest.fixture(scope="module")
def emulated(folder: Path) -> Trace:
    settings = [*PLAIN, "tracing/precision:12", *(f"tracing/smpi/{one}" for one in TRACED)]
    done = ran(
        [
            *("smpirun", "-np", str(RANKS), "-platform", "platform.xml", "-hostfile", "hosts"),
            *("-trace", "-trace-file", "smpi.trace", *(f"--cfg={setting}" for setting in settings), "./emulated"),
        ],
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    converted = lepaute("trace", "convert", "smpi.trace", "-o", "smpi.parquet", folder=folder)
    assert converted.returncode == 0, converted.stderr
    return read_trace(folder / "smpi.parquet")


def test_sleeping_and_messages_take_the_time_of_the_platform(emulated: Trace) -> None:
    slept = [emulated.where((emulated.rank == rank) & emulated.named(("computing",))) for rank in range(RANKS)]
    assert [one.duration_s.sum() for one in slept] == pytest.approx([5e-3, 2e-3, 3e-3, 4e-3], abs=1e-9)
    (send,) = (emulated.where((emulated.rank == 0) & emulated.named(("MPI_Send",))),)
    begun_s, moving_s = 5e-3, LATENCY_S + 8 * LARGE / BYTES_PER_S
    assert send.start_s.tolist() == pytest.approx([begun_s], abs=1e-6)
    assert send.duration_s.tolist() == pytest.approx([moving_s], rel=1e-3)
    receive = emulated.where((emulated.rank == 1) & emulated.named(("MPI_Recv",)))
    assert receive.start_s[0] == pytest.approx(2e-3, abs=1e-6)
    assert receive.end_s[0] == pytest.approx(begun_s + moving_s, rel=1e-3)
    assert receive.size_bytes.tolist() == [8 * LARGE, 24]
    assert receive.peer.tolist() == [0, 0]
    assert receive.tag.tolist() == [7, 9]


def test_every_message_has_both_ends(emulated: Trace) -> None:
    matches = match_messages(emulated)
    assert len(matches.send) == 2 + 3 * 3 * RANKS
    assert (emulated.size_bytes[matches.receive] >= emulated.size_bytes[matches.send]).all()
    sendrecv = emulated.where((emulated.rank == 2) & emulated.named(("MPI_Sendrecv", "MPI_Sendrecv_arrival")))
    assert sendrecv.peer.tolist() == [3, 1] * 3
    assert sendrecv.size_bytes.tolist() == [416, 408] * 3
    assert emulated.metadata["warnings"] == []


def test_a_recording_of_the_same_program_has_the_same_calls_and_sizes(emulated: Trace, folder: Path) -> None:
    mpicc = shutil.which("mpicc")
    if mpicc is None or shutil.which("mpirun") is None:
        pytest.skip("no MPI library for a real run")
    subprocess.run([mpicc, "-O1", "-o", "real", "program.c"], cwd=folder, check=True, timeout=HANG_S)
    done = lepaute("record", "-o", "real.parquet", "--", *MPIRUN, str(RANKS), "./real", folder=folder)
    assert done.returncode == 0, done.stderr
    found = compare_traces(read_trace(folder / "real.parquet"), emulated)
    assert found.one_side == ()
    assert found.same_sizes, (found.first, found.first_size)
    assert sum(one.left_calls for one in found.classes) == sum(one.right_calls for one in found.classes) > 100
