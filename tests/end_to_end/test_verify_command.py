"""`lepaute verify command` with a real MPI program: the example of conjugate gradients, whose computing sleeps."""

import csv
import json
from pathlib import Path

import pytest

from lepaute.cli.main import main
from lepaute.kit.mpi_launcher import find_launcher
from lepaute.kit.mpi_library import library_of_launcher

pytestmark = [pytest.mark.machine, pytest.mark.slow]
EXAMPLES = Path(__file__).parents[2] / "examples" / "applications"


def test_a_program_of_ones_own_is_predicted_run_on_each_grid_and_compared(tmp_path, monkeypatch, output_of):
    launcher = find_launcher()
    for name, value in launcher.start(2).environment.items():
        monkeypatch.setenv(name, value)
    source = str(EXAMPLES / "cg.c")
    library_of_launcher(launcher).compile([source, "-o", str(tmp_path / "cg"), "-lm"], what="building cg")
    # What else this machine does is no part of this campaign.
    monkeypatch.setattr("lepaute.measure.verify.campaign.disturbances", lambda *_loads: ())
    monkeypatch.chdir(tmp_path)
    sheet = ("--cores", "1x2", "--dgemm", "20G", "--link", "100Gb", "--memory", "8G")
    assert main(["platform", "new", "--nodes", "1", *sheet, "-o", "here.yaml"]) == 0
    application = [f"{EXAMPLES / 'cg.py'}:Cg", "--grid", "1x1x1,2x1x1", "--n", "32", "--iterations", "20"]
    words = [*launcher.start(2).argv[:-1], "{ranks}", "./cg", *(f"{{grid[{side}]}}" for side in range(3)), "{n}"]
    campaign = ["-p", "here.yaml", "--runs", "5", "--repeats", "1", "--time-pattern", r"time: (\S+) s", "-o", "out"]
    campaign += ["--report", "page.html"]
    command = ["verify", "command", *application, *campaign, "--", *words, "{iterations}", "2.7e-8", "2.1e-9"]
    assert "Picture: out/verification.png; predictions sealed as " in output_of(*command)
    page = (tmp_path / "page.html").read_text()
    assert "predicted for n 32, iterations 20, " in page
    assert "Above durations; below durations off the measured mean" in page
    slept_s = 20 * 32**3 * (2.7e-8 + 3 * 2.1e-9)
    rows = list(csv.DictReader((tmp_path / "out" / "results.csv").open()))
    assert [(row["varied"], row["ranks"], row["n_runs"]) for row in rows] == [
        ("grid 1x1x1", "1", "1"),
        ("grid 2x1x1", "2", "1"),
    ]
    for row in rows:
        assert float(row["measured_time_s"]) > slept_s  # on a busy machine much more
        assert float(row["predicted_time_s"]) == pytest.approx(slept_s, rel=0.2)
    told = json.loads((tmp_path / "out" / "verification.json").read_text())["verifications"]
    assert [one["measured"][0]["ranks"] for one in told] == [[], []]
