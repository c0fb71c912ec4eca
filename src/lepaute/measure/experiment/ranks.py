"""How ranks of MPI are started on the nodes of an experiment: by mpirun, or under Slurm by srun."""

from collections.abc import Sequence

from lepaute.errors import InputError
from lepaute.kit.mpi_launcher import MPIRUN_OF_NODES, Start
from lepaute.measure.schedulers.types import RankLaunch

#: Where mpirun finds the nodes, in the folder of the first one.
HOSTS = "hosts.txt"
#: srun reads its options from SLURM_ variables too; those of the agent's environment describe its own step of one task.
#: When a rank dies, the others would wait for it until the run's limit. Where nodes exchange what MPI_Init needs by
#: connections of Slurm's PMIx plugin (22.05), one rank now and then is let out before another can receive its messages,
#: which then dies of a signal; by Slurm's own messages none of 1,790 starts did, where 7 of 1,900 had.
_SRUN = """
job=$SLURM_JOB_ID
for name in $(env | sed -n 's/^\\(SLURM_[A-Z_]*\\)=.*/\\1/p'); do
  [ "$name" = SLURM_CONF ] || unset "$name"
done
export SLURM_PMIX_DIRECT_CONN=false
exec srun --jobid="$job" --overlap --kill-on-bad-exit=1 --mpi=pmix "$@"
"""


def start_of_ranks(
    words: Sequence[str],
    nodes: Sequence[str],
    per_node: int,
    ranks: int | None,
    launch: RankLaunch,
    options: Sequence[str],
    place: str,
) -> Start:
    """`ranks` ranks (all that fit unless given) of the program `words`, `per_node` on each node in turn.

    options: of mpirun; under Slurm only settings such as ("--mca", "btl", "tcp,self"), which become variables
    place  : the experiment's folder on the first node, where HOSTS lies
    Raises InputError for numbers and options that cannot be.
    """
    if per_node < 1:
        raise InputError(f"ranks_per_node is {per_node}; give at least 1")
    total = ranks if ranks is not None else per_node * len(nodes)
    if not 1 <= total <= per_node * len(nodes):
        raise InputError(
            f"{total} ranks do not fit on {len(nodes)} nodes with {per_node} on each; give fewer, or more a node"
        )
    if launch.launcher == "srun":
        return _by_srun(words, nodes, per_node, total, options)
    several = len(nodes) > 1
    start = MPIRUN_OF_NODES.start(
        total,
        hostfile=f"{place}/{HOSTS}" if several else None,
        remote_shell=_remote_shell(launch) if several else None,
        options=options,
    )
    return Start((*start.argv, *words), start.environment)


def hosts_text(nodes: Sequence[str], per_node: int) -> str:
    """The content of HOSTS."""
    return MPIRUN_OF_NODES.hostfile_text(nodes, per_node)


def _remote_shell(launch: RankLaunch) -> str | None:
    """How mpirun reaches the other nodes, as the controller does; None for plain ssh."""
    for word in launch.remote_shell:
        if any(mark.isspace() for mark in word):
            raise InputError(f"{word}: mpirun takes no path with a space; move ssh's configuration")
    return " ".join(launch.remote_shell) or None


def _by_srun(words: Sequence[str], nodes: Sequence[str], per_node: int, total: int, options: Sequence[str]) -> Start:
    settings = {}
    rest = list(options)
    while rest:
        if rest[0] not in ("--mca", "-mca") or len(rest) < 3:
            raise InputError(
                f"under Slurm ranks are started by srun, which has no option {rest[0]!r} of mpirun's; use --mca"
            )
        settings[rest[1]] = rest[2]
        del rest[:3]
    used = nodes[: -(-total // per_node)]
    where = [
        f"--nodelist={','.join(used)}",
        f"--nodes={len(used)}",
        f"--ntasks-per-node={per_node}",
        f"--ntasks={total}",
    ]
    return Start(("sh", "-e", "-c", _SRUN, "sh", *where, *words), MPIRUN_OF_NODES.tuning(settings))
