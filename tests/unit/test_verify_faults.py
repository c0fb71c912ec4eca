"""Campaigns of `lepaute verify hpl` that die at random moments: no finished run is lost, and the rest can be made."""

import contextlib
import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest
from long_tests import long_but
from support_disk import small_disk
from support_fit import write_calibration
from support_limits import within
from threadpoolctl import threadpool_limits

from lepaute.kit.journal import entries
from lepaute.kit.picture import picture_files

#: mpirun and an HPL whose run takes a moment. `fatal` holds the run that is killed in its middle.
MPIRUN = """#!/bin/sh
[ "$1" != --version ] || { echo 'mpirun (Open MPI) 4.1.4'; exit 0; }
for program; do :; done
exec "$program"
"""
XHPL = Path(__file__).parents[1].joinpath("data", "programs", "verify_faults_xhpl.sh").read_text()
#: What predictions.json of these takes, and a little.
SEALED_BYTES = 5500
ARGUMENTS = ("verify", "hpl", "--n", "64,128", "--grid", "1x1", "--runs", "2", "--repeats", "4", "--other-machine")
RUNS = 8
FAULT_SIGNALS = {"killed engine": signal.SIGKILL, "interrupted": signal.SIGINT}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "machine"
    folder.mkdir()
    for name, text in {"mpirun": MPIRUN, "xhpl": XHPL.replace("FOLDER", str(folder))}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (folder / "fatal").write_text("0\n")
    (folder / "started").write_text("")
    (folder / "ended").write_text("")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    # What else this machine does is no part of these campaigns.
    monkeypatch.setattr("lepaute.measure.verify.campaign.disturbances", lambda *_loads: ())
    monkeypatch.setattr("lepaute.cli.verify_site.kernels_here", lambda _blas: (None, None))
    # Loaded here once for all forks; the picture, which takes most of the time, has tests of its own.
    for module in ("lepaute.simulate.prediction.predicting", "lepaute.simulate.platform", "pandas"):
        import_module(module)
    monkeypatch.setattr("lepaute.measure.verify.plot.plot", blank)
    return folder


def blank(_table: object, _runs: object, path: Path, _title: str, _foot: str) -> None:
    for file in picture_files(path):
        file.write_bytes(b"")


def start(
    machine: Path, output: Path, *more: str, file_bytes: int = 0, platform: tuple[str, ...] = ("-p", "dahu")
) -> int:
    """The command in a fork of this process, which has loaded all of it; its standard streams go to `output`.

    file_bytes: the longest file it may write, 0 for any
    """
    if (child := os.fork()) > 0:
        return child
    status = 70
    with contextlib.suppress(BaseException):  # nothing of pytest may run in the child
        stream = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(stream, 1)
        os.dup2(stream, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threadpool_limits(1)  # OpenMP that this process has used would hang in its forks
        if file_bytes:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
        from lepaute.cli.main import main

        try:
            status = main([*ARGUMENTS, *platform, "--xhpl", str(machine / "xhpl"), *more])
        except SystemExit as end:
            status = end.code
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def ended(child: int) -> int:
    """Its exit status, or minus the signal that ended it."""
    with within("the end of the command"):
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def finished_runs(folder: Path) -> list[dict[str, object]]:
    return list(entries(folder / "runs.jsonl"))


def whole(folder: Path, text: str) -> list[dict[str, object]]:
    """The runs of a campaign that is complete, after a check that all its files agree."""
    runs = finished_runs(folder)
    counted = [(run["case"], run["repeat"], run["attempt"]) for run in runs]
    assert len(set(counted)) == len(counted), "a run counts once"
    assert {(case, repeat) for case, repeat, _ in counted} == {(case, repeat) for case in (0, 1) for repeat in range(4)}
    assert [run["order"] for run in runs] == list(range(len(runs)))
    assert len((folder / "runs.csv").read_text().splitlines()) == 1 + len(runs)
    sealed = hashlib.sha256((folder / "predictions.json").read_bytes()).hexdigest()
    assert {run["predictions_sha256"] for run in runs} == {sealed}
    for name in ("predictions.sha256", "results.sha256"):
        subprocess.run(["sha256sum", "--check", "--strict", "--quiet", name], cwd=folder, check=True)
    assert "inside their 95 % prediction interval" in text
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    return runs


def finished_under(fault: str, moment: float, machine: Path, folder: Path, output: Path) -> int:
    """A campaign that dies of the fault at that moment, from 0 to 1; how many runs may be missing in its journal."""
    after_runs = max(int(moment * RUNS), fault == "full disk")  # a disk without room for predictions is another matter
    where = ("--output", str(folder))
    if fault == "killed rank":
        (machine / "fatal").write_text(f"{1 + after_runs}\n")
        assert ended(start(machine, output, *where)) == 2
        (machine / "fatal").write_text("0\n")
        assert "the real HPL failed" in output.read_text()
        return 0
    if fault == "file limit":  # EFBIG: as a full disk to a program, without a disk
        assert ended(start(machine, output, *where, file_bytes=SEALED_BYTES + int(moment * 2000))) == 2
        return 0
    (machine / "hold").touch()
    child = start(machine, output, *where)
    with within("the runs before the fault"):
        while len((machine / "started").read_text().splitlines()) < after_runs:
            time.sleep(0.001)
    if fault == "full disk":
        with (folder / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(b"x" * 64)
        (machine / "hold").unlink()
        assert ended(child) == 2
        (folder / "filler").unlink()
        return 0
    time.sleep(moment * RUNS % 1 * 0.1)  # some part of a run, or of what is between two
    os.kill(child, FAULT_SIGNALS[fault])
    (machine / "hold").unlink()
    assert ended(child) in {-signal.SIGKILL, 130}
    return 1  # it may have ended and not been heard of


MOMENTS = [
    (fault, round(random.Random(f"{fault} {number}").random(), 3))
    for fault in ("killed rank", "file limit", "full disk", "killed engine", "interrupted")
    for number in range(4)
]


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "moment"), long_but(MOMENTS, *MOMENTS[::4]))
def test_a_campaign_that_dies_loses_no_finished_run_and_can_be_resumed(fault, moment, machine, tmp_path):
    folder, output = tmp_path / "out", tmp_path / "output"
    where = ("--output", str(folder))
    with small_disk(folder) if fault == "full disk" else contextlib.nullcontext():
        missing = finished_under(fault, moment, machine, folder, output)
        before = finished_runs(folder)
        done = len((machine / "ended").read_text().splitlines())
        assert done - missing <= len(before) <= done
        if missing == 0:
            assert len(before) < RUNS or "inside their 95 % prediction" in output.read_text()
            assert "--resume" in output.read_text()
        if before:  # nothing that was measured is written over
            assert ended(start(machine, output, *where)) == 2
            assert "of an earlier verification" in output.read_text()
        resume = ("--resume",) if any(folder.glob("*")) else ()  # interrupted before it began, it leaves nothing
        assert ended(start(machine, output, *where, *resume)) == 0, output.read_text()
        runs = whole(folder, output.read_text())
    assert runs[: len(before)] == before
    assert len((machine / "ended").read_text().splitlines()) == RUNS + done - len(before)


def test_a_whole_campaign_can_be_resumed_to_print_its_results_again(machine: Path, tmp_path: Path) -> None:
    output, outputs = tmp_path / "output", []
    for more in ((), ("--resume",)):
        assert ended(start(machine, output, "--output", str(tmp_path / "out"), "--json", *more)) == 0
        text = output.read_text()
        outputs.append(json.loads(text[text.index("{") : text.rindex("}") + 1]))
    assert outputs[0] == outputs[1]
    assert len((machine / "started").read_text().splitlines()) == RUNS


@pytest.mark.slow
def test_a_calibration_is_neither_replaced_nor_made_again(machine: Path, tmp_path: Path) -> None:
    output, where = tmp_path / "output", ("--output", str(tmp_path / "out"))
    (tmp_path / "out").mkdir()
    archive = write_calibration(tmp_path / "out/calibration.zip").read_bytes()
    assert ended(start(machine, output, *where, platform=("--calibrate",))) == 2
    assert "holds calibration.zip of an earlier verification" in output.read_text()
    (machine / "fatal").write_text("3\n")
    assert ended(start(machine, output, *where, "--resume", platform=("--calibrate",))) == 2
    (machine / "fatal").write_text("0\n")
    before = finished_runs(tmp_path / "out")
    # The platform is fitted again, and its predictions are the sealed ones.
    assert ended(start(machine, output, *where, "--resume", platform=("--calibrate",))) == 0, output.read_text()
    assert whole(tmp_path / "out", output.read_text())[: len(before)] == before
    assert (tmp_path / "out/calibration.zip").read_bytes() == archive
