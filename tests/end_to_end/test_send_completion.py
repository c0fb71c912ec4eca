"""Send-completion semantics of the installed MPI: a deadlock that is one, and limits that settings move."""

import csv
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support_limits import HANG_S, wait_until

from lepaute.errors import EnvironmentProblem
from lepaute.kit.mpi_launcher import MPIRUN_OF_NODES
from lepaute.measure import probes
from lepaute.measure.calibration.send_completion import MAX_ROUNDS, Test, next_tests, silent_tests
from lepaute.measure.design import semantics_design
from lepaute.measure.toolchain import C_FLAGS, probe_source
from lepaute.stats.send_completion import Row, SemanticLimits, semantic_limits

pytestmark = [
    pytest.mark.machine,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="messages want two cores"),
]
MOST = 1 << 20
OPEN_MPI = ["mpirun", "--oversubscribe", "--bind-to", "none"]
CONSENT = MPIRUN_OF_NODES.start(1, use_scheduler=False).environment


class Asker:
    """Runs the probe with the mpirun of a library and keeps what rank 0 answered."""

    def __init__(self, start: list[str], program: Path, folder: Path, **environment: str) -> None:
        self.start, self.program, self.folder = start, program, folder
        self.environment = {**os.environ, **CONSENT, **environment}
        self.rows: list[Row] = []

    def ask(self, tests: list[Test], *options: str) -> tuple[int, list[dict[str, str]]]:
        """The exit status, and the rows of rank 0."""
        design, out = self.folder / "d.csv", self.folder / "raw"
        design.write_text(semantics_design(1, tests).to_csv())
        cpus = ",".join(map(str, sorted(os.sched_getaffinity(0))[:2]))
        words = ["--design", str(design), "--out", str(out), "--seed", "1", "--cpus", cpus, *options]
        done = subprocess.run(
            [*self.start, "-np", "2", str(self.program), *words],
            env=self.environment, capture_output=True, timeout=HANG_S, check=False,
        )  # fmt: skip
        lines = Path(f"{out}.r0").read_text().splitlines()
        return done.returncode, list(csv.DictReader(line for line in lines if not line.startswith("#")))

    def search(self) -> SemanticLimits:
        for _ in range(MAX_ROUNDS):
            tests = next_tests(self.rows, MOST)
            if not tests:
                return semantic_limits(self.rows)
            status, rows = self.ask(tests)
            assert status == 0
            self.rows += [
                (int(row["size_bytes"]), row["test"], row["outcome"], int(row["patience_ms"])) for row in rows
            ]
        raise AssertionError("the search does not end")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy, whose ranks are those of these tests and of nobody else."""
    try:
        built = probes.build_probes().semantics
    except EnvironmentProblem as problem:
        pytest.skip(f"the probes cannot be built here: {problem}")
    return Path(shutil.copy(built, tmp_path_factory.mktemp("program")))


def ranks_alive(program: Path) -> list[int]:
    """Processes of that program that still run; those that only wait to be collected do not."""
    alive = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            running = status.read_text().rpartition(")")[2].split()[0] != "Z"
            if running and (status.parent / "exe").resolve() == program.resolve():
                alive.append(int(status.parent.name))
        except OSError:
            continue
    return alive


def test_two_ranks_that_send_large_messages_to_each_other_first_deadlock_and_none_of_them_lives_on(program, tmp_path):
    asker = Asker(OPEN_MPI, program, tmp_path)
    tests = [("head_to_head", 8, 0, 20), ("head_to_head", 4 << 20, 0, 20)]
    status, rows = asker.ask(tests, "--guard-s", "3")
    assert status != 0
    told = {row["size_bytes"]: row["outcome"] for row in rows}
    assert told.pop(str(4 << 20)) == "hung"
    assert set(told.values()) <= {"returned"}  # the other row comes before or not at all: the order is drawn
    assert ranks_alive(program) == []


def test_a_test_that_is_patient_for_longer_than_the_guard_is_not_hung(program: Path, tmp_path: Path) -> None:
    asker = Asker(OPEN_MPI, program, tmp_path)
    status, rows = asker.ask([("deadlock", 4 << 20, 0, 5500)], "--guard-s", "5")
    assert status == 0
    assert [row["outcome"] for row in rows] == ["blocked"]


def test_ranks_of_a_deadlock_end_though_nobody_is_left_to_end_them(program: Path, tmp_path: Path) -> None:
    design = tmp_path / "d.csv"
    design.write_text(semantics_design(1, [("head_to_head", 4 << 20, 0, 20)]).to_csv())
    argv = [*OPEN_MPI, "-np", "2", str(program), "--design", str(design), "--out", str(tmp_path / "raw"), "--seed", "1"]
    with subprocess.Popen(
        [*argv, "--guard-s", "2"], env={**os.environ, **CONSENT}, stderr=subprocess.DEVNULL
    ) as starter:
        # Killed earlier, a rank inside MPI_Init waits for what mpirun does not say any more.
        wait_until(lambda: sum(raw.stat().st_size > 0 for raw in tmp_path.glob("raw*")) == 2, "both ranks' files")
        starter.kill()
    wait_until(lambda: not ranks_alive(program), "the end of the ranks")


@pytest.mark.slow
@pytest.mark.long
def test_the_limit_that_is_found_moves_by_what_the_eager_limit_is_moved(program: Path, tmp_path: Path) -> None:
    """Open MPI's limits count a header of its own, so only their difference is known to the byte."""

    def limit(eager: int) -> float:
        asker = Asker(
            [*OPEN_MPI, "--mca", "btl", "tcp,self"], program, tmp_path, OMPI_MCA_btl_tcp_eager_limit=str(eager)
        )
        found = asker.search()
        assert found.detached_up_to_bytes == found.asynchronous_up_to_bytes  # nothing is detached there
        return found.asynchronous_up_to_bytes

    small, large = limit(5000), limit(33333)
    assert large - small == 33333 - 5000
    assert 0 < 5000 - small < 200


def test_shared_memory_has_a_pool_that_messages_nobody_takes_fill(program: Path, tmp_path: Path) -> None:
    asker = Asker(OPEN_MPI, program, tmp_path)
    asker.rows = [(1, "deadlock", "returned", 20)] * 3
    tests = silent_tests(asker.rows)
    status, rows = asker.ask([*tests, ("silent", 1024, 4095, 10)])
    assert status == 0
    counts = [int(row["returned"]) for row in rows if row["backlog"] == "4095"]
    assert len(counts) == 1
    assert counts[0] < 4096  # 4 MiB nobody takes: no library promises that


@pytest.mark.skipif(shutil.which("mpicc.mpich") is None, reason="MPICH is not installed")
def test_mpich_is_asked_by_the_same_probe_and_has_other_limits(program: Path, tmp_path: Path) -> None:
    built = tmp_path / "probe-semantics"
    sources = [str(probe_source() / name) for name in ("probe_semantics.c", "probe_common.c", "probe_mpi.c")]
    subprocess.run(["mpicc.mpich", *C_FLAGS, *sources, "-lm", "-o", str(built)], check=True, timeout=HANG_S)
    mpich = Asker(["mpirun.mpich"], built, tmp_path).search()
    other = Asker(OPEN_MPI, program, tmp_path).search()
    assert 0 < mpich.asynchronous_up_to_bytes < MOST
    assert mpich.asynchronous_up_to_bytes != other.asynchronous_up_to_bytes
