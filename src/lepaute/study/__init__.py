"""Studies: questions that take many simulations, each asked once, and how sure the answers are.

>>> import lepaute as lp
>>> run = lp.study.run("STUDY.yaml", folder="results")
>>> print(run.text)

What is named here is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lepaute.study.evaluation import Outcome as Outcome
    from lepaute.study.evaluation import Point as Point
    from lepaute.study.evaluation import Trial as Trial
    from lepaute.study.running import run_study as run
    from lepaute.study.schema import Study as Study
    from lepaute.study.schema import load_study as load

_HOME_OF = {
    "Outcome": ("evaluation", "Outcome"),
    "Point": ("evaluation", "Point"),
    "Study": ("schema", "Study"),
    "Trial": ("evaluation", "Trial"),
    "load": ("schema", "load_study"),
    "run": ("running", "run_study"),
}

__all__ = ["Outcome", "Point", "Study", "Trial", "load", "run"]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        module, attribute = _HOME_OF[name]
        return getattr(import_module(f"lepaute.study.{module}"), attribute)
    raise AttributeError(f"module 'lepaute.study' has no attribute {name!r}")
