"""`lepaute study tune --real-runs` with the real HPL on tiny matrices: the whole path but the calibration."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support_limits import HANG_S, ran, wait_until
from support_run import run_here

from lepaute.simulate.apps.hpl.hpl_dat import read_hpl_dat

pytestmark = [pytest.mark.machine, pytest.mark.slow, pytest.mark.usefixtures("real_hpl")]

STUDY = """format: lepaute-study/1
question: tune
base:
  application: {{name: hpl, n: {n}}}
  platform: dahu
factors:
  nb: {{path: application.nb, levels: [32, 64]}}
  depth: {{path: application.depth, levels: [0, 1]}}
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY.format(n=256))
    return path


def command(study: Path, *more: str) -> "tuple[list[str], Path]":
    # Dahu's platform predicts nothing sensible for this machine; the path is the same, and its bias no zero.
    words = [sys.executable, "-m", "lepaute.cli.main", "study", "tune", study.name, *more]
    return words, study.parent


def tune(study: Path, *more: str) -> "subprocess.CompletedProcess[str]":
    words, folder = command(study, *more)
    return ran(words, cwd=folder)


def test_real_runs_of_sealed_predictions_choose_and_everything_is_in_the_folder(study: Path) -> None:
    done = tune(study, "--real-runs", "4", "--other-machine", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    folder = study.parent / "study.results"
    assert json.loads((folder / "answer.json").read_text()) == answer
    assert answer["best"] == answer["real"]["best"]
    assert 3 <= len(answer["real"]["real_runs"]) <= 4
    assert (folder / "real" / "predictions.sha256").is_file()
    assert len((folder / "real_runs.csv").read_text().splitlines()) > len(answer["real"]["real_runs"])
    (chosen,) = read_hpl_dat(folder / "HPL.dat").combinations()
    assert {"nb": chosen.nb, "depth": chosen.depth} == answer["best"]
    assert "Real runs" in (folder / "report.html").read_text()
    # all is there: resumed, it runs nothing and says the same
    kept = (folder / "real" / "runs.jsonl").read_bytes()
    again = tune(study, "--real-runs", "4", "--other-machine", "--json", "--resume")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["real"] == answer["real"]
    assert (folder / "real" / "runs.jsonl").read_bytes() == kept


@pytest.mark.long
def test_an_interrupt_among_the_real_runs_keeps_them_and_resume_goes_on(study: Path) -> None:
    study.write_text(STUDY.format(n=2000))
    words, folder = command(study, "--real-runs", "6", "--other-machine")
    journal = folder / "study.results" / "real" / "runs.jsonl"
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    begun = subprocess.Popen(words, cwd=folder, text=True, **both)
    wait_until(
        lambda: (journal.is_file() and journal.read_bytes().strip()) or begun.poll() is not None, "the first real run"
    )
    begun.send_signal(signal.SIGINT)
    _, said = begun.communicate(timeout=HANG_S)
    assert begun.returncode == 130, said
    assert "Traceback" not in said
    assert "--resume" in said
    kept = journal.read_text().splitlines()
    done = tune(study, "--real-runs", "6", "--other-machine", "--resume", "--json")
    assert done.returncode == 0, done.stderr
    assert journal.read_text().splitlines()[: len(kept)] == kept


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (("", ""), ("--real-runs", "4"), "is the platform of another machine"),
        (("", ""), ("--real-runs", "0"), "--real-runs is 0"),
        (("", ""), ("--other-machine",), "goes with --real-runs"),
        (("n: 256", "n: 256, grid: 8x8"), ("--real-runs", "4"), "needs 64 cores"),
        (("nb: {path: application.nb, levels: [32, 64]}", "nb: {path: application.nb, range: [32, 64], integer: true}"),
         ("--real-runs", "4"), "choose among levels"),
        (("application.depth, levels: [0, 1]", "scale.bandwidth, levels: [1, 2]"),
         ("--real-runs", "4"), "run on the machine as it is, and the study changes scale.bandwidth"),
        (("application.depth, levels: [0, 1]", "application.n, levels: [200, 300]"),
         ("--real-runs", "4"), "one N"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_here_is_refused_in_one_line_and_leaves_nothing(study, change, options, words):
    study.write_text(study.read_text().replace(*change) if change[0] else study.read_text())
    done = run_here("study", "tune", study.name, *options, folder=study.parent)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (study.parent / "study.results").exists()
