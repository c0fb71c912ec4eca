"""Studies: questions that take many simulations, each asked once, and how sure the answers are.

>>> import lepaute as lp
>>> run = lp.study.run("STUDY.yaml", folder="results")
>>> print(run.text)

What is named here is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from lepaute.kit.later import public_names

if TYPE_CHECKING:
    from lepaute.study.evaluation import Outcome as Outcome
    from lepaute.study.evaluation import Point as Point
    from lepaute.study.evaluation import Trial as Trial
    from lepaute.study.running import StudyRun as StudyRun
    from lepaute.study.running import run_study as run
    from lepaute.study.schema import Study as Study
    from lepaute.study.schema import load_study as load

__all__ = ["Outcome", "Point", "Study", "StudyRun", "Trial", "load", "run"]
__getattr__, __dir__, _ = public_names(__name__)
