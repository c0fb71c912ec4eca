"""From a calibration under several loads, with ranks of one and of two threads, to a platform and its predictions."""

import numpy as np
import pandas
import pytest
from support_fit import write_calibration

from lepaute import fit
from lepaute.errors import InputError
from lepaute.measure.archive import Archive
from lepaute.measure.fit.diagnostics import diagnose
from lepaute.measure.fit.fitted_models import FittedModels
from lepaute.measure.fit.kernels.selection import select
from lepaute.measure.fit.observations.calls import Calls
from lepaute.simulate import Hpl, Layers, predict
from lepaute.simulate.platform import Platform

CORES, SOCKETS = 8, 2
EACH = CORES // SOCKETS
#: Two threads take 0.55 times as long; all cores of a socket 1.3 times.
TWO_THREADS, CROWDED = 0.55, 1.3
NOTHING = Layers(**dict.fromkeys(Layers.__dataclass_fields__, False))


def rows() -> pandas.DataFrame:
    """dgemm in steps of HPL under the loads one, half and all with one thread, and all with two."""
    rng = np.random.default_rng(5)
    frames, clock_s = [], 10.0
    loads = [(range(1), 1), (range(0, CORES, 2), 1), (range(CORES), 1), (range(0, CORES, 2), 2)]
    for block in range(4):
        for cores, threads in loads:
            ranks = [(core + 3 * block) % CORES for core in cores] if len(cores) == 1 else list(cores)
            for rank, core in enumerate(ranks):
                on_socket = sum(other // EACH == core // EACH for other in ranks) * threads
                share = (on_socket - threads) / (EACH - threads)
                count = 60
                m, n = np.floor(10 ** rng.uniform(2, 3, (2, count)))
                mean = (2.5e-11 * m * n * 128 + 1e-6) * (TWO_THREADS if threads == 2 else 1.0)
                duration = mean * (1 + (CROWDED - 1) * share) * (1 + 0.01 * rng.normal(size=count))
                start = clock_s + np.concatenate([[0.0], np.cumsum(duration + 1e-7)[:-1]])
                frames.append(
                    pandas.DataFrame(
                        {
                            "design_row": np.arange(count), "kind": "hpl_step", "position": 1, "kernel": "dgemm",
                            "m": m.astype(int), "n": n.astype(int), "k": 128, "start_s": start, "duration_s": duration,
                            "rank": rank, "cpu": core, "block": block, "attempt": 0, "disturbed": False,
                            "host": "here", "probe": "hpl_steps_1x1", "clock_cost_s": 0.0,
                            "active_cores": len(ranks) * threads, "active_socket_cores": on_socket, "threads": threads,
                        }
                    )
                )  # fmt: skip
            clock_s += 20.0
    return pandas.concat(frames, ignore_index=True)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Archive, Platform, FittedModels]:
    sockets = [core // EACH for core in range(CORES)]
    layout = {"source": "hwloc", "pu": list(range(CORES)), "socket": sockets, "numa": sockets, "l3": sockets}
    path = tmp_path_factory.mktemp("loads") / "loads.zip"
    machine = {"machine": "here", "node_cores": CORES, "cpu_model": "made up", "blas": {"core": "Haswell"}}
    write_calibration(
        path, rows(), cores=list(range(CORES)), node_cores=CORES, machines={"here": machine | {"layout": layout}}
    )
    archive = Archive.open(path)
    platform, models = fit.platform_and_models(archive, "made-up")
    return archive, platform, models


def test_the_platform_has_sockets_and_models_of_each_number_of_threads(fitted) -> None:
    _, platform, models = fitted
    assert (platform.nodes.sockets, platform.nodes.cores) == (SOCKETS, CORES)
    assert [(model.kernel, model.threads) for model in platform.kernels] == [("dgemm", 1), ("dgemm", 2)]
    assert [row.threads for row in models.quality] == [1, 2]


def test_the_mean_is_that_of_a_core_alone_and_crowding_that_of_its_socket(fitted) -> None:
    one = fitted[1].kernel("dgemm", 1)
    # Half of a socket of four is one of three others, which lies on the line: no row of its own.
    assert one.crowding == pytest.approx(CROWDED - 1, abs=0.01)
    assert one.crowding_relative_sd < 0.01
    assert one.pieces[-1].mean["mnk"] == pytest.approx(2.5e-11, rel=0.01)


def test_ranks_of_two_threads_are_predicted_by_their_own_models(fitted) -> None:
    _, platform, _ = fitted

    def compute_s(p: int, q: int, threads: int) -> float:
        hpl = Hpl(n=1024, nb=128, p=p, q=q, threads_per_rank=threads)
        return predict(hpl, platform, runs=1, layers=NOTHING).kernel_time_s["dgemm_nn"]

    # Two threads were measured at full load only: crowding is unknown, and their mean is that of full load.
    assert compute_s(1, 1, 2) / compute_s(1, 1, 1) == pytest.approx(TWO_THREADS * CROWDED, rel=0.02)
    with pytest.raises(InputError, match="5 ranks of 2 threads do not fit on platform made-up, which has 1 x 8 cores"):
        compute_s(1, 5, 2)


def test_the_diagnosis_judges_each_number_of_threads(fitted) -> None:
    archive, platform, _ = fitted
    names = [subject.name for subject in diagnose(archive, platform).subjects]
    assert {"kernel dgemm", "kernel dgemm x2"} <= set(names)


@pytest.mark.slow
@pytest.mark.parametrize(("of", "suffix"), [("nothing", ""), ("sockets", "-S"), ("cores", "-H")])
def test_coefficients_are_those_of_what_differs(of: str, suffix: str) -> None:
    # Eight cores on two sockets, 5 blocks; 4 % between sockets or cores, processes differ by 0.5 %.
    rng = np.random.default_rng(3)
    count = 12_000
    m, n = np.floor(10 ** rng.uniform(2, 3, (2, count)))
    cpu, block = rng.integers(0, CORES, count), np.sort(rng.integers(0, 5, count))
    differs = {"nothing": 0.0, "sockets": 0.04 * (cpu // EACH), "cores": 0.04 * rng.permutation(CORES)[cpu] / EACH}[of]
    process = 0.005 * rng.normal(size=(5, CORES))[block, cpu]
    duration = (2e-10 * m * n + 1e-6) * (1 + differs + process + 0.02 * rng.normal(size=count))
    yes, zero = np.ones(count, dtype=bool), np.zeros(count, dtype=np.int64)
    calls = Calls(
        "dlacpy", m, n, np.zeros(count), duration, cpu, block, zero, yes, ~yes, ("hpl_steps_1x1",),
        share=np.ones(count), socket=cpu // EACH,
    )  # fmt: skip
    fitted, selection = select(calls, {})
    assert str(fitted.form).startswith(f"{fitted.form.mean}{suffix}/"), selection
    assert list(selection.levels) == ["", "-S", "-H"]
