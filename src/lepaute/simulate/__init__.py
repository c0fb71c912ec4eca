"""Simulation: an application and a platform to a predicted distribution of runs.

apps        applications: HPL, the stencil, any program under SMPI; `application` is what they have in common
engines     `native` runs applications written for the core, `smpi` a program's own code; `engine` is what both are
machine     the platform's side: what the core takes, what a run draws, where ranks sit
prediction  from runs to predictions, what they rest on, and several of them side by side

What is named here is loaded when it is first used: the options of applications are known without the engine.
"""

from typing import TYPE_CHECKING

from lepaute.kit.later import public_names

if TYPE_CHECKING:
    from lepaute.simulate.application import Application as Application
    from lepaute.simulate.apps import *  # noqa: F403
    from lepaute.simulate.apps.own import check as check
    from lepaute.simulate.apps.own.values import Cost as Cost
    from lepaute.simulate.apps.own.values import Grid as Grid
    from lepaute.simulate.apps.program import Program as Program
    from lepaute.simulate.apps.program import emulate as emulate
    from lepaute.simulate.conditions import Layers as Layers
    from lepaute.simulate.machine.mapping import Mapping as Mapping
    from lepaute.simulate.prediction.comparing import Difference as Difference
    from lepaute.simulate.prediction.comparing import difference as difference
    from lepaute.simulate.prediction.predicting import predict as predict
    from lepaute.simulate.prediction.predicting import predict_all as predict_all
    from lepaute.simulate.prediction.predicting import simulate_one as simulate_one
    from lepaute.simulate.prediction.prediction import Prediction as Prediction
    from lepaute.simulate.prediction.prediction import Run as Run
    from lepaute.simulate.prediction.prediction import Spread as Spread
    from lepaute.simulate.prediction.request import PredictionRequest as PredictionRequest
    from lepaute.simulate.prediction.saved import read_prediction as read_prediction
    from lepaute.simulate.smpi.emulate import Options as Options
    from lepaute.simulate.tracing import TraceRequest as TraceRequest

__getattr__, __dir__, __all__ = public_names(__name__)
