"""The real HPL: verified, and call by call beside the simulated one."""

import csv
import hashlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from long_tests import long_but
from oracles.recorded_hpl import recorded_hpl
from support_limits import HANG_S
from support_run import run_here

from lepaute import _core
from lepaute.cli.main import main
from lepaute.errors import EnvironmentProblem
from lepaute.measure.verify.real_run import disturbances
from lepaute.simulate import Hpl, Layers
from lepaute.simulate.apps.hpl.hpl_dat import HplDat
from lepaute.simulate.machine.core import machine_of
from lepaute.simulate.platform import load_platform
from lepaute.simulate.trace import Trace
from lepaute.simulate.trace.compare import compare_traces
from lepaute.simulate.tracing import trace_of_run

pytestmark = pytest.mark.machine


def lepaute(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return run_here(*arguments, folder=Path(), **environment)


def verify(folder: Path, *more: str, n: str = "256", repeats: int = 1) -> "subprocess.CompletedProcess[str]":
    # Dahu's platform predicts nothing sensible for this machine; the path is the same, and its error is no zero.
    sizes = ("--n", n, "--grid", "1x1", "--runs", "3", "--repeats", str(repeats))
    return lepaute("verify", "hpl", "-p", "dahu", "--other-machine", *sizes, "--output", str(folder), *more)


def one_line(text: str) -> str:
    """The one line of a refusal; how this machine is set up may have been warned of before."""
    assert "Traceback" not in text
    (line,) = (line for line in text.splitlines() if not line.startswith("warning: "))
    return line


def test_a_verification_seals_its_predictions_then_runs_shows_and_saves_everything(real_hpl, tmp_path):
    done = verify(tmp_path, "--json", n="256,512", repeats=2)
    assert done.returncode == 0, done.stderr
    cases = json.loads(done.stdout)["verifications"]
    assert [case["parameters"]["n"] for case in cases] == [256, 512]

    seal = hashlib.sha256((tmp_path / "predictions.json").read_bytes()).hexdigest()
    sealed = json.loads((tmp_path / "predictions.json").read_text())
    assert seal in done.stderr
    for case, prediction in zip(cases, sealed["predictions"], strict=True):
        assert case["predictions_sha256"] == seal
        assert case["time_s"] == prediction["time_s"]
        runs = case["measured"]
        counting = [run["time_s"] for run in runs if not run["disturbed"]] or [run["time_s"] for run in runs]
        mean = sum(counting) / len(counting)
        assert case["error_percent"] == pytest.approx(100 * (case["time_s"]["mean"] - mean) / mean)
        # Both dates are UTC in ISO 8601: their order is that of the text.
        assert all(run["started"] > sealed["created"] for run in runs)
        assert {run["repeat"] for run in runs} == {0, 1}

    with (tmp_path / "runs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == sum(len(case["measured"]) for case in cases)
    assert (tmp_path / "verification.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "verification.json").read_text()) == json.loads(done.stdout)
    # The report in HPL's form is one of the runs that count, and can be verified once more, without running anything.
    again = lepaute("verify", "hpl", "--results", str(tmp_path / "HPL.out"), "-p", "dahu", "--runs", "3", "--json")
    assert again.returncode in (0, 1, 3), again.stderr  # as predicted, slower, undecided
    for case, before in zip(json.loads(again.stdout)["verifications"], cases, strict=True):
        assert case["time_s"] == before["time_s"]
        assert case["measured_time_s"] == pytest.approx(before["measured_time_s"], rel=1e-3)


@pytest.mark.slow
@pytest.mark.long
def test_all_combinations_of_an_hpl_dat_are_run(real_hpl, tmp_path):
    dat = tmp_path / "HPL.dat"
    dat.write_text(
        HplDat.covering(
            [Hpl(n=n, nb=nb, bcast="1ring", swap_threshold=64) for n in (128, 256) for nb in (32, 64)]
        ).text()
    )
    words = ("-p", "dahu", "--other-machine", "--runs", "3", "--repeats", "1", "--output")
    done = lepaute("verify", "hpl", "--dat", str(dat), *words, str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    header, *rows = [line.split() for line in done.stdout.splitlines() if line.startswith(("N ", "128", "256"))]
    assert header[:3] == ["N", "NB", "grid"]
    assert [row[:2] for row in rows] == [["128", "32"], ["128", "64"], ["256", "32"], ["256", "64"]]
    refused = lepaute("verify", "hpl", "--dat", str(dat), "--nb", "64", *words, str(tmp_path / "other"))
    assert refused.returncode == 2
    assert "contradict each other; leave out --nb" in one_line(refused.stderr)


def test_without_json_it_ends_with_table_and_sentence_and_the_tolerance_decides_the_status(real_hpl, tmp_path):
    done = verify(tmp_path, "--tolerance", "0.0001%")
    assert "95 % of runs" in done.stdout
    case = json.loads((tmp_path / "verification.json").read_text())
    quiet = [run for run in case["measured"] if not run["disturbed"]]
    # A prediction from another machine errs by more than a millionth; of disturbed runs that is not known.
    assert done.returncode == (1 if quiet else 3), done.stderr
    counting = quiet or case["measured"]
    inside = sum(case["time_s"]["low"] <= run["time_s"] <= case["time_s"]["high"] for run in counting)
    assert re.search(rf"\b{inside} of {len(counting)} runs?\b.* inside (its|their) 95 % prediction", done.stdout)
    assert ("Every run of every case was disturbed" in done.stdout) == (quiet == [])


@pytest.mark.slow
@pytest.mark.long
def test_a_users_own_xhpl_is_run_and_read(real_hpl, tmp_path):
    # The driver is one as well: HPL's own report is in HPL.out, also where HPL.dat asks for standard output.
    done = verify(tmp_path, "--xhpl", str(real_hpl.path), "--json")
    assert done.returncode == 0, done.stderr
    (run, *_) = json.loads(done.stdout)["measured"]
    assert run["time_s"] > 0
    assert run["ranks"] == []  # only our own driver tells what each rank did


def test_a_neighbour_that_computes_on_every_core_is_recognised(real_hpl):
    # Several on each core, so that the rank loses most of it: 2 x 3 spinning processes against one or two ranks.
    spin = ["timeout", f"{HANG_S:.0f}", "sh", "-c", "while :; do :; done"]
    # Each in a session of its own: the scheduler shares cores between sessions first, and ours would count as one.
    neighbours = [subprocess.Popen(spin, start_new_session=True) for _ in range(3 * (os.cpu_count() or 1))]
    try:
        run = real_hpl.run(Hpl(n=1536), HANG_S)
    finally:
        for neighbour in neighbours:
            neighbour.terminate()  # which timeout passes on; killed, it would leave its shell spinning for ever
            neighbour.wait()
    causes = " ".join(disturbances(run.ranks, run.machine))
    assert "other processes used" in causes
    assert "was on its core for only" in causes


def test_a_run_that_takes_too_long_is_stopped_with_all_its_ranks(real_hpl, tmp_path):
    own = replace(real_hpl, path=Path(shutil.copy(real_hpl.path, tmp_path)))  # others may run the one of the cache
    with pytest.raises(EnvironmentProblem, match="did not finish within 1 s"):
        own.run(Hpl(n=8000), 1.0)
    left = [path for path in Path("/proc").glob("[0-9]*/exe") if _target(path) == own.path]
    assert left == []


def _target(link: Path) -> Path | None:
    try:
        return link.readlink()
    except OSError:
        return None


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("-p", "dahu", "--n", "0"), "n is 0; it must be a whole number >= 1"),
        (("-p", "dahu", "--grid", "64x64"), "needs 4096 cores for the real run; this machine offers"),
        (("-p", "dahu", "--n", "10M"), "GB are free. Choose N <="),
        (("-p", "dahu", "--grid", "1x1", "--repeats", "0"), "--repeats is 0; give at least 1"),
        (("-p", "dahu", "--other-machine", "--xhpl", "/nowhere/xhpl"), "--xhpl /nowhere/xhpl: not an executable file"),
        (("-p", "dahu", "--calibrate"), "give either -p PLATFORM, or --calibrate"),
    ],
)
def test_bad_input_is_one_line_and_status_2(arguments, expected, tmp_path, capsys):
    assert main(["verify", "hpl", *arguments, "--output", str(tmp_path / "out")]) == 2
    printed = capsys.readouterr()
    assert expected in one_line(printed.err)
    assert printed.out == ""


def test_the_platform_of_another_machine_is_refused_before_hpl_is_built(tmp_path, refusal_of, monkeypatch):
    monkeypatch.setattr("lepaute.measure.verify.real_run.build_hpl", lambda **_: pytest.fail("HPL was built"))
    sizes = ["--n", "64", "--nb", "32", "--grid", "1x1"]
    line = one_line(refusal_of("verify", "hpl", "-p", "dahu", *sizes, "--output", tmp_path / "out"))
    assert "is the platform of another machine (cores: 32, on this machine" in line
    assert "--other-machine" in line
    assert not (tmp_path / "out").exists()


N, NB = 500, 64
#: What only one side knows: copies within small arrays, and what a rank does between kernels.
ONE_SIDED = {"dcopy_contiguous", "pdfact_glue", "pdupdate_glue"}
RUNS = {
    "row": Hpl(n=N, nb=NB, p=1, q=2),
    "column": Hpl(n=N, nb=NB, p=2, q=1),
    "grid": Hpl(n=N, nb=NB, p=2, q=2),
    "grid without look-ahead": Hpl(n=N, nb=NB, p=2, q=2, depth=0),
    "three rows, left and Crout": Hpl(n=N, nb=NB, p=3, q=1, pfact="left", rfact="crout", nbmin=4),
    "two panels ahead": Hpl(
        n=N, nb=NB, p=3, q=2, depth=2, bcast="1ring-modified", pfact="right", rfact="left", swap="mix"
    ),
    "long broadcast and rolls": Hpl(
        n=N, nb=NB, p=2, q=2, bcast="long", swap="spread-roll", l1="no-transposed", u="no-transposed"
    ),
    "long-modified broadcast": Hpl(n=N, nb=NB, p=1, q=3, bcast="long-modified"),
}


def simulated(hpl: Hpl) -> Trace:
    rows = (Path(__file__).resolve().parent.parent / "data" / "hpl_pivots.csv").read_text().splitlines()
    pivots = next(row.partition(",")[2] for row in rows if row.startswith(f"{hpl.n},"))
    parameters = hpl.on().core_parameters()
    parameters.pivot_rows = [int(pivot) for pivot in pivots.split()]
    machine = machine_of(load_platform("dahu"), 1)
    ranks = list(range(hpl.ranks))
    result = _core.simulate_hpl(parameters, machine, Layers().to_core(), ranks, 1, ranks)
    return trace_of_run(result, {"application": "hpl", "parameters": hpl.parameters(), "ranks": hpl.ranks})


@pytest.mark.parametrize("name", long_but(list(RUNS), "grid", "two panels ahead", "long broadcast and rolls"))
def test_every_call_of_the_real_hpl_is_simulated_in_its_order_and_size(name: str, tmp_path: Path) -> None:
    hpl = RUNS[name]
    recorded, _ = recorded_hpl(hpl, tmp_path)
    found = compare_traces(recorded, simulated(hpl))
    assert found.ranks == tuple(range(hpl.ranks))
    assert {name for name, _, _, _ in found.one_side} <= ONE_SIDED
    assert found.first == ()
    assert found.first_size == ()
    for one in found.classes:
        assert one.left_calls == one.right_calls == one.same_sizes, one.name
    assert sum(one.left_calls for one in found.classes) > 1000 * hpl.ranks
