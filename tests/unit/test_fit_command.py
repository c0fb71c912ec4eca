"""`lepaute fit` on a small archive of made-up observations."""

import re

import numpy as np
import pandas
import pytest
from support_fit import kernel_rows, write_calibration

from lepaute.cli.main import main
from lepaute.measure.archive import Archive
from lepaute.measure.fit import platform_and_models, platform_from_archive
from lepaute.simulate.platform import load_platform


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
        (None, ("--kernel-model", "M-9/N-1"), "is not a kernel model"),
        (archive_with_a_ring, ("--network-condition", "busy"), "--network-condition is busy"),
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
