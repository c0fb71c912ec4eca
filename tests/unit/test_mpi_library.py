"""MPI libraries: found in every way that they are named, started by launchers of their own, never mixed."""

import os
import re
import shutil
from pathlib import Path

import pytest
from support_limits import HANG_S

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit import mpi_library
from lepaute.kit.command import run_command
from lepaute.kit.mpi_launcher import INTEL_MPI, MPICH, OPEN_MPI, Launcher, binding_works, family_and_version
from lepaute.kit.mpi_library import MpiLibrary, check_program, find_library, installed_libraries

OPEN_MPI_4, OPEN_MPI_5 = (Launcher(Path("mpirun"), OPEN_MPI, version) for version in ("4.1.4", "5.0.11"))
HYDRA = Launcher(Path("mpirun"), MPICH, "4.0.2")
INTEL = Launcher(Path("mpirun"), INTEL_MPI, "2021.18.1")
RANKS = Path(__file__).parents[1].joinpath("data", "programs", "mpi_library_ranks.c").read_text()


def open_mpi(version: str) -> str:
    major, minor, release = version.split(".")
    return (
        f"#define OPEN_MPI 1\n#define OMPI_MAJOR_VERSION {major}\n#define OMPI_MINOR_VERSION {minor}\n"
        f"#define OMPI_RELEASE_VERSION {release}"
    )


def mpich(version: str) -> str:
    return f'#define MPICH_NUMVERSION 1\n#define MPICH_VERSION "{version}"'


def script(path: Path, output: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho run >> {path}.runs\ncat <<'END'\n{output}\nEND\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """An Open MPI that is installed into a folder of its own, which is not on PATH."""
    folder = tmp_path / "opt/openmpi-5"
    script(folder / "bin/mpicc", open_mpi("5.0.11"))
    script(folder / "bin/mpifort", "")
    script(folder / "bin/mpirun", "mpirun (Open MPI) 5.0.11")
    (folder / "lib").mkdir()
    return folder


@pytest.fixture(scope="module", params=["openmpi", "mpich"])
def library(request: pytest.FixtureRequest) -> MpiLibrary:
    """A real library of this machine."""
    if shutil.which(f"mpicc.{request.param}") is None:
        pytest.skip(f"mpicc.{request.param} is not installed")
    return find_library(request.param)


@pytest.mark.machine
def test_a_real_program_runs_on_as_many_ranks_as_asked_each_on_its_core(library: MpiLibrary, tmp_path: Path) -> None:
    (tmp_path / "ranks.c").write_text(RANKS)
    library.compile([str(tmp_path / "ranks.c"), "-o", str(tmp_path / "ranks")], what="building the ranks")
    launcher = library.launcher
    check_program(launcher, tmp_path / "ranks")
    start = launcher.start(2)
    done = run_command([*start.argv, tmp_path / "ranks"], what="ranks", timeout_s=HANG_S, environment=start.environment)
    assert sorted(done.stdout.splitlines()) == ["0 of 2", "1 of 2"]
    cores = sorted(os.sched_getaffinity(0), reverse=True)[:2]
    if len(cores) < 2 or not binding_works(launcher):
        return
    start = launcher.start(2, cores=cores)
    show = 'echo "${OMPI_COMM_WORLD_RANK:-$PMI_RANK} $(grep Cpus_allowed_list /proc/self/status)"'
    done = run_command([*start.argv, "sh", "-c", show], what="cores", timeout_s=HANG_S, environment=start.environment)
    in_order = sorted(cores) if launcher.family == OPEN_MPI and launcher.version < "5" else cores
    bound = {int(line.split()[0]): int(line.split()[-1]) for line in done.stdout.splitlines()}
    assert bound == dict(enumerate(in_order))


@pytest.mark.machine
def test_a_program_of_one_library_is_not_started_by_the_launcher_of_another(tmp_path: Path) -> None:
    if shutil.which("mpicc.mpich") is None or shutil.which("mpirun.openmpi") is None:
        pytest.skip("needs both MPICH and Open MPI")
    (tmp_path / "ranks.c").write_text(RANKS)
    program = tmp_path / "ranks"
    mine, other = find_library("mpich"), find_library("openmpi").launcher
    mine.compile([str(tmp_path / "ranks.c"), "-o", str(program)], what="building the ranks")
    with pytest.raises(InputError, match=r"is linked to MPICH, and .* starts programs of Open MPI") as problem:
        check_program(other, program)
    assert "\n" not in str(problem.value)
    # Why it is refused: every process takes itself for the only one.
    start = other.start(2)
    done = run_command([*start.argv, program], what="ranks", timeout_s=HANG_S, environment=start.environment)
    assert done.stdout.splitlines() == ["0 of 1", "0 of 1"]


@pytest.mark.machine
def test_every_installed_library_is_listed_once_and_the_default_one_first() -> None:
    libraries = installed_libraries()
    if not libraries:
        pytest.skip("no MPI library is installed")
    assert libraries[0].mpicc == Path(shutil.which("mpicc") or "")
    identities = [(each.mpicc.parent.resolve(), each.family, each.version) for each in libraries]
    assert len(set(identities)) == len(identities)
    families = {each.family for each in libraries}
    assert {name for name in (OPEN_MPI, MPICH) if shutil.which(f"mpicc.{name}")} <= families


@pytest.mark.machine
def test_a_debian_alternative_is_the_library_that_its_name_says(library: MpiLibrary) -> None:
    assert library.mpicc.name == f"mpicc.{library.family}"
    assert library.launcher.path.name == f"mpirun.{library.family}"
    assert (library.launcher.family, library.launcher.version) == (library.family, library.version)
    assert find_library(f"mpicc.{library.family}") == find_library(f"mpirun.{library.family}") == library


def test_a_prefix_its_wrapper_and_its_launcher_name_the_same_library(prefix: Path) -> None:
    library = find_library(prefix)
    assert (library.family, library.version) == (OPEN_MPI, "5.0.11")
    assert library == find_library(prefix / "bin/mpicc") == find_library(prefix / "bin/mpirun")
    assert (library.mpicxx, library.mpifort) == (None, prefix / "bin/mpifort")
    # Programs and launcher find their library although its prefix is not on PATH.
    assert dict(library.environment)["PATH"].startswith(f"{prefix}/bin:")
    assert dict(library.environment)["LD_LIBRARY_PATH"].startswith(f"{prefix}/lib")
    assert library.launcher.start(1).environment["PATH"] == dict(library.environment)["PATH"]


def test_wrappers_that_lead_to_one_library_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "bin/mpicc.openmpi", open_mpi("4.1.4"))
    (tmp_path / "bin/mpicc").symlink_to("mpicc.openmpi")
    script(tmp_path / "bin/mpicc.mpich", mpich("4.0.2"))
    script(tmp_path / "bin/mpiicc", "this one does not compile").write_text("#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.setattr(mpi_library, "_PLACES", ())
    there = [each for each in installed_libraries() if each.mpicc.is_relative_to(tmp_path)]
    assert [each.mpicc.name for each in there] == ["mpicc", "mpicc.mpich"]


def test_the_launcher_is_that_of_the_library_also_where_the_plain_name_is_another_s(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    script(folder / "mpicc", mpich("4.0.2"))
    script(folder / "mpirun", "mpirun (Open MPI) 4.1.4")
    script(folder / "mpirun.mpich", "HYDRA build details:\n    Version:     4.0.2")
    launcher = find_library(folder / "mpicc").launcher
    assert (launcher.path.name, launcher.family, launcher.version) == ("mpirun.mpich", MPICH, "4.0.2")


def test_a_launcher_without_a_compiler_of_its_library_is_refused(tmp_path, monkeypatch):
    script(tmp_path / "bin/mpicc", mpich("4.0.2"))
    script(tmp_path / "bin/mpirun", "mpirun (Open MPI) 4.1.4")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    with pytest.raises(InputError, match=r"mpirun belongs to Open MPI, .*mpicc to MPICH") as problem:
        find_library("mpirun")
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize(
    ("header", "family", "version"),
    [
        ('#define MPICH_VERSION "3.4a2"\n#define I_MPI_VERSION "2021.18.1"', "intel-mpi", "2021.18.1"),
        ('#define MPICH_VERSION "3.2.1"\n#define MVAPICH2_VERSION "2.3.7"', "mvapich", "2.3.7"),
        ("#define MPI_VERSION 3", "", ""),
    ],
)
def test_libraries_made_of_mpich_and_unknown_ones_are_told_apart(tmp_path, header, family, version):
    library = find_library(script(tmp_path / "bin/mpicc", header))
    assert (library.family, library.version) == (family, version)


def test_a_compiler_of_simgrid_is_not_an_mpi_library(tmp_path: Path) -> None:
    path = script(tmp_path / "bin/mpicc", "#define MPI_CHAR SMPI_PREDEFINED_POINTER(MPI_Datatype, smpi_MPI_CHAR)")
    with pytest.raises(EnvironmentProblem, match="is SimGrid's compiler wrapper"):
        find_library(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no-such-mpi", "no-such-mpi: not found; give the compiler wrapper"),
        ("mpihc", "mpihc: not found (did you mean mpich?); give"),
        (".", "has no bin/mpicc"),
        ("module:", "'' is not the name of an environment module"),
        ("module:--version", "'--version' is not the name"),
    ],
)
def test_what_names_no_library_is_refused_in_one_line(tmp_path, monkeypatch, name, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=re.escape(message)) as problem:
        find_library(name)
    assert "\n" not in str(problem.value)


@pytest.fixture
def login_shell(tmp_path: Path, prefix: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a login shell whose `module` command knows openmpi/5 and empty/1."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".bash_profile").write_text(
        f"""echo a greeting of this machine
export PATH=/usr/bin:/bin
module() {{
  case $2 in
    openmpi/5) export PATH={prefix}/bin:$PATH MPI_HOME={prefix} ;;
    empty/1) ;;
    *) echo "ERROR: Unable to locate a modulefile for '$2'" >&2; return 1 ;;
  esac
}}
"""
    )
    monkeypatch.setenv("HOME", str(home))
    return home


def test_a_module_brings_its_library_and_what_it_changes(login_shell, prefix, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin:/of/this/process")
    library = find_library("module:openmpi/5")
    assert (library.mpicc, library.version) == (prefix / "bin/mpicc", "5.0.11")
    assert dict(library.environment)["MPI_HOME"] == str(prefix)
    # The module's folder comes first, and nothing of this process's own PATH is lost.
    assert dict(library.environment)["PATH"] == f"{prefix}/bin:/usr/bin:/bin:/of/this/process"


@pytest.mark.parametrize(
    ("module", "message"),
    [("empty/1", "module empty/1: does not provide mpicc"), ("other/2", "Unable to locate a modulefile for 'other/2'")],
)
def test_a_module_without_an_mpi_library_is_refused(login_shell: Path, module: str, message: str) -> None:
    with pytest.raises(EnvironmentProblem, match=message):
        find_library(f"module:{module}")


@pytest.mark.parametrize(
    ("text", "family", "version"),
    [
        ("mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/", OPEN_MPI, "4.1.4"),
        ("mpirun.openmpi (OpenRTE) 4.1.4", OPEN_MPI, "4.1.4"),
        ("HYDRA build details:\n    Version:                                 4.0.2\n", MPICH, "4.0.2"),
        ("HYDRA build details:", MPICH, ""),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626 (id: b44796a)", INTEL_MPI, "2021.18.1"),
        ("slurm 22.05.8", "", ""),
    ],
)
def test_a_launcher_says_which_library_it_belongs_to(text: str, family: str, version: str) -> None:
    assert family_and_version(text) == (family, version)


@pytest.mark.parametrize(
    ("launcher", "cores", "words", "variables"),
    [
        (OPEN_MPI_4, None, ["--oversubscribe", "--bind-to", "none"], {}),
        (OPEN_MPI_4, [0, 1], ["--oversubscribe", "--bind-to", "core", "--map-by", "core"], {}),
        (OPEN_MPI_4, [3, 1], ["--oversubscribe", "--bind-to", "cpu-list:ordered", "--cpu-list", "3,1"], {}),
        # Open MPI 5 no longer knows cpu-list.
        (OPEN_MPI_5, [3, 1], ["--oversubscribe", "--bind-to", "core", "--map-by", "pe-list=3,1:ordered"], {}),
        (HYDRA, None, [], {}),
        (HYDRA, [3, 1], ["-bind-to", "user:3,1"], {}),
        (INTEL, None, [], {"I_MPI_PIN": "0"}),
        (INTEL, [3, 1], [], {"I_MPI_PIN_PROCESSOR_LIST": "3,1"}),
    ],
)
def test_ranks_are_bound_as_the_launcher_has_it(launcher, cores, words, variables):
    start = launcher.start(2, cores=cores)
    assert start.argv == ("mpirun", *words, "-np", "2")
    assert {name: value for name, value in start.environment.items() if not name.startswith("OMPI_ALLOW")} == variables


def test_open_mpi_runs_as_root_on_the_node_and_nodes_are_given_by_a_hostfile_of_the_launcher_s_own_form() -> None:
    consent = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    assert OPEN_MPI_4.start(1).environment == consent
    alone = OPEN_MPI_4.start(1, use_scheduler=False).environment
    assert alone == {**consent, "OMPI_MCA_ras": "^slurm", "OMPI_MCA_plm": "^slurm"}
    assert "--oversubscribe" not in OPEN_MPI_4.start(1, oversubscribe=False).argv
    assert OPEN_MPI_4.hostfile_text(["a", "b"], 2) == "a slots=2\nb slots=2\n"
    assert HYDRA.hostfile_text(["a", "b"], 2) == "a:2\nb:2\n"
    over = OPEN_MPI_4.start(4, hostfile="h", remote_shell="ssh -F c", options=("--mca", "btl", "tcp,self")).argv
    settings = ("--mca", "rtc_hwloc_vmhole", "none", "--mca", "routed", "direct", "--mca", "plm_rsh_agent", "ssh -F c")
    hosts = ("--hostfile", "h", *settings)
    assert over[4:] == (*hosts, "--mca", "btl", "tcp,self", "-np", "4")
    assert HYDRA.start(4, hostfile="h", remote_shell="oarsh").argv[1:] == (
        *("-f", "h", "-launcher", "ssh", "-launcher-exec", "oarsh"), "-np", "4",
    )  # fmt: skip
    with pytest.raises(InputError, match="does not take options for its remote shell"):
        HYDRA.start(4, hostfile="h", remote_shell="ssh -F c")


def test_a_library_is_tuned_by_variables_of_its_own_and_a_user_s_command_gets_them_for_its_ranks() -> None:
    assert OPEN_MPI_4.tuning({"btl": "tcp,self"}) == {"OMPI_MCA_btl": "tcp,self"}
    assert HYDRA.tuning({"ch4_netmod": "ofi"}) == {"MPIR_CVAR_CH4_NETMOD": "ofi"}
    assert INTEL.tuning({"fabrics": "shm"}) == {"I_MPI_FABRICS": "shm"}
    with pytest.raises(InputError, match="belongs to an unknown MPI"):
        Launcher(Path("srun"), "").tuning({"a": "b"})
    words = ["mpirun", "-np", "1", "a", ":", "-np", "1", "b"]
    given = ["-x", "A=1"]
    assert OPEN_MPI_4.command(words, {"A": "1"}) == ["mpirun", *given, *words[1:4], ":", *given, *words[5:]]
    assert HYDRA.command(words, {"A": "1"}) == ["mpirun", "-genv", "A", "1", *words[1:]]
    unknown = Launcher(Path("srun"), "")
    assert unknown.command(["srun", "a"], {"A": "1"}) == ["srun", "a"]
    assert not unknown.passes_variables


def test_a_program_that_is_not_linked_to_mpi_is_not_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("#!/bin/sh\n")
    for program in (tmp_path / "text", Path(shutil.which("true") or "/bin/true"), tmp_path / "missing"):
        check_program(OPEN_MPI_4, program)


def test_binding_that_is_refused_or_hangs_is_seen(tmp_path: Path) -> None:
    refusing = tmp_path / "mpirun"
    refusing.write_text("#!/bin/sh\nexit 1\n")
    refusing.chmod(0o755)
    assert not binding_works(Launcher(refusing, OPEN_MPI, "4.1.4"))
    assert not binding_works(Launcher(tmp_path / "missing", OPEN_MPI, "4.1.4"))
