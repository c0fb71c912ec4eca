"""What is wrong with a study file: file, line, field, value, what is wanted; imported when one has been refused."""

from typing import TYPE_CHECKING

from lepaute.errors import InputError
from lepaute.kit.documents import Steps, composed, fields_at, guess, line_in, shown, spoken
from lepaute.study.schema import Base, Study

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

_LONGEST = 500
#: Where a mapping is wanted.
_EXAMPLES = {
    "application": "{name: hpl, n: 20k, grid: 8x16}",
    "factor": "{path: application.nb, levels: [64, 128]}",
    "factors": "{nb: {path: application.nb, levels: [64, 128]}}",
    "scenarios": "{as it is: {}, half the bandwidth: {scale.bandwidth: 0.5}}",
}


def described(error: "ValidationError", content: object, text: str | None, origin: str) -> InputError:
    """The error of a refused study: one line on its first fault, and how many more there are."""
    if not isinstance(content, dict):
        actual = "empty" if content is None else f"a {type(content).__name__}"
        return InputError(
            f"{origin}: is {actual}; a study is a mapping, as 'lepaute study ready nb-and-grid --print' shows"
        )
    faults = sorted(error.errors(include_url=False), key=lambda each: each["type"] != "extra_forbidden")
    first = faults[0]
    path = _path(first)
    more = f" ({len(faults) - 1} more fault{'s' * (len(faults) > 2)})" if len(faults) > 1 else ""
    return located(path, f"{_problem(first, path)}{more}", text, origin)


def located(path: Steps, problem: str, text: str | None, origin: str) -> InputError:
    """The error that the value at `path` has a problem."""
    root = None if text is None else composed(text)
    where = origin if root is None else f"{origin}:{line_in(path, root)}"
    if len(problem) > _LONGEST:
        problem = f"{problem[: _LONGEST // 2]} ... {problem[-_LONGEST // 2 :]}"
    return InputError(f"{where}: {spoken(path)} {problem}")


def _path(detail: "ErrorDetails") -> Steps:
    steps = [step for step in detail["loc"] if step != "[key]"]
    # A member of a union has its name as a step, which no file has.
    steps = [step for step in steps if not (isinstance(step, str) and step.startswith(("literal[", "PlacedRandomly")))]
    return (*steps, *detail.get("ctx", {}).get("at", ()))


def _place(path: Steps) -> str:
    """What a mapping is of."""
    return "factor" if len(path) == 2 and path[0] == "factors" else str(path[-1])


def _problem(detail: "ErrorDetails", path: Steps) -> str:
    kind, given = detail["type"], shown(detail["input"])
    if kind == "fault":
        return detail["msg"]
    if kind == "missing":
        return "is missing; add it"
    if kind == "extra_forbidden":
        if len(path) == 1 and path[0] in Base.model_fields:
            return "is not a field of a study: it belongs under base"
        known = fields_at(Study, path[:-1])
        return f"is not a field of a study{guess(str(path[-1]), known)}; remove or rename it"
    if kind in ("dict_type", "model_type"):
        return f"is {given}; write a mapping, such as {_EXAMPLES.get(_place(path), '{name: value}')}"
    if kind == "literal_error":
        return f"is {given}; it must be {detail['ctx']['expected']}"
    if kind == "string_pattern_mismatch":
        return f"is {given}; a name has letters, digits and _, and begins with no digit"
    return f"is {given}; {detail['msg'][:1].lower()}{detail['msg'][1:]}"
