"""Lepaute: predicts how long an MPI application takes on a machine, and states the error.

>>> import lepaute as lp
>>> hpl = lp.Hpl(n=20_000, nb=128, p=4, q=4)
>>> prediction = lp.predict(hpl, "dahu", runs=10)
>>> prediction.time_s.low < prediction.time_s.mean < prediction.time_s.high  # 95 % of further runs
True
>>> table = prediction.to_frame()  # a row a run; prediction.plot("runs.png") draws them

Platforms      load_platform("dahu" or a file), Platform
Predictions    predict(Hpl(...) or Stencil(...), platform), emulate(program, platform, ranks=...), difference
Measurements   Archive.open(file), fit.models(archives), fit.segment(x, y), fit.read_durations(file), read_trace(file)
Studies        study.run("STUDY.yaml"): tune, what if, sensitivity, capacity
MPI libraries  measure_libraries(["openmpi", "mpich"], file), compare.archives(file): which is faster, and how sure
Watching       watch.open(store) tests machines against what earlier jobs measured of them
Experiments    design (tables of what to measure), Job (what is measured, and how), run(Job, archive)

In a notebook each of these shows itself as a table; help(lp.predict) has the arguments. Every name is loaded when it is
first used: `import lepaute` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lepaute.simulate.apps import class_modules
from lepaute.version import __version__

if TYPE_CHECKING:
    from lepaute import compare as compare
    from lepaute import design as design
    from lepaute import fit as fit
    from lepaute import study as study
    from lepaute import watch as watch
    from lepaute.archive import Archive as Archive
    from lepaute.errors import LepauteError as LepauteError
    from lepaute.measure.comparison.campaign import measure_libraries as measure_libraries
    from lepaute.measure.comparison.sessions import measure_sessions as measure_sessions
    from lepaute.measure.experiment.job import Job as Job
    from lepaute.measure.experiment.life import run as run
    from lepaute.measure.experiment.rounds import Until as Until
    from lepaute.platform import Platform as Platform
    from lepaute.platform import load_platform as load_platform
    from lepaute.simulate import Hpl as Hpl
    from lepaute.simulate import Layers as Layers
    from lepaute.simulate import Prediction as Prediction
    from lepaute.simulate import Program as Program
    from lepaute.simulate import Stencil as Stencil
    from lepaute.simulate import difference as difference
    from lepaute.simulate import emulate as emulate
    from lepaute.simulate import predict as predict
    from lepaute.simulate import simulate_one as simulate_one
    from lepaute.stats.stopping import Target as Target
    from lepaute.trace import Trace as Trace
    from lepaute.trace import read_trace as read_trace

_HOME_OF = {  # the public names, and the package each is loaded from
    "Archive": "lepaute.archive",
    "Job": "lepaute.measure.experiment.job",
    "Layers": "lepaute.simulate",
    "LepauteError": "lepaute.errors",
    "Platform": "lepaute.platform",
    "Prediction": "lepaute.simulate",
    "Program": "lepaute.simulate",
    "Target": "lepaute.stats.stopping",
    "Trace": "lepaute.trace",
    "Until": "lepaute.measure.experiment.rounds",
    "load_platform": "lepaute.platform",
    "measure_libraries": "lepaute.measure.comparison.campaign",
    "measure_sessions": "lepaute.measure.comparison.sessions",
    "difference": "lepaute.simulate",
    "emulate": "lepaute.simulate",
    "predict": "lepaute.simulate",
    "read_trace": "lepaute.trace",
    "run": "lepaute.measure.experiment.life",
    "simulate_one": "lepaute.simulate",
}

__all__ = [
    "Archive",
    "Job",
    "Layers",
    "LepauteError",
    "Platform",
    "Prediction",
    "Program",
    "Target",
    "Trace",
    "Until",
    "__version__",
    "compare",
    "design",
    "difference",
    "emulate",
    "fit",
    "load_platform",
    "measure_libraries",
    "measure_sessions",
    "predict",
    "read_trace",
    "run",
    "simulate_one",
    "study",
    "watch",
]
__all__ += sorted(class_modules())  # noqa: PLE0605 - Hpl, Stencil, ...


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted([*__all__, "__doc__", "__file__", "__name__", "__path__"])


def __getattr__(name: str) -> Any:
    if name in {"compare", "design", "fit", "study", "watch"}:
        return import_module(f"lepaute.{name}")
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    if module := class_modules().get(name):
        return getattr(import_module(module), name)
    raise AttributeError(f"module 'lepaute' has no attribute {name!r}")
