"""Why an emulated program failed, in one sentence."""

import re
import signal
from collections.abc import Mapping
from typing import Any

from lepaute.simulate.smpi.process import Ended

_BOGUS = (
    "; results of BLAS are not computed: a loop that ends on a computed value, or a branch on one, cannot be emulated "
    "(docs/emulate.md)"
)
_MEMORY = "fold large allocations (--fold 1M), or take fewer ranks"
_REBUILD = "it has to be built with the compilers of 'lepaute emulate compilers'"

_LOG_LINE = re.compile(r"^\[[^\]]*\] .*\[\w+/(?:CRITICAL|ERROR|WARNING|INFO|VERBOSE|DEBUG)\]")
_CRITICAL = re.compile(r"\[\w+/CRITICAL\] (.*)")
_BACKTRACE = re.compile(r"^(?:\s*->.*|Backtrace \(displayed.*|)$")
#: Where SimGrid begins to speak of a crash; its guesses fill the rest of what is printed.
_CRASH = re.compile(r"^(?:Segmentation fault\.|Access violation or Bus error detected\.)$")
#: SimGrid's word for an access that the pages forbid, as those below each stack do.
_GUARDED = "Access violation"
_OURS = "simblas: "
_NO_MEMORY = re.compile(rf"{_OURS}an allocation of (\d+) bytes failed")
_REFUSED = re.compile(r"\[[^\]]*:(\d+):\(\d+\)[^\]]*\].*?(\w+) - returned (MPI_ERR_\w+)")
_ARGUMENT = re.compile(r"\[smpi_pmpi/WARNING\] PMPI_\w+: (.*)")


class OwnLines:
    """Tells what a program printed on standard error from what SimGrid did there."""

    def __init__(self) -> None:
        self._crashed = False

    def keeps(self, line: str) -> bool:
        """Whether `line`, which comes after those asked about before, is the program's own."""
        self._crashed = self._crashed or _CRASH.match(line) is not None
        return not (self._crashed or line.startswith(_OURS) or _LOG_LINE.match(line) or _BACKTRACE.match(line))


def why_it_failed(ended: Ended, report: Mapping[str, Any] | None, ranks: int, *, has_blas: bool = True) -> str | None:
    """The reason; None where the program ended as it should.

    has_blas : whether it calls routines of BLAS or LAPACK, whose results are not computed
    """
    if ended.stopped is not None:
        return f"stopped, {ended.stopped}{_BOGUS if has_blas else ''}"
    if report is not None and ended.status == 0 and _all_is_well(report, ranks):
        return None
    if report is not None and report["aborted_rank"] >= 0:
        return f"rank {report['aborted_rank']} called MPI_Abort with code {report['abort_code']}: {_last_line(ended)}"
    if report is not None and report["exited_rank"] >= 0:
        status = f"rank {report['exited_rank']} ended with exit status {report['exit_code']}"
        return f"{status} before it called MPI_Finalize: {_last_line(ended)}"
    return _of_simgrid(ended, has_blas) or _of_status(ended, report, ranks, has_blas)


def _all_is_well(report: Mapping[str, Any], ranks: int) -> bool:
    """What was printed tells nothing then: a program may speak of memory as it likes."""
    return bool(report["finished_ranks"] == ranks and report["aborted_rank"] < 0 and report["exited_rank"] < 0)


def _of_simgrid(ended: Ended, has_blas: bool) -> str | None:
    """A reason that SimGrid, the loader or the allocator gave in words; None where they gave none."""
    text = "\n".join(ended.stderr)
    if match := _REFUSED.search(text):
        argument = _ARGUMENT.search(text)
        return f"{match[2]} of rank {match[1]} failed: {match[3]}{f', {argument[1].strip()}' if argument else ''}"
    if match := re.search(r"Not yet implemented: P?(MPI_\w+)", text):
        return f"this version of SimGrid has no {match[1]}; the program cannot be emulated with it"
    if "diskless host" in text:
        return "it opens a file by MPI, and the simulated nodes have no disks; leave it out, as by --skip FUNCTION"
    if re.search(r"\bDeadlock detected", text):
        return f"deadlock: every rank waits for a message that nobody sends{_BOGUS if has_blas else ''}"
    if match := re.search(r"dlopen failed[^:]*: ([^\n]*)", text):
        return f"it cannot be loaded ({match[1].strip()[:200]}); {_REBUILD}"
    if match := _NO_MEMORY.search(text):
        return f"there was no memory for {int(match[1]):,} bytes; {_MEMORY}: {_last_line(ended)}"
    if re.search(r"bad_alloc|[Cc]annot allocate memory|[Oo]ut of memory|[Ff]ailed to (?:al|m)locate|mmap", text):
        return f"there is not enough memory; {_MEMORY}: {_last_line(ended)}"
    return None


def _of_status(ended: Ended, report: Mapping[str, Any] | None, ranks: int, has_blas: bool) -> str:
    if ended.status == -signal.SIGKILL:
        return f"it was killed from outside, as the system does when memory runs out; {_MEMORY}"
    if ended.status < 0:
        return _of_signal(ended, has_blas)
    if ended.status != 0:
        return f"it ended with exit status {ended.status}: {_last_line(ended)}"
    if report is None:
        return f"it ended without a report: {_last_line(ended)}"
    finished = f"{report['finished_ranks']} of {ranks} ranks"
    return f"it ended when {finished} had called MPI_Finalize, as each has to: {_last_line(ended)}"


def _of_signal(ended: Ended, has_blas: bool) -> str:
    name = signal.Signals(-ended.status).name
    bogus = f"; where it runs on a real machine{_BOGUS.replace(';', ',', 1)}" if has_blas else ""
    if any(_GUARDED in line for line in ended.stderr):
        return (
            f"it ended by {name}, as where a stack is too small (more: --stack, in KiB) or memory is written "
            f"that must not be: {_last_line(ended)}{bogus}"
        )
    told = [match[1] for match in map(_CRITICAL.search, ended.stderr) if match]
    reason = f"SimGrid says: {told[-1][:300]}" if told else _last_line(ended)
    return f"it ended by {name}: {reason}{bogus}"


def _last_line(ended: Ended) -> str:
    program_lines = OwnLines()
    lines = [line for line in (*ended.stdout[-5:], *filter(program_lines.keeps, ended.stderr)) if line.strip()]
    return re.sub(r"\s+", " ", lines[-1].strip())[:300] if lines else "it printed nothing"
