"""The script by which each rank of a real run finds its cores, whatever started it: mpirun or srun.

A launcher binds as it numbers cores; here rank r is bound to the CPUs of line r of a list, as the simulation places it.
"""

from collections.abc import Mapping, Sequence
from shlex import quote

SCRIPT, CPUS = "rank.sh", "cpus.txt"
#: Where launchers say the number of a rank in all of the run; those of a batch system last, since the controller may
#: itself run inside one of its steps.
_RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")


def rank_script(folder: str, program: str, environment: Mapping[str, str]) -> str:
    """Shell: goes to `folder`, binds itself to the CPUs of its rank there, and becomes the program.

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
{exports}taskset -c "$cpus" true 2>/dev/null || exec {quote(program)}
exec taskset -c "$cpus" {quote(program)}
"""


def cpus_text(cpus: Sequence[Sequence[int]]) -> str:
    """The content of CPUS: those of each rank, a line a rank."""
    return "".join(",".join(map(str, each)) + "\n" for each in cpus)


def blas_environment(threads: int, coretype: str | None) -> dict[str, str]:
    """What makes BLAS use as many threads, and the kernels that the platform was measured with."""
    return {"OPENBLAS_NUM_THREADS": str(threads)} | ({} if coretype is None else {"OPENBLAS_CORETYPE": coretype})
