"""Simulation: an application and a platform to a predicted distribution of runs.

What is named here is loaded when it is first used: the options of applications are known without the engine.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lepaute.simulate.application import Application as Application
    from lepaute.simulate.apps.hpl import Hpl as Hpl
    from lepaute.simulate.apps.program import Program as Program
    from lepaute.simulate.apps.stencil import Stencil as Stencil
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
    "Hpl": "apps.hpl",
    "Layers": "layers",
    "Mapping": "mapping",
    "Prediction": "prediction",
    "Program": "apps.program",
    "Run": "prediction",
    "Spread": "prediction",
    "Stencil": "apps.stencil",
    "predict": "predicting",
    "predict_all": "predicting",
    "simulate_one": "predicting",
}

__all__ = [
    "Application",
    "Hpl",
    "Layers",
    "Mapping",
    "Prediction",
    "Program",
    "Run",
    "Spread",
    "Stencil",
    "predict",
    "predict_all",
    "simulate_one",
]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(f"lepaute.simulate.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module 'lepaute.simulate' has no attribute {name!r}")
