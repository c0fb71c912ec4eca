"""The program of a rank in the core: its parameters made from the fields of an application, and one run of it."""

from dataclasses import fields
from functools import cache
from typing import Any

from lepaute import _core
from lepaute.kit.options import options_of

#: Fields of applications that choose the models of the machine, and are not parameters of the simulated program.
OF_THE_MACHINE = frozenset({"threads_per_rank"})


def simulate(name: str, *arguments: Any) -> _core.RunResult:
    """One run of the application `name` by the core."""
    result: _core.RunResult = getattr(_core, f"simulate_{name.replace('-', '_')}")(*arguments)
    return result


def core_parameters(application: Any) -> Any:
    """The core's parameters of an application: its fields by their names, words where there are choices."""
    described: Any = type(application)
    parameters = _parameters_class(described)()
    for name in _core_fields(described):
        setattr(parameters, name, getattr(application, name))
    return parameters


@cache
def _parameters_class(application: Any) -> type:
    """The class of the core that holds the parameters of an application.

    Raises ImportError where package and core disagree about the parameters, or about the choices of one.
    """
    parameters: type = getattr(_core, f"{application.__name__}Parameters")
    unknown = [name for name in _core_fields(application) if not hasattr(parameters, name)]
    if unknown:
        raise ImportError(
            f"the core has no {', '.join(unknown)} in {parameters.__name__}; build the package again, or add it there"
        )
    in_core: dict[str, list[str]] = getattr(parameters, "choices", dict)()
    options = options_of(application)
    for name, words in in_core.items():
        known = options[name].choices if name in options else ()
        if set(words) != set(known):
            raise ImportError(
                f"{application.__name__}.{name} is one of {', '.join(known)}, and of {', '.join(words)} in the core; "
                "build the package again, or make the two tables equal"
            )
    return parameters


def _core_fields(application: Any) -> list[str]:
    """The fields of an application that the core knows: all but those that are about the machine."""
    return [field.name for field in fields(application) if field.name not in OF_THE_MACHINE]
