"""How long a calibration goes on, and which probes and runs count as disturbed; no clock is looked at."""

import itertools
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path

import pytest
from support_calibration import BLOCK, FakeMachine, names_in
from support_fit import kernel_rows, write_calibration

from lepaute.cli.main import main
from lepaute.errors import EnvironmentProblem, InputError
from lepaute.measure.archive import Archive
from lepaute.measure.calibration import campaign
from lepaute.measure.calibration.campaign import calibrate
from lepaute.measure.calibration.precision import Check, Goal, Reached, next_step
from lepaute.measure.machine_load import Load, Sample, disturbance_warnings, load_between
from lepaute.measure.node_agent.facts import parse_stat
from lepaute.measure.plan import FULL, QUICK, plan
from lepaute.measure.verify.real_run import RankLoad, disturbances

pytest_plugins = ["support_calibration_fixtures"]
#: Fewest blocks, planned blocks of the calibrations here.
FEWEST, PLANNED = 2, 3


@pytest.fixture
def small(machine: FakeMachine, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    """A machine on which every look at the clock takes ten seconds, which nothing else does."""
    scale = replace(QUICK, blocks=PLANNED, least_blocks=FEWEST, option_round=6)
    ticks = itertools.count(0.0, 10.0)
    monkeypatch.setattr(campaign, "FULL", scale)
    monkeypatch.setattr(campaign, "now_s", lambda: next(ticks))
    return machine


@pytest.fixture
def assess_by(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Archive], Reached]], None]:
    """Tells how the precision is found, instead of by a fit."""
    return lambda assess: monkeypatch.setattr(campaign, "assessment", lambda: assess)


def reached(half_width: float, floor: float = 0.01, layer: str = "days") -> Reached:
    return Reached(half_width, floor, "HPL", layer, "it")


def blocks_of(archive: Archive) -> Sequence[int]:
    return sorted({entry["block"] for entry in archive.json("blocks.json")})


@pytest.mark.parametrize(("later", "words"), [(0.57, "5 min later to ± 57.0 %, as this machine drifts"), (0.05, "")])
def test_a_machine_that_drifts_is_said_to(later, words):
    text = Goal(0.1).text(replace(reached(0.05), later=later), 8, 1.5)
    assert words in text
    assert ("drifts" in text) == bool(words)
    assert text.startswith("the mean of HPL is known to ± 5.0 % after 8 blocks;")


def test_what_is_left_of_the_budget_goes_into_blocks_of_steps_on_all_cores(small, place, assess_by):
    assess_by(lambda _archive: reached(0.5))
    archive = Archive.open(calibrate(place, goal=Goal(0.05, budget_s=400.0)))
    further = archive.json("further.json")
    assert further
    assert blocks_of(archive) == list(range(PLANNED + len(further)))
    later = [entry for entry in archive.json("blocks.json") if entry["block"] >= PLANNED]
    assert {entry["name"] for entry in later} == {"hpl_steps_1x1_all", "hpl_steps_column"}
    checks = archive.json("precision.json")
    # The last check, the block after it, and the fit of the end, by this clock 10 s each.
    assert max(check["elapsed_s"] for check in checks) <= 400.0 - 10.0


@pytest.mark.slow
def test_an_interrupted_calibration_goes_on_to_a_better_precision(small, place, assess_by):
    small.break_at(2 * BLOCK, "fail")
    with pytest.raises(EnvironmentProblem):
        calibrate(place, goal=Goal(0.05, budget_s=400.0))
    small.break_at(0, "never")
    widths = iter([0.3, 0.2, 0.02])
    assess_by(lambda _archive: reached(next(widths)))
    archive = Archive.open(calibrate(place, goal=Goal(0.03, budget_s=900.0), resume=True))
    assert archive.json("precision.json")[-1]["half_width"] == 0.02
    assert len(blocks_of(archive)) == archive.metadata["blocks"] >= FEWEST + 1


def test_a_precise_calibration_ends_after_the_fewest_blocks_and_gets_further_ones_beside_them(small, place, assess_by):
    seen: list[set[int]] = []

    def assess(archive: Archive) -> Reached:
        seen.append(set(archive.table("observations/kernels.parquet")["block"]))
        return reached(0.04)

    assess_by(assess)
    calibrate(place, goal=Goal(0.05))
    assert names_in(place) == ["c.zip"]
    first = Archive.open(shutil.copy(place, place.parent.parent / "first.zip"))
    assert blocks_of(first) == list(range(FEWEST))
    assert first.metadata["blocks"] == FEWEST
    assert seen == [set(range(FEWEST))]
    assert [(entry["blocks"], entry["half_width"]) for entry in first.json("precision.json")] == [(FEWEST, 0.04)]
    widths = iter([0.04, 0.02])
    assess_by(lambda _archive: reached(next(widths)))
    archive = Archive.open(calibrate(place, goal=Goal(0.03, budget_s=900.0), resume=True))
    # By this clock a check takes longer than a block is reckoned to take, and a further block takes: two before each.
    assert blocks_of(archive) == list(range(FEWEST + 4))
    assert archive.json("blocks.json")[: len(first.json("blocks.json"))] == first.json("blocks.json")
    assert [check["half_width"] for check in archive.json("precision.json")] == [0.04, 0.04, 0.02]
    assert set(first.members()) <= set(archive.members())
    raw = [name for name in first.members() if name.startswith("raw/")]
    assert all(archive.read_bytes(name) == first.read_bytes(name) for name in raw)
    assert len(archive.json("commands.json")) > len(first.json("commands.json"))
    assert names_in(place) == ["c.zip"]


def test_a_fit_that_fails_leaves_the_planned_blocks(small, place, assess_by):
    def assess(_archive: Archive) -> Reached:
        raise InputError("nothing to fit")

    assess_by(assess)
    archive = Archive.open(calibrate(place, goal=Goal()))
    assert blocks_of(archive) == list(range(PLANNED))
    assert archive.metadata["warnings"] == ["the precision remains unknown: nothing to fit"]


def test_the_next_step_follows_from_the_precision_and_the_time_that_is_left() -> None:
    goal = Goal(0.05)

    def step(blocks: int, left_s: float, check_s: float, checked: int, now: Reached | None = None) -> str:
        last = Check(checked, 0.0, check_s, 0.5, 0.01, "days")
        return next_step(goal, now, blocks, left_s, 10.0, last)

    assert step(6, 100.0, 5.0, 5) == "check"
    assert step(6, 100.0, 5.0, 6, reached(0.05)) == "stop"
    assert step(6, 100.0, 5.0, 6, reached(0.06)) == "measure"
    assert step(6, 100.0, 5.0, 6, reached(0.06, 0.05)) == "stop"  # 1.2 times the floor
    assert step(6, 14.0, 5.0, 6, reached(0.06)) == "stop"  # a block and the fit at the end take 15 s
    assert step(6, 17.0, 5.0, 5) == "measure"  # a check would leave no time for the block
    assert step(6, 100.0, 15.0, 5) == "measure"  # a check takes longer than a block
    assert step(7, 100.0, 15.0, 5) == "check"
    assert next_step(goal, None, 5, 25.0, 10.0, None) == "stop"  # until known, a check is taken for 20 s


def test_further_blocks_leave_the_designs_of_the_first_as_they_are() -> None:
    from support_calibration import LIMITS, TWO

    first, more = plan(FULL, 1, TWO, LIMITS), plan(FULL, 1, TWO, LIMITS, blocks=9)
    assert more[: len(first)] == first
    assert {run.block for run in more} == set(range(9))


@pytest.mark.slow
def test_the_command_passes_budget_and_precision_on_and_says_what_was_reached(tmp_path, monkeypatch, capsys):
    goals: list[Goal] = []

    def measure(path: Path, *, goal: Goal, **_others: object) -> Path:
        goals.append(goal)
        walls = [{"block": block, "wall_s": 15.0} for block in range(5) for _ in range(2)]
        return write_calibration(path, kernel_rows(10, 150, kernels=("dgemm", "dtrsm")), lists={"blocks.json": walls})

    monkeypatch.setattr(campaign, "calibrate", measure)
    files = ["-o", str(tmp_path / "p.yaml"), "--archive", str(tmp_path / "c.zip")]
    assert main(["calibrate", *files, "--budget", "5min", "--precision", "0.1%", "--json"]) == 0
    ((precision, budget_s),) = [(goal.precision, goal.budget_s) for goal in goals]
    assert (precision, budget_s) == (0.001, 300.0)
    output, notes = capsys.readouterr()
    told = json.loads(output)["precision"]
    (line,) = [text for text in notes.splitlines() if "another minute would give" in text]
    width = f"{100.0 * told['half_width']:.1f} %"
    assert f"the mean of {told['reference']} is known to ± {width} after 5 blocks, short of 0.1 %" in line
    assert 0.0 < told["floor"] <= told["half_width"]


def test_a_budget_that_does_not_hold_the_fewest_blocks_is_refused_and_leaves_nothing(small, place):
    with pytest.raises(InputError, match=r"--budget is 1 s, and the fewest blocks \(2\) take about"):
        calibrate(place, goal=Goal(budget_s=1.0))
    assert names_in(place) == []


# user nice system idle iowait irq softirq steal guest guest_nice, in ticks
STAT = "cpu  1000 10 200 9999 55 3 7 40 500 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n"


def test_load_of_others_is_busy_time_less_our_own_without_idle_and_stolen_time_and_ticks_are_none() -> None:
    # 1000 + 10 + 200 + 3 + 7 ticks; the guests' 500 are part of the user's 1000
    assert parse_stat(STAT, 100) == (12.2, 0.4)
    load = load_between(Sample(10.0, 100.0, 1.0, 5.0), Sample(14.0, 107.0, 1.5, 9.0), cores=2)
    assert load == Load(wall_s=4.0, cores=2, own_cpu_s=4.0, others_cpu_s=3.0, steal_s=0.5)
    assert Load(2.0, 2, 2.0, 0.04, 0.0).disturbances() == ()
    assert Load(0.1, 2, 0.1, 0.03, 0.03).disturbances() == ()  # granularity of /proc/stat in a short run
    assert Load(2.0, 2, 2.0, -0.03, 0.0).disturbances() == ()


def test_where_our_own_time_is_known_otherwise_the_rest_of_the_busy_time_is_that_of_others() -> None:
    load = Load(wall_s=2.0, cores=4, own_cpu_s=0.1, others_cpu_s=2.4, steal_s=0.0)
    assert load.disturbances()
    # Two ranks that another node's mpirun has started poll for all of the two seconds on one core each.
    known = load.with_own(2.0)
    assert (known.own_cpu_s, known.others_cpu_s) == (2.0, pytest.approx(0.5))
    assert known.disturbances()
    assert not load.with_own(2.4).disturbances()


def test_the_line_of_an_archive_says_which_witness_spoke() -> None:
    both = (
        "cpu: other processes used 0.50 s of CPU in 2.00 s on a",
        "steal: the hypervisor took 0.20 s of CPU in 2.00 s",
    )
    told = disturbance_warnings([[both, ()], [both[:1]], [()]], "mpiruns", "mpiruns.json")
    assert told == [
        "2 of 3 mpiruns were disturbed by other programs (2), the hypervisor (1) (mpiruns.json): 1 repeated, "
        "1 without an undisturbed attempt"
    ]
    assert disturbance_warnings([[True]], "mpiruns", "x")[0].startswith(
        "1 of 1 mpiruns were disturbed by other load (x)"
    )


QUIET = Load(wall_s=1.0, cores=2, own_cpu_s=1.5, others_cpu_s=0.0, steal_s=0.0)


def rank(wall_s: float, cpu_s: float) -> RankLoad:
    return RankLoad(0, 0, wall_s, cpu_s, voluntary_switches=0, involuntary_switches=0)


def machine(**changes: float) -> Load:
    return Load(**{**{field.name: getattr(QUIET, field.name) for field in fields(Load)}, **changes})


@pytest.mark.parametrize(
    ("ranks", "load", "cause"),
    [
        ((rank(0.920, 0.9199), rank(0.920, 0.9197)), QUIET, None),
        # A rank has its core for 0.97 * 1.000 - 0.005 = 0.965 at least; one tick of a 250 Hz kernel is 5 % of 0.08 s.
        ((rank(1.0, 0.966),), QUIET, None),
        ((rank(1.0, 0.964),), QUIET, "off core: rank 0 was on its core for only"),
        ((rank(0.080, 0.076),), QUIET, None),
        # 3 % of 2 cores * 1 s is 0.06 s, plus 0.03 s of granularity; a run may keep its core beside a neighbour.
        ((), machine(others_cpu_s=0.08), None),
        ((), machine(others_cpu_s=0.10), "cpu: other processes"),
        ((rank(1.0, 1.0),), machine(others_cpu_s=1.0), "cpu: other processes"),
        ((), machine(steal_s=0.06), "steal: the hypervisor"),
        ((), machine(others_cpu_s=-0.04), None),  # ticks that missed our own processes
    ],
)
def test_what_takes_more_than_its_share_disturbs_a_run(ranks, load, cause):
    found = disturbances(ranks, load)
    assert len(found) == (cause is not None)
    assert all(text.startswith(cause) for text in found)


def test_the_rule_never_sees_the_duration_that_is_verified():
    # Ten times slower, all shares the same: the verdict must not change.
    for factor in (1.0, 10.0):
        load = Load(wall_s=factor, cores=2, own_cpu_s=1.9 * factor, others_cpu_s=0.0, steal_s=0.0)
        assert disturbances((rank(factor, factor),), load) == ()
