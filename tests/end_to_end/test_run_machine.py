"""What an experiment does to its machine and sees of it, from the command line."""

import json
import os
import signal
import sys
from pathlib import Path

import fake_machines
import pandas
import pytest
from support_limits import HANG_S, ran, wait_until
from support_run import run_here, run_lepaute, start_lepaute

from lepaute.measure.archive import Archive

pytestmark = pytest.mark.nodes

CPU = fake_machines.CPU
CONTROLLED = """
import lepaute as lp

class Controlled(lp.Job):
    control = {"turbo": False, "governor": "performance"}

    def run(self):
        with open("seen.txt", "w") as seen:
            seen.write(self.nodes.run("cat", self.parameters["no_turbo"]).stdout)
        self.nodes.run("sleep", self.parameters["sleep_s"])
"""


def options(root: Path, sleep_s: float) -> list[object]:
    return ["--set", f"no_turbo={root / CPU / 'intel_pstate/no_turbo'}", "--set", f"sleep_s={sleep_s}", "-o", "x.zip"]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """The root of a made-up node with turbo and a governor."""
    (tmp_path / "controlled.py").write_text(CONTROLLED)
    fake_machines.intel(tmp_path / "root")
    return tmp_path / "root"


def test_settings_hold_while_it_runs_and_are_undone_and_recorded(machine: Path, tmp_path: Path) -> None:
    before = fake_machines.tree(machine)
    done = run_lepaute("run", "controlled.py", *options(machine, 0), folder=tmp_path, LEPAUTE_SYSTEM_ROOT=str(machine))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "seen.txt").read_text() == "1"
    after = {name: value for name, value in fake_machines.tree(machine).items() if not name.startswith("run/")}
    assert after == before
    records = json.loads(Archive.open(tmp_path / "x.zip").read_bytes("controls.json"))
    turbo = [record for record in records if record["control"] == "turbo"]
    assert [(record["before"], record["after"]) for record in turbo] == [("0", "1"), ("1", "0")]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_settings_are_undone_however_the_engine_ends(machine: Path, tmp_path: Path, number: signal.Signals) -> None:
    before = fake_machines.tree(machine)
    running = start_lepaute(
        "run", "controlled.py", *options(machine, 60), folder=tmp_path, LEPAUTE_SYSTEM_ROOT=str(machine)
    )
    switch = machine / CPU / "intel_pstate/no_turbo"
    wait_until(lambda: (tmp_path / "seen.txt").exists() and switch.read_text().strip() == "1", "the settings")
    os.kill(running.pid, number)
    running.communicate(timeout=HANG_S)
    wait_until(
        lambda: (
            {name: text for name, text in fake_machines.tree(machine).items() if not name.startswith("run/")} == before
        ),
        "the settings of before",
    )


def test_what_this_machine_cannot_do_is_a_warning_in_the_archive(tmp_path: Path) -> None:
    fake_machines.bare(tmp_path / "root")
    (tmp_path / "controlled.py").write_text(
        CONTROLLED.replace("self.parameters", "{'sleep_s': 0, 'no_turbo': '/dev/null'}")
    )
    done = run_lepaute(
        "run", "controlled.py", "-o", "x.zip", folder=tmp_path, LEPAUTE_SYSTEM_ROOT=str(tmp_path / "root")
    )
    assert done.returncode == 0, done.stderr
    warnings = Archive.open(tmp_path / "x.zip").metadata["warnings"]
    assert any("turbo" in warning for warning in warnings)
    assert any("governor" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("control: [turbo]\n", "control is ['turbo']"),
        ("turbo: false\n", "there is no field 'turbo'; the fields are"),
        ("monitor_period_s: soon\n", "monitor_period_s is 'soon'"),
        ("{", "is not YAML"),
    ],
)
def test_an_installation_file_that_makes_no_sense_is_refused_in_one_line(tmp_path, machine, text, told):
    (tmp_path / "install.yaml").write_text(text)
    done = run_here("run", "controlled.py", "--install", "install.yaml", folder=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert told in line
    assert "install.yaml" in line


def test_an_installation_file_sets_machine_monitor_and_parameters(machine: Path, tmp_path: Path) -> None:
    (tmp_path / "install.yaml").write_text(
        f"control: {{turbo: true, governor: powersave}}\nmonitor_period_s: 0.1\n"
        f"parameters: {{sleep_s: 1, no_turbo: {machine / CPU / 'intel_pstate/no_turbo'}}}\n"
    )
    arguments = ["controlled.py", "--install", "install.yaml", "-o", "x.zip"]
    done = run_lepaute("run", *arguments, folder=tmp_path, LEPAUTE_SYSTEM_ROOT=str(machine))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "seen.txt").read_text() == "0\n"
    archive = Archive.open(tmp_path / "x.zip")
    assert "experiment/installation.yaml" in archive.members()
    (node,) = archive.metadata["nodes"]
    samples = archive.table(f"monitoring/{node}.parquet")
    assert samples["monotonic_s"].is_monotonic_increasing
    (stop,) = [entry for entry in json.loads(archive.read_bytes("monitor.json")) if entry["event"] == "stop"]
    assert (stop["facts"]["period_s"], stop["facts"]["samples"]) == (0.1, len(samples))
    assert stop["facts"]["monitor_cpu_s"] > 0.0


CHANGING = """
import lepaute as lp

class Changing(lp.Job):
    reference_period_s = 0.05
    monitor_period_s = 0.2

    def design(self):
        return lp.design.full_factorial({"number": list(range(120))}, seed=self.seed)

    def run(self):
        for row in self.rows():
            if row["design_row"] == 60:
                open(self.parameters["flag"], "w").close()
            self.nodes.run("sleep", 0.04)
            self.record(value=row["number"])
"""
#: An interpreter for the node whose clock of durations is made up: each look at it finds ten milliseconds more, and
#: four times as much once the flag is there. To the agent, its machine has become that much slower.
SLOWING = """#!{python}
import itertools, os, sys, time
durations = ((0.04 if os.path.exists({flag!r}) else 0.01) + 1e-5 * (37 * look % 101) for look in itertools.count())
looks = itertools.accumulate(durations)
time.perf_counter = lambda: next(looks)
sys.argv = ["-c", *sys.argv[4:]]
exec(sys.orig_argv[-1])
"""


def test_a_machine_that_changes_in_the_middle_is_noticed_named_and_marked(tmp_path: Path) -> None:
    (tmp_path / "changing.py").write_text(CHANGING)
    flag, interpreter = str(tmp_path / "flag"), tmp_path / "slowing-python"
    interpreter.write_text(SLOWING.format(python=sys.executable, flag=flag))
    interpreter.chmod(0o755)
    arguments = ["changing.py", "-o", "x.zip", "--python", interpreter, "--set", f"flag={flag}"]
    done = run_lepaute("run", "-q", *arguments, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    archive = Archive.open(tmp_path / "x.zip")
    table: pandas.DataFrame = archive.table("observations/observations.parquet")
    reference = archive.table("reference.parquet")
    first_slow = int(reference["compute_s"].gt(0.02).to_numpy().argmax())
    steps = [load for load in json.loads(archive.read_bytes("verdicts.json")) if load["kind"] == "step"]
    dates_s = reference["time_s"].to_numpy()
    near = [step for step in steps if dates_s[first_slow - 2] <= step["start_s"] <= dates_s[first_slow + 2]]
    assert near, steps
    assert any("the reference kernel became" in warning for warning in archive.metadata["warnings"])
    later = table["recorded_s"] > dates_s[first_slow + 2]
    assert later.any()
    assert table.loc[later, "machine_changed"].str.contains("segment").all()


def test_the_engine_works_by_hand_in_a_python_session(tmp_path: Path) -> None:
    session = """
import lepaute as lp
with lp.Job(archive="x.zip", monitor_period_s=0.0) as job:
    print(job.nodes.run("echo", "by hand").stdout, end="")
    job.machine.control({"turbo": False})
    job.record(seen=1)
print(lp.Archive.open("x.zip").metadata["status"])
try:
    with lp.Job(archive="y.zip", monitor_period_s=0.0) as job:
        job.nodes.run("false")
except lp.LepauteError as problem:
    print(problem)
print(lp.Archive.open("y.partial.zip").metadata["status"])
"""
    import support_run

    done = ran([sys.executable, "-c", session], cwd=tmp_path, env=support_run.environment())
    assert done.returncode == 0, done.stderr
    first, second, third, fourth = done.stdout.splitlines()
    assert (first, second, fourth) == ("by hand", "complete", "failed")
    assert "command 'false' failed on " in third
