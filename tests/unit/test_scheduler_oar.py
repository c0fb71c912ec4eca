"""The scheduler for OAR against commands that answer as tests/data/oar says; no OAR was there to ask."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support_limits import HANG_S, ran, wait_until

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.measure.schedulers import Request, scheduler
from lepaute.measure.schedulers.oar import OarScheduler

_DATA = Path(__file__).parents[1] / "data" / "oar"
_NODES = ("chetemi-3.lille.example", "chetemi-11.lille.example")

#: Each writes its words, a line for each, to a file; oarstat goes on by one answer with each call.
_OARSUB = """#!/bin/sh
printf '%s\\n' "$@" > {folder}/oarsub.words
cat {data}/submitted.txt
"""
_OARSTAT = """#!/bin/sh
printf '%s\\n' "$@" > {folder}/oarstat.words
first=$(ls {folder}/answers | head -n 1)
cat {folder}/answers/$first
[ "$(ls {folder}/answers | wc -l)" -gt 1 ] && rm {folder}/answers/$first
exit 0
"""
_OARDEL = """#!/bin/sh
printf '%s\\n' "$@" >> {folder}/oardel.words
echo "Deleting the job = $1 ...REGISTERED."
"""
#: Joins the words behind the host as oarsh does, and has a shell run them.
_OARSH = """#!/bin/bash
[ -n "$OAR_JOB_ID" ] || exit 6
while [ "${{1#-}}" != "$1" ]; do case $1 in -o) shift 2;; *) shift;; esac; done
echo "$1 $OAR_JOB_ID" >> {folder}/oarsh.hosts
shift
[ "$1" = -- ] && shift
exec sh -c "$*"
"""


@pytest.fixture
def oar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with OAR's commands, which comes first in PATH; no job around us."""
    for name in ("OAR_JOB_ID", "OAR_NODEFILE"):
        monkeypatch.delenv(name, raising=False)
    for name, text in {"oarsub": _OARSUB, "oarstat": _OARSTAT, "oardel": _OARDEL, "oarsh": _OARSH}.items():
        (tmp_path / name).write_text(text.format(folder=tmp_path, data=_DATA))
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    _answers(tmp_path, "waiting", "waiting", "launching", "running")
    return tmp_path


def _answers(folder: Path, *names: str) -> None:
    (folder / "answers").mkdir()
    for index, name in enumerate(names):
        (folder / "answers" / f"{index}").write_text((_DATA / f"{name}.json").read_text())


def _again(folder: Path, *names: str) -> None:
    for file in (folder / "answers").iterdir():
        file.unlink()
    (folder / "answers").rmdir()
    _answers(folder, *names)


def _words(folder: Path, command: str) -> list[str]:
    file = folder / f"{command}.words"
    return file.read_text().splitlines() if file.exists() else []


def test_a_job_is_submitted_waited_for_and_deleted(oar: Path) -> None:
    said: list[str] = []
    request = Request(count=2, walltime_s=600, queue="default", account="science", properties="cluster='chetemi'")
    allocation = OarScheduler(poll_s=0).acquire(request, said.append)
    words = _words(oar, "oarsub")
    assert words[0].startswith("--name=lepaute-")
    assert words[1:] == [
        "--resource=/nodes=2,walltime=00:10:00",
        "--property=(cluster='chetemi')",
        "--queue=default",
        "--project=science",
        "--stdout=/dev/null",
        "--stderr=/dev/null",
        "sleep 600",  # one word: oarsub refuses more
    ]
    assert _words(oar, "oarstat") == ["--full", "--json", "--job", "36627"]
    assert tuple(node.name for node in allocation.nodes) == _NODES
    assert allocation.facts["job"] == "36627"
    assert said == [
        "OAR job 36627 is waiting for nodes",
        "OAR job 36627 is Waiting: R=4,W=0:10:0,J=B (Karma=0.087,quota_ok)",
        "OAR job 36627 has chetemi-[3,11].lille.example",
    ]
    assert _words(oar, "oardel") == []
    allocation.release()
    allocation.release()
    assert _words(oar, "oardel") == ["36627"]


#: Deploys on the first node alone.
_KADEPLOY = """#!/bin/sh
printf '%s\\n' "$@" > {folder}/kadeploy3.words
while [ "$1" != -f ]; do shift; done
head -n 1 "$2" > "$4"
"""


def test_an_image_is_deployed_and_nodes_without_it_are_left_out(oar: Path) -> None:
    (oar / "kadeploy3").write_text(_KADEPLOY.format(folder=oar))
    (oar / "kadeploy3").chmod(0o755)
    said: list[str] = []
    allocation = OarScheduler(poll_s=0).acquire(Request(count=2, image="debian12-min"), said.append)
    (node,) = allocation.nodes
    assert node.name == _NODES[0]
    assert node.prefix[:4] == ("ssh", "-T", "-l", "root")
    assert "--type=deploy" in _words(oar, "oarsub")
    assert _words(oar, "kadeploy3")[:2] == ["-e", "debian12-min"]
    assert said[-2:] == [
        "deploying debian12-min on chetemi-[3,11].lille.example",
        f"warning: debian12-min could not be deployed on {_NODES[1]}; continuing without",
    ]


def test_an_image_that_no_node_takes_ends_the_job(oar: Path) -> None:
    (oar / "kadeploy3").write_text("#!/bin/sh\n")
    (oar / "kadeploy3").chmod(0o755)
    with pytest.raises(EnvironmentProblem, match="debian12-min could not be deployed"):
        OarScheduler(poll_s=0).acquire(Request(count=2, image="debian12-min"), print)
    assert _words(oar, "oardel") == ["36627"]


def test_programs_reach_the_node_through_oarsh_with_their_words_unharmed(oar: Path) -> None:
    allocation = OarScheduler(poll_s=0).acquire(Request(count=2), print)
    words = ["a b", "", "'", f"$(touch {oar}/mark)", f"; touch {oar}/mark", "line\nbreak"]
    for node in allocation.nodes:
        assert ran(node.argv(["printf", "%s\\0", *words])).stdout.split("\0")[:-1] == words
    assert not (oar / "mark").exists()
    assert (oar / "oarsh.hosts").read_text().splitlines() == [f"{name} 36627" for name in _NODES]


def test_nodes_are_asked_for_by_name_in_the_properties(oar: Path) -> None:
    OarScheduler(poll_s=0).acquire(Request(nodes="chetemi-[3,11].lille.example", properties="gpu = 'NO'"), print)
    assert _words(oar, "oarsub")[1:3] == [
        "--resource=/nodes=2,walltime=01:00:00",
        "--property=(gpu = 'NO') and (network_address in ('chetemi-3.lille.example', 'chetemi-11.lille.example'))",
    ]


def test_inside_of_a_job_its_node_file_is_read_and_the_job_left_alone(oar, monkeypatch):
    monkeypatch.setenv("OAR_JOB_ID", "99")
    monkeypatch.setenv("OAR_NODEFILE", str(_DATA / "nodefile"))
    said: list[str] = []
    allocation = scheduler("oar").acquire(Request(walltime_s=60), said.append)
    assert tuple(node.name for node in allocation.nodes) == _NODES  # four lines, two nodes
    assert "--walltime is ignored" in said[0]
    allocation.release()
    assert _words(oar, "oardel") == _words(oar, "oarsub") == _words(oar, "oarstat") == []
    with pytest.raises(InputError, match="count is 3, but job 99 has 2 nodes"):
        scheduler("oar").acquire(Request(count=3), said.append)


def test_a_job_that_is_named_must_run(oar: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="OAR job 36627 is Waiting"):
        scheduler("oar").acquire(Request(job="36627"), print)
    _again(oar, "running")
    assert len(scheduler("oar").acquire(Request(job="36627"), print).nodes) == 2
    assert _words(oar, "oardel") == []


def test_a_job_that_fails_while_waiting_is_deleted_and_a_refused_submission_told_in_oars_words(oar: Path) -> None:
    _again(oar, "waiting", "error")
    with pytest.raises(EnvironmentProblem, match="OAR job 36627 is Error and never ran"):
        OarScheduler(poll_s=0).acquire(Request(), print)
    assert _words(oar, "oardel") == ["36627"]
    (oar / "oarsub").write_text(f"#!/bin/sh\ncat {_DATA}/refused.txt >&2\nexit 5\n")
    with pytest.raises(EnvironmentProblem, match="not enough resources"):
        OarScheduler(poll_s=0).acquire(Request(), print)
    assert _words(oar, "oardel") == ["36627"]  # of the first


@pytest.mark.parametrize("answer", ["", "null", "[]", "{}", "no JSON", '{"36627": {"state": "Running"}}', '{"1": 2}'])
def test_an_answer_that_is_no_job_is_an_error_and_the_job_is_deleted(oar: Path, answer: str) -> None:
    _again(oar, "running")
    (oar / "answers" / "0").write_text(answer)
    with pytest.raises(EnvironmentProblem):
        OarScheduler(poll_s=0).acquire(Request(), print)
    assert _words(oar, "oardel") == ["36627"]


def test_ctrl_c_while_waiting_deletes_the_job(oar: Path) -> None:
    _again(oar, "waiting")
    program = (
        "from lepaute.measure.schedulers import Request, scheduler\n"
        "scheduler('oar').acquire(Request(), lambda text: print(text, flush=True))\n"
    )
    waiting = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert b"is waiting" in waiting.stdout.readline()
    assert b"Waiting" in waiting.stdout.readline()
    waiting.send_signal(signal.SIGINT)
    _, stderr = waiting.communicate(timeout=HANG_S)
    assert b"KeyboardInterrupt" in stderr
    assert _words(oar, "oardel") == ["36627"]


def test_ctrl_c_before_oarsub_told_the_number_deletes_the_job_by_its_name(oar: Path) -> None:
    # This one has submitted its job, which oarstat shows under its name, and hangs before it says so.
    (oar / "oarsub").write_text(
        f'#!/bin/sh\necho "{{\\"77\\": {{\\"Job_Id\\": 77, \\"name\\": \\"${{1#--name=}}\\"}}}}" > {oar}/answers/0\n'
        "exec sleep 1000\n"
    )
    _again(oar, "running")
    program = "from lepaute.measure.schedulers import Request, scheduler\nscheduler('oar').acquire(Request(), print)\n"
    waiting = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: '"77"' in (oar / "answers" / "0").read_text(), "submission")
    waiting.send_signal(signal.SIGINT)
    waiting.communicate(timeout=HANG_S)
    assert _words(oar, "oardel") == ["77"]


def test_a_plan_shows_the_commands_and_runs_none(oar: Path) -> None:
    steps = scheduler("oar").plan(Request(count=2)).steps
    assert [step.split()[0] for step in steps] == ["oarsub", "oarstat", "env", "oardel"]
    assert _words(oar, "oarsub") == []
