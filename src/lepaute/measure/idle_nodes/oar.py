"""Tests of nodes as besteffort jobs of OAR, which OAR itself ends when another job wants the node.

Written after the manual pages of OAR 2 and OAR 3 (oarnodes, oarstat, oarsub, oardel); run against made-up answers only.
"""

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.command import run_command
from lepaute.kit.documents import read_json
from lepaute.kit.node_sets import check_node_name
from lepaute.measure.idle_nodes.batch import JOB_NAME, BatchSystem, JobState, WaitingJob
from lepaute.measure.schedulers.oar import BEFORE_RUNNING, MOST_ANSWER_BYTES, SUBMITTED, answered_jobs
from lepaute.measure.schedulers.request import check_word
from lepaute.measure.schedulers.types import clock_time

_ANSWER_S = 60.0
_ENDED = {"Terminated", "Error"}


class OarTests(BatchSystem):
    """queue, account: as of oarsub (account is its project). Raises InputError for a qos, which OAR does not have."""

    scheduler = "oar"
    evicts = True

    def __init__(self, queue: str | None = None, account: str | None = None, qos: str | None = None) -> None:
        if qos is not None:
            raise InputError("--qos is of Slurm; oar has none")
        given = {"--queue": queue, "--project": account}
        self._options = [
            f"{option}={check_word('account' if option == '--project' else 'queue', value)}"
            for option, value in given.items()
            if value is not None
        ]

    def idle(self) -> dict[str, bool]:
        answer = run_command(["oarnodes", "--json"], what="the nodes of OAR", timeout_s=_ANSWER_S).stdout
        try:
            document = read_json(answer, "oarnodes", most_bytes=MOST_ANSWER_BYTES)
        except InputError:
            raise EnvironmentProblem(f"oarnodes did not print JSON: {answer.strip()[:200]!r}") from None
        alive: dict[str, bool] = {}
        for resource in _resources(document):
            name = check_node_name(str(resource["network_address"]))
            alive[name] = alive.get(name, True) and resource["state"] == "Alive"
        if not alive:
            raise InputError("OAR has no nodes; `oarnodes` lists them")
        busy = set()
        for job in self._jobs():
            addresses = job.get("assigned_network_address")
            busy |= set(map(str, addresses)) if isinstance(addresses, list) else set()
        return {name: well and name not in busy for name, well in alive.items()}

    def waiting(self) -> list[WaitingJob]:
        return []

    def states(self, jobs: Collection[str]) -> dict[str, JobState]:
        found: dict[str, JobState] = {}
        for job in self._jobs() if jobs else ():
            number, state = str(job.get("Job_Id") or job.get("id")), str(job.get("state"))
            if number in jobs and state not in _ENDED:
                found[number] = "pending" if state in BEFORE_RUNNING else "running"
        return found

    def submit(self, node: str, words: Sequence[str], log: Path, walltime_s: int) -> str:
        argv = [
            "oarsub",
            f"--name={JOB_NAME}",
            "--type=besteffort",
            f"--resource=/nodes=1,walltime={clock_time(walltime_s)}",
            f"--property=network_address = '{check_node_name(node)}'",
            *self._options,
            f"--directory={log.parent}",
            f"--stdout={log}",
            f"--stderr={log}",
            shlex.join(words),
        ]
        answer = run_command(argv, what=f"submitting the test of {node}", timeout_s=_ANSWER_S)
        job = SUBMITTED.search(answer.stdout)
        if job is None:
            raise EnvironmentProblem(f"oarsub printed no job id: {(answer.stdout + answer.stderr).strip()[-300:]}")
        return job[1]

    def cancel(self, job: str) -> None:
        run_command(["oardel", job], what=f"deleting OAR job {job}", timeout_s=_ANSWER_S)

    def _jobs(self) -> list[dict[str, object]]:
        """All jobs that have not ended."""
        return answered_jobs(run_command(["oarstat", "--json"], what="oarstat", timeout_s=_ANSWER_S).stdout)


def _resources(value: object) -> Iterator[Mapping[str, object]]:
    """The resources of `oarnodes --json`: by node and number in OAR 2, a list in OAR 3; those that are no nodes out."""
    if isinstance(value, list):
        for one in value:
            yield from _resources(one)
    elif isinstance(value, dict):
        if "network_address" in value and "state" in value:
            if value["network_address"]:
                yield value
        else:
            for one in value.values():
                yield from _resources(one)
