"""probe-clocks with Open MPI: clocks made from the one clock of this machine, so that errors are known."""

from pathlib import Path

import pandas
import pytest
from long_tests import long_but
from support_mpi_probes import CLOCKS, MpiProbe

pytestmark = pytest.mark.machine

METHODS = ("SKaMPI", "Netgauge", "JK", "HCA", "HCA2", "HCA3")


class Program(MpiProbe):
    """probe-clocks of one library."""

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name, ("probe_clocks.c", *CLOCKS), folder)

    def errors(self, folder: Path, ranks: int, *options: str) -> pandas.DataFrame:
        done = self.run(ranks, "--out", str(folder / "errors.csv"), *options)
        assert done.returncode == 0, done.stderr
        return pandas.read_csv(folder / "errors.csv", comment="#")


@pytest.fixture(scope="module")
def open_mpi(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program("openmpi", tmp_path_factory.mktemp("clocks"))


FEW = ("--points", "5", "--exchanges-a-point", "3", "--exchanges", "10", "--spacing-s", "0.001")


@pytest.mark.parametrize("ranks", long_but([1, 2, 3, 6, 7], 2, 3, 7))
def test_every_method_finds_clocks_a_second_apart_on_any_number_of_ranks(open_mpi, ranks, tmp_path):
    """Two cores: ranks wait for their turns by milliseconds, which the bound of an offset covers."""
    rows = open_mpi.errors(tmp_path, ranks, "--made", "1", "--after-s", "0", "--drift", "1e-6", *FEW)
    assert len(rows) == ranks * len(METHODS)
    assert (rows[rows["rank"] == 0]["error_ns"] == 0).all()
    others = rows[rows["rank"] > 0]
    assert (others["true_offset_ns"].abs() > 1e5).all()
    direct = others[others["method"] == "SKaMPI"]
    # The bound of an offset holds whatever the latencies; 1 ppm of the seconds that the ranks after it have taken.
    # What slopes are worth, which ranks that wait for a processor make wrong, says the simulation (test_clock_methods).
    assert (direct["error_ns"].abs() <= direct["bound_ns"] + 1e-6 * 1e9 * 60).all()


@pytest.mark.parametrize("clock", ["MPI_Wtime", "clock_gettime", "rdtscp:estimated"])
def test_each_clock_is_read_in_nanoseconds(open_mpi: Program, clock: str, tmp_path: Path) -> None:
    if clock.startswith("rdtscp") and "constant_tsc" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor's time-stamp counter is not constant")
    rows = open_mpi.errors(tmp_path, 1, "--clock", clock, "--methods", "SKaMPI", "--after-s", "0")
    header = (tmp_path / "errors.csv").read_text()
    assert f"#@clock_source={clock}" in header
    resolution_ns = int(header.split("#@clock_resolution_ns=")[1].split()[0])
    assert resolution_ns >= 1
    assert len(rows) == 1
