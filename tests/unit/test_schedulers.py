"""What all schedulers share, and what Slurm answers rarely; this machine as the only node."""

import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support_limits import ran, within_cpu

from lepaute.cli.study import StudyOptions
from lepaute.cli.watch_nodes import NodeTestOptions
from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.node_sets import check_node_name, fold_node_set, parse_node_set
from lepaute.kit.options import options_of
from lepaute.measure.schedulers import SCHEDULERS, NodeAddress, RankLaunch, Request, names_with, scheduler
from lepaute.measure.schedulers.hosts import node_name
from lepaute.measure.schedulers.types import clock_time, walltime_of


def test_every_scheduler_is_found_by_its_name_and_asked_for_what_it_supports() -> None:
    assert SCHEDULERS == ("local", "ssh", "slurm", "oar")
    for name in SCHEDULERS:
        assert scheduler(name) is not None
    for name in set(SCHEDULERS) - {"slurm"}:
        with pytest.raises(InputError, match="slurm"):
            scheduler(name).drain("n1", "slow")
        with pytest.raises(InputError, match="slurm"):
            scheduler(name).node_states()
    supported = {name: set(scheduler(name).supports) for name in SCHEDULERS}
    assert set.union(*supported.values()) == set(options_of(Request)) == {field.name for field in fields(Request)}
    assert supported["local"] == set()


def test_the_help_names_the_schedulers_that_test_idle_nodes_and_that_start_workers() -> None:
    """These texts are written by hand, so that no help imports the schedulers."""
    assert options_of(NodeTestOptions)["scheduler"].help == " or ".join(names_with("idle_tests"))
    workers = " or ".join(["threads, local (processes)", *names_with("worker_jobs")])
    assert f": {workers};" in options_of(StudyOptions)["scheduler"].help


def test_a_request_goes_to_the_command_line_and_back() -> None:
    request = Request(nodes="n[1-2]", count=2, walltime_s=89.5, ssh_config=Path("a b"), properties="x='y'")
    assert request.words() == ["--nodes=n[1-2]", "--count=2", "--walltime=90", "--constraint=x='y'", "--ssh-config=a b"]
    assert walltime_of("1:30") == 90.0


@pytest.mark.parametrize(("request_", "words"), [
    (Request(), ()), (Request(ssh_config=Path("/c")), ("ssh", "-F", "/c")),
])  # fmt: skip
def test_mpirun_reaches_nodes_by_ssh_as_the_controller_does(request_: Request, words: tuple[str, ...]) -> None:
    assert scheduler("ssh").rank_launch(request_) == RankLaunch("mpirun", words)
    assert scheduler("oar").rank_launch(request_) == RankLaunch("mpirun", ("oarsh",))
    assert scheduler("slurm").rank_launch(request_).launcher == "srun"
    assert scheduler("local").rank_launch(request_) == RankLaunch()


@pytest.mark.parametrize("name", ["pbs", "", "Local", "types", "../ssh", "local\n"])
def test_another_name_is_refused_with_those_that_there_are(name: str) -> None:
    with pytest.raises(InputError, match="local, ssh, slurm, oar"):
        scheduler(name)


def test_the_local_node_runs_programs_directly() -> None:
    said: list[str] = []
    allocation = scheduler("local").acquire(Request(), said.append)
    (node,) = allocation.nodes
    assert node.argv(["printf", "%s", "a b"]) == ["printf", "%s", "a b"]
    assert subprocess.run(node.argv(["printf", "%s", "a b"]), capture_output=True, check=True).stdout == b"a b"
    assert said == [f"running on this machine, {node.name}"]
    allocation.release()


@pytest.mark.parametrize("given_", [{"nodes": "a"}, {"count": 2}, {"queue": "q"}, {"job": "1"}, {"walltime_s": 60}])
def test_the_local_node_cannot_be_chosen(given_: dict[str, str]) -> None:
    with pytest.raises(InputError, match=f"does not support --{next(iter(given_)).removesuffix('_s')}"):
        scheduler("local").acquire(Request(**given_), print)


@pytest.mark.parametrize(
    ("host", "name"),
    [("node-1.site", "node-1.site"), ("my_host", "my_host"), ("a b;c", "a-b-c"), ("-x-", "x"), ("é", "localhost"),
     ("", "localhost"), ("h" * 300, "h" * 250)],
)  # fmt: skip
def test_a_hosts_name_becomes_a_nodes(host: str, name: str) -> None:
    assert check_node_name(node_name(host)) == name


@pytest.mark.parametrize(
    "name", ["", "-v", "a b", "a;b", "a\nb", "a\n", "a$b", "a/b", "a@b", "a'", ".a", "a.", "é", "a" * 254]
)
def test_what_a_shell_or_an_option_parser_could_take_otherwise_is_no_node(name: str) -> None:
    with pytest.raises(InputError, match="is not a valid node name"):
        NodeAddress(name)


def test_a_set_is_expanded_in_order_each_node_once_and_too_large_numbers_refused() -> None:
    assert parse_node_set("node[1-3],node2,login") == ("login", "node1", "node2", "node3")
    assert parse_node_set("n[08-11]") == ("n08", "n09", "n10", "n11")
    assert parse_node_set("n[1-4]!n[2-3]") == ("n1", "n4")
    assert fold_node_set(parse_node_set("n[1-3,7]")) == "n[1-3,7]"
    with pytest.raises(InputError, match="range too large"):
        parse_node_set("node[1-4,7]9223372036854775807")


@pytest.mark.parametrize(
    "text",
    [
        *("n[1-100001]", "n[0-99999999999999999999]", "a[1-999]b[1-999]", ",".join(["n[1-5000],m[1-5001]"])),
        f"n[{'9' * 25}-{'9' * 5000}]",
    ],
)
def test_a_set_of_too_many_nodes_is_refused_before_it_is_expanded(text: str) -> None:
    # Expanding the second would never end.
    with within_cpu("the set of nodes"), pytest.raises(InputError, match="more than 10000 nodes"):
        parse_node_set(text)


@pytest.mark.parametrize(
    "text", ["@a;touch {}", "@$(touch {})", "@x/touch {}/e", "@:x", "@-x", "@a b", "@a|b", "@s:`b`"]
)
def test_the_name_of_a_group_runs_nothing(text: str, tmp_path: Path) -> None:
    # Configured groups are looked up by a shell command that has the name in it, whatever it is.
    with pytest.raises(InputError):
        parse_node_set(text.format(tmp_path / "mark"))
    assert not (tmp_path / "mark").exists()


def test_a_group_of_the_sites_configuration_is_expanded(tmp_path: Path) -> None:
    (tmp_path / "groups.conf").write_text("[Main]\ndefault: here\n[here]\nmap: echo n[1-3]-$GROUP\nall: echo n[7-9]\n")
    program = "from lepaute.kit.node_sets import parse_node_set as p; print(p('@gpu,m1'), p('@*'))"
    environment = {**os.environ, "CLUSTERSHELL_CFGDIR": str(tmp_path)}
    done = ran([sys.executable, "-c", program], env=environment, check=True)
    assert done.stdout == "('m1', 'n1-gpu', 'n2-gpu', 'n3-gpu') ('n7', 'n8', 'n9')\n"


@given(st.text(st.sampled_from("abn01290[]-,;@:*/!&^+. \n$`'\"|\\é"), max_size=24) | st.text(max_size=24))
@example("[")
@example("a[1-2")
@example("a]1[")
@example("@")
@example("@:")
@example("a[1-2/0]")
@example("a[01-2]")
@example("a[0000000000000000000000000-1]")
@example("!a")
@example("a[]")
@example("[----]")
@example("a[-5-99999999999]")
def test_any_text_is_a_set_of_safe_names_or_refused(text: str) -> None:
    try:
        names = parse_node_set(text)
    except InputError:
        return
    assert names
    assert len(set(names)) == len(names)
    for name in names:
        assert check_node_name(name) == name


@pytest.mark.parametrize(("duration_s", "text"), [(1, "00:00:01"), (3661, "01:01:01"), (360_000, "100:00:00")])
def test_durations_are_written_as_clock_times(duration_s: int, text: str) -> None:
    assert clock_time(duration_s) == text


@pytest.mark.parametrize("walltime_s", [0, -1.0, float("nan"), float("inf"), 1e9])
def test_a_walltime_that_is_no_duration_is_refused(walltime_s: float) -> None:
    with pytest.raises(InputError, match="walltime"):
        Request(walltime_s=walltime_s).duration_s()


def test_a_walltime_is_rounded_up_and_an_hour_where_nobody_says() -> None:
    assert Request(walltime_s=0.2).duration_s() == 1
    assert Request().duration_s() == 3600


@pytest.mark.parametrize(
    ("name", "request_", "complaint"),
    [
        ("slurm", Request(job="12", queue="q"), "does not support --queue"),
        ("slurm", Request(job="12; true"), "is not an? .* job id"),
        ("slurm", Request(nodes="n1", count=2), "give one of them"),
        ("slurm", Request(count=0), "count is 0"),
        ("slurm", Request(queue="-x"), "--queue is '-x'"),
        ("slurm", Request(nodes="n1;x"), "not a set of nodes"),
        ("oar", Request(image="-x"), "--image is"),
        ("oar", Request(ssh_config=Path("x")), "--ssh-config is used on nodes with an image"),
        ("oar", Request(job="12; true"), "is not an? .* job id"),
        ("oar", Request(job="12", walltime_s=60), "does not support --walltime"),
        ("oar", Request(properties="a\nb"), "--constraint is"),
        ("oar", Request(nodes="a';drop"), "not a set of nodes"),
    ],
)
def test_bad_requests_are_refused_by_name(name: str, request_: Request, complaint: str, monkeypatch) -> None:
    for variable in ("SLURM_JOB_ID", "OAR_JOB_ID"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(InputError, match=complaint):
        scheduler(name).plan(request_)


@pytest.fixture
def states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file whose lines `squeue` answers with, one a call."""
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setattr("lepaute.measure.schedulers.slurm._POLL_S", 0.0)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    file = tmp_path / "states"
    scripts = {"squeue": f"head -n 1 {file}; sed -i 1d {file}", "scontrol": "printf 'n1\\nn2\\n'"}
    for name, script in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    return file


def test_nodes_that_are_being_booted_are_waited_for(states: Path) -> None:
    states.write_text("CONFIGURING|n[1-2]\nCONFIGURING|n[1-2]\nRUNNING|n[1-2]\n")
    allocation = scheduler("slurm").acquire(Request(job="12"), print)
    assert [node.name for node in allocation.nodes] == ["n1", "n2"]
    assert states.read_text() == ""


@pytest.mark.parametrize("answer", ["PENDING|\n", "COMPLETING|n1\n", "RUNNING|\n", ""])
def test_a_job_that_does_not_run_has_no_nodes(states: Path, answer: str) -> None:
    states.write_text(answer)
    with pytest.raises(EnvironmentProblem, match="Slurm job 12 is"):
        scheduler("slurm").acquire(Request(job="12"), print)


def test_a_name_that_no_node_can_have_is_refused_wherever_it_comes_from(states: Path) -> None:
    states.write_text("RUNNING|x\n")
    (states.parent / "scontrol").write_text("#!/bin/sh\necho -oProxyCommand=x\n")
    with pytest.raises(InputError, match="is not a valid node name"):
        scheduler("slurm").acquire(Request(job="12"), print)


@pytest.mark.parametrize(("name", "command"), [("slurm", "salloc"), ("oar", "oarsub")])
def test_the_missing_command_is_named(name: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(f"{name.upper()}_JOB_ID", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match=f"{command} cannot be started"):
        scheduler(name).acquire(Request(), print)
