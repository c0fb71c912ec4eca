"""`lepaute fit` on made-up archives, also of several loads, with ranks of one and of two threads."""

import re

import numpy as np
import pandas
import pytest
from support_fit import kernel_rows, write_calibration

from lepaute import fit
from lepaute.cli.main import main
from lepaute.errors import InputError
from lepaute.measure.archive import Archive
from lepaute.measure.fit import platform_and_models, platform_from_archive
from lepaute.measure.fit.diagnostics import diagnose
from lepaute.measure.fit.fitted_models import FittedModels
from lepaute.measure.fit.kernels.selection import select
from lepaute.measure.fit.observations.calls import Calls
from lepaute.simulate import Hpl, Layers, predict
from lepaute.simulate.platform import Platform, load_platform


def disturbed_archive(path, *blocks):
    kernels = kernel_rows()
    disturbed = kernels["block"].isin(blocks)
    kernels["start_s"] *= 3.0  # room for what takes longer
    kernels.loc[disturbed, "duration_s"] *= 3.0
    return write_calibration(path, kernels.assign(disturbed=disturbed))


@pytest.fixture(scope="module")
def archive_path(tmp_path_factory):
    return write_calibration(tmp_path_factory.mktemp("measured") / "calibration.zip")


@pytest.fixture(scope="module")
def made(archive_path):
    """The platform of the archive, and how good its models are."""
    return platform_from_archive(Archive.open(archive_path), "made-up")


def test_a_platform_is_made_that_can_be_loaded_and_has_a_cpu_for_each_core(archive_path, made):
    archive = Archive.open(archive_path)
    platform, quality = made
    told = []
    assert platform_and_models(archive, "made-up", progress=lambda *now: told.append(now))[0] == platform
    assert told == [("fitting dgemm", 0.0), ("errors of the models", 0.8)]
    assert platform.archive_id == archive.id
    assert (platform.nodes.count, platform.nodes.cores, platform.nodes.cpus) == (1, 2, 2)
    assert [row.kernel for row in quality] == ["dgemm"]
    assert quality[0].group_error < 0.02
    dgemm = platform.kernel("dgemm")
    assert dgemm.pieces[-1].mean["mnk"] == pytest.approx(2.5e-11 * 1.04, rel=0.02)  # noise of mean 4 %
    assert platform.days.degrees_of_freedom == 4
    assert "not measured" in platform.description


@pytest.mark.slow
def test_where_too_many_runs_were_disturbed_all_are_used_and_the_platform_and_a_warning_say_so(tmp_path, capsys):
    disturbed = disturbed_archive(tmp_path / "disturbed.zip", 0, 1, 3)
    assert main(["fit", str(disturbed), "-o", str(tmp_path / "p.yaml")]) == 0
    assert any("caveat" in line and line.endswith("; --details") for line in capsys.readouterr().out.splitlines())
    assert main(["fit", str(disturbed), "-o", str(tmp_path / "p.yaml"), "--force", "--details"]) == 0
    (warning,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning")]
    assert "hpl_steps_1x1 0, hpl_steps_1x1 1" in warning
    platform = load_platform(tmp_path / "p.yaml")
    assert platform.description.count("Other load disturbed the calibration") == 1
    assert platform.days.degrees_of_freedom == 4


def test_the_command_prints_a_table_and_writes_the_platform_with_the_kernels_that_were_measured(
    archive_path, tmp_path, output_of
):
    out = tmp_path / "machine.yaml"
    verdict = output_of("fit", archive_path, "-o", out)
    assert re.match(r"This calibration is (not )?good\b", verdict)
    assert re.search(r"^  error   [0-9.]+ % mean error of the kernel models", verdict, re.MULTILINE)
    assert len(verdict.splitlines()) <= 7
    detailed = output_of("fit", archive_path, "-o", out, "--force", "--details")
    assert detailed.startswith(verdict.splitlines()[0])
    printed = detailed.splitlines()
    at = next(at for at, line in enumerate(printed) if line.split()[:2] == ["kernel", "calls"])
    assert printed[at + 1].startswith("dgemm")
    platform = load_platform(out)
    assert platform.name == "machine"
    assert (platform.blas.core, platform.blas.coretype_env) == ("Haswell", None)


def ring_table() -> pandas.DataFrame:
    rng = np.random.default_rng(3)
    frames = []
    for condition, factor in (("idle", 2.0), ("dgemm", 3.0)):
        size = np.floor(10 ** rng.uniform(0, 7, 200))
        seconds = factor * (1e-6 + size / 8e9) * (1 + 0.1 * np.abs(rng.normal(size=200)))
        frames.append(pandas.DataFrame({"condition": condition, "size_bytes": size.astype(int), "duration_s": seconds}))
    return pandas.concat(frames).assign(
        operation="pingpong", role="first", call="exchange", found=0, host="here", block=0, clock_cost_s=0.0
    )


def archive_with_a_ring(path, ring=None):
    return write_calibration(path, kernel_rows(10, 150), ring=ring_table() if ring is None else ring)


@pytest.mark.slow
def test_messages_of_a_loaded_machine_are_fitted_on_demand_and_the_difference_is_told(tmp_path, capsys):
    archive = str(archive_with_a_ring(tmp_path / "ring.zip"))
    written = {}
    for condition in ("", "dgemm"):
        out = tmp_path / f"platform{condition}.yaml"
        asked = ["--network-condition", condition] if condition else []
        assert main(["fit", archive, *asked, "-o", str(out), "--name", "machine", "--details"]) == 0
        written[condition] = load_platform(out)
        assert "times as long under dgemm as idle." in capsys.readouterr().out
    last = [written[name].network.remote.segments[-1] for name in ("", "dgemm")]
    usual_s, loaded_s = (1 / part.bandwidth_Bps + part.send[1] + part.receive[1] for part in last)  # of a byte
    assert loaded_s / usual_s == pytest.approx(1.5, rel=0.1)
    assert "Messages are as under dgemm." in written["dgemm"].description


@pytest.mark.parametrize(
    ("second", "words", "told"),
    [
        (lambda path: write_calibration(path, host="there"), (), "host is there"),
        (lambda path: write_calibration(path, kind="verification"), (), "not a calibration"),
        (write_calibration, (), "other.zip: is the same calibration as"),
        (archive_with_a_ring, ("--network-condition", "iprobe"), "not measured under iprobe, only under idle, dgemm"),
    ],
)
def test_what_cannot_be_fitted_is_refused_in_one_line(archive_path, tmp_path, refusal_of, second, words, told):
    archives = [archive_path] if second is None else [archive_path, second(tmp_path / "other.zip")]
    archives = archives[1:] if second is archive_with_a_ring else archives
    assert told in refusal_of("fit", *map(str, archives), *words, "-o", tmp_path / "p.yaml")
    assert not (tmp_path / "p.yaml").exists()


@pytest.mark.slow
def test_a_kernel_model_can_be_asked_for_and_what_was_tried_is_shown(archive_path, tmp_path, capsys, output_of):
    out = tmp_path / "machine.yaml"
    command = ["fit", str(archive_path), "-o", str(out), "--kernel-model", "M-1/N-1", "--details"]
    assert main(command) == 0
    assert {model.form for model in load_platform(str(out)).kernels} == {"M-1/N-1"}
    assert "asked for" in capsys.readouterr().out
    printed = output_of(*command[:-3], "--details", "--force")
    assert "M-0" in printed
    assert "BIC above the best" in printed
    assert "dgemm: " in printed  # the sentence on successive calls


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


def test_the_platform_has_models_of_each_number_of_threads_a_core_alone_and_the_crowding_of_its_socket(fitted) -> None:
    _, platform, models = fitted
    assert (platform.nodes.sockets, platform.nodes.cores) == (SOCKETS, CORES)
    assert [(model.kernel, model.threads) for model in platform.kernels] == [("dgemm", 1), ("dgemm", 2)]
    assert [row.threads for row in models.quality] == [1, 2]
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
