"""The simulated time of an emulated program: what is charged, when it passes, and what a clock sees of it."""

import json
import re
from pathlib import Path

import pytest
from oracles.emulated import build, command, dgemm_s, source_of, tiny, tiny_text
from support_limits import ran

from lepaute.errors import InputError, SimulationError
from lepaute.simulate import Hpl, Layers, Program, emulate, predict
from lepaute.simulate.platform import Platform
from lepaute.simulate.platform.io import parse_platform
from lepaute.simulate.smpi.building import LIBRARY, build_library
from lepaute.simulate.smpi.emulate import Options, emulate_run
from lepaute.simulate.smpi.emulated_run import EmulatedRun

pytestmark = pytest.mark.machine

#: Nothing is charged that depends on the speed of this machine.
KERNELS_ONLY = Options(computing="none")


@pytest.fixture(scope="module")
def times(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("times"), "times", source_of("emulate_time.c"))


def run(program: Path, word: str, platform: Platform | None = None, ranks: int = 1) -> EmulatedRun:
    return emulate_run(program, [word], platform or tiny(), ranks, options=KERNELS_ONLY)


def test_a_kernel_takes_what_its_model_says_and_not_whole_microseconds(times: Path) -> None:
    assert run(times, "sizes").time_s == pytest.approx(dgemm_s(3, 3, 3), rel=1e-12)


def test_python_emulates_a_program_as_the_command_line_does(times: Path) -> None:
    emulated = emulate(times, tiny(), ranks=1, arguments=["sizes"], runs=2, options=KERNELS_ONLY)
    assert emulated.time_s.mean == pytest.approx(dgemm_s(3, 3, 3), rel=1e-9)
    assert emulated.to_frame()["np"].tolist() == [1, 1]


def test_a_clock_sees_computing_and_its_calls_cost_what_the_platform_says_and_no_more(times: Path) -> None:
    seen = re.search(r"took (\S+)", run(times, "asked", tiny(wtime_s="wtime_s: 0")).stdout[0])
    assert float(seen[1]) == pytest.approx(dgemm_s(100, 100, 100), rel=1e-12)
    free, charged = (run(times, "often", tiny(wtime_s=f"wtime_s: {cost}")) for cost in ("0", "1e-7"))
    assert free.time_s == pytest.approx(1000 * dgemm_s(100, 100, 100), rel=1e-12)
    assert charged.time_s == pytest.approx(free.time_s + 1002 * 1e-7, rel=1e-12)
    assert charged.wtime_s == pytest.approx(1002 * 1e-7, rel=1e-12)


@pytest.mark.parametrize(("progress", "least_s", "most_s"), [("calls", 16e6 / 2e10, 1e-2), ("background", 0.0, 1e-5)])
def test_a_large_message_waits_for_its_receiver_to_be_in_mpi(times, progress, least_s, most_s):
    """16 MB need a millisecond or more, the dgemm of order 700 takes 34 ms."""
    found = run(times, "overlap", tiny(flow_factor=f"flow_factor: scale\n  progress: {progress}"), ranks=2)
    waited = [float(line.split()[1]) for line in found.stdout]
    assert len(waited) == 2
    assert all(least_s <= time_s <= most_s for time_s in waited)
    assert found.put_off[0] == (2 if progress == "calls" else 0)


def test_a_receive_is_posted_when_its_rank_waits_and_waits_for_what_the_sender_computes(times: Path) -> None:
    found = run(times, "blocked", tiny(flow_factor="flow_factor: scale\n  progress: calls"), ranks=2)
    assert found.stdout == ("done", "done")
    assert found.put_off[0] == 0  # nobody has computed
    seen = re.search(r"waited (\S+)", run(times, "late", tiny(wtime_s="wtime_s: 0"), ranks=2).stdout[0])
    # The message inside the node: overhead of sending, latency, 4 bytes (+ 16 of SMPI's), overhead of receiving.
    moving_s = 3e-7 + 4e-10 + 1e-6 + 4 / 6e9 + 2e-7
    assert float(seen[1]) == pytest.approx(dgemm_s(1000, 1000, 100) + moving_s, rel=1e-6)


def test_the_region_between_two_calls_of_pcontrol_is_timed_and_regions_add_up(times: Path) -> None:
    found = run(times, "region")
    assert found.time_s == pytest.approx(2 * dgemm_s(100, 100, 100), rel=1e-12)
    assert found.program_s == pytest.approx(found.time_s + 2 * dgemm_s(500, 500, 500), rel=1e-12)


def test_the_time_that_a_program_prints_is_taken_where_a_pattern_says_so(times: Path) -> None:
    options = Options(computing="none", value_pattern=r"took (\S+) s")
    found = predict(Program(times, ("asked",), options=options), tiny(), runs=1)
    assert found.time_s.mean == pytest.approx(dgemm_s(100, 100, 100) + 1e-7, rel=1e-9)
    assert found.run_list[0].details["program_s"] > found.time_s.mean  # the clock is asked once more


@pytest.mark.parametrize(
    ("pattern", "problem", "said"),
    [
        (r"took (\S+", InputError, "no regular expression"),
        (r"took \S+", InputError, "has 0 groups; it needs one"),
        (r"gone (\S+)", SimulationError, "printed nothing that matches"),
        (r"(took)", SimulationError, "printed 'took'"),
    ],
)
def test_a_pattern_that_finds_no_number_is_refused(times, pattern, problem, said):
    with pytest.raises(problem, match=re.escape(said)):
        predict(Program(times, ("asked",), options=Options(value_pattern=pattern)), tiny(), runs=1)


def test_a_routine_without_a_model_takes_its_operations_over_the_rate_of_dgemm_and_is_told(times: Path) -> None:
    found = predict(Program(times, ("unmodelled",), options=KERNELS_ONLY), tiny(), runs=1)
    (use,) = found.first.emulated.fallback.values()
    reference = 89.0  # the middle of 1 to 8000
    rate = 2 * reference**3 / dgemm_s(reference, reference, reference)
    assert use.time_s == pytest.approx(2 * 1000**2 / rate, rel=1e-9)
    assert found.first.emulated.unmodelled_share == 1.0
    assert found.to_dict()["unmodelled_share"] == 1.0
    assert any("no model of dsymv (1 calls): 100 %" in warning for warning in found.warnings)


NOISY = tiny_text().replace("  - mean:", "  - noise: {kind: half-normal, sd: {mnk: 1.0e-11}}\n    mean:")


def test_the_same_seed_gives_the_same_time_and_another_seed_another(times: Path) -> None:
    platform = parse_platform(NOISY)
    first, again, other = (
        emulate_run(times, ["late"], platform, 2, seed=seed, options=KERNELS_ONLY).time_s for seed in (7, 7, 8)
    )
    assert first == again
    assert first != other


DRAWN = """
  - mean: {mnk: 1.0e-10}
    covariance: {terms: [mnk], matrix: [[1.0e-22]]}
    discrepancy_relative_sd: 0.03
days: {common_relative_sd: 0.05, run_relative_sd: 0.03, cpu_relative_sd: 0.02, degrees_of_freedom: 20, source: none}
"""


@pytest.mark.parametrize("off", ["noise", "discrepancy", "days", "coefficients"])
def test_a_run_draws_what_the_native_engine_draws(times: Path, off: str) -> None:
    """All that HPL of one rank takes on this platform is dgemm_nn: draws scale its time as they scale one call."""
    before, _, after = (
        tiny_text().replace("kernel: dgemm", "kernel: dgemm_nn\n  discrepancy_relative_sd: 0.02").partition("  - mean:")
    )
    kernel, _, days = DRAWN.partition("days:")
    platform = parse_platform(before + kernel.strip("\n") + after[after.index("\n") :] + "days:" + days)
    hpl, drawn = Hpl(n=512, nb=64, p=1, q=1), Layers(**{off: False})
    plain_s = predict(hpl, platform, runs=1, layers=Layers.only()).time_s.mean
    factors = []
    for seed in (1, 2, 3):
        factors.append(predict(hpl, platform, runs=1, seed=seed, layers=drawn).time_s.mean / plain_s)
        ours_s = emulate_run(times, ["untransposed"], platform, 1, seed=seed, layers=drawn, options=KERNELS_ONLY).time_s
        assert ours_s == pytest.approx(27e-10 * factors[-1], rel=1e-9)
    assert max(factors) > 1.01 * min(factors)  # else nothing was drawn


CALLS = source_of("emulate_time_calls.c")


def test_computing_passes_in_every_kind_of_mpi_call(tmp_path: Path) -> None:
    found = emulate_run(build(tmp_path, "calls", CALLS), [], tiny(), 1, options=KERNELS_ONLY)
    passed_s = {line.split()[0]: float(line.split()[1]) for line in found.stdout}
    assert len(passed_s) == CALLS.count("    CHECK(")
    late = {name: passed for name, passed in passed_s.items() if passed < dgemm_s(100, 100, 100) * (1 - 1e-9)}
    assert late == {}


#: Calls of SMPI that neither wait nor are seen by another rank, so that computing may go on pending.
LOCAL = re.compile(
    r"MPI_(Type|Group|Op|Info|Attr|Errhandler|Address|Error|Get_|Keyval|Status|Add_error|Aint|Alloc_mem|Free_mem|"
    r"Buffer|Cart_(coords|get|map|rank|shift)|Cartdim|Dims|Graph(dims)?_(get|map|neigh)|Dist_graph_neigh|Topo_test|"
    r"Comm_(rank|size|group|compare|remote|test_inter|call_err|create_err)|Pack|Unpack|Reduce_local|Init(ialized)|"
    r"Finalized|Is_thread|Query_thread|Request_free|(Send|Bsend|Rsend|Ssend|Recv)_init|Test_cancelled|Wtick|PTR|"
    r"COMM_WORLD|Win_(call|create)_err|Win_shared_query|Win_attach|Win_detach|File_(call|create)_err|File_seek|"
    r"Register_datarep|Grequest|"
    r"\w+_(c2f|f2c|get_\w+|set_\w+|toint|fromint|create_keyval|free_keyval|delete_attr)$|"
    # SMPI has none of these: they end the program
    r"(Close|Open)_port|Comm_(accept|connect|join|spawn)|(Lookup|Publish|Unpublish)_name)"
)


def test_no_mpi_call_that_can_wait_is_forgotten() -> None:
    ours = build_library() / LIBRARY
    needed = ran(["ldd", ours], check=True).stdout
    theirs = re.search(r"libsimgrid\S* => (\S+)", needed)
    waits = {name for name in mpi_calls(theirs[1]) if not LOCAL.match(name)}
    assert len(waits) > 150
    assert waits - mpi_calls(ours) == set()


def mpi_calls(file: str | Path) -> set[str]:
    listed = ran(["nm", "-D", "--defined-only", file], check=True).stdout
    return {name for name in (line.split()[-1] for line in listed.splitlines()) if re.match(r"MPI_[A-Z]", name)}


def test_computing_outside_of_blas_is_timed_where_that_is_asked_for(times: Path) -> None:
    free, measured = (
        predict(Program(times, ("looped",), options=Options(computing=computing)), tiny(), runs=1)
        for computing in ("none", "measured")
    )
    assert free.time_s.mean == pytest.approx(dgemm_s(1000, 1000, 1000), rel=1e-3)
    assert measured.time_s.mean > free.time_s.mean
    assert any("timed on this machine" in warning for warning in measured.warnings)


def test_all_iterations_of_a_sampled_loop_take_the_mean_of_those_that_were_run(times: Path) -> None:
    sampled = run(times, "sampled")
    assert sampled.stdout == ("loops 7",)  # two of equal duration have no error
    assert sampled.time_s == pytest.approx(53 * dgemm_s(100, 100, 100), rel=1e-12)


def test_several_numbers_of_ranks_give_speed_up_and_efficiency(times: Path, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(tiny_text())
    words = ("emulate", "-p", tmp_path / "p.yaml", "--computing", "none", "-np", "1,2")
    said = command(*words, "--plot", tmp_path / "s.png", "--json", "--", times, "asked")
    assert said.status == 0, said.err
    found = json.loads(said.out)
    assert [point["ranks"] for point in found["scaling"]] == [1, 2]
    # Each rank does the same whatever their number is.
    assert found["scaling"][1]["speed_up"]["mean"] == pytest.approx(1.0, rel=1e-2)
    assert found["scaling"][1]["efficiency"]["mean"] == pytest.approx(0.5, rel=1e-2)
    assert (tmp_path / "s.png").stat().st_size > 1000
    assert "speed-up" in command(*words, "--", times, "asked").err
    assert (
        "a trace is of one combination" in command(*words, "--trace", tmp_path / "t.parquet", "--", times, "asked").err
    )


def test_the_command_prints_what_the_program_prints_and_where_the_time_went(times: Path, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(tiny_text())
    words = ("emulate", "-p", tmp_path / "p.yaml", "-np", 2, "--computing", "none")
    said = command(*words, "--details", "--", times, "late")
    assert said.status == 0, said.err
    assert said.err.startswith("times takes 0.01000 s (one run: no interval) on 2 ranks of tiny\n")
    assert re.fullmatch(r"waited \S+ s\n", said.out)
    assert re.search(r"dgemm +1 calls", said.err)
    found = json.loads(command(*words, "--json", "--", times, "late").out)
    assert found["routines"]["dgemm"] == {"calls": 1, "time_s": dgemm_s(1000, 1000, 100), "modelled": True}
    assert found["simulation"]["messages"] == 1
    assert found["parameters"]["np"] == 2
