"""`calibrate`: from a request for nodes to the archive of a calibration."""

import os
from collections.abc import Sequence
from pathlib import Path

from lepaute.design.hpl_step import DEFAULT_NBS
from lepaute.errors import InputError
from lepaute.kit.files import check_output
from lepaute.measure.calibration.job import Calibration
from lepaute.measure.experiment.life import Progress, run_campaign, silent
from lepaute.measure.experiment.options import Options
from lepaute.measure.probes import build_probes
from lepaute.measure.schedulers import Request
from lepaute.measure.switches import Switches

#: A network is not known without messages beyond its eager limit; the probes count bytes in an int.
LEAST_MESSAGE_BYTES, MOST_MESSAGE_BYTES = 1 << 20, 1 << 30
#: The probe of HPL's steps takes block sizes up to this; more threads than this no node has.
MOST_NB, MOST_THREADS = 4096, 1024


def calibrate(
    out_archive: str | Path,
    *,
    quick: bool = False,
    network_bytes: int | None = None,
    nbs: Sequence[int] = DEFAULT_NBS,
    threads: Sequence[int] = (1,),
    switches: Switches | None = None,
    seed: int = 1,
    progress: Progress | None = None,
    scheduler: str = "local",
    request: Request | None = None,
    python: str | None = None,
    resume: bool = False,
) -> Path:
    """Measures this machine, or the nodes of a request, and writes the archive; returns its path.

    quick    : two small blocks, to see that all works; too little for a model to trust
    network_bytes: the largest message, 64 MiB (quick: 16 MiB) unless given; a node with little memory gets less
    nbs      : block sizes of the steps of HPL that are measured
    threads  : BLAS threads of a process, each number measured in its turn
    switches : which nodes hang on which switch; what the scheduler knows of that unless given
    seed     : of the designs, of their order and of the probes' data; when resuming, that of the beginning holds
    progress : called with what is being done and the share of the work that is done
    python   : the interpreter on the nodes, where it is not this one
    resume   : go on with a calibration of that archive that did not end
    Raises EnvironmentProblem when something the probes need is missing, a probe fails or no node is left, InputError
    for a seed that no generator takes, a message that no probe sends, a block size beyond the matrices or more threads
    than a node has cores, KeyboardInterrupt. When measurements had begun they are archived beside as NAME.partial.zip,
    its metadata marked `partial`, the exception has a note that says so, and an older archive of the same name stays as
    it was.
    """
    out_archive = Path(out_archive)
    tell = progress or silent
    check_output(out_archive)
    if network_bytes is not None and not LEAST_MESSAGE_BYTES <= network_bytes <= MOST_MESSAGE_BYTES:
        raise InputError(
            f"the largest message is {network_bytes} bytes; give {LEAST_MESSAGE_BYTES} to {MOST_MESSAGE_BYTES}"
        )
    for option, values, most in (("--nb", nbs, MOST_NB), ("--threads", threads, MOST_THREADS)):
        if not values or min(values) < 1 or max(values) > most or len(set(values)) < len(values):
            given = ",".join(map(str, values))
            raise InputError(f"{option} is {given[:40] or 'empty'}; give different numbers from 1 to {most}")
    options = Options(
        archive=out_archive,
        scheduler=scheduler,
        request=request if request is not None else Request(),
        seed=seed,
        python=python,
        system_root=os.environ.get("LEPAUTE_SYSTEM_ROOT", "/"),
    )
    tell("building the probes", 0.0)
    probes = build_probes(progress=lambda message: tell(message, 0.0))
    job = Calibration(
        options,
        probes,
        quick=quick,
        tell=tell,
        network_bytes=network_bytes,
        nbs=nbs,
        threads=threads,
        switches=switches,
    )
    return run_campaign(job, tell, resume=resume)
