"""Simulation: an application and a platform to a predicted distribution of runs.

What is named here is loaded when it is first used: the options of applications are known without the engine.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lepaute.simulate.apps import class_modules

if TYPE_CHECKING:
    from lepaute.simulate.application import Application as Application
    from lepaute.simulate.apps.hpl import Hpl as Hpl
    from lepaute.simulate.apps.program import Program as Program
    from lepaute.simulate.apps.stencil import Stencil as Stencil
    from lepaute.simulate.comparing import Difference as Difference
    from lepaute.simulate.comparing import difference as difference
    from lepaute.simulate.emulating import emulate as emulate
    from lepaute.simulate.layers import Layers as Layers
    from lepaute.simulate.mapping import Mapping as Mapping
    from lepaute.simulate.predicting import predict as predict
    from lepaute.simulate.predicting import predict_all as predict_all
    from lepaute.simulate.predicting import simulate_one as simulate_one
    from lepaute.simulate.prediction import Prediction as Prediction
    from lepaute.simulate.prediction import Run as Run
    from lepaute.simulate.prediction import Spread as Spread

_MODULE_OF = {
    "Application": "application",
    "Difference": "comparing",
    "Layers": "layers",
    "Mapping": "mapping",
    "Prediction": "prediction",
    "Program": "apps.program",
    "Run": "prediction",
    "Spread": "prediction",
    "difference": "comparing",
    "emulate": "emulating",
    "predict": "predicting",
    "predict_all": "predicting",
    "simulate_one": "predicting",
}

__all__ = [
    "Application",
    "Difference",
    "Hpl",
    "Layers",
    "Mapping",
    "Prediction",
    "Program",
    "Run",
    "Spread",
    "Stencil",
    "difference",
    "emulate",
    "predict",
    "predict_all",
    "simulate_one",
]


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is not None:
        return getattr(import_module(f"lepaute.simulate.{module}"), name)
    if name[:1].isupper() and (module := class_modules().get(name)):
        return getattr(import_module(module), name)
    raise AttributeError(f"module 'lepaute.simulate' has no attribute {name!r}")
