"""A barrier that one rank leaves late: it is in the times of a benchmark that trusts it, and in the recorded skew."""

from pathlib import Path

import numpy as np
import pandas
import pytest
from support_mpi_probes import COLLECTIVES, MpiProbe

from lepaute.measure.toolchain import C_FLAGS
from lepaute.stats.clock_models import ClockModels, Spreads, exit_skew

pytestmark = pytest.mark.machine

SHIM = Path(__file__).parents[1] / "data" / "mpi" / "late_barrier.c"
MODELS = ("x0_ns", "y0_ns", "drift", "variance_ns2", "drift_variance", "covariance_ns", "bound_ns")
LATE_NS = 50_000_000
METHODS = ("MPI_Barrier", "dissemination")


class Measured:
    """Calls of MPI_Bcast on two ranks of Open MPI, rank 0 of which leaves MPI_Barrier 50 ms late."""

    def __init__(self, folder: Path) -> None:
        probe = MpiProbe("openmpi", COLLECTIVES, folder)
        shim = folder / "late_barrier.so"
        probe.library.compile([*C_FLAGS, "-shared", "-fPIC", str(SHIM), "-o", str(shim)], what="building the shim")
        rows = [f"{number},Bcast,blocking,64,15,{method},0,0" for number, method in enumerate(METHODS)]
        header = "design_row,operation,form,size_bytes,calls,synchronisation,compute_ns,window_ns"
        (folder / "design.csv").write_text("\n".join([header, *rows]) + "\n")
        words = ("--design", str(folder / "design.csv"), "--out", str(folder / "raw"), "--warm-up", "0")
        late = {"LEPAUTE_LATE_RANK": "0", "LEPAUTE_LATE_NS": str(LATE_NS), "LD_PRELOAD": str(shim)}
        done = probe.run(2, *words, "--clock-method", "SKaMPI", "--resync-s", "86400", environment=late)
        assert done.returncode == 0, done.stderr
        self.calls = pandas.concat(pandas.read_csv(folder / f"raw.r{rank}", comment="#") for rank in range(2))
        self.models = pandas.concat(
            pandas.read_csv(folder / f"raw.clocks.r{rank}", comment="#").head(1) for rank in range(2)
        )

    def of(self, method: str, column: str) -> np.ndarray:
        """(calls, ranks)"""
        chosen = self.calls[self.calls["synchronisation"] == method].sort_values(["call", "rank"])
        return chosen[column].to_numpy().reshape(-1, 2)

    def local_ns(self, method: str) -> float:
        """Median over calls of the longest time of a rank."""
        return float(np.median((self.of(method, "end_ns") - self.of(method, "start_ns")).max(axis=1)))

    def skew(self, method: str) -> Spreads:
        models = self.models.sort_values("rank")
        return exit_skew(self.of(method, "start_ns"), ClockModels(*(models[name].to_numpy() for name in MODELS)))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return Measured(tmp_path_factory.mktemp("late"))


def test_who_trusts_the_barrier_takes_its_skew_for_the_time_of_the_operation(measured: Measured) -> None:
    assert measured.local_ns("MPI_Barrier") > LATE_NS / 2
    assert measured.local_ns("dissemination") < LATE_NS / 2


def test_the_skew_is_recorded_with_the_calls_and_beyond_doubt(measured: Measured) -> None:
    late, ours = measured.skew("MPI_Barrier"), measured.skew("dissemination")
    assert np.median(late.low_ns) > LATE_NS / 2
    assert np.median(ours.spread_ns) < LATE_NS / 2
