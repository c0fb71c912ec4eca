"""An experiment on this machine, from the command line: how it ends, and what its archive says."""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support_limits import ran
from support_run import environment, run_here, run_lepaute

from lepaute.measure.archive import Archive

pytestmark = pytest.mark.nodes

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "experiments"

FAILING = """
import lepaute as lp

class Build(lp.Job):
    def design(self):
        return lp.design.full_factorial({"size": [1, 2, 3]}, seed=self.seed)

    def run(self):
        for row in self.rows():
            self.record(seen=row["size"])
            if row["design_row"] == 1:
                self.nodes.shell("echo compiling; echo 'x.c:3: error: no such header' >&2; exit 7")

    def teardown(self):
        self.nodes.run("echo", "goodbye")
"""


def run(tmp_path: Path, text: str, *arguments: object, **more: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "experiment.py"
    script.write_text(text)
    return run_here("run", script, *arguments, folder=tmp_path, **more)


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


def test_a_failed_experiment_says_why_in_the_first_screen_of_its_archive(tmp_path: Path) -> None:
    done = run(tmp_path, FAILING, "-o", "x.zip")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    screen = run_here("archive", "show", "x.partial.zip", folder=tmp_path).stdout
    assert len(screen.splitlines()) <= 24
    for told in (
        "FAILED",
        "phase run",
        "exit status 7",
        "x.c:3: error: no such header",
        "experiment.py:12",
        "1 of 3 rows",
    ):
        assert told in screen, f"{told!r} is not in:\n{screen}"
    archive = Archive.open(tmp_path / "x.partial.zip")
    commands = json.loads(archive.read_bytes("commands.json"))
    assert commands[-1]["argv"] == ["echo", "goodbye"], "teardown was left out"
    assert commands[archive.metadata["failure"]["command"]]["returncode"] == 7


def test_a_failed_experiment_goes_on_when_the_cause_is_mended(tmp_path: Path) -> None:
    run(tmp_path, FAILING, "-o", "x.zip", "--seed", "5")
    done = run(tmp_path, FAILING.replace("exit 7", "exit 0"), "--resume", "-o", "x.zip")
    assert done.returncode == 0, done.stderr
    archive = Archive.open(tmp_path / "x.zip")
    assert archive.metadata["seed"] == 5
    assert set(archive.table("observations/observations.parquet")["design_row"]) == {0, 1, 2}
    assert not (tmp_path / "x.partial.zip").exists()
    # Both versions of the script are kept, and it is said that there are two.
    assert any("experiment.py has changed since" in warning for warning in archive.metadata["warnings"])
    assert len([name for name in archive.members() if name.startswith("experiment/")]) == 2


def test_a_run_that_is_resumed_keeps_its_design_and_says_that_the_script_has_another(tmp_path: Path) -> None:
    run(tmp_path, FAILING, "-o", "x.zip")
    done = run(tmp_path, FAILING.replace("exit 7", "exit 0").replace("3]", "3, 4]"), "--resume", "-o", "x.zip")
    assert done.returncode == 0, done.stderr
    archive = Archive.open(tmp_path / "x.zip")
    assert any("design has changed" in warning for warning in archive.metadata["warnings"])
    assert archive.metadata["design"]["rows"] == 3


def test_by_hand_no_archive_is_overwritten_and_what_cannot_begin_leaves_nothing(tmp_path: Path) -> None:
    script = tmp_path / "by_hand.py"
    script.write_text(
        """
import sys
import lepaute as lp

for settings in ({"archive": "x.zip"}, {"archive": "y"}, {"archive": "z.zip", "nodes": "a;b"}):
    try:
        with lp.Job(**settings) as job:
            print("began", job)
    except lp.errors.LepauteError as problem:
        print(problem)
"""
    )
    (tmp_path / "x.zip").write_text("precious")
    done = ran([sys.executable, script], cwd=tmp_path, env=environment(), check=True)
    told = done.stdout.splitlines()
    assert "or replace it with --force" in told[0]
    assert "ends in .zip" in told[1]
    assert "a;b" in told[2]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["by_hand.py", "x.zip"]


OWN_CLASS = """
import sys
import lepaute as lp

class Mine(lp.Job):
    def design(self):
        return lp.design.full_factorial({"n": [1, 2, 3]}, seed=self.seed)

    def run(self):
        for row in self.rows():
            if row["n"] == 2 and "fail" in sys.argv:
                raise ValueError("on purpose")
            self.record(seen=row["n"], replications=int(self.parameters["replications"]))

settings = {"resume": "resume" in sys.argv, "force": "force" in sys.argv}
archive = lp.run(Mine, "x.zip", parameters={"replications": 2}, monitor_period_s=0.0, **settings)
print(archive.metadata["status"], archive.metadata["script"], len(archive.table("observations/observations.parquet")))
"""


def test_a_class_of_a_python_session_is_run_resumed_and_replaced(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(OWN_CLASS)

    def session(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, str(script), *words]
        return ran(command, cwd=tmp_path, env=environment())

    failed = session("fail")
    assert failed.returncode == 1
    assert 'mine.py", line' in failed.stderr  # the user's own traceback
    assert "ValueError: on purpose" in failed.stderr
    assert "x.partial.zip; go on with lp.run(..., resume=True)" in failed.stderr
    again = session()
    assert "an interrupted run is there; resume it (--resume; lp.run(..., resume=True))" in again.stderr
    done = session("resume")
    assert done.stdout.splitlines()[0] == "complete mine.py 3", done.stderr
    assert "x.zip: complete, 3 of 3 rows measured" in done.stderr
    assert Archive.open(tmp_path / "x.zip").read_bytes("experiment/mine.py").decode() == OWN_CLASS
    assert "or replace it with --force (force=True)" in session().stderr
    assert session("fail", "force").returncode == 1
    assert session("force").stdout.startswith("complete mine.py 3")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.py", "x.zip"]


def test_resume_without_a_name_takes_the_last_interrupted_run(tmp_path: Path) -> None:
    run(tmp_path, FAILING)
    done = run(tmp_path, FAILING.replace("exit 7", "exit 0"), "--resume")
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("experiment-*.zip"))) == 1


@pytest.mark.parametrize(
    ("text", "arguments", "told"),
    [
        ("x = 1\n", (), "a class that derives from lp.Job is missing"),
        ("import nothing_like_it\n", (), "experiment.py:1: ModuleNotFoundError"),
        ("def f(:\n", (), "experiment.py:1: SyntaxError"),
        (FAILING, ("--resume", "-o", "never.zip"), "never.work: no interrupted run is there"),
        (FAILING, ("--resume",), "no run of experiment.py was interrupted here"),
        (FAILING, ("--nodes", "node[1-"), "node[1-"),
        (FAILING, ("--nodes", "-oProxyCommand=id"), "is not a set of nodes"),
        (FAILING, ("--nodes", "a;b"), "a;b"),
        (FAILING, ("--walltime", "soon"), "--walltime is 'soon'"),
        (FAILING, ("-o", "x.tar"), "ends in .zip"),
        (FAILING, ("--monitor", "0.001"), "0.05 s is the shortest"),
        (FAILING, ("--set", "novalue"), "--set 'novalue'"),
        (FAILING, ("--install", "nothing.yaml"), "nothing.yaml: cannot be read"),
        (FAILING.replace("return", "raise RuntimeError('none') #"), (), "experiment.py:6: design() failed: RuntimeEr"),
        (FAILING.replace("return", "return [1] #"), (), "design() gave a list"),
        (FAILING.replace("def run(self)", "warm_up_s = -1\n\n    def run(self)"), (), "Build.warm_up_s is -1"),
        (FAILING.replace("def run(self)", "def __init__(self, x)"), (), "leave __init__ alone"),
    ],
)
def test_bad_input_gets_one_line_and_leaves_nothing(tmp_path, text, arguments, told):
    (tmp_path / "experiment.py").write_text(text)
    line = one_line(run_here("run", tmp_path / "experiment.py", "-q", *arguments, folder=tmp_path))
    assert told in line
    assert [path.name for path in tmp_path.iterdir()] == ["experiment.py"]


def test_a_host_that_is_not_there_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    config = tmp_path / "ssh_config"
    config.write_text("Host *\n  HostName 127.0.0.1\n  Port 1\n")
    line = one_line(run(tmp_path, FAILING, "-q", "--nodes", "node[1-2]", "--ssh-config", config, "-o", "x.zip"))
    assert "node1" in line
    assert "refused" in line
    assert not (tmp_path / "x.work").exists()


def test_a_dry_run_tells_every_step_and_does_none(tmp_path: Path) -> None:
    text = FAILING.replace(
        "def run(self)",
        'def setup(self):\n        self.nodes.run("touch", "/tmp/never-made-by-dry-run")\n\n    def run(self)',
    )
    done = run(tmp_path, text, "--dry-run", "-o", "x.zip")
    assert done.returncode == 0, done.stderr
    assert "touch /tmp/never-made-by-dry-run" in done.stdout
    assert "design: 3 rows of size" in done.stdout
    assert "goodbye" in done.stdout
    assert not Path("/tmp/never-made-by-dry-run").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["experiment.py"]


def test_secrets_get_into_no_file_of_the_archive(tmp_path: Path) -> None:
    text = """
import lepaute as lp

class Leaking(lp.Job):
    def run(self):
        self.nodes.shell('echo "the token is $MY_API_TOKEN" >&2; echo --password=hunter2hunter2')
        self.nodes.run("echo", "https://me:s3cr3tpass@example.org/x.git")
        lines = ("-----BEGIN OPENSSH PRIVATE KEY-----", "b3BlbnNzaC1rZXk", "-----END OPENSSH PRIVATE KEY-----", "")
        self.nodes.write("key", chr(10).join(lines))
        self.collect("key")
        self.record(text="token=" + "abcdef123456token", duration_s=1.0)
"""
    done = run(tmp_path, text, "-o", "x.zip", MY_API_TOKEN="verysecretvalue123", HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / "x.zip") as packed:
        everything = b"".join(packed.read(name) for name in packed.namelist()) + done.stderr.encode()
    for secret in (b"verysecretvalue123", b"hunter2hunter2", b"s3cr3tpass", b"b3BlbnNzaC1rZXk"):
        assert secret not in everything, secret


def test_it_measures_until_every_level_is_known_well_enough_and_says_what_it_reached(tmp_path: Path) -> None:
    text = """
import random
import lepaute as lp

class Enough(lp.Job):
    def design(self):
        return lp.design.full_factorial({"spread": [1, 10]}, replications=2, seed=self.seed)

    def run(self):
        draw = random.Random(self.seed)
        for row in self.rows(until=lp.Until("duration_s", lp.Target(0.05, least=10, most=200))):
            self.record(duration_s=draw.gauss(100.0, row["spread"] * 1.5))
"""
    done = run(tmp_path, text, "-q", "-o", "x.zip")
    assert done.returncode == 0, done.stderr
    archive = Archive.open(tmp_path / "x.zip")
    reached = {entry["level"]["spread"]: entry for entry in json.loads(archive.read_bytes("reached.json"))}
    assert all(entry["reached"] for entry in reached.values())
    # Ten times the spread needs more observations for the same interval.
    assert reached["10"]["observations"] > reached["1"]["observations"] >= 10
    assert len(archive.table("observations/observations.parquet")) == sum(
        entry["observations"] for entry in reached.values()
    )


def test_the_experiment_of_the_literature_fits_in_fifteen_lines_and_runs(tmp_path: Path) -> None:
    script = EXAMPLES / "croaring.py"
    code = [line for line in script.read_text().splitlines() if line.strip() and not line.startswith('"""')]
    assert len(code) <= 15
    origin = tmp_path / "origin"
    (origin / "benchmarks/realdata/census-income").mkdir(parents=True)
    (origin / "benchmarks/realdata/census-income/a.txt").write_text("1,2,3\n")
    (origin / "benchmarks/bench.c").write_text(
        '#include <stdio.h>\nint main(int c, char **v) { printf("%s: 42\\n", v[c - 1]); }\n'
    )
    (origin / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.10)\nproject(like C)\n"
        "set(CMAKE_RUNTIME_OUTPUT_DIRECTORY benchmarks)\nadd_executable(real_bitmaps_benchmark benchmarks/bench.c)\n"
    )
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", str(origin)]
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "first"), ("tag", "v0.2.66")):
        subprocess.run([*git, *words], check=True, capture_output=True)
    commit = ran([*git, "rev-parse", "HEAD"], check=True).stdout.strip()
    done = run_lepaute("run", script, "--set", f"url={origin}", "-o", "x.zip", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"benchmarks/realdata/census-income: 42", done.stdout)
    (cloned,) = json.loads(Archive.open(tmp_path / "x.zip").read_bytes("repositories.json"))
    assert (cloned["commit"], cloned["revision"]) == (commit, "v0.2.66")
