"""The questions that a study may ask, by name; each is loaded when it is asked."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from lepaute.simulate.prediction.trust import Trust
    from lepaute.study.configuration import Configurations
    from lepaute.study.evaluation import Evaluate, Point
    from lepaute.study.schema import Study


class Answer(Protocol):
    """What a question gives: for a person, and as a JSON object; trusts : of the points that it judged."""

    @property
    def text(self) -> str: ...

    @property
    def trusts(self) -> "Mapping[Point, Trust]": ...

    def to_dict(self) -> dict[str, Any]: ...


Question = Callable[["Study", "Configurations", "Evaluate"], Answer]
#: Name -> module and function.
_PLACES: Mapping[str, tuple[str, str]] = {
    "whatif": ("lepaute.study.whatif", "whatif"),
    "tune": ("lepaute.study.tune_question", "tune"),
    "sensitivity": ("lepaute.study.sensitivity_question", "sensitivity"),
    "capacity": ("lepaute.study.capacity", "capacity"),
}


def question_of(study: "Study") -> Question:
    """What answers the question of the study."""
    module, name = _PLACES[study.question]
    question: Question = getattr(import_module(module), name)
    return question
