"""An experiment run from a Python session, such as a notebook: what `lepaute run` does, for a class at hand."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.kit.numbers import of_type
from lepaute.measure.experiment.closing import partial_name
from lepaute.measure.experiment.job import Job
from lepaute.measure.experiment.life import execute
from lepaute.measure.experiment.options import check_archive, new_name, options_from
from lepaute.measure.experiment.workspace import Workspace, folder_of

if TYPE_CHECKING:
    from lepaute.archive import Archive


def run(
    job_class: type[Job],
    archive: str | Path | None = None,
    *,
    resume: bool = False,
    force: bool = False,
    **settings: Any,
) -> "Archive":
    """Runs an experiment, setup to teardown, and opens its archive: `lepaute run` for a class of a notebook.

    archive  : the file to write; EXPERIMENT-DATE.zip unless given
    resume   : go on with the interrupted run of that archive, after its last complete row
    force    : replace an archive of that name, and what a failed run has left beside it
    settings : seed, parameters, control, nodes, scheduler, ...: the settings of `Job`
    What fails is raised once it is archived, as NAME.partial.zip; Ctrl-C (interrupting the kernel) too.
    """
    of_type(job_class, "the experiment", type, "a class derived from lepaute.Job")
    target = Path(archive) if archive is not None else new_name(job_class.__name__.lower())
    check_archive(target, force=force)
    if force and not resume and folder_of(target).is_dir():
        Workspace.reopen(folder_of(target)).remove()
    job = job_class(options_from(job_class.__name__, {**settings, "archive": target}, force=force))
    outcome = execute(job, resume=resume)
    job.record_of_run.tell(outcome.headline)
    if outcome.problem is not None:
        with suppress(AttributeError):  # of an exception that has no notes
            outcome.problem.add_note(
                f"what was measured until then is in {partial_name(target)}; go on with lp.run(..., resume=True), or "
                "begin anew with force=True"
            )
        raise outcome.problem
    from lepaute.archive import Archive

    return Archive.open(outcome.archive)
