"""`calibrate`: from a request for nodes to the archive of a calibration."""

import os
from pathlib import Path

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.files import check_output
from lepaute.measure.calibration.job import Calibration, Progress
from lepaute.measure.experiment.closing import partial_name
from lepaute.measure.experiment.life import execute
from lepaute.measure.experiment.options import Options
from lepaute.measure.probes import build_probes
from lepaute.measure.schedulers import Request

#: A network is not known without messages beyond its eager limit; the probes count bytes in an int.
LEAST_MESSAGE_BYTES, MOST_MESSAGE_BYTES = 1 << 20, 1 << 30


def calibrate(
    out_archive: str | Path,
    *,
    quick: bool = False,
    network_bytes: int | None = None,
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
    seed     : of the designs, of their order and of the probes' data; when resuming, that of the beginning holds
    progress : called with what is being done and the share of the work that is done
    python   : the interpreter on the nodes, where it is not this one
    resume   : go on with a calibration of that archive that did not end
    Raises EnvironmentProblem when something the probes need is missing, a probe fails or no node is left, InputError
    for a seed that no generator takes or a message that no probe sends, KeyboardInterrupt. When measurements had begun
    they are archived beside as NAME.partial.zip, its metadata marked `partial`, the exception has a note that says so,
    and an older archive of the same name stays as it was.
    """
    out_archive = Path(out_archive)
    tell = progress if progress is not None else _silent
    check_output(out_archive)
    if network_bytes is not None and not LEAST_MESSAGE_BYTES <= network_bytes <= MOST_MESSAGE_BYTES:
        raise InputError(
            f"the largest message is {network_bytes} bytes; give {LEAST_MESSAGE_BYTES} to {MOST_MESSAGE_BYTES}"
        )
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
    outcome = execute(Calibration(options, probes, quick=quick, tell=tell, network_bytes=network_bytes), resume)
    if outcome.status == "complete":
        tell("done", 1.0)
        return outcome.archive
    problem = EnvironmentProblem(outcome.failure) if outcome.status == "failed" else KeyboardInterrupt()
    problem.add_note(f"what was measured until then is in {partial_name(out_archive)}; resume with --resume")
    raise problem


def _silent(_message: str, _share: float) -> None:
    """Progress that is not shown."""
