"""How the ranks of an MPI program are started: mpirun of each MPI library and its options."""

import functools
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.command import attempted

OPEN_MPI, MPICH, INTEL_MPI, MVAPICH = "openmpi", "mpich", "intel-mpi", "mvapich"
TITLES = {OPEN_MPI: "Open MPI", MPICH: "MPICH", INTEL_MPI: "Intel MPI", MVAPICH: "MVAPICH", "": "an unknown MPI"}
LAUNCHER_NAMES = ("mpirun", "mpiexec", "orterun", "prterun")
LAUNCHER_PACKAGE = "openmpi-bin"

_LIMIT_S = 30.0
#: What `mpirun --version` contains. Hydra is the launcher of MPICH, and of MVAPICH.
_VERSION_TEXTS = (
    (INTEL_MPI, re.compile(r"intel\(r\) mpi.*?version ([\d.]+)", re.DOTALL)),
    (OPEN_MPI, re.compile(r"\((?:open mpi|openrte)\) ([\d.]+)|prrte\D*([\d.]+)")),
    (MPICH, re.compile(r"(?:hydra|mpich).*?version:\s*([\d.]+)|hydra|mpich", re.DOTALL)),
)
#: Open MPI runs as root only where both are set.
_ROOT_CONSENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
#: Inside an allocation of Slurm, mpirun would spread over all its nodes.
_WITHOUT_SCHEDULER = {
    OPEN_MPI: {"OMPI_MCA_ras": "^slurm", "OMPI_MCA_plm": "^slurm"},
    MPICH: {"HYDRA_RMK": "user", "HYDRA_LAUNCHER": "fork"},
    INTEL_MPI: {"I_MPI_HYDRA_RMK": "user", "I_MPI_HYDRA_BOOTSTRAP": "fork"},
}
#: Open MPI's daemon puts hwloc's topology into memory shared with its ranks, at an address that it takes for free; now
#: and then it is not, and the daemon crashes. Ranks can look at the machine themselves.
_NO_SHARED_TOPOLOGY = ("--mca", "rtc_hwloc_vmhole", "none")
#: Daemons of Open MPI that pass messages on for each other now and then know no route to one that has just started, and
#: the run ends; on so few nodes as are measured together each can talk to mpirun itself, as its message advises.
_DIRECT_ROUTES = ("--mca", "routed", "direct")
#: What Open MPI's launcher prints when it could not start the ranks for a reason of its own, which does not last: its
#: daemons met in one folder, or knew no route to each other.
_LAUNCH_PROBLEMS = ("orte_session_dir failed", "routed=direct")
#: Beginnings of the environment variables that tune a library.
_TUNING_PREFIXES = {OPEN_MPI: "OMPI_MCA_", MPICH: "MPIR_CVAR_", INTEL_MPI: "I_MPI_", MVAPICH: "MV2_"}


def launch_failed(output: str) -> bool:
    """Whether the launcher itself failed, before any rank began: it may be started again."""
    return any(words in output for words in _LAUNCH_PROBLEMS)


@dataclass(frozen=True, slots=True)
class Start:
    """The beginning of a command line that starts ranks, and the environment variables that it needs."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Launcher:
    """The program that starts the ranks of an MPI library.

    path   : only a name where the PATH of another machine decides
    family : of the library it belongs to, "" if that is not known
    """

    path: Path
    family: str
    version: str = ""
    environment: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"{TITLES[self.family]} {self.version} ({self.path})".replace("  ", " ")

    def starts(self, family: str) -> bool:
        """Whether programs of that library can be started; also where either is not known.

        MPICH and the libraries derived from it share one protocol between launcher and ranks.
        """
        return not self.family or not family or (self.family == OPEN_MPI) == (family == OPEN_MPI)

    def start(
        self,
        ranks: int,
        *,
        cores: Sequence[int] | None = None,
        hostfile: str | None = None,
        remote_shell: str | None = None,
        options: Sequence[str] = (),
        oversubscribe: bool = True,
        use_scheduler: bool = True,
    ) -> Start:
        """What runs the program whose words follow on `ranks` ranks.

        cores        : the core of each rank, for ranks of one node; None leaves them unbound. Open MPI before version 5
                       gives them out in increasing order, whatever their order here
        remote_shell : what reaches the other nodes in ssh's place, with its options
        oversubscribe: the launcher does not refuse more ranks than it counts cores; it may count fewer than there are
                       (hardware threads, containers)
        use_scheduler: an allocation of a batch system decides where the ranks go

        Raises InputError if this launcher has no such thing.
        """
        binding = self._binding(cores)
        words = ["--oversubscribe"] if oversubscribe and self.family == OPEN_MPI else []
        words += [*binding.argv, *(self._hosts(hostfile, remote_shell) if hostfile is not None else ())]
        environment = dict(self.environment) | (_ROOT_CONSENT if self.family == OPEN_MPI else {})
        environment |= {**binding.environment, **({} if use_scheduler else _WITHOUT_SCHEDULER.get(self.family, {}))}
        return Start((str(self.path), *words, *options, "-np", str(ranks)), environment)

    def _binding(self, cores: Sequence[int] | None) -> Start:
        chosen = ",".join(map(str, cores or ()))
        if self.family == OPEN_MPI:
            if cores is None:
                return Start(("--bind-to", "none"))
            if list(cores) == list(range(len(cores))):
                return Start(("--bind-to", "core", "--map-by", "core"))
            if int(self.version.partition(".")[0] or 0) >= 5:
                return Start(("--bind-to", "core", "--map-by", f"pe-list={chosen}:ordered"))
            return Start(("--bind-to", "cpu-list:ordered", "--cpu-list", chosen))
        if self.family == INTEL_MPI:
            return Start((), {"I_MPI_PIN": "0"} if cores is None else {"I_MPI_PIN_PROCESSOR_LIST": chosen})
        if cores is None:  # as Hydra leaves them unless it is asked
            return Start(())
        if not self.family:
            raise InputError(f"{self.path} belongs to an unknown MPI: its ranks cannot be bound to cores")
        return Start(("-bind-to", f"user:{chosen}"))

    def _hosts(self, hostfile: str, remote_shell: str | None) -> list[str]:
        if self.family == OPEN_MPI:
            shell = () if remote_shell is None else ("--mca", "plm_rsh_agent", remote_shell)
            return ["--hostfile", hostfile, *_NO_SHARED_TOPOLOGY, *_DIRECT_ROUTES, *shell]
        if remote_shell is None:
            return ["-f", hostfile]
        if " " in remote_shell:
            title = TITLES[self.family]
            raise InputError(f"{self.path} of {title} does not take options for its remote shell: {remote_shell}")
        return ["-f", hostfile, "-launcher", "ssh", "-launcher-exec", remote_shell]

    def hostfile_text(self, nodes: Sequence[str], ranks_per_node: int | Sequence[int]) -> str:
        """The content of a hostfile with this many ranks on every node, or on each."""
        form = "{} slots={}\n" if self.family == OPEN_MPI else "{}:{}\n"
        counts = [ranks_per_node] * len(nodes) if isinstance(ranks_per_node, int) else ranks_per_node
        return "".join(form.format(name, count) for name, count in zip(nodes, counts, strict=True))

    def tuning(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Environment variables that set parameters of the library, such as btl (Open MPI) or CH4_NETMOD (MPICH).

        Raises InputError if it is not known how this library is tuned.
        """
        if self.family not in _TUNING_PREFIXES:
            raise InputError(f"{self.path} belongs to an unknown MPI: set its parameters by environment variables")
        return {
            _TUNING_PREFIXES[self.family] + (name if self.family == OPEN_MPI else name.upper()): value
            for name, value in settings.items()
        }

    @property
    def passes_variables(self) -> bool:
        """Whether command() gives variables to the ranks; else they go into the launcher's own environment."""
        return bool(self.family)

    def command(self, words: Sequence[str], variables: Mapping[str, str]) -> list[str]:
        """A user's command with variables for its ranks alone, where the launcher can pass them.

        words: the launcher, its options, the program and its arguments
        """
        options: list[str] = []
        for name, value in variables.items() if self.passes_variables else ():
            options += ["-x", f"{name}={value}"] if self.family == OPEN_MPI else ["-genv", name, value]
        argv = [str(self.path), *options]
        for word in words[1:]:
            # With Open MPI, what follows a colon is another program with options of its own, and needs them again.
            argv += [word, *options] if word == ":" and self.family == OPEN_MPI else [word]
        return argv


#: mpirun on the PATH of other nodes, as long as nothing else is known of them.
MPIRUN_OF_NODES = Launcher(Path("mpirun"), OPEN_MPI)


def launcher_of_nodes(version_text: str | None) -> Launcher:
    """The nodes' mpirun, by (the beginning of) what its --version prints; Open MPI if that names no known library."""
    family, version = family_and_version(version_text or "")
    return Launcher(Path("mpirun"), family, version) if family else MPIRUN_OF_NODES


def find_launcher(name: str | Path = "mpirun") -> Launcher:
    """The launcher on PATH, or at a path; of no known family where it is none of those that mpirun is called.

    Raises EnvironmentProblem if there is no such program.
    """
    path = shutil.which(name)
    if path is None:
        raise EnvironmentProblem(
            f"{name} is missing (Debian package {LAUNCHER_PACKAGE}); "
            f"install an MPI library: apt-get install {LAUNCHER_PACKAGE}"
        )
    return launcher_at(Path(path).absolute())


@functools.cache
def launcher_at(path: Path, environment: tuple[tuple[str, str], ...] = ()) -> Launcher:
    """The launcher of that path, which is asked for its version once; `environment` is what it needs to run."""
    if not path.name.startswith(LAUNCHER_NAMES):
        return Launcher(path, "")
    done = attempted([path, "--version"], dict(environment), _LIMIT_S)
    if done is None:
        return Launcher(path, "")
    return Launcher(path, *family_and_version(done.stdout + done.stderr), environment)


def family_and_version(version_text: str) -> tuple[str, str]:
    """The library that a launcher belongs to and its version, from what it prints for --version; "" for unknown."""
    for family, pattern in _VERSION_TEXTS:
        if match := pattern.search(version_text.lower()):
            return family, next((group for group in match.groups() if group), "")
    return "", ""


@functools.cache
def binding_works(launcher: Launcher) -> bool:
    """Whether ranks may be bound to cores; some containers forbid it."""
    start = launcher.start(1, cores=[min(os.sched_getaffinity(0))])
    done = attempted([*start.argv, "true"], start.environment, _LIMIT_S)
    return done is not None and done.returncode == 0
