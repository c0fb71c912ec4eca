"""Which MPI library is faster, for which operations and sizes, by how much, and how sure.

>>> import lepaute as lp
>>> found = lp.compare.archives("comparison.zip")  # that `lepaute compare` or lp.measure_libraries wrote
>>> found.answer
>>> table = found.to_frame()  # a row an operation, form and size
>>> found.write_report("report.html")

`by_ranks("comparison.zip")` gives a comparison for each number of ranks, where a campaign has several.
`outputs("openmpi.txt", "mpich.txt")` compares what the OSU or the Intel MPI benchmarks printed, as far as that goes.
"""

from typing import TYPE_CHECKING

from lepaute.kit.later import public_names

if TYPE_CHECKING:
    from lepaute.measure.compare.benchmark_output import outputs as outputs
    from lepaute.measure.compare.comparison import Comparison as Comparison
    from lepaute.measure.compare.comparison import archives as archives
    from lepaute.measure.compare.comparison import by_ranks as by_ranks
    from lepaute.measure.compare.verdicts import Verdict as Verdict

__all__ = ["Comparison", "Verdict", "archives", "by_ranks", "outputs"]

_HOME_OF = {
    "Comparison": ("lepaute.measure.compare.comparison", "Comparison"),
    "Verdict": ("lepaute.measure.compare.verdicts", "Verdict"),
    "archives": ("lepaute.measure.compare.comparison", "archives"),
    "by_ranks": ("lepaute.measure.compare.comparison", "by_ranks"),
    "outputs": ("lepaute.measure.compare.benchmark_output", "outputs"),
}

__getattr__, __dir__ = public_names(__name__, _HOME_OF)
