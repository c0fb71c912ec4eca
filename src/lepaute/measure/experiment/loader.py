"""From a script to the experiment that it defines."""

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lepaute.errors import InputError, LepauteError
from lepaute.measure.experiment.script import line_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from lepaute.measure.experiment.job import Job
    from lepaute.measure.experiment.options import Options


def load_job_class(script: Path, name: str | None = None) -> "type[Job]":
    """The class in a script that is an experiment; `name` where it has several.

    The script is run as a module, from its own folder: it may import what lies beside it.
    Raises InputError when it cannot be run, or defines none, or several.
    """
    from lepaute.measure.experiment.job import Job

    if not script.is_file():
        raise InputError(f"{script}: there is no such file; give the script of an experiment")
    specification = importlib.util.spec_from_file_location(f"lepaute_experiment_{script.stem}", script)
    if specification is None or specification.loader is None:
        raise InputError(f"{script}: is not a Python script; its name ends in .py")
    module = importlib.util.module_from_spec(specification)
    sys.path.insert(0, str(script.parent.absolute()))
    try:
        specification.loader.exec_module(module)
    except (Exception, SystemExit) as problem:
        raise InputError(f"{script}{line_in(problem, script)}: {type(problem).__name__}: {problem}") from problem
    job_classes = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Job) and value.__module__ == module.__name__
    }
    if name is not None:
        if name not in job_classes:
            raise InputError(f"{script}: defines no experiment {name}; it has {', '.join(job_classes) or 'none'}")
        return job_classes[name]
    if len(job_classes) != 1:
        what = (
            "defines no subclass of lepaute.Job" if not job_classes else f"defines several ({', '.join(job_classes)})"
        )
        raise InputError(f"{script}: {what}; an experiment is one class (choose with --class)")
    return next(iter(job_classes.values()))


def made_job(job_class: "type[Job]", options: "Options", say: "Callable[[str], None] | None" = None) -> "Job":
    """The experiment with its options; raises InputError where a class of a script cannot be made so."""
    where = f"{options.script}: {job_class.__name__}"
    try:
        job = job_class(options, say=say)
    except LepauteError:
        raise
    except Exception as problem:
        problem_text = f"{type(problem).__name__}: {problem}"
        raise InputError(f"{where}() failed: {problem_text}; leave __init__ alone, and prepare in setup()") from problem
    if not hasattr(job, "options"):
        raise InputError(f"{where}.__init__ does not call that of lepaute.Job; leave it out, and prepare in setup()")
    return job
