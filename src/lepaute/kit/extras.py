"""What only some commands load: the extras that bring it, and the line that installs one which is missing."""

from importlib.util import find_spec

from lepaute.errors import EnvironmentProblem

#: By extra of pyproject.toml, the modules that it brings and that are imported here.
EXTRAS: dict[str, tuple[str, ...]] = {
    "fit": ("scipy", "pyarrow"),
    "trace": ("pyarrow", "matplotlib"),
    "report": ("matplotlib",),
    "compare": ("scipy", "pyarrow", "matplotlib"),
    "study": ("scipy", "matplotlib", "optuna", "SALib", "dask", "distributed", "dask_jobqueue"),
    "watch": ("scipy", "pyarrow", "matplotlib", "duckdb", "apprise", "prometheus_client", "vl_convert"),
    "postgresql": ("psycopg",),
    "otf2": ("otf2",),
    "mcmc": ("numpyro", "jax"),
}


class MissingExtra(EnvironmentProblem, ImportError):
    """A package that only some commands load is not installed; the message is the line that installs it."""


def need(extra: str, wanted_by: str = "this") -> None:
    """Raises MissingExtra where a module of `extra` is not installed; imports none of them.

    wanted_by : the beginning of the message, what needs it: a command, an option
    """
    for module in EXTRAS[extra]:
        if not _is_installed(module):
            raise MissingExtra(_line(module, extra, wanted_by))


def missing_modules() -> dict[str, tuple[str, ...]]:
    """By extra, in the order of EXTRAS, its modules that are not installed; imports none of them."""
    return {name: tuple(module for module in modules if not _is_installed(module)) for name, modules in EXTRAS.items()}


def missing_extra(error: ImportError, wanted_by: str = "this", extra: str = "") -> MissingExtra | None:
    """What to say instead of an import that failed; None if the module is of no extra, or is there.

    extra : that of the command, named where it has the module; else the first that has
    """
    module = (error.name or "").partition(".")[0]
    holders = [name for name, modules in EXTRAS.items() if module in modules]
    if not holders or _is_installed(module):
        return None
    return MissingExtra(_line(module, extra if extra in holders else holders[0], wanted_by))


def _line(module: str, extra: str, wanted_by: str) -> str:
    return f"{wanted_by} needs {module}, which is not installed: pip install 'lepaute[{extra}]'"


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:
        return False
    except ValueError:  # it is loaded, and without a specification
        return True
