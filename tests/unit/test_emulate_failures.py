"""Why an emulated program failed: from how its process ended, what was printed, and the report."""

import pytest

from lepaute.simulate.smpi.process import Ended, OwnLines, why_it_failed

FINE = {"finished_ranks": 4, "aborted_rank": -1, "abort_code": 0, "exited_rank": -1, "exit_code": 0}
DEADLOCK = "[0.000000] ./src/kernel/EngineImpl.cpp:718: [ker_engine/CRITICAL] Oops! Deadlock detected, some activities"


def ended(*stderr: str, status: int = 0, stopped: str | None = None, stdout: tuple[str, ...] = ()) -> Ended:
    return Ended(status, stopped, stdout, stderr, wall_s=1.0, cpu_s=1.0, peak_rss_bytes=1)


OF_SIMGRID = "[h:0:(1) 0.1] ./f.cpp:33: [root/CRITICAL]"


@pytest.mark.parametrize(
    ("end", "report", "said"),
    [
        (ended(stopped="it took too long"), None, "stopped, it took too long; results of BLAS are not computed"),
        (ended(DEADLOCK), FINE | {"finished_ranks": 0}, "deadlock: every rank waits"),
        (ended("no input", DEADLOCK), FINE | {"exited_rank": 3, "exit_code": 2}, "rank 3 ended with exit status 2"),
        (ended("no input"), FINE | {"aborted_rank": 0, "abort_code": 9}, "rank 0 called MPI_Abort with code 9: no inp"),
        (ended(status=-11), None, "it ended by SIGSEGV: it printed nothing; where it runs on a real machine"),
        (ended("Access violation or Bus error detected.", status=-11), None, "more: --stack"),
        (ended(f"{OF_SIMGRID} SMPI/IO : Trying to open a file on a diskless host", status=-6), None, "opens a file by"),
        (ended(f"{OF_SIMGRID} no such route", status=-6), None, "it ended by SIGABRT: SimGrid says: no such route"),
        (ended(status=-9), None, "it was killed from outside, as the system does when memory runs out"),
        (ended("terminate called after throwing 'std::bad_alloc'", status=-6), None, "not enough memory"),
        (ended("simblas: an allocation of 8000000 bytes failed", status=-11), None, "no memory for 8,000,000 bytes"),
        (ended("sorry", status=5), FINE, "it ended with exit status 5: sorry"),
        (ended(stdout=("last words",)), None, "it ended without a report: last words"),
        (ended(), FINE | {"finished_ranks": 3}, "it ended when 3 of 4 ranks had called MPI_Finalize"),
        (ended(f"{OF_SIMGRID} MPI_Send - returned MPI_ERR_TAG instead", status=-6), None, "MPI_Send of rank 0 failed"),
        (ended(f"{OF_SIMGRID} Not yet implemented: PMPI_Comm_spawn. Please"), None, "no MPI_C"),
        (ended("... dlopen failed: /tmp/a.so: undefined symbol: qux", status=1), None, "cannot be loaded (/tmp/a.so"),
    ],
)
def test_the_reason_is_the_most_telling_one(end: Ended, report: dict[str, int] | None, said: str) -> None:
    reason = why_it_failed(end, report, 4)
    assert said in reason
    assert "\n" not in reason
    assert "CRITICAL" not in reason


def test_the_last_line_is_the_programs_own_and_short() -> None:
    reason = why_it_failed(ended("mine  is\tthis", DEADLOCK.replace("Deadlock", "Hm"), "", status=3), FINE, 4)
    assert reason == "it ended with exit status 3: mine is this"
    reason = why_it_failed(ended("x" * 5000, status=3), FINE, 4)
    assert len(reason) < 400


def test_lines_of_simgrid_are_told_from_those_of_the_program() -> None:
    own = OwnLines()
    lines = [
        "reading input",
        "[node-1:0:(1) 0.000000] ./src/smpi/x.cpp:268: [smpi_pmpi/WARNING] PMPI_Send: param 4",
        "Backtrace (displayed in actor 0):",
        "  ->  0# xbt_backtrace_display_current in /usr/lib/libsimgrid.so",
        "[1] iteration 5 of [10]",
        "Segmentation fault.",
        "of the fault captured with gdb or valgrind.",
    ]
    assert [line for line in lines if own.keeps(line)] == ["reading input", "[1] iteration 5 of [10]"]
