"""A study in words: its question, its responses, its configurations."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lepaute.kit.text import quantity
from lepaute.report.tables import number
from lepaute.study.evaluation import LESS_IS_BETTER, SCENARIO, Point

if TYPE_CHECKING:
    from lepaute.study.schema import Study

#: Noun and unit of each response; derived ones go by their names.
RESPONSES: Mapping[str, tuple[str, str]] = {
    "time_s": ("the time", "s"),
    "rate_gflops": ("the rate", "Gflop/s"),
    "energy_j": ("the energy", "J"),
    "gflops_per_watt": ("the rate per watt", "Gflop/s/W"),
}
#: Levels that are named one by one.
MOST_NAMED = 6


def noun(response: str) -> str:
    """Of a response: the time, the rate, cost."""
    return RESPONSES.get(response, (response, ""))[0]


def label(response: str) -> str:
    """Of an axis or a column: time, s."""
    name, unit = RESPONSES.get(response, (response, ""))
    return f"{name.removeprefix('the ')}, {unit}" if unit else name


def amount(response: str, value: float) -> str:
    """A value of a response: 15.74 s, 3.027 Tflop/s, 166,400."""
    unit = RESPONSES.get(response, ("", ""))[1]
    return quantity(value, unit) if unit else number(value, 4)


def called(point: Point) -> str:
    """A configuration by its factors; a scenario by its name alone."""
    others = Point({name: value for name, value in point.items() if name != SCENARIO})
    return ", ".join(text for text in (str(point.get(SCENARIO, "")), str(others)) if text)


def question_in_words(study: "Study") -> str:
    """What the study asks, as a sentence."""
    response = study.responses[0]
    names = [*([SCENARIO] if study.scenarios else []), *study.factors]
    if study.question == "tune":
        best = "lowest" if response in LESS_IS_BETTER else "highest"
        return f"With which {listed(names)} is {noun(response)} {best}?"
    if study.question == "sensitivity":
        return f"Which of {listed(names)} matter to {noun(response)}, and how much?"
    if study.question == "capacity":
        limits = []
        if study.capacity is not None and study.capacity.price is not None:
            limits.append(f"for a price of at most {number(study.capacity.price)}")
        if study.capacity is not None and study.capacity.watts is not None:
            limits.append(f"with at most {quantity(study.capacity.watts, 'W')}")
        within = "".join(f" {each}" for each in limits)
        return f"Which machines of the catalogue{within} does no other one beat in time, cost and energy at once?"
    asked = study.compared
    others = [level for level in study.levels[asked.factor] if Point({"x": level}) != Point({"x": asked.base})]
    of = "" if asked.factor == SCENARIO else f"{asked.factor} = "
    best_of = f", each with its best {listed(asked.best_of)}" if asked.best_of else ""
    if asked.factor == SCENARIO:
        others, base = [f"“{level}”" for level in others], f"“{asked.base}”"
    else:
        base = f"{of}{asked.base}"
    return f"How does {noun(response)} change with {of}{listed(others)}, against {base}{best_of}?"


def begun(text: str) -> str:
    """With a capital letter."""
    return f"{text[:1].upper()}{text[1:]}"


def listed(names: Sequence[Any]) -> str:
    """a, b and c; of many the first ones and the last one."""
    words = [f"{name:.6g}" if isinstance(name, float) else str(name) for name in names]
    if len(words) > MOST_NAMED:
        words = [*words[: MOST_NAMED - 2], "...", words[-1]]
        return ", ".join(words)
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
