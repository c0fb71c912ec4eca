"""What is loaded when it is first used: other modules, and the public names of packages."""

from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from lepaute.kit.extras import missing_extra


class _Later(ModuleType):
    """Stands for a module that is loaded when one of its attributes is first asked for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


def later(name: str) -> Any:
    """The module `name`, loaded when it is first used.

    In the `else` of an `if TYPE_CHECKING:` that imports it: annotations such as "pandas.DataFrame" then are known to
    typing.get_type_hints, and pandas is loaded by who asks for them.
    """
    return _Later(name)


def public_names(
    package: str, home_of: Mapping[str, tuple[str, str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package that loads its names when they are first used, and lists no others.

    home_of : name -> module, and the name there; "" for the module itself
    """

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        module, there = home_of[name]
        try:
            loaded = import_module(module)
        except ImportError as error:
            if (missing := missing_extra(error, f"{package}.{name}")) is None:
                raise
            raise missing from error
        return getattr(loaded, there) if there else loaded

    def names() -> list[str]:
        return sorted([*import_module(package).__all__, "__doc__", "__file__", "__name__", "__path__"])

    return get, names
