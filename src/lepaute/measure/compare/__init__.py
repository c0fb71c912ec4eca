"""Which MPI library is faster, for which operations and sizes, by how much, and how sure.

>>> import lepaute as lp
>>> found = lp.compare.archives("comparison.zip")  # that `lepaute compare` or lp.measure_libraries wrote
>>> found.answer
>>> table = found.to_frame()  # a row an operation, form and size
>>> found.write_report("report.html")

`by_ranks("comparison.zip")` gives a comparison for each number of ranks, where a campaign has several.
`outputs("openmpi.txt", "mpich.txt")` compares what the OSU or the Intel MPI benchmarks printed, as far as that goes.
`measured_calls("comparison.zip", "mpich")` is what a replay takes in the place of a library's rules.
"""

from typing import TYPE_CHECKING

from lepaute.kit.later import public_names

if TYPE_CHECKING:
    from lepaute.measure.compare.benchmark_output import outputs as outputs
    from lepaute.measure.compare.comparison import Comparison as Comparison
    from lepaute.measure.compare.comparison import archives as archives
    from lepaute.measure.compare.comparison import by_ranks as by_ranks
    from lepaute.measure.compare.summaries import measured_calls as measured_calls
    from lepaute.measure.compare.verdicts import Verdict as Verdict

__getattr__, __dir__, __all__ = public_names(__name__)
