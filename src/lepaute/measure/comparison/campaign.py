"""`measure_libraries`: from the names of MPI libraries to the archive of a campaign."""

import os
from collections.abc import Sequence
from pathlib import Path

from lepaute.kit.files import check_output
from lepaute.measure.comparison.asked import Asked
from lepaute.measure.comparison.cases import operations_of, reduction_in, rows_of, sizes_of, with_overlapped
from lepaute.measure.comparison.job import Comparison
from lepaute.measure.comparison.libraries import named_libraries, ready_library
from lepaute.measure.comparison.reductions import DATATYPE, OPERATOR, reduction_of
from lepaute.measure.experiment.life import Progress, run_campaign, silent
from lepaute.measure.experiment.options import Options
from lepaute.measure.schedulers import Request

DEFAULT_OPERATIONS = "bcast,allreduce"
DEFAULT_SIZES = "1:1M"


def measure_libraries(
    libraries: Sequence[str],
    out_archive: str | Path,
    *,
    ops: str = DEFAULT_OPERATIONS,
    sizes: str = DEFAULT_SIZES,
    ranks: int = 2,
    precision: float = 0.02,
    budget_s: float = 300.0,
    synchronisation: str | None = None,
    clock: str = "clock_gettime",
    clock_method: str = "HCA",
    cold: bool = False,
    warm_up: int = 5,
    calls: int | None = None,
    mpiruns: int | None = None,
    limit_s: float | None = None,
    primary: Sequence[str] = (),
    datatype: str = DATATYPE,
    op: str = OPERATOR,
    root: int = 0,
    compute_s: float | None = None,
    seed: int = 1,
    progress: Progress | None = None,
    resume: bool = False,
) -> Path:
    """Measures MPI libraries side by side on this machine and writes the archive; returns its path.

    libraries : SPEC or LABEL=SPEC each: openmpi, mpich, a prefix, a compiler wrapper, module:NAME
    ops, sizes: lists as `operations_of` and `sizes_of` read them
    precision .. root: see `Asked`; datatype, op: with or without MPI_ before
    primary   : OP:SIZE each; the campaign is planned for these rows, see `Asked`
    compute_s : nonblocking operations are measured again with so much work before they are waited for
    progress  : called with what is being done and the share of the work that is done
    resume    : go on with a campaign of that archive that did not end
    Raises InputError for what makes no sense, for a budget in which nothing could be decided, and for an mpirun that is
    not its library's, EnvironmentProblem where a library is missing or cannot be measured, KeyboardInterrupt. When
    measurements had begun they are archived beside as NAME.partial.zip, and the exception has a note that says so.
    """
    out_archive = Path(out_archive)
    tell = progress or silent
    check_output(out_archive)
    operations, reduction = operations_of(ops), reduction_of(datatype, op)
    if compute_s is not None:
        operations = with_overlapped(operations)
    sizes_bytes = sizes_of(sizes, seed, reduction_in(operations, reduction))
    named = named_libraries(libraries)
    asked = Asked(
        libraries=tuple((each.label, each.spec) for each in named),
        operations=operations,
        sizes_bytes=sizes_bytes,
        ranks=ranks,
        precision=precision,
        budget_s=budget_s,
        synchronisation=synchronisation,
        clock=clock,
        clock_method=clock_method,
        cold=cold,
        warm_up=warm_up,
        calls=calls,
        mpiruns=mpiruns,
        limit_s=limit_s,
        primary=rows_of(primary),
        datatype=reduction.datatype,
        op=reduction.op,
        root=root,
        compute_s=compute_s or 0.0,
    )
    ready = [ready_library(each, lambda message: tell(message, 0.0)) for each in named]
    options = Options(
        archive=out_archive,
        scheduler="local",
        request=Request(),
        seed=seed,
        system_root=os.environ.get("LEPAUTE_SYSTEM_ROOT", "/"),
    )
    return run_campaign(Comparison(options, ready, asked, tell), tell, resume=resume)
