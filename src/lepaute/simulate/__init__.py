"""Simulation: an application and a platform to a predicted distribution of runs."""

from lepaute.simulate.hpl import Hpl
from lepaute.simulate.mapping import Mapping
from lepaute.simulate.predict import Layers, predict, predict_all
from lepaute.simulate.prediction import Prediction, Run, Spread

__all__ = ["Hpl", "Layers", "Mapping", "Prediction", "Run", "Spread", "predict", "predict_all"]
