"""Tests of nodes as jobs of Slurm."""

import re
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path

from lepaute.errors import EnvironmentProblem
from lepaute.kit.command import run_command
from lepaute.kit.node_sets import check_node_name
from lepaute.measure.idle_nodes.batch import JOB_NAME, BatchSystem, JobState, WaitingJob
from lepaute.measure.schedulers.request import check_word
from lepaute.measure.schedulers.slurm_nodes import slurm_nodes
from lepaute.measure.schedulers.types import clock_time

_ANSWER_S = 60.0
#: Subtracted from the priority that the job would have.
NICE = 10_000
_JOB_ID = re.compile(r"([0-9]+)(;.*)?")
#: A pending job with one of these reasons would start if nodes were free; others are held, or wait for something else.
_WANTS_NODES = {"None", "Priority", "Resources"}
_SEPARATOR = "|"


class SlurmTests(BatchSystem):
    """partition, account, qos: as of sbatch; without a partition, all nodes are tested in the default one."""

    scheduler = "slurm"

    def __init__(self, partition: str | None = None, account: str | None = None, qos: str | None = None) -> None:
        self.partition = partition
        options = {"--partition": partition, "--account": account, "--qos": qos}
        self._options = [
            f"{option}={check_word(option.removeprefix('--'), value)}"
            for option, value in options.items()
            if value is not None
        ]

    def idle(self) -> dict[str, bool]:
        return {name: node.state == "idle" for name, node in slurm_nodes(self.partition).items()}

    def waiting(self) -> list[WaitingJob]:
        argv = [
            "squeue",
            "--noheader",
            "--states=PENDING",
            f"--format={_SEPARATOR.join(('%i', '%D', '%r', '%n', '%j'))}",
        ]
        if self.partition is not None:
            argv.append(f"--partition={self.partition}")
        found = []
        for line in run_command(argv, what="the pending jobs of Slurm", timeout_s=_ANSWER_S).stdout.splitlines():
            job, count, reason, nodes, name = f"{line.strip()}||||".split(_SEPARATOR, 4)
            if name.rstrip(_SEPARATOR) != JOB_NAME and reason in _WANTS_NODES:
                number = re.match("[0-9]+", count)  # 2-4 of a job that takes what it gets
                found.append(WaitingJob(job, int(number[0]) if number else 1, self._names(nodes)))
        return found

    def states(self, jobs: Collection[str]) -> dict[str, JobState]:
        if not jobs:
            return {}
        argv = ["squeue", "--noheader", f"--name={JOB_NAME}", "--states=all", "--format=%i|%T"]
        found: dict[str, JobState] = {}
        for line in run_command(argv, what="our jobs in Slurm", timeout_s=_ANSWER_S).stdout.splitlines():
            job, _, state = line.strip().partition(_SEPARATOR)
            if job in jobs and state == "PENDING":
                found[job] = "pending"
            elif job in jobs and state in ("RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "STOPPED"):
                found[job] = "running"
        return found

    def submit(self, node: str, words: Sequence[str], log: Path, walltime_s: int) -> str:
        argv = [
            "sbatch",
            "--parsable",
            f"--job-name={JOB_NAME}",
            f"--nodelist={check_node_name(node)}",
            "--nodes=1",
            "--exclusive",
            "--mem=0",
            f"--nice={NICE}",
            "--no-requeue",
            f"--time={clock_time(walltime_s)}",
            f"--output={_literal(log)}",
            f"--chdir={log.parent}",
            *self._options,
            f"--wrap=exec {shlex.join(words)}",
        ]
        answer = run_command(argv, what=f"submitting the test of {node}", timeout_s=_ANSWER_S).stdout.strip()
        job = _JOB_ID.fullmatch(answer)
        if job is None:
            raise EnvironmentProblem(f"sbatch printed no job id: {answer[:200]}")
        return job[1]

    def cancel(self, job: str) -> None:
        run_command(["scancel", "--quiet", job], what=f"cancelling Slurm job {job}", timeout_s=_ANSWER_S)

    @staticmethod
    def _names(folded: str) -> frozenset[str]:
        if folded in ("", "(null)"):
            return frozenset()
        argv = ["scontrol", "show", "hostnames", folded]
        return frozenset(run_command(argv, what=f"the names of {folded[:60]}", timeout_s=_ANSWER_S).stdout.split())


def _literal(path: Path) -> str:
    """sbatch replaces % and what follows it in the name of a log."""
    return str(path).replace("%", "%%")
