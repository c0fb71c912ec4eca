"""A calibration without a machine: its plan, and what becomes of a campaign that fails half-way.

The probes are replaced by functions that write raw files as the real ones do; the real ones run in the
end-to-end tests.
"""

import collections
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lepaute.archive import Archive
from lepaute.command import CommandRecord
from lepaute.design.table import parse_design
from lepaute.errors import EnvironmentProblem, InputError
from lepaute.measure import campaign
from lepaute.measure.kernel_set import KernelSet
from lepaute.measure.machine_load import Sample
from lepaute.measure.plan import FULL, QUICK, PlannedRun, largest_n, plan
from lepaute.measure.probes import ProbeRun

KERNELS = "#@clock_cost_s=2e-8\n#@blas_core=Zen\ndesign_row,kind,position,kernel,m,n,k,start_s,duration_s,rank,cpu\n"
MESSAGES = "#@clock_cost_s=2e-8\n#@blas_core=none\ndesign_row,operation,size_bytes,start_s,duration_s,rank,cpu\n"


def test_each_block_runs_every_probe_once_in_an_order_of_its_own() -> None:
    runs = plan(FULL, 3, (0, 1), 8000)
    blocks = [[run.name for run in runs if run.block == block] for block in range(FULL.blocks)]
    assert len(blocks) == 5
    steps = ["hpl_steps_1x1_core0", "hpl_steps_1x1_core1", "hpl_steps_1x1_pair", "hpl_steps_2x1"]
    assert all(sorted(names) == ["dgemm_core0", "dgemm_core1", *steps, "p2p"] for names in blocks)
    assert len(set(map(tuple, blocks))) > 1
    assert [run.block for run in runs] == sorted(run.block for run in runs)  # interleaved: block after block


def test_no_two_runs_share_a_seed_and_the_same_seed_gives_the_same_plan() -> None:
    runs = plan(QUICK, 3, (0, 1), 1500)
    assert len({run.seed for run in runs}) == len(runs)
    assert runs == plan(QUICK, 3, (0, 1), 1500)
    assert runs != plan(QUICK, 4, (0, 1), 1500)


def test_a_machine_with_little_memory_gets_smaller_matrices() -> None:
    assert largest_n(FULL, 64 << 30) == 8000
    assert largest_n(FULL, 1 << 30) == 7327  # sqrt(0.4 * 2^30 / 8)


@pytest.fixture
def fake_machine(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, BaseException], None]:
    """Replaces kernels, build and probes; the returned function makes probe number `fatal` raise `error`."""
    state: dict[str, Any] = {"calls": 0, "fatal": None, "error": None, "core": "Zen"}

    def run(head: str, ranked: bool) -> Callable[..., ProbeRun]:
        def probe(_probes: object, design: Path, out: Path, *, seed: int, **_options: object) -> ProbeRun:
            parse_design(design.read_text(), str(design))
            row = "0,dgemm,0,dgemm,5,6,7,1.5,0.001,0,0\n" if head == KERNELS else "0,recv,8,1.5,0.001,0,0\n"
            dying = state["calls"] == state["fatal"]
            state["calls"] += 1
            for name in (f"{out}.r0", f"{out}.r1") if ranked else (str(out),):
                Path(name).write_text(head + row + (row[:-4] if dying else row))  # killed in the middle of a row
            if dying:
                raise state["error"]
            return ProbeRun((), CommandRecord(("probe", "--seed", str(seed)), 0, "", "", "2026-11-21T06:00:00", 0.1))

        return probe

    monkeypatch.setattr(campaign, "choose_kernel_set", lambda: KernelSet("Zen", None, 50.0, (), "OpenBLAS test"))
    monkeypatch.setattr(campaign, "build_probes", lambda **_options: None)
    monkeypatch.setattr(campaign, "run_probe_dgemm", run(KERNELS, ranked=False))
    monkeypatch.setattr(campaign, "run_probe_steps", run(KERNELS, ranked=True))
    monkeypatch.setattr(campaign, "run_probe_p2p", run(MESSAGES, ranked=True))
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1})
    monkeypatch.setattr(campaign, "sample", lambda: Sample(0.0, 0.0, 0.0, 0.0))  # a quiet machine, whatever else runs

    def break_at(fatal: int, error: BaseException) -> None:
        state.update(fatal=fatal, error=error)

    return break_at


def test_a_calibration_holds_designs_raw_files_observations_blocks_commands_and_environment(
    tmp_path: Path, fake_machine: Callable[[int, BaseException], None]
) -> None:
    shares: list[float] = []
    path = campaign.calibrate(
        tmp_path / "c.zip", quick=True, seed=5, progress=lambda _what, share: shares.append(share)
    )
    archive = Archive.open(path)
    folders = collections.Counter(name.split("/")[0] for name in archive.members() if "/" in name)
    assert folders["designs"] == 14  # 2 blocks of 7 probes
    assert folders["raw"] == 2 * (2 + 2 * 2 + 2 + 2 + 2)  # dgemm one file, those under mpirun one a rank
    assert (archive.metadata["seed"], archive.metadata["blocks"], archive.metadata["partial"]) == (5, 2, False)
    assert archive.metadata["blas"]["core"] == "Zen"
    kernels = archive.table("observations/kernels.parquet")
    assert set(kernels["probe"]) == {"dgemm", "hpl_steps_1x1", "hpl_steps_1x1_pair", "hpl_steps_2x1"}
    assert set(kernels["block"]) == {0, 1}
    assert set(kernels["clock_cost_s"]) == {2e-8}
    messages = archive.table("observations/p2p.parquet")
    assert "probe" not in messages.columns
    for table in (kernels, messages):
        assert set(table["attempt"]) == {0}
        assert table["disturbed"].dtype == bool
        assert not table["disturbed"].any()
    assert archive.metadata["warnings"] == []
    assert len(json.loads(archive.read_bytes("commands.json"))) == 14
    records = json.loads(archive.read_bytes("blocks.json"))
    assert [record["order"] for record in records] == list(range(14))
    assert {"others_cpu_s", "steal_s", "wall_s", "disturbed", "causes"} <= set(records[0])
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


@pytest.mark.parametrize("error", [KeyboardInterrupt(), EnvironmentProblem("the dgemm probe failed")])
def test_what_was_measured_before_a_failure_or_ctrl_c_is_archived_as_partial(
    tmp_path: Path, fake_machine: Callable[[int, BaseException], None], error: BaseException
) -> None:
    (tmp_path / "c.zip").write_bytes(b"an older archive")
    fake_machine(7, error)
    with pytest.raises(type(error)) as caught:
        campaign.calibrate(tmp_path / "c.zip", quick=True)
    assert caught.value.__notes__[-1] == f"what was measured until then is in {tmp_path / 'c.partial.zip'}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.partial.zip", "c.zip"]
    assert (tmp_path / "c.zip").read_bytes() == b"an older archive"
    archive = Archive.open(tmp_path / "c.partial.zip")
    assert archive.metadata["partial"] is True
    assert archive.metadata["partial_cause"] == (str(error) or "KeyboardInterrupt")
    assert len(json.loads(archive.read_bytes("commands.json"))) == 7
    tables = [archive.table(f"observations/{kind}.parquet") for kind in ("kernels", "p2p")]
    assert all(table["duration_s"].eq(0.001).all() for table in tables)  # the row that was cut is not among them


def test_probes_that_ran_other_kernels_than_those_chosen_end_the_campaign(
    tmp_path: Path, fake_machine: Callable[[int, BaseException], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "choose_kernel_set", lambda: KernelSet("Haswell", "Haswell", 50.0, ()))
    with pytest.raises(EnvironmentProblem, match="ran the Zen kernels of OpenBLAS instead of Haswell"):
        campaign.calibrate(tmp_path / "c.zip", quick=True)


def test_a_place_that_cannot_be_written_and_an_impossible_seed_are_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="its folder does not exist"):
        campaign.calibrate(tmp_path / "no" / "c.zip")
    with pytest.raises(InputError, match="is a folder"):
        campaign.calibrate(tmp_path)
    with pytest.raises(InputError, match="seed is -1"):
        campaign.calibrate(tmp_path / "c.zip", seed=-1)


def test_one_core_is_not_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {3})
    with pytest.raises(EnvironmentProblem, match="needs two cores and may use 1"):
        campaign.calibrate(tmp_path / "c.zip")


def disturb(monkeypatch: pytest.MonkeyPatch, disturbed: set[int], wall_s: float = 1.0) -> None:
    """Lets every attempt last `wall_s` and others use the machine during those of these numbers, from 0."""
    state = {"samples": 0, "others_s": 0.0}

    def sample() -> Sample:
        number, ends = divmod(state["samples"], 2)
        state["samples"] += 1
        state["others_s"] += 2.0 * ends * (number in disturbed)
        return Sample((number + ends) * wall_s, state["others_s"], 0.0, 0.0)

    monkeypatch.setattr(campaign, "sample", sample)
    monkeypatch.setattr("os.cpu_count", lambda: 2)


def test_disturbed_runs_are_repeated_at_the_end_of_their_block_and_every_attempt_is_kept(
    tmp_path: Path, fake_machine: Callable[[int, BaseException], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    disturb(monkeypatch, {1, 3, 8})  # two runs of the first block; of the repetitions 7 and 8 the second: 9 repeats it
    archive = Archive.open(campaign.calibrate(tmp_path / "c.zip", quick=True))
    records = json.loads(archive.read_bytes("blocks.json"))
    assert [record["block"] for record in records] == [0] * 10 + [1] * 7
    names = [record["name"] for record in records]
    assert [(name, record["attempt"]) for name, record in zip(names[7:10], records[7:10], strict=True)] == [
        (names[1], 1),
        (names[3], 1),
        (names[3], 2),
    ]
    assert {record["seed"] for record in records if record["name"] == names[3] and record["block"] == 0} == {
        records[3]["seed"]
    }
    assert [record["order"] for record in records if record["disturbed"]] == [1, 3, 8]
    raw = [name for name in archive.members() if name.startswith("raw/")]
    assert any(name.startswith(f"raw/block0/{names[3]}.attempt2") for name in raw)
    tables = [archive.table(f"observations/{kind}.parquet") for kind in ("kernels", "p2p")]
    assert sum(len(table) for table in tables) == 2 * len(raw)  # two rows each
    attempts = {row for table in tables for row in table[["block", "attempt", "disturbed"]].itertuples(index=False)}
    assert attempts == {(0, 0, False), (0, 0, True), (0, 1, False), (0, 1, True), (0, 2, False), (1, 0, False)}
    assert archive.metadata["warnings"] == [
        "2 of 14 probe runs were disturbed by other load (blocks.json): 2 repeated, 0 without an undisturbed attempt"
    ]


def test_load_that_stays_costs_two_repetitions_a_run_and_twenty_seconds_in_all(
    tmp_path: Path, fake_machine: Callable[[int, BaseException], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    disturb(monkeypatch, set(range(100)), wall_s=1.0)
    archive = Archive.open(campaign.calibrate(tmp_path / "c.zip", quick=True))
    numbers = collections.Counter(record["attempt"] for record in json.loads(archive.read_bytes("blocks.json")))
    # The first block uses up 14 s for its seven runs; 6 s are left for six repetitions in the second.
    assert numbers == {0: 14, 1: 13, 2: 7}
    assert archive.metadata["warnings"] == [
        "14 of 14 probe runs were disturbed by other load (blocks.json): 13 repeated, 14 without an undisturbed attempt"
    ]


def test_a_repetition_that_would_last_too_long_is_left_for_one_that_fits() -> None:
    def attempt(name: str, number: int, wall_s: float, disturbed: bool = True) -> campaign.Attempt:
        design = plan(QUICK, 1, (0, 1), 1500)[0].design
        return campaign.Attempt(PlannedRun(0, name, "dgemm", (0,), 1, design), number, wall_s, disturbed)

    first = [attempt("a", 0, 15.0), attempt("b", 0, 12.0), attempt("c", 0, 3.0), attempt("d", 0, 1.0, disturbed=False)]
    following = []
    while (again := campaign.next_repetition(first, 0)) is not None:
        following.append((again.run.name, again.number))
        first.append(attempt(again.run.name, again.number + 1, again.wall_s))
    assert following == [("a", 0), ("c", 0)]  # 15 + 12 s and 15 + 3 + 3 s would be too much
    assert campaign.next_repetition(first, 1) is None
    assert campaign.disturbance_warning(first[3:4]) is None
