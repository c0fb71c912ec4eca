"""From archives to an alarm by the command line: a calibration a day, and a processor that becomes slower."""

import datetime as dt
import json
from pathlib import Path

import pytest
from support_factors import START, calibration, dgemm_rows

from lepaute.cli.main import main
from lepaute.measure.archive import Archive

DAYS, CHANGED = 24, 14
#: A month before the dates of other archives in tests: no job may start in the future.
FIRST_DAY = dt.datetime.fromisoformat(START) - dt.timedelta(days=30)
NODES = ("n1", "n2", "n3")
SIZES = [(m, n, k) for m in (64, 256) for n in (128, 512) for k in (64, 300)]

pytestmark = pytest.mark.slow


def archive_of(folder: Path, day: int) -> Path:
    """Of a day; processor 1 of n2 takes 6 % longer from day CHANGED on."""
    start = (FIRST_DAY + dt.timedelta(days=day)).isoformat()
    slower = {("n2", 1): 1.06} if day >= CHANGED else {}
    rows = dgemm_rows(NODES, SIZES, slower=slower, noise=0.01, seed=day)
    phases = [{"name": "run", "start": start, "duration_s": 600.0, "status": "done"}]
    return calibration(folder / f"day-{day:02}.zip", rows, NODES, created=start, phases=phases)


def test_a_processor_that_became_slower_is_told_with_its_archive(tmp_path, capsys):
    archives = [archive_of(tmp_path, day) for day in range(DAYS)]
    store = ["--store", str(tmp_path / "store"), "--json"]

    def found(*words: str) -> tuple[int, dict]:
        capsys.readouterr()
        status = main(["watch", *words, *store])
        return status, json.loads(capsys.readouterr().out)

    status, done = found("ingest", *map(str, archives[:-1]), "--cluster", "c")
    assert (status, len(done["added"]), done["known"]) == (0, DAYS - 1, [])
    status, done = found("ingest", *map(str, archives), "--cluster", "c")
    assert (len(done["added"]), len(done["known"])) == (1, DAYS - 1)
    status, told = found("test", "--factor", "dgemm_rate_flops")
    assert status == 1
    regressions = [
        each for each in told["regressions"] if "dgemm_rate_flops" in {change["factor"] for change in each["changes"]}
    ]
    (regression,) = regressions
    assert regression["machines"] == [["c", "n2", 1]]
    (rate,) = [change for change in regression["changes"] if change["factor"] == "dgemm_rate_flops"]
    assert rate["size"] == pytest.approx(1 / 1.06 - 1, abs=0.01)
    since = dt.date.fromisoformat(regression["since"])
    planted = FIRST_DAY.date() + dt.timedelta(days=CHANGED)
    assert abs((since - planted).days) <= 1
    ids = {Archive.open(path).id for path in archives[CHANGED:]}
    assert set(regression["archives"]) <= ids
    assert regression["archives"]
