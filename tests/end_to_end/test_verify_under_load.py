"""A neighbour's load, made by stress-ng, is told and not hidden: by the rule of disturbed runs and by the sentinels."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import pytest
from support_limits import HANG_S

from lepaute.errors import EnvironmentProblem
from lepaute.measure.probes import build_probes
from lepaute.measure.sentinel import Guard, call_seconds, calls_of
from lepaute.platform import load_platform, override
from lepaute.platform.schema import Sentinel
from lepaute.simulate import Hpl, predict
from lepaute.verify.campaign import Plan
from lepaute.verify.real_run import built_program, watch_here
from lepaute.verify.report import show
from lepaute.verify.verification import Verification, verify

pytestmark = pytest.mark.machine


@pytest.fixture(scope="module")
def guard() -> Guard:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores")
    try:
        probe = build_probes().dgemm
    except EnvironmentProblem as problem:
        pytest.skip(f"the probes cannot be built here: {problem}")
    return Guard(probe, (512, 512, 128), calls_of(call_seconds(200.0)), 2)


@contextmanager
def neighbour() -> Iterator[None]:
    """Computes on each core for 60 % of the time, and moves memory on as many processes."""
    program = shutil.which("stress-ng")
    if program is None:
        pytest.skip("stress-ng is not installed: scripts/install_debian.sh test")
    cores = str(os.cpu_count() or 1)
    words = [program, "--cpu", cores, "--cpu-load", "60", "--stream", cores, "--timeout", f"{HANG_S:.0f}", "--quiet"]
    # A session of its own: the scheduler shares cores between sessions first, and ours would count as one.
    process = subprocess.Popen(words, start_new_session=True)
    try:
        time.sleep(2.0)
        if process.poll() is not None:
            pytest.skip(f"stress-ng ended at once with status {process.returncode}")
        yield
    finally:
        process.terminate()
        process.wait()


def verified(guard: Guard, reference_s: float, folder: Path) -> Verification:
    """A run of a tiny HPL and its repetitions; predicted by another machine's platform with this machine's sentinel."""
    m, n, k = guard.size
    sentinel = Sentinel(m=m, n=n, k=k, duration_s=reference_s, relative_error=0.01, ended=datetime.now(UTC).isoformat())
    platform = override(load_platform("dahu"), {"sentinel": sentinel.model_dump_json()})
    return verify(
        [Hpl(n=1024)],
        built_program(),
        Plan(1, 1),
        lambda hpl: predict(hpl, platform, runs=3),
        folder,
        lambda *_: None,
        lambda *_: None,
        sentinel=platform.sentinel,
        guard=guard,
    )


@pytest.mark.long
def test_a_neighbours_load_is_told(guard: Guard, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reference_s = median(watch_here(guard) for _ in range(5))
    with neighbour():
        found = verified(guard, reference_s, tmp_path)
    show(found.table, found.run_table, sys.stdout, found.drift)
    text = capsys.readouterr().out
    assert found.run_table["disturbed"].all()
    assert "other processes used" in text
    # What these sentinels say depends on who else computes here; what is made of it, test_verify_drift tests.
    assert found.drift is not None
    assert found.drift.sentence in text
    # What is told changes nothing: the runs are all there.
    assert len(found.runs) >= 2
    assert (tmp_path / "runs.csv").exists() is False  # saved by the command
    assert found.run_table["sentinel_after_s"].notna().all()


@pytest.mark.long
def test_sentinels_of_a_quiet_machine_agree(guard: Guard) -> None:
    """Loosely, since anything may run here, and in turn, so that it meets both: the least of five differs by half."""
    durations_s = [watch_here(guard) for _ in range(10)]
    first, second = (min(durations_s[start::2]) for start in range(2))
    assert second == pytest.approx(first, rel=1.0)
