"""Lepaute: predicts how long an MPI application takes on a machine, and states the error.

>>> import lepaute as lp
>>> hpl = lp.Hpl(n=40_000, nb=256, p=4, q=4)
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

from typing import TYPE_CHECKING

from lepaute.kit.later import public_names
from lepaute.version import __version__ as __version__

if TYPE_CHECKING:
    from lepaute import study as study
    from lepaute import watch as watch
    from lepaute.errors import InputError as InputError
    from lepaute.errors import LepauteError as LepauteError
    from lepaute.errors import PredictionWarning as PredictionWarning
    from lepaute.measure import compare as compare
    from lepaute.measure import design as design
    from lepaute.measure import fit as fit
    from lepaute.measure.archive import Archive as Archive
    from lepaute.measure.comparison.measuring import measure_libraries as measure_libraries
    from lepaute.measure.comparison.sessions import measure_sessions as measure_sessions
    from lepaute.measure.experiment.job import Job as Job
    from lepaute.measure.experiment.life import run as run
    from lepaute.measure.experiment.rounds import Until as Until
    from lepaute.simulate import Cost as Cost
    from lepaute.simulate import Difference as Difference
    from lepaute.simulate import Grid as Grid
    from lepaute.simulate import Layers as Layers
    from lepaute.simulate import Mapping as Mapping
    from lepaute.simulate import Options as Options
    from lepaute.simulate import Prediction as Prediction
    from lepaute.simulate import Program as Program
    from lepaute.simulate import Spread as Spread
    from lepaute.simulate import TraceRequest as TraceRequest
    from lepaute.simulate import check as check
    from lepaute.simulate import difference as difference
    from lepaute.simulate import emulate as emulate
    from lepaute.simulate import predict as predict
    from lepaute.simulate import read_prediction as read_prediction
    from lepaute.simulate import simulate_one as simulate_one
    from lepaute.simulate.apps import *  # noqa: F403
    from lepaute.simulate.apps.own import Application as Application
    from lepaute.simulate.machine.population import scaled as scaled
    from lepaute.simulate.platform import Platform as Platform
    from lepaute.simulate.platform import load_platform as load_platform
    from lepaute.simulate.platform import override as override
    from lepaute.simulate.trace import Trace as Trace
    from lepaute.simulate.trace import read_trace as read_trace
    from lepaute.stats.stopping import Target as Target

__getattr__, __dir__, __all__ = public_names(__name__, "__version__")
