"""How ranks of MPI are started on nodes: by mpirun of a library or by Slurm's srun, and bound to the CPUs of their own.

Launchers bind each in its own way and know no names that share a machine; a script binds each rank to its line's CPUs.
"""

from collections.abc import Mapping, Sequence
from shlex import quote

from lepaute.errors import InputError
from lepaute.kit.mpi_launcher import MPIRUN_OF_NODES, OPEN_MPI, Launcher, Start
from lepaute.measure.nodes.group import Nodes
from lepaute.measure.schedulers.types import RankLaunch

#: In the folder of the first node: the nodes for mpirun, and what reaches them where mpirun takes a single word.
HOSTS, SHELL = "hosts.txt", "remote-shell"
#: srun reads its options from SLURM_ variables too; those of the agent's environment describe its own step of one task.
#: When a rank dies, the others would wait for it until the run's limit. MPI_Init of Open MPI has two fences; in trees,
#: Slurm's choice for the second (22.05), one rank now and then leaves it while another on its node is in the first:
#: its message then meets no handler, a call of address 0 (8 of 615 starts with both in trees, none of 1,651 in rings).
_SRUN = """
job=$SLURM_JOB_ID
for name in $(env | sed -n 's/^\\(SLURM_[A-Z_]*\\)=.*/\\1/p'); do
  [ "$name" = SLURM_CONF ] || unset "$name"
done
export SLURM_PMIX_DIRECT_CONN=true SLURM_PMIX_FENCE=ring
exec srun --jobid="$job" --overlap --kill-on-bad-exit=1 "$@"
"""


def start_of_ranks(
    words: Sequence[str],
    nodes: Sequence[str],
    per_node: int | Sequence[int],
    ranks: int | None,
    launch: RankLaunch,
    options: Sequence[str],
    place: str,
    launcher: Launcher = MPIRUN_OF_NODES,
) -> Start:
    """`ranks` ranks (all that fit unless given) of the program `words`, on each node in turn as many as `per_node`.

    per_node: of every node, or of each
    options: of mpirun; under Slurm only settings such as ("--mca", "btl", "tcp,self"), which become variables
    place  : the experiment's folder on the first node, where `write_hosts` has written
    launcher: of the library that the program is linked to
    Raises InputError for numbers and options that cannot be.
    """
    slots = [per_node] * len(nodes) if isinstance(per_node, int) else list(per_node)
    if min(slots) < 1:
        raise InputError(f"ranks_per_node is {min(slots)}; give at least 1")
    total = ranks if ranks is not None else sum(slots)
    if not 1 <= total <= sum(slots):
        raise InputError(
            f"{total} ranks do not fit on {len(nodes)} nodes with {max(slots)} on each; give fewer, or more a node"
        )
    if launch.launcher == "srun":
        settings = {}
        rest = list(options)
        while rest:
            if rest[0] not in ("--mca", "-mca") or len(rest) < 3:
                raise InputError(
                    f"under Slurm ranks are started by srun, which has no option {rest[0]!r} of mpirun's; use --mca"
                )
            settings[rest[1]] = rest[2]
            del rest[:3]
        if len(set(slots)) > 1:
            raise InputError("under Slurm every node takes equally many ranks; give --ranks-per-node, no other numbers")
        used = nodes[: -(-total // slots[0])]
        where = [
            # MPICH and what derives from it speak the protocol of PMI, which Slurm's plugin of PMI-2 answers too.
            f"--mpi={'pmix' if launcher.family == OPEN_MPI else 'pmi2'}",
            f"--nodelist={','.join(used)}",
            f"--nodes={len(used)}",
            f"--ntasks-per-node={slots[0]}",
            f"--ntasks={total}",
        ]
        return Start(("sh", "-e", "-c", _SRUN, "sh", *where, *words), launcher.tuning(settings) if settings else {})
    several = len(nodes) > 1
    start = launcher.start(
        total,
        hostfile=f"{place}/{HOSTS}" if several else None,
        remote_shell=_remote_shell(launch, launcher, place) if several else None,
        options=options,
        use_scheduler=several or launcher.family == OPEN_MPI,
    )
    return Start((*start.argv, *words), start.environment)


def write_hosts(
    first: Nodes,
    nodes: Sequence[str],
    per_node: int | Sequence[int],
    launch: RankLaunch,
    launcher: Launcher = MPIRUN_OF_NODES,
) -> None:
    """Writes what `start_of_ranks` refers to into the folder of the first node."""
    first.write(HOSTS, launcher.hostfile_text(nodes, per_node))
    if launch.remote_shell and launcher.family != OPEN_MPI:
        first.write(SHELL, f'#!/bin/sh\nexec {" ".join(map(quote, launch.remote_shell))} "$@"\n', 0o755)


def _remote_shell(launch: RankLaunch, launcher: Launcher, place: str) -> str | None:
    """How mpirun reaches the other nodes, as the controller does; None for plain ssh."""
    if launch.remote_shell and launcher.family != OPEN_MPI:
        return f"{place}/{SHELL}"
    for word in launch.remote_shell:
        if any(mark.isspace() for mark in word):
            raise InputError(f"{word}: mpirun takes no path with a space; move ssh's configuration")
    return " ".join(launch.remote_shell) or None


SCRIPT, CPUS = "rank.sh", "cpus.txt"
#: Where launchers say the number of a rank; batch systems last, since the controller may run inside a step of one.
_RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")


def rank_script(folder: str, program: str, environment: Mapping[str, str]) -> str:
    """Shell: goes to `folder`, binds itself to the CPUs of its rank, and becomes the program with its arguments.

    Where binding is not allowed (some containers) the program runs unbound.
    """
    rank = ""
    for name in reversed(_RANK_VARIABLES):
        rank = f"${{{name}:-{rank}}}"
    exports = "".join(f"export {name}={quote(value)}\n" for name, value in environment.items())
    return f"""#!/bin/sh
cd {quote(folder)} || exit 1
rank={rank}
[ -n "$rank" ] || {{ echo "the launcher did not say the number of this rank" >&2; exit 1; }}
cpus=$(sed -n "$((rank + 1))p" {CPUS})
{exports}taskset -c "$cpus" true 2>/dev/null || exec {quote(program)} "$@"
exec taskset -c "$cpus" {quote(program)} "$@"
"""


def cpus_text(cpus: Sequence[Sequence[int]]) -> str:
    return "".join(",".join(map(str, each)) + "\n" for each in cpus)
