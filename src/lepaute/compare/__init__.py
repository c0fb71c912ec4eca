"""Which MPI library is faster, for which operations and sizes, by how much, and how sure.

>>> import lepaute as lp
>>> found = lp.compare.archives("comparison.zip")  # that `lepaute compare` or lp.measure_libraries wrote
>>> found.answer
>>> table = found.to_frame()  # a row an operation, form and size
>>> found.write_report("report.html")

`outputs("openmpi.txt", "mpich.txt")` compares what the OSU or the Intel MPI benchmarks printed, as far as that goes.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lepaute.compare.benchmark_output import outputs as outputs
    from lepaute.compare.comparison import Comparison as Comparison
    from lepaute.compare.comparison import archives as archives
    from lepaute.compare.verdicts import Verdict as Verdict

__all__ = ["Comparison", "Verdict", "archives", "outputs"]

#: The public names, and the module each is loaded from.
_HOME_OF = {
    "Comparison": "comparison",
    "Verdict": "verdicts",
    "archives": "comparison",
    "outputs": "benchmark_output",
}


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted([*__all__, "__doc__", "__file__", "__name__", "__path__"])


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(f"lepaute.compare.{_HOME_OF[name]}"), name)
    raise AttributeError(f"module 'lepaute.compare' has no attribute {name!r}")
