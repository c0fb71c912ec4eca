"""Nodes of Slurm: those of the job that we are in, of a job that is named, or of one that is asked for here.

A submitted job lives as long as `salloc` does, which holds it for a `cat` that reads from us: it ends when we release
it, and also when we are killed. Programs are started by `srun`, a step for each; steps share the nodes.
"""

import contextlib
import functools
import re
import secrets
import shlex
import subprocess
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.node_sets import check_node_name, fold_node_set, parse_node_set
from lepaute.kit.sessions import kill_session
from lepaute.measure.schedulers import types

_GRACE_S = 10.0
_POLL_S = 1.0
#: A health check is ended by Slurm after 60 s.
_HEALTH_S = 15.0
_JOB_ID = "[0-9]{1,12}([_+][0-9]{1,12})?"
_GRANTED = re.compile(r"Granted job allocation ([0-9]+)")
_PENDING = re.compile(r"Pending job allocation ([0-9]+)")
_LEAF = re.compile(r"^SwitchName=(\S+)\s+Level=0\b.*?\bNodes=(\S+)", re.MULTILINE)
_SUBMITTED = re.compile(r"([0-9]+)(;.*)?")
#: States in which a node takes no new jobs; Slurm adds signs such as * for a node that does not answer.
_OUT = ("drain", "drng", "down", "fail", "maint", "not_responding")
#: Subtracted from the priority that the job of a test would have.
NICE = 10_000
#: A pending job with one of these reasons would start if nodes were free; others are held, or wait for something else.
_WANTS_NODES = {"None", "Priority", "Resources"}
_RUNNING = ("RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "STOPPED")


class SlurmTests(types.BatchSystem):
    """partition, account, qos: as of sbatch; without a partition, all nodes are tested in the default one."""

    scheduler = "slurm"

    def __init__(self, partition: str | None = None, account: str | None = None, qos: str | None = None) -> None:
        self.partition = partition
        values = {"--partition": partition, "--account": account, "--qos": qos}
        self._options = types.word_options({option: (option, value) for option, value in values.items()})

    def idle(self) -> dict[str, bool]:
        return {name: node.state == "idle" for name, node in node_states(self.partition).items()}

    def waiting(self) -> list[types.WaitingJob]:
        argv = ["squeue", "--noheader", "--states=PENDING", "--format=%i|%D|%r|%n|%j"]
        if self.partition is not None:
            argv.append(f"--partition={self.partition}")
        jobs = []
        for line in types.answer_of(argv, "the pending jobs of Slurm").splitlines():
            job, count, reason, nodes, name = f"{line.strip()}||||".split("|", 4)
            if name.rstrip("|") != types.JOB_NAME and reason in _WANTS_NODES:
                number = re.match("[0-9]+", count)  # 2-4 of a job that takes what it gets
                named = frozenset() if nodes in ("", "(null)") else frozenset(_unfolded(nodes))
                jobs.append(types.WaitingJob(job, int(number[0]) if number else 1, named))
        return jobs

    def states(self, jobs: Collection[str]) -> dict[str, types.JobState]:
        if not jobs:
            return {}
        argv = ["squeue", "--noheader", f"--name={types.JOB_NAME}", "--states=all", "--format=%i|%T"]
        states: dict[str, types.JobState] = {}
        for line in types.answer_of(argv, "our jobs in Slurm").splitlines():
            job, _, state = line.strip().partition("|")
            if job in jobs and (state == "PENDING" or state in _RUNNING):
                states[job] = "pending" if state == "PENDING" else "running"
        return states

    def submit(self, node: str, words: Sequence[str], log: Path, walltime_s: int) -> str:
        literal_log = str(log).replace("%", "%%")  # sbatch replaces % and what follows it in the name of a log
        argv = [
            *("sbatch", "--parsable", f"--job-name={types.JOB_NAME}", f"--nodelist={check_node_name(node)}"),
            *("--nodes=1", "--exclusive", "--mem=0", f"--nice={NICE}", "--no-requeue"),
            f"--time={types.clock_time(walltime_s)}",
            f"--output={literal_log}",
            f"--chdir={log.parent}",
            *self._options,
            f"--wrap=exec {shlex.join(words)}",
        ]
        answer = types.answer_of(argv, f"submitting the test of {node}").strip()
        job = _SUBMITTED.fullmatch(answer)
        if job is None:
            raise EnvironmentProblem(f"sbatch printed no job id: {answer[:200]}")
        return job[1]

    def cancel(self, job: str) -> None:
        types.answer_of(["scancel", "--quiet", job], f"cancelling Slurm job {job}")


class SlurmScheduler(types.Scheduler):
    """Uses the job of `job` or SLURM_JOB_ID and leaves it alone afterwards; without either submits one."""

    supports = ("nodes", "count", "walltime_s", "queue", "account", "properties", "job")
    idle_tests = SlurmTests
    worker_jobs = "SLURMCluster"

    def acquire(self, request: types.Request, tell: types.Tell) -> types.Allocation:
        job = self._existing_job(request)
        return _submit(request, tell) if job is None else _use(job, request, tell)

    def plan(self, request: types.Request) -> types.Plan:
        job = self._existing_job(request)
        if job is not None:
            nodes = request.nodes or (f"{request.count} nodes" if request.count else "all nodes")
            return types.Plan((f"use {nodes} of the existing job {job}", shlex.join(_srun(job, "NODE"))))
        return types.Plan(
            (shlex.join(_salloc(request, "lepaute-NUMBER")), shlex.join(_srun("JOB", "NODE")), "scancel JOB")
        )

    def _existing_job(self, request: types.Request) -> str | None:
        return types.existing_job(request, "slurm", "Slurm", self.supports, _JOB_ID, "SLURM_JOB_ID")

    def switches(self) -> types.Switches:
        """Switches of topology.conf; none if the administrators wrote none."""
        try:
            return switches_of_topology(types.answer_of(["scontrol", "show", "topology"], "the switches of Slurm"))
        except EnvironmentProblem:
            return types.Switches()

    def rank_launch(self, request: types.Request) -> types.RankLaunch:  # noqa: ARG002 - the same for all
        return types.RankLaunch("srun")

    def node_states(self, partition: str | None = None) -> dict[str, types.NodeState]:
        return node_states(partition)

    def drain(self, node: str, reason: str) -> None:
        check_node_name(node)
        now = self.node_states().get(node)
        if now is None or now.out_of_service:
            raise EnvironmentProblem(f"{node} is {now.state if now else 'no node of Slurm'} now")
        words = ["scontrol", "update", f"nodename={node}", "state=drain", f"reason={' '.join(reason.split())[:200]}"]
        types.answer_of(words, f"draining {node}", _HEALTH_S)


def switches_of_topology(text: str) -> types.Switches:
    """The leaf switches in what `scontrol show topology` prints; none where it prints none that can be read."""
    found: dict[str, tuple[str, ...]] = {}
    for match in _LEAF.finditer(text):
        try:
            found.setdefault(match[1], parse_node_set(match[2]))
        except InputError:
            return types.Switches()
    try:
        return types.Switches(tuple(found.values()))
    except InputError:  # nodes of several switches, such as those of two networks: that is no tree
        return types.Switches()


def node_states(partition: str | None) -> dict[str, types.NodeState]:
    """As of Scheduler."""
    argv = ["sinfo", "--noheader", "--Node", "--format=%N|%T|%E"]
    if partition is not None:
        argv.append(f"--partition={partition}")
    nodes = {}
    for line in types.answer_of(argv, "the nodes of Slurm", _HEALTH_S).splitlines():
        name, state, reason = (part.strip() for part in f"{line}||".split("|", 2))
        state, reason = state.lower(), reason.rstrip("|")
        nodes[name] = types.NodeState(state, "" if reason == "none" else reason, any(word in state for word in _OUT))
    if not nodes:
        where = f"partition {partition[:60]}" if partition else "Slurm"
        raise InputError(f"{where} has no nodes; `sinfo` lists the partitions")
    return nodes


def _use(job: str, request: types.Request, tell: types.Tell) -> types.Allocation:
    types.warn_of_unused(request, f"Slurm job {job}", tell)  # the script that submits a job runs inside one as well
    names = request.choose(_job_nodes(job), job, request.node_names())
    tell(f"using {fold_node_set(names)} of Slurm job {job}")
    return types.Allocation(_addresses(job, names), {"scheduler": "slurm", "job": job, "submitted": False})


def _submit(request: types.Request, tell: types.Tell) -> types.Allocation:
    """Asks for a job and waits for it. However the wait ends, a job that is not returned is cancelled."""
    name = f"lepaute-{secrets.token_hex(6)}"
    argv = _salloc(request, name)
    try:
        # A session of its own: a Ctrl-C of the terminal's comes to us alone, and we end salloc.
        holder = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as problem:
        raise EnvironmentProblem(f"salloc cannot be started: {problem.strerror}; is Slurm installed here?") from None
    job: str | None = None
    try:
        job = _wait_until_granted(holder, tell)
        names = _job_nodes(job)
        tell(f"Slurm job {job} has {fold_node_set(names)}")
        facts = {"scheduler": "slurm", "job": job, "submitted": True, "argv": argv, "nodes": list(names)}
        return types.Allocation(_addresses(job, names), facts, functools.partial(_end, holder, job, ""))
    except BaseException:
        _end(holder, job, name)
        raise


def _wait_until_granted(holder: "subprocess.Popen[str]", tell: types.Tell) -> str:
    assert holder.stderr is not None
    messages = []
    for line in holder.stderr:
        messages.append(line.strip())
        granted, pending = _GRANTED.search(line), _PENDING.search(line)
        if granted:
            return granted[1]
        if pending:
            tell(f"Slurm job {pending[1]} is waiting for nodes")
        elif "job allocation" not in line and line.strip():
            tell(line.strip())  # why it may wait for long: "Requested partition configuration not available now"
    raise EnvironmentProblem(f"Slurm granted no nodes: {' | '.join(messages[-3:])[:600] or 'salloc printed nothing'}")


def _end(holder: "subprocess.Popen[str]", job: str | None, name: str) -> None:
    """Ends salloc and the job that it holds, or waits for where it has no number; also when a Ctrl-C comes in between.

    The job is not cancelled while salloc ends of itself: salloc 22.05 may spin for ever when both come at once.
    """
    try:
        for stream in (holder.stdin, holder.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()  # `cat` ends, and with it salloc and the job
        if job is None:
            holder.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            holder.wait(_GRACE_S)
    finally:
        kill_session(holder.pid)
        holder.wait()
        # A job that has ended already is no failure, and any other failure could not be handled here.
        with contextlib.suppress(EnvironmentProblem):
            types.answer_of(["scancel", "--quiet", f"--name={name}" if job is None else job], "scancel")


def _salloc(request: types.Request, name: str) -> list[str]:
    """Whole nodes, with all their memory: what is measured on a shared node is its neighbours."""
    names = request.node_names()
    return [
        "salloc",
        f"--job-name={name}",
        f"--nodes={request.size(names)}",
        f"--time={types.clock_time(request.duration_s())}",
        "--exclusive",
        "--mem=0",
        # The job outlives a node that dies: the others' measurements go on.
        "--no-kill",
        *types.word_options(
            {
                "--partition": ("--queue", request.queue),
                "--account": ("--account", request.account),
                "--constraint": ("--constraint", request.properties),
            }
        ),
        *([f"--nodelist={fold_node_set(names)}"] if names else []),
        "cat",
    ]


def _job_nodes(job: str) -> tuple[str, ...]:
    """The nodes of a running job; waits for those that are being booted or prepared for it."""
    query = ["squeue", "--noheader", f"--jobs={job}", "--format=%T|%N"]
    while True:
        answer = types.answer_of(query, f"what Slurm knows of job {job}")
        state, _, folded = (answer.splitlines() or ["gone"])[0].strip().partition("|")
        if state != "CONFIGURING":
            break
        time.sleep(_POLL_S)
    if state != "RUNNING" or not folded:
        raise EnvironmentProblem(f"Slurm job {job} is {state.lower()}; it has nodes only while it is running")
    return tuple(check_node_name(name) for name in _unfolded(folded))


def _unfolded(names: str) -> list[str]:
    return types.answer_of(["scontrol", "show", "hostnames", names], f"the names of {names[:60]}").split()


def _addresses(job: str, names: tuple[str, ...]) -> tuple[types.NodeAddress, ...]:
    return tuple(types.NodeAddress(name, _srun(job, name)) for name in names)


def _srun(job: str, node: str) -> tuple[str, ...]:
    """The words that make srun run one program on a node of a job, standard input and output passed byte by byte."""
    return (
        *("srun", f"--jobid={job}", "--job-name=lepaute", f"--nodelist={node}", "--nodes=1", "--ntasks=1"),
        # Another step may have the same CPUs and memory: a program that runs on all nodes beside this one.
        *("--overlap", "--mem=0", "--cpu-bind=none", "--mpi=none", "--unbuffered", "--input=all", "--no-kill"),
        # One Ctrl-C ends it, where srun would tell the state of the step first.
        *("--kill-on-bad-exit=0", "--quit-on-interrupt", "--quiet"),
    )
