"""Simulation: an application and a platform to a predicted distribution of runs."""

from lepaute.simulate.hpl import Hpl
from lepaute.simulate.predict import Layers, predict
from lepaute.simulate.prediction import Prediction, Run, Spread

__all__ = ["Hpl", "Layers", "Prediction", "Run", "Spread", "predict"]
