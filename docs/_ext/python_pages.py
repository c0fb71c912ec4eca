"""Pages of the public Python names: what `dir(lepaute)` and `dir()` of its packages list, with their docstrings."""

import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from docstrings import markdown, summary
from markdown_text import Pages, escaped, table
from sphinx.util.inspect import stringify_signature

import lepaute
from lepaute.simulate.apps import APPLICATIONS

#: Pages of the names of `lepaute` itself: file -> title, and names in their order; its packages have a page each.
GROUPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "predictions": (
        "Predictions",
        (
            *("predict", "emulate", "difference", "check", "learn", "read_prediction", "simulate_one"),
            *(*(entry.class_name for entry in APPLICATIONS.values()), "Program", "Application", "Grid", "Cost"),
            *("Prediction", "Difference", "Spread"),
            *("Layers", "Mapping", "Options", "TraceRequest"),
        ),
    ),
    "platforms": ("Platforms", ("load_platform", "override", "scaled", "Platform")),
    "measurements": (
        "Measurements",
        (
            *("Archive", "Job", "run", "Until", "Target", "measure_libraries", "measure_sessions"),
            *("read_trace", "Trace", "why"),
        ),
    ),
    "errors": ("Errors", ("LepauteError", "InputError", "PredictionWarning")),
}
#: What is no object with a docstring.
PLAIN = {"__version__": "The version of the package, a text."}


def python_pages() -> Pages:
    """The pages below `python/`: an index, those of GROUPS, and one for each public package."""
    pages = {f"python/{name}.md": _page(title, "lepaute", names) for name, (title, names) in GROUPS.items()}
    for name in packages():
        module = getattr(lepaute, name)
        text = [*markdown(inspect.getdoc(module) or "")]
        pages[f"python/{name}.md"] = _page(f"lepaute.{name}", f"lepaute.{name}", public(module), text)
    pages["python/index.md"] = "\n".join(_index())
    return pages


def packages() -> list[str]:
    """The public packages of `lepaute`, in the order of the alphabet."""
    return [name for name in lepaute.__all__ if isinstance(getattr(lepaute, name), ModuleType)]


def public(module: ModuleType) -> tuple[str, ...]:
    """Functions first, then classes."""
    names = [name for name in dir(module) if not name.startswith("__")]
    return tuple(sorted(names, key=lambda name: (inspect.isclass(getattr(module, name)), name.casefold())))


def _index() -> Iterator[str]:
    yield from (
        "# Python",
        "",
        "`import lepaute as lp` has what the commands do. Every name is loaded when it is first used.",
        "",
    )
    for title, names in GROUPS.values():
        yield from (f"## {title}", "", *_list_of("lepaute", names))
    for name in packages():
        yield from (f"## lepaute.{name}", "", *_list_of(f"lepaute.{name}", public(getattr(lepaute, name))))
    yield from ("## Version", "", *(f"- `lepaute.{name}`: {what}" for name, what in PLAIN.items()), "")
    yield from ("```{toctree}", ":hidden:", "", *GROUPS, *packages(), "```", "")


def _list_of(home: str, names: tuple[str, ...]) -> Iterator[str]:
    told = {name: escaped(summary(inspect.getdoc(found(home, name)) or "")) for name in names}
    rows = [(f"{{py:obj}}`{name} <{home}.{name}>`", what) for name, what in told.items()]
    yield from table(("name", "what it does, or is"), rows)


def found(home: str, name: str) -> Any:
    """The object of a public name."""
    return getattr(lepaute if home == "lepaute" else getattr(lepaute, home.partition(".")[2]), name)


def _page(title: str, home: str, names: tuple[str, ...], text: list[str] | None = None) -> str:
    lines = [f"# {title}", "", *(text or [])]
    for name in names:
        lines += [f"## {escaped(name)}", "", *_described(f"{home}.{name}", found(home, name))]
    return "\n".join(lines)


def _described(full: str, value: Any) -> Iterator[str]:
    kind = "py:class" if inspect.isclass(value) else "py:function" if callable(value) else "py:data"
    if inspect.isclass(value) and issubclass(value, BaseException):
        kind = "py:exception"
    is_model = hasattr(value, "model_validate")
    yield f"::::{{{kind}}} {full}{'' if kind == 'py:exception' or is_model else signature_of(value)}"
    yield ""
    yield from markdown(inspect.getdoc(value) or "")
    if is_model:
        yield from _fields(value)
    if kind == "py:class":
        for name in members(value):
            yield from _member(value, name)
    yield from ("::::", "")


def signature_of(value: Any) -> str:
    """With annotations as they are written, and defaults that are no literals as dots."""
    try:
        shown = stringify_signature(inspect.signature(value), unqualified_typehints=True)
    except (TypeError, ValueError):
        return "()"
    shown = re.sub(r"~lepaute\.(?:\w+\.)*(\w+)", _short, shown)
    return re.sub(r"<[^<>]*>", "...", shown).replace("\n", " ")


def _short(annotation: re.Match[str]) -> str:
    """A class by its public name, to which Sphinx links; the others by the last word."""
    return f"~lepaute.{annotation[1]}" if annotation[1] in lepaute.__all__ else annotation[1]


def _fields(model: Any) -> Iterator[str]:
    of = getattr(model, "model_fields", None) or model.__dataclass_fields__
    yield from table(("field", "what"), ((f"`{n}`", escaped(getattr(of[n], "description", "") or "")) for n in of))


def members(kind: type) -> list[str]:
    """Public methods and properties that the package itself defines, and that have a docstring."""
    return [
        name
        for name in dir(kind)
        if not name.startswith("_")
        and any(name in vars(base) and base.__module__.startswith("lepaute") for base in kind.__mro__)
        and (isinstance(inspect.getattr_static(kind, name), property) or inspect.isroutine(getattr(kind, name, None)))
        and inspect.getdoc(getattr(kind, name))
    ]


def _member(kind: type, name: str) -> Iterator[str]:
    value = getattr(kind, name)
    if isinstance(value, property):
        yield f":::{{py:property}} {name}"
        told = value.fget
    else:
        is_class_method = isinstance(inspect.getattr_static(kind, name), classmethod)
        text = signature_of(value)
        yield f":::{{py:method}} {name}{text if is_class_method else re.sub(r'^[(]self(, )?', '(', text)}"
        if is_class_method:
            yield ":classmethod:"
        told = value
    yield ""
    yield from markdown(inspect.getdoc(told) or "")
    yield from (":::", "")
