"""The doctor: what is missing is named with the command that installs it; the exit status says whether it matters."""

import os
from pathlib import Path

import psutil
import pytest
from support_rights import obeying_permissions

from lepaute.cli.doctor import _sentence
from lepaute.errors import EnvironmentProblem
from lepaute.kit.extras import EXTRAS
from lepaute.measure import doctor
from lepaute.measure.doctor import Check
from lepaute.measure.kernel_set import KernelSet


@pytest.fixture
def empty_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing in it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_a_compiler_that_is_missing_or_does_not_run_is_named_with_its_package(empty_path: Path) -> None:
    assert list(doctor.check_compiler()) == [Check("C compiler", "missing", "none", "apt-get install gcc libc6-dev")]
    (empty_path / "cc").write_text("#!/nonexistent/interpreter\n")
    (empty_path / "cc").chmod(0o755)
    (check,) = doctor.check_compiler()
    assert (check.status, check.found) == ("missing", f"{empty_path}/cc does not run")


def test_extras_are_listed_and_only_the_one_that_a_calibration_needs_is_warned_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def told(absent: set[str]) -> Check:
        monkeypatch.setattr("lepaute.kit.extras._is_installed", lambda module: module not in absent)
        (check,) = doctor.check_extras()
        return check

    assert told(set()) == Check("extras", "ok", ", ".join(EXTRAS))
    some = told({"numpyro", "jax", "psycopg"})
    remedy = "pip install 'lepaute[postgresql,mcmc]', or those of them that you need"
    assert (some.status, some.remedy) == ("ok", remedy)
    assert some.found.endswith("watch, otf2; not postgresql (psycopg), mcmc (numpyro, jax)")
    assert _sentence([told({"scipy"})]) == "Ready to predict, not to calibrate; 1 warning: extras"


@obeying_permissions
def test_a_folder_that_may_not_be_read_ends_no_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed").mkdir(0)
    monkeypatch.setenv("PATH", f"{tmp_path}/closed/bin:{os.environ['PATH']}")
    monkeypatch.setenv("LEPAUTE_HOME", f"{tmp_path}/closed/cache")
    monkeypatch.setattr(doctor, "_CHECKS", {name: doctor._CHECKS[name] for name in ("MPI", "HPL", "cache")})
    found = {check.name: check.found for check in doctor.examine()}
    assert found.keys() >= {"mpicc", "HPL", "cache"}
    assert found["HPL"] == f"not known: {tmp_path}/closed/cache: Permission denied"


def test_a_folder_for_temporary_files_that_is_none_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    (check,) = doctor.check_temporary()
    assert (check.status, check.remedy) == ("missing", "set TMPDIR to a folder that can be written, with room")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert list(doctor.check_temporary()) == [Check("temporary files", "ok", str(tmp_path))]


def test_missing_mpi_programs_are_named_one_by_one(empty_path: Path) -> None:
    found = {check.name: (check.status, check.remedy) for check in doctor.check_mpi()}
    assert found == {
        "mpicc": ("missing", "apt-get install libopenmpi-dev"),
        "mpirun": ("missing", "apt-get install openmpi-bin"),
    }


def test_a_blas_that_cannot_be_loaded_is_missing_and_slow_kernels_are_a_warning_with_their_speed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> KernelSet:
        raise EnvironmentProblem("OpenBLAS cannot be loaded or run; install it")

    monkeypatch.setattr(doctor, "choose_kernel_set", fail)
    monkeypatch.setattr(doctor, "links_with", lambda _library: False)
    checks = list(doctor.check_blas())
    assert [check.status for check in checks] == ["missing", "missing"]
    assert {check.remedy for check in checks} == {"apt-get install libopenblas-dev"}
    chosen = KernelSet("SkylakeX", "SkylakeX", 93.0, ("Prescott kernels are slow",), "OpenBLAS 0.3.21 etc")
    monkeypatch.setattr(doctor, "choose_kernel_set", lambda: chosen)
    monkeypatch.setattr(doctor, "links_with", lambda _library: True)
    (check,) = doctor.check_blas()
    assert check.status == "warning"
    assert check.found == "OpenBLAS 0.3.21, SkylakeX kernels, 93.0 Gflop/s a core (dgemm)"
    assert check.remedy == "Prescott kernels are slow"


def test_hpl_is_missing_without_a_source_or_a_folder_for_builds(empty_path, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    for home, source, told in (
        (tmp_path, "", "set LEPAUTE_HPCC_TARBALL"),
        (tmp_path / "file" / "cache", "", "cannot be written; set LEPAUTE_HOME"),
        (tmp_path, str(tmp_path / "none.tar.gz"), "no such file"),
    ):
        monkeypatch.setenv("LEPAUTE_HOME", str(home))
        monkeypatch.setenv("LEPAUTE_HPCC_TARBALL", source)
        (check,) = doctor.check_hpl()
        assert check.status == "missing"
        assert told in f"{check.found}; {check.remedy}"
    (tmp_path / "hpl-1").mkdir()
    (tmp_path / "hpl-1" / "xhpl-lepaute").touch()
    monkeypatch.delenv("LEPAUTE_HPCC_TARBALL")
    assert list(doctor.check_hpl()) == [Check("HPL", "ok", "built")]


def test_without_simgrid_a_calibration_can_be_made_and_an_emulation_cannot(empty_path: Path) -> None:
    (check,) = doctor.check_simgrid()
    assert (check.status, check.found) == ("warning", "none")
    assert check.remedy == "to emulate programs: apt-get install libsimgrid-dev gfortran g++"
    for name in ("smpirun", "smpicc", "smpicxx", "g++"):
        (empty_path / name).write_text("#!/bin/sh\necho SimGrid version 3.32\n")
        (empty_path / name).chmod(0o755)
    (check,) = doctor.check_simgrid()
    assert (check.status, check.found) == ("warning", "without smpiff")
    (empty_path / "smpiff").symlink_to(empty_path / "smpicc")
    assert list(doctor.check_simgrid()) == [Check("SimGrid", "ok", "3.32")]


def test_tools_of_experiments_that_are_missing_are_named_with_what_is_lacking(empty_path: Path) -> None:
    (check,) = doctor.check_experiment_tools()
    assert check.status == "warning"
    assert "no ssh (other nodes)" in check.found
    assert "openssh-client stress-ng hwloc-nox" in check.remedy
    for name in ("ssh", "stress-ng", "lstopo-no-graphics", "lspci", "dmidecode"):
        (empty_path / name).write_text("#!/bin/sh\n")
        (empty_path / name).chmod(0o755)
    (check,) = doctor.check_experiment_tools()
    assert check.status == "ok"


def test_governor_and_boost_are_read_from_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_CPU", tmp_path)
    for path, text in (
        ("cpu0/cpufreq/scaling_governor", "powersave"),
        ("cpu1/cpufreq/scaling_governor", "powersave"),
        ("cpufreq/boost", "1"),
        ("smt/active", "1"),
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text + "\n")
    governor, turbo = doctor.check_frequency()
    assert (governor.status, governor.found) == ("warning", "powersave")
    assert governor.remedy == "cpupower frequency-set -g performance"
    assert (turbo.name, turbo.status) == ("turbo", "warning")
    assert list(doctor.check_virtual())[-1].status == "warning"
    for core in (0, 1):
        (tmp_path / f"cpu{core}/cpufreq/scaling_governor").write_text("performance\n")
    (tmp_path / "cpufreq/boost").write_text("0\n")
    assert [check.status for check in doctor.check_frequency()] == ["ok", "ok"]


def test_other_load_is_named_by_its_program_as_long_as_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    class Busy(psutil.Process):
        def cpu_percent(self, *_: object) -> float:
            return 60.0

        def name(self) -> str:
            return "ior"

    class Ended(Busy):
        def name(self) -> str:
            raise psutil.NoSuchProcess(self.pid)

    pid = os.getppid()
    monkeypatch.setattr(psutil, "cpu_percent", lambda *_: 0.0)
    for kind, said in ((Busy, f"ior (process {pid}) at 60 %"), (Ended, f"process {pid} at 60 %")):
        monkeypatch.setattr(psutil, "process_iter", lambda kind=kind: iter([kind(pid)]))
        (check, *_) = doctor.check_load()
        assert (check.status, check.found) == ("warning", said)


def test_what_is_not_ok_says_what_to_do() -> None:
    """On the machine that runs the tests, whatever it is; the timed dgemm is left out for speed."""
    checks = [
        *doctor.check_compiler(), *doctor.check_mpi(), *doctor.check_hpl(), *doctor.check_simgrid(),
        *doctor.check_experiment_tools(), *doctor.check_cores(), *doctor.check_frequency(), *doctor.check_virtual(),
        *doctor.check_load(), *doctor.check_limits(),
    ]  # fmt: skip
    assert len(checks) >= 9
    assert all(check.found for check in checks)
    assert all(check.remedy for check in checks if check.status != "ok")


@pytest.mark.parametrize(("status", "code"), [("ok", 0), ("warning", 0), ("missing", 2)])
def test_the_exit_status_is_2_only_when_something_is_missing(monkeypatch, output_of, json_of, status, code):
    check = Check("C compiler", status, "found this", "do that")  # type: ignore[arg-type]
    monkeypatch.setattr(doctor, "_CHECKS", {"C compiler": lambda: [check]})
    assert json_of("doctor", "--json", status=code) == {
        "checks": [{"name": "C compiler", "status": status, "found": "found this", "remedy": "do that"}]
    }
    printed = output_of("doctor", *(["--details"] if status == "ok" else []), status=code)
    assert all(word in printed for word in ("C compiler", status, "found this", "do that"))
