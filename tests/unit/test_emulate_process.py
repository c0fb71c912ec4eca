"""An emulation from outside: options, limits, how it is watched, why it failed, and what its reader is told."""

import os
import re
import resource
import signal
import sys
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from oracles.emulated import tiny, tiny_text
from support_limits import HANG_S, wait_until

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.simulate import Layers
from lepaute.simulate.engine import KernelUse, Sizes
from lepaute.simulate.machine.core import machine_of
from lepaute.simulate.machine.population import with_network_of_run
from lepaute.simulate.platform import override
from lepaute.simulate.platform.io import parse_platform
from lepaute.simulate.smpi import process
from lepaute.simulate.smpi.building import _script
from lepaute.simulate.smpi.emulate import Keep, Options, settings_of
from lepaute.simulate.smpi.emulated_run import EmulatedRun, OwnTimes, Slowdowns
from lepaute.simulate.smpi.process import Ended, Limits, OwnLines, run_watched, why_it_failed
from lepaute.simulate.smpi.request import (
    Files,
    Folding,
    Private,
    check_limits,
    free_huge_bytes,
    reference_sizes,
    request_text,
)
from lepaute.simulate.smpi.settings import private_of
from lepaute.simulate.smpi.warnings import network_warnings, program_warnings
from lepaute.study.components import build_application

#: Tells its number and goes on for some seconds without a sign of progress.
SILENT = "import os, sys, time; print(os.getpid(), flush=True); time.sleep(float(sys.argv[1]))"


def watched(tmp_path: Path, limits: Limits, goes_on_s: float, on_line=None):
    argv = (sys.executable, "-c", SILENT, str(goes_on_s))
    return run_watched(
        argv, environment={}, folder=tmp_path, limits=limits, progress_file=tmp_path / "p", on_line=on_line
    )


def test_a_process_without_progress_is_stopped(tmp_path: Path) -> None:
    ended = watched(tmp_path, Limits(stall_s=0.3), HANG_S)
    assert "for 0.3 s it made no MPI call" in ended.stopped


def test_progress_however_slow_is_no_stall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # By a clock that goes on by ten seconds with each sign of progress, and only then.
    progress, now_s = tmp_path / "p", [0.0]
    program = "import sys, time; [(open(sys.argv[1], 'w').write(f'{n} {n}'), time.sleep(0.01)) for n in range(30)]"

    def clock() -> float:
        seen = progress.read_text().split() if progress.exists() else []
        now_s[0] = 10.0 * float(seen[0]) if seen else now_s[0]
        return now_s[0]

    monkeypatch.setattr(process, "AwakeTime", partial(process.AwakeTime, clock=clock))
    ended = run_watched(
        (sys.executable, "-c", program, str(progress)),
        environment={},
        folder=tmp_path,
        limits=Limits(stall_s=15.0),
        progress_file=progress,
    )
    assert (ended.stopped, ended.status) == (None, 0)
    assert now_s[0] > 15.0


def test_a_file_that_is_being_written_is_no_date(tmp_path: Path) -> None:
    dates: list[float] = []
    argv = ("sh", "-c", "for text in 1 '' 2; do printf '%s' \"$text\" >p; sleep 0.3; done")
    run_watched(
        argv, environment={}, folder=tmp_path, limits=Limits(), progress_file=tmp_path / "p", on_progress=dates.append
    )
    assert 0.0 not in dates


@pytest.mark.slow
@pytest.mark.parametrize("limits", [Limits(stall_s=30.0), Limits(timeout_s=30.0)])
def test_the_time_during_which_it_is_suspended_does_not_count(tmp_path, limits, monkeypatch):
    # By a clock that is quick while it is suspended: for a minute, and awake for less than its limit.
    now_s, quick = [0.0], threading.Event()

    def clock() -> float:
        now_s[0] += 1.9 if quick.is_set() else 0.01
        return now_s[0]

    monkeypatch.setattr(process, "AwakeTime", partial(process.AwakeTime, clock=clock))

    def go_on(number: int) -> None:
        wait_until(lambda: now_s[0] > 60.0, "a minute")
        quick.clear()
        os.kill(number, signal.SIGCONT)

    def suspend(line: str) -> None:
        os.kill(int(line), signal.SIGSTOP)
        quick.set()
        threading.Thread(target=go_on, args=(int(line),)).start()

    ended = watched(tmp_path, limits, 0.2, suspend)
    assert ended.stopped is None
    assert ended.status == 0
    assert now_s[0] > 60.0


def system(root: Path, *, maps: int = 65530, overcommit: int = 0, available_kib: int = 16 << 20) -> Path:
    (root / "proc/sys/vm").mkdir(parents=True, exist_ok=True)
    (root / "proc/sys/vm/max_map_count").write_text(f"{maps}\n")
    (root / "proc/sys/vm/overcommit_memory").write_text(f"{overcommit}\n")
    (root / "proc/meminfo").write_text(
        f"MemTotal: {2 * available_kib} kB\nMemAvailable: {available_kib} kB\nHugePages_Free:       5\n"
        "Hugepagesize:       2048 kB\n"
    )
    return root


@pytest.mark.parametrize(
    ("ranks", "stack_kib", "fold_bytes", "of_system", "message"),
    [
        (10_000, 64, None, {}, r"10000 ranks need about 82000 .* sysctl vm.max_map_count=164000"),
        (4, 1024, 1 << 20, {"overcommit": 2}, r"vm.overcommit_memory is 2.*sysctl vm.overcommit_memory=1"),
        (1024, 65536, None, {"available_kib": 1 << 20}, r"stacks of 1024 ranks take 68.7 GB, 1.07 GB are free"),
    ],
)
def test_a_limit_of_the_system_is_told_with_what_lifts_it(tmp_path, ranks, stack_kib, fold_bytes, of_system, message):
    with pytest.raises(EnvironmentProblem, match=message):
        check_limits(ranks, stack_kib, fold_bytes, system(tmp_path, **of_system))
    check_limits(4, 1024, None, system(tmp_path, **of_system))


def test_a_shell_that_allows_less_address_space_than_the_stacks_take_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _what: (1 << 30, 1 << 30))
    with pytest.raises(EnvironmentProblem, match="ulimit -v unlimited"):
        check_limits(2048, 1024, None, system(tmp_path))


def test_free_huge_pages_are_counted_and_a_system_without_control_files_is_not_complained_about(tmp_path) -> None:
    check_limits(100_000, 1024, 1 << 20, tmp_path)
    assert free_huge_bytes(tmp_path) == 0
    assert free_huge_bytes(system(tmp_path)) == 5 * (2 << 20)


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


RUN = EmulatedRun(
    seed=1, time_s=1.0, program_s=1.0, region_s=None, value_s=None, computing_s=2.0, own=OwnTimes(), wtime_s=0.0,
    kernels={"dgemm": KernelUse(10, 2.0)}, fallback={}, messages=0, put_off=(0, 0.0, 0.0), probes=0,
    folded=0, folded_bytes=0.0, wall_s=1.0, cpu_s=1.0, peak_rss_bytes=1, stdout=(),
)  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"fallback": {"dsymv": KernelUse(3, 0.5)}}, "no model of dsymv (3 calls): 25 % of the computing"),
        ({"fallback": {"dcopy": KernelUse(3, 0.0, unmodelled_calls=3)}}, "dcopy (3 calls); taken to cost nothing"),
        (
            {"kernels": {"dgemm": KernelUse(10, 2.0, 0, 0, 0.5, Sizes(1, 1, 9000), Sizes(1, 1, 9500))}},
            "25 % of dgemm time is outside the fitted ranges: ",
        ),
        ({"wtime_s": 0.1}, "5.0 % of the computing is calls of MPI_Wtime"),
        ({"put_off": (12, 65536.0, 16e6)}, "12 receives of 64 KiB to 15.3 MiB, posted before their rank computed"),
        ({"threads": 3}, "the ranks started 3 threads of their own, whose computing takes no simulated time"),
        ({"gapped": (480, 25e6, 0.3)}, "packing alone takes some 0.30 s of CPU time here, over all ranks, 15 % of the"),
        ({"put_off": (12, 65536.0, 65536.0)}, "12 receives of 64 KiB, posted"),
        ({"warnings": ("the program has dscal of its own",)}, "dscal of its own"),
    ],
)
def test_what_had_no_model_is_told_with_its_share(changed: dict[str, object], said: str) -> None:
    (warning,) = program_warnings(replace(RUN, **changed), tiny(), Options())  # type: ignore[arg-type]
    assert said in warning


def test_computing_that_was_not_charged_is_told_with_its_share() -> None:
    options = Options(computing="none")
    (warning,) = program_warnings(replace(RUN, computing_s=0.5, own=OwnTimes(9.5)), tiny(), options)
    assert warning.startswith("95 % of the computing was not charged: 9.50 s of CPU time here")
    assert program_warnings(replace(RUN, own=OwnTimes(0.01)), tiny(), options) == []


@pytest.mark.parametrize(
    ("share", "bandwidth", "said"),
    [
        (0.8, "null", "whose bandwidth for all cores is not known: the 80 % of the program's own computing"),
        (0.8, "1e11", None),
        (None, "null", "was not seen with 2 busy cores here"),
        (0.0, "null", None),
    ],
)
def test_a_node_with_more_ranks_than_cores_here_needs_the_bandwidth_of_all_its_cores(share, bandwidth, said):
    platform = tiny(cores=f"cores: 4, memory_bandwidth_Bps: {bandwidth}")
    of_run = {"slowdowns": Slowdowns(memory_share=share), "cores_timed": 2, "ranks_on_node": 48}
    warnings = program_warnings(replace(RUN, own=OwnTimes(1.5, 1.5), **of_run), platform, Options())  # type: ignore[arg-type]
    assert ["timed on this machine" in warnings[0], *(said in text for text in warnings[1:] if said)] == (
        [True, True] if said else [True]
    )
    assert len(warnings) == (2 if said else 1)


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("network.flow_factor", "bound", "--set network.flow_factor=scale"),
        ("network.loopback.shared", "true", "do not slow each other under SMPI"),
        ("network.costs.iprobe_looks_first", "true", "MPI_Iprobe finds what has come by its end"),
    ],
)
def test_what_smpi_does_otherwise_than_the_platform_says_is_told(setting: str, value: str, said: str) -> None:
    (warning,) = network_warnings(override(tiny(), {setting: value}))
    assert said in warning


@pytest.mark.parametrize(
    ("text", "private"),
    [
        ("panel.c", Private("panel.c")),
        ("panel.c:120", Private("panel.c:120")),
        ("make_panel@0-4096", Private("make_panel", 0, 4096)),
        ("panel.c@-64--1", Private("panel.c", -64, -1)),
    ],
)
def test_what_stays_private_is_a_place_and_bytes(text: str, private: Private) -> None:
    assert private_of(text) == private


def test_the_rate_of_what_has_no_model_is_that_of_dgemm_in_the_middle_of_its_range() -> None:
    assert reference_sizes(tiny()) == (89, 89, 89)  # sqrt(1 * 8000)
    without_m = parse_platform(tiny_text().replace("{m: [1, 8000], n: [1, 8000], k: [1, 8000]}", "{k: [64, 256]}"))
    assert reference_sizes(without_m) == (1024, 1024, 128)


def test_settings_of_smpi_leave_the_clock_to_simblas_and_forbid_a_free_test(tmp_path: Path) -> None:
    settings = settings_of(tiny(), 8, Options(stack_kib=2048), tmp_path)
    assert settings["smpi/wtime"] == "0"
    assert float(settings["smpi/test"]) > 0
    assert (settings["smpi/tmpdir"], settings["contexts/stack-size"]) == (str(tmp_path), "2048")
    assert settings["smpi/privatization"] == "dlopen"
    assert settings_of(tiny(), 8, Options(privatize=False), tmp_path)["smpi/privatization"] == "no"
    assert Keep(trace=tmp_path / "t").settings()["tracing/filename"] == str(tmp_path / "t")


def test_the_compilers_name_simblas_before_all_that_the_makefile_names() -> None:
    script = _script(Path("/usr/bin/smpicc"), Path("/cache dir/simblas"))
    link = script.split("done\n")[1]
    assert link.index("'/cache dir/simblas/libsimblas.so'") < link.index('"$@"') < link.index("--wrap=malloc")
    assert "-fno-f2c" not in script
    assert "-fno-f2c" in _script(Path("/usr/bin/smpiff"), Path("/x"))


def test_the_request_has_the_messages_that_the_run_draws() -> None:
    network = tiny().network
    unsure = network.remote.model_copy(update={"discrepancy_relative_sd": 0.25})
    platform = tiny().model_copy(update={"network": network.model_copy(update={"remote": unsure})})

    def machine(seed: int, layers: Layers) -> str:
        text = request_text(
            platform, [0], seed=seed, layers=layers, folding=Folding(), files=Files(Path("/r"), Path("/p"))
        )
        return text.partition("\nmachine\n")[2].rstrip("\n")

    drawn = machine_of(with_network_of_run(platform, 8, Layers()), 1).text().rstrip("\n")
    # Factors of messages come from the request: with other latencies than the file of the run they would undo its own.
    assert machine(8, Layers()) == drawn != machine(9, Layers())
    for alone in (Layers.without(["network"]), Layers.without(["overheads"])):
        assert machine(8, Layers()) != machine(8, alone) != machine(9, alone)
    neither = Layers.without(["network", "overheads"])
    assert machine(8, neither) == machine(9, neither)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"np": 2.5}, "np is 2.5; it must be a whole number >= 1"),
        ({"np": True}, "np is True; it must be a whole number"),
        ({"arguments": None}, "arguments is None; it must be a text"),
        ({"arguments": [1, 2]}, "arguments is [1, 2]; it must be a text"),
        ({"memory_share": 7.0}, "memory_share is 7; it must be at most 1"),
        ({"stack": 1}, "stack is 1; it must be a whole number >= 64"),
        ({"contention": "maybe"}, "contention is 'maybe'; it must be true or false"),
        ({"fold": "1M", "private": "a.c"}, "private is 'a.c'; it must be a list of texts"),
        ({"timeout": "x"}, "timeout is 'x'; it must be a finite number"),
    ],
)
def test_values_of_a_study_are_refused_by_the_name_of_their_field(values: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=re.escape(problem)):
        build_application({"program": "cg", **values})
