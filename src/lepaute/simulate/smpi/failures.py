"""Why an emulated program failed, in one sentence."""

import re
import signal
from collections.abc import Mapping
from typing import Any

from lepaute.simulate.smpi.process import Ended

_BOGUS = (
    "results of BLAS are not computed: a loop that ends on a computed value, or a branch on one, cannot be emulated "
    "(docs/emulate.md)"
)
_MEMORY = "there is not enough memory; fold large allocations (--fold 1M), or take fewer ranks"


#: What SimGrid says of every crash.
_OF_SIMGRID = re.compile(r"gdb or valgrind|[Ss]egmentation fault|Access violation|stack overflow|contexts/stack-size")


def why_it_failed(ended: Ended, report: Mapping[str, Any] | None, ranks: int) -> str | None:
    """The reason; None where the program ended as it should."""
    text = "\n".join((*ended.stderr, *ended.stdout[-20:]))
    if ended.stopped is not None:
        return f"stopped, {ended.stopped}; {_BOGUS}"
    if re.search(r"deadlock", text, re.IGNORECASE):
        return f"deadlock: every rank waits for a message that nobody sends; {_BOGUS}"
    if found := re.search(r"dlopen failed[^:]*: ([^\n]*)", text):
        return (
            f"it cannot be loaded ({found[1].strip()[:200]}); it has to be built with the compilers of "
            "'lepaute emulate compilers'"
        )
    if re.search(r"bad_alloc|[Cc]annot allocate memory|[Oo]ut of memory|Failed to allocate|mmap", text):
        return f"{_MEMORY}: {_last_line(ended)}"
    if ended.status == -signal.SIGKILL:
        return f"it was killed from outside, as the system does when memory runs out; {_MEMORY}"
    if ended.status < 0:
        name = signal.Signals(-ended.status).name
        return f"it ended by {name}: {_last_line(ended)}; where it runs on a real machine, {_BOGUS}"
    if ended.status != 0:
        return f"it ended with exit status {ended.status}: {_last_line(ended)}"
    if report is None:
        return f"it ended without a report: {_last_line(ended)}"
    if report["finished_ranks"] < ranks:
        return f"only {report['finished_ranks']} of {ranks} ranks called MPI_Finalize: {_last_line(ended)}"
    return None


def _last_line(ended: Ended) -> str:
    lines = [line.strip() for line in (*ended.stdout[-5:], *ended.stderr) if line.strip()]
    own = [line for line in lines if not line.startswith(("->", "Backtrace")) and not _OF_SIMGRID.search(line)]
    return re.sub(r"\s+", " ", own[-1])[:300] if own else "it printed nothing"
