"""The scheduler for Slurm against a real one."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from farms.fixtures import Start
from farms.slurm import SlurmFarm, slurm_farm
from support_limits import HANG_S, wait_until
from support_nodes import check_stream

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.measure.schedulers import Allocation, NodeAddress, Request, scheduler

pytestmark = pytest.mark.nodes


def _run(node: NodeAddress, *words: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(node.argv(words), capture_output=True, timeout=HANG_S, check=False)


def _acquire(request: Request, said: list[str] | None = None) -> Allocation:
    return scheduler("slurm").acquire(request, (said if said is not None else []).append)


def test_a_job_of_ours_has_the_nodes_that_were_asked_for_until_it_is_released(slurm: SlurmFarm) -> None:
    said: list[str] = []
    allocation = _acquire(Request(count=3, walltime_s=600, properties="farm", queue="all"), said)
    try:
        assert len(slurm.jobs()) == 1
        assert allocation.facts["job"] == slurm.jobs()[0]
        limit = slurm.run("squeue", "--noheader", "--format=%l %D").split()
        assert limit == ["10:00", "3"]
        for node in allocation.nodes:
            done = _run(node, "printenv", "SLURMD_NODENAME")
            assert (done.stdout.decode(), done.stderr.decode(), done.returncode) == (f"{node.name}\n", "", 0)
    finally:
        allocation.release()
        allocation.release()
    wait_until(lambda: slurm.jobs() == [], "end of the job")
    assert said[-1].startswith(f"Slurm job {allocation.facts['job']} has n")


def test_the_leaf_switches_of_its_topology_are_known(slurm: SlurmFarm) -> None:
    assert slurm.run("scontrol", "show", "topology")  # or the rest would be true of a Slurm that knows nothing
    assert scheduler("slurm").switches().nodes == (("n1", "n2"), ("n3", "n4"))


def test_bytes_pass_unharmed_both_ways_and_a_short_message_is_not_held_back(slurm: SlurmFarm, start: Start) -> None:
    allocation = _acquire(Request(nodes="n2"))
    try:
        assert [node.name for node in allocation.nodes] == ["n2"]
        check_stream(start(allocation.nodes[0], "cat"))
    finally:
        allocation.release()


def test_words_arrive_as_they_were_given(slurm: SlurmFarm, tmp_path: Path) -> None:
    allocation = _acquire(Request())
    mark = tmp_path / "mark"
    words = ["a b", "", "'", f"$(touch {mark})", f"; touch {mark}", "line\nbreak", "-n9", "%j"]
    try:
        done = _run(allocation.nodes[0], "printf", "%s\\0", *words)
    finally:
        allocation.release()
    assert done.stdout.decode().split("\0")[:-1] == words
    assert not mark.exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_program_on_the_node_ends_with_its_srun(slurm: SlurmFarm, number: signal.Signals, start: Start) -> None:
    allocation = _acquire(Request())
    try:
        process = start(allocation.nodes[0], "sh", "-c", "echo $$; exec sleep 1000")
        remote = Path(f"/proc/{int(process.stdout.readline())}")  # the virtual nodes are this machine
        assert remote.exists()
        process.send_signal(number)
        wait_until(lambda: not remote.exists(), "end of the program on the node")
        process.wait(HANG_S)
    finally:
        allocation.release()


def test_several_programs_run_on_a_node_at_once(slurm: SlurmFarm, start: Start) -> None:
    allocation = _acquire(Request())
    try:
        processes = [start(allocation.nodes[0], "sh", "-c", "echo up; exec cat") for _ in range(3)]
        for process in processes:  # srun would wait for free CPUs, and the second never be up
            assert process.stdout.readline() == b"up\n"
        for process in processes:
            process.communicate(timeout=HANG_S)
    finally:
        allocation.release()


def test_a_node_that_dies_takes_neither_the_job_nor_the_other_nodes_along(tmp_path, monkeypatch, start):
    with slurm_farm(tmp_path, nodes=2) as farm:
        farm.enter(monkeypatch)
        allocation = _acquire(Request(count=2))
        try:
            first, second = (start(node, "sh", "-c", "echo up; exec cat") for node in allocation.nodes)
            assert (first.stdout.readline(), second.stdout.readline()) == (b"up\n", b"up\n")
            farm.kill("n1")
            farm.declare_down("n1")
            assert first.stdout.read() == b""  # its srun ends
            assert farm.jobs() == [allocation.facts["job"]]
            assert second.communicate(b"alive", timeout=HANG_S)[0] == b"alive"
        finally:
            first.kill()
            allocation.release()


def test_an_allocation_that_was_found_is_used_and_left_alone(slurm: SlurmFarm, monkeypatch: pytest.MonkeyPatch) -> None:
    outer = _acquire(Request(nodes="n[1-2]"))
    job = str(outer.facts["job"])
    try:
        monkeypatch.setenv("SLURM_JOB_ID", job)
        monkeypatch.setenv("SLURM_MEM_PER_CPU", "50")  # as in a job that was asked for with --mem-per-cpu
        monkeypatch.setenv("SLURM_NTASKS", "2")
        said: list[str] = []
        inner = _acquire(Request(walltime_s=60), said)
        assert [node.name for node in inner.nodes] == ["n1", "n2"]
        assert said[0].startswith(f"using the existing Slurm job {job}; --walltime")
        done = _run(inner.nodes[1], "printenv", "SLURMD_NODENAME")
        assert done.stdout == b"n2\n"
        inner.release()
        assert slurm.jobs() == [job]
        assert [node.name for node in _acquire(Request(nodes="n2")).nodes] == ["n2"]
        assert [node.name for node in _acquire(Request(count=1)).nodes] == ["n1"]
        for refused in (Request(count=3), Request(nodes="n[2-3]")):
            with pytest.raises(InputError, match=f"job {job} has"):
                _acquire(refused)
        monkeypatch.delenv("SLURM_JOB_ID")
        assert [node.name for node in _acquire(Request(job=job)).nodes] == ["n1", "n2"]
    finally:
        outer.release()


def test_ctrl_c_while_waiting_for_nodes_leaves_no_job(slurm: SlurmFarm) -> None:
    holder = _acquire(Request(count=4))
    program = (
        "from lepaute.measure.schedulers import Request, scheduler\n"
        "scheduler('slurm').acquire(Request(count=1), lambda text: print(text, flush=True))\n"
    )
    try:
        waiting = subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert "is waiting for nodes" in waiting.stdout.readline()
        assert len(slurm.jobs()) == 2
        waiting.send_signal(signal.SIGINT)
        _, stderr = waiting.communicate(timeout=HANG_S)
        assert "KeyboardInterrupt" in stderr
        assert slurm.jobs() == [holder.facts["job"]]
    finally:
        holder.release()


def test_a_job_of_ours_ends_when_we_are_killed(slurm: SlurmFarm) -> None:
    program = (
        "import time\n"
        "from lepaute.measure.schedulers import Request, scheduler\n"
        "scheduler('slurm').acquire(Request(count=1), lambda text: print(text, flush=True)); time.sleep(1000)\n"
    )
    engine = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert "has n" in engine.stdout.readline()
    engine.kill()
    engine.communicate(timeout=HANG_S)
    wait_until(lambda: slurm.jobs() == [], "end of the job")


@pytest.mark.parametrize(
    ("request_", "complaint"),
    [
        (Request(count=9), "Slurm granted no nodes.*More"),
        (Request(queue="nosuch"), "Slurm granted no nodes.*partition"),
        (Request(job="4711"), "job 4711"),
    ],
)
def test_what_slurm_refuses_is_told_in_its_own_words(slurm: SlurmFarm, request_: Request, complaint: str) -> None:
    with pytest.raises(EnvironmentProblem, match=complaint):
        _acquire(request_)
    assert slurm.jobs() == []


@pytest.mark.parametrize(
    ("request_", "complaint"),
    [
        (Request(job="12", queue="q"), "does not support --queue"),
        (Request(job="12; true"), "is not an? .* job id"),
        (Request(nodes="n1", count=2), "give one of them"),
        (Request(count=0), "count is 0"),
        (Request(walltime_s=-1), "walltime is -1 s"),
        (Request(walltime_s=float("nan")), "walltime is nan s"),
        (Request(queue="-x"), "--queue is '-x'"),
        (Request(nodes="n1;x"), "not a set of nodes"),
    ],
)
def test_bad_requests_are_refused_by_name(request_: Request, complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with pytest.raises(InputError, match=complaint):
        scheduler("slurm").plan(request_)


def test_a_plan_shows_the_commands_and_starts_nothing(slurm: SlurmFarm) -> None:
    steps = scheduler("slurm").plan(Request(count=2, walltime_s=90_061, account="a b")).steps
    assert steps[0] == (
        "salloc --job-name=lepaute-NUMBER --nodes=2 --time=25:01:01 --exclusive --mem=0 --no-kill '--account=a b' cat"
    )
    assert steps[1].startswith("srun --jobid=JOB")
    assert slurm.jobs() == []
