"""What every experiment needs: packages, sources, programs, ranks of MPI, files."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.measure.experiment.entries import Clone
from lepaute.measure.experiment.options import Options
from lepaute.measure.experiment.ranks import start_of_ranks, write_hosts
from lepaute.measure.experiment.record import Record
from lepaute.measure.nodes.group import Nodes
from lepaute.measure.nodes.results import Results

#: Debian Policy 5.6.1, with the version that apt takes after a name.
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+(:[a-z0-9]+)?(=[A-Za-z0-9.+:~-]+)?")
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_INSTALL_S = 1800.0
_CLONE_S = 1800.0
_BUILD_S = 3600.0

_INSTALL = """
# installs what is missing of these packages:
missing=
for package; do
  case $package in
    *=*) missing="$missing $package" ;;
    *) state=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
       [ "$state" = installed ] || missing="$missing $package" ;;
  esac
done
[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null; then
  echo "not installed, and there is no apt-get to install it:$missing" >&2
  exit 1
fi
[ "$(id -u)" = 0 ] && sudo= || sudo=sudo
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get -qq -o DPkg::Lock::Timeout=120 update || true
$sudo apt-get -qq -y -o DPkg::Lock::Timeout=120 install --no-install-recommends $missing
"""
_BUILD = """
# builds what lies in a folder:
[ -d "$1" ] && cd "$1" || { echo "there is no folder $1" >&2; exit 1; }
shift
jobs=$(getconf _NPROCESSORS_ONLN)
if [ -f CMakeLists.txt ]; then
  cmake -S . -B build -DCMAKE_BUILD_TYPE=Release "$@"
  cmake --build build --parallel "$jobs"
elif [ -x configure ]; then
  ./configure "$@"
  make -j "$jobs"
elif [ -f Makefile ] || [ -f makefile ]; then
  make -j "$jobs" "$@"
else
  echo "neither CMakeLists.txt, configure nor Makefile is there" >&2
  exit 1
fi
"""
_CLONE = """
# clones a repository at a revision:
git clone --quiet --no-checkout -- "$1" "$2"
commit=$(git -C "$2" rev-parse --verify --quiet "origin/$3^{commit}" || git -C "$2" rev-parse --verify "$3^{commit}")
git -C "$2" checkout --quiet --detach "$commit"
[ ! -f "$2/.gitmodules" ] || git -C "$2" submodule --quiet update --init --recursive
git -C "$2" rev-parse HEAD
"""


class Helpers:
    """Helpers of a job; each works on all nodes unless it says otherwise."""

    record_of_run: Record
    options: Options

    @property
    def nodes(self) -> Nodes:
        raise NotImplementedError

    def install(self, *packages: str) -> None:
        """Installs packages of Debian, as root or by sudo; nothing where all are there. A version: name=version."""
        for package in packages:
            if not _PACKAGE.fullmatch(package):
                raise InputError(
                    f"{package[:60]!r} cannot be the name of a Debian package; such as git or cmake=3.25.1-1"
                )
        self.nodes.shell(_INSTALL, *packages, timeout_s=_INSTALL_S)

    def clone(self, url: str, folder: str, revision: str = "HEAD") -> str:
        """Clones a git repository at a revision (a commit, tag or branch), submodules included; the commit's hash.

        Address, revision and commit are written down. Raises EnvironmentProblem if the nodes got different ones.
        """
        if revision.startswith("-") or url.startswith("-"):
            raise InputError(f"{url} at {revision}: neither begins with a dash; give a repository and its revision")
        results = self.nodes.shell(_CLONE, url, relative(folder), revision, timeout_s=_CLONE_S)
        commits = {node: result.stdout.strip().splitlines()[-1] for node, result in results.items()}
        for node, commit in commits.items():
            if not _COMMIT.fullmatch(commit):
                raise EnvironmentProblem(f"{node}: git printed no commit of {folder}, but {commit[:60]!r}")
            self.record_of_run.note(Clone(node, url, revision, commit, folder))
        if len(set(commits.values())) > 1:
            listed = ", ".join(f"{node}: {commit[:10]}" for node, commit in commits.items())
            raise EnvironmentProblem(
                f"{folder}: the nodes have different commits ({listed}); name a commit, not a branch"
            )
        return next(iter(commits.values()))

    def build(self, folder: str, *arguments: str) -> Results:
        """Builds what lies in a folder: by cmake (into its folder `build`), configure and make, or make.

        arguments: for cmake or configure, or where there is only a Makefile for make
        """
        return self.nodes.shell(_BUILD, relative(folder), *arguments, timeout_s=_BUILD_S)

    def mpi(
        self,
        *words: object,
        ranks_per_node: int = 1,
        ranks: int | None = None,
        options: Sequence[str] = (),
        folder: str | Path | None = None,
        environment: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        check: bool = True,
    ) -> Results:
        """Runs a program with ranks on all nodes, `ranks_per_node` on each in turn: by mpirun, under Slurm by srun.

        ranks  : fewer than all
        options: of mpirun, such as ("--mca", "btl", "tcp,self")
        The program must have the same path on all nodes. The result is that of the first node, which starts the ranks.
        """
        first, names = self.nodes[0], self.nodes.names
        launch, place = self.options.rank_launch(), first.place
        start = start_of_ranks([str(word) for word in words], names, ranks_per_node, ranks, launch, options, place)
        if len(names) > 1:
            write_hosts(first, names, ranks_per_node, launch)
        added = {**start.environment, **(environment or {})}
        return first.run(*start.argv, folder=folder, environment=added, timeout_s=timeout_s, check=check)

    def collect(self, path: str | Path, name: str | None = None) -> None:
        """Takes a file of every node into the archive, as files/<node>/<name>."""
        kept = relative(name if name is not None else PurePosixPath(path).name)
        for one in self.nodes:  # one after the other: each may be large
            for node, content in one.read(path).items():
                self.record_of_run.keep(f"files/{node}/{kept}", content)

    def keep(self, name: str, content: str | bytes) -> None:
        """Puts a file made here into the archive, as files/<name>."""
        self.record_of_run.keep(f"files/{relative(name)}", content.encode() if isinstance(content, str) else content)


def relative(path: str) -> str:
    """The path; raises InputError if it leaves the folder it is taken from."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith(("/", "-")) or ".." in parts or not path.isprintable():
        raise InputError(f"{path[:80]!r} does not name a place inside the experiment's folder; give a relative path")
    return path
