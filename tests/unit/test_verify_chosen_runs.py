"""Where real runs are made, the script of a rank, and campaigns whose runs are chosen one at a time."""

import os
from pathlib import Path

import pytest
from support_limits import ran
from support_verify import PROGRAM, measured, predicted, silent

from lepaute.cli.verify_site import spread, where_of
from lepaute.errors import EnvironmentProblem, InputError
from lepaute.measure.experiment.ranks import CPUS, SCRIPT, cpus_text, rank_script
from lepaute.measure.kernel_set import blas_environment
from lepaute.measure.machine_load import Load
from lepaute.measure.schedulers import Request
from lepaute.measure.verify.campaign import Plan
from lepaute.measure.verify.node_site import sum_of
from lepaute.measure.verify.real_run import NodeLoad, RealRun, disturbances
from lepaute.measure.verify.verification import ChosenRuns, chosen_runs
from lepaute.simulate import Hpl
from lepaute.simulate.platform import load_platform

HPLS = [Hpl(n=2000, nb=nb) for nb in (64, 128)]


class Table:
    """A site whose runs take the given times; a share of the CPU below 1 is a disturbance."""

    def __init__(self, *runs: tuple[float, float]) -> None:
        self._runs, self.made = list(runs), []

    def check(self, hpl: Hpl) -> None:
        if hpl.n > 5000:
            raise InputError("too large")

    def run(self, hpl: Hpl, _timeout_s: float) -> RealRun:
        if not self._runs:
            raise EnvironmentProblem("the machine went away")
        time_s, share = self._runs.pop(0)
        self.made.append(hpl.nb)
        return measured(time_s, share)

    def watch(self, _guard: object) -> float:
        raise AssertionError("there is no sentinel")


def campaign(folder: Path, site: Table, hpls: "list[Hpl]" = HPLS, **more: bool):  # type: ignore[no-untyped-def]
    return chosen_runs(hpls, PROGRAM, Plan(3, 1), predicted, folder, site, silent, **more)


def test_predictions_are_sealed_before_the_first_run_and_each_run_is_kept_as_it_ends(tmp_path: Path) -> None:
    site = Table((1.0, 1.0), (1.1, 1.0), (1.2, 1.0))
    with campaign(tmp_path, site) as lent:
        assert lent.seal.path.is_file()
        assert site.made == []
        assert (lent.run(1), lent.run(0), lent.run(1)) == (1.0, 1.1, 1.2)
        assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == 3
        assert [(run.case, run.repeat) for run in lent.runs] == [(1, 0), (0, 0), (1, 1)]
    assert site.made == [128, 64, 128]


def test_a_disturbed_run_is_made_again_and_only_its_undisturbed_attempt_counts(tmp_path: Path) -> None:
    with campaign(tmp_path, Table((9.0, 0.5), (8.0, 0.5), (1.0, 1.0))) as lent:
        assert lent.run(0) == 1.0
        assert [run.disturbed for run in lent.runs] == [True, True, False]
        assert lent.warnings == [
            "2 of 3 real runs were disturbed by loss of a core (2); 0 of those that count had no undisturbed repetition"
        ]


def test_where_every_attempt_is_disturbed_their_median_counts_and_is_told(tmp_path: Path) -> None:
    with campaign(tmp_path, Table((1.0, 0.5), (1.2, 0.5), (1.4, 0.5), (90.0, 0.5))) as lent:
        assert lent.run(0) == pytest.approx(1.3)
        assert "; 1 of those that count had" in lent.warnings[0]


def test_an_interrupted_campaign_goes_on_where_it_was_and_runs_nothing_twice(tmp_path: Path) -> None:
    def choose(lent: ChosenRuns) -> list[float]:
        return [lent.run(0), lent.run(1), lent.run(0), lent.run(1)]

    first, second = Table((1.0, 1.0), (9.0, 0.5)), Table((1.1, 1.0), (1.2, 1.0), (1.3, 1.0))
    with pytest.raises(EnvironmentProblem, match="went away") as raised, campaign(tmp_path, first) as lent:
        choose(lent)
    assert any("--resume" in note for note in raised.value.__notes__)
    with pytest.raises(InputError, match="--resume"), campaign(tmp_path, second) as lent:
        pass
    with campaign(tmp_path, second, resume=True) as lent:
        assert choose(lent) == [1.0, 1.1, 1.2, 1.3]
    assert first.made + second.made == [64, 128, 128, 64, 128]


def test_a_case_that_does_not_fit_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too large"), campaign(tmp_path, Table(), [Hpl(n=6000)]):
        pass
    assert list(tmp_path.iterdir()) == []


def where(scheduler: str | None = None, ranks_per_node: int | None = None, **request: object):
    return where_of(scheduler, Request(**request), None, ranks_per_node, other_machine=False)


def test_what_was_calibrated_is_verified_and_this_machine_needs_no_names() -> None:
    slurm = where("slurm", count=2, walltime_s=60.0)
    on = slurm.on(("n3", "n7"))
    assert (on.request.nodes, on.request.count, on.request.walltime_s) == ("n[3,7]", None, 60.0)
    assert where().on(("host",)).request == Request()


def test_ranks_are_spread_over_the_first_cores_of_each_node_in_turn() -> None:
    dahu = load_platform("dahu")
    assert spread(dahu, 2, 3, 4).cores(dahu, 6, 4) == [0, 4, 8, 32, 36, 40]
    with pytest.raises(InputError, match=r"a node of dahu.* has 32 cores"):
        spread(dahu, 2, 9, 4)


def test_each_node_is_judged_by_itself_and_the_sum_is_told() -> None:
    quiet, busy = Load(10.0, 32, 320.0, 0.1, 0.0), Load(10.5, 32, 320.0, 20.0, 0.0)
    whole = sum_of([quiet, busy])
    assert (whole.wall_s, whole.cores, whole.others_cpu_s) == (10.5, 64, 20.1)
    # 20 s of 64 x 10.5 s are within 3 %; of the node's own 32 x 10.5 s they are not.
    assert whole.disturbances() == ()
    (cause,) = disturbances((), whole, (NodeLoad("a", quiet), NodeLoad("b", busy)))
    assert cause == "cpu: other processes used 20.00 s of CPU in 10.50 s on b"


RANK_PROGRAM = """#!/bin/sh
pwd
echo "$OPENBLAS_NUM_THREADS $OPENBLAS_CORETYPE"
sed -n 's/^Cpus_allowed_list:\\t//p' /proc/$$/status
"""


def told(folder: Path, cpus: list[list[int]], **variables: str) -> list[str]:
    folder.mkdir()
    (folder / "program").write_text(RANK_PROGRAM)
    (folder / "program").chmod(0o755)
    (folder / CPUS).write_text(cpus_text(cpus))
    (folder / SCRIPT).write_text(rank_script(str(folder), str(folder / "program"), blas_environment(2, "Zen")))
    bare = {"PATH": os.environ["PATH"], **variables}
    done = ran(["sh", folder / SCRIPT], env=bare)
    return (done.stdout if done.returncode == 0 else done.stderr).splitlines()


@pytest.mark.parametrize("variable", ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"])
def test_a_rank_runs_in_its_folder_on_the_cpus_of_its_line(variable: str, tmp_path: Path) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    folder = tmp_path / "a folder"
    assert told(folder, [[cpus[0]], [cpus[-1]]], **{variable: "1"}) == [str(folder), "2 Zen", str(cpus[-1])]


def test_the_number_of_the_launcher_goes_before_that_of_the_step_it_runs_in(tmp_path: Path) -> None:
    first, last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
    assert told(tmp_path / "x", [[first], [last]], OMPI_COMM_WORLD_RANK="0", SLURM_PROCID="1")[-1] == str(first)


def test_where_binding_is_not_allowed_the_program_runs_unbound(tmp_path: Path) -> None:
    assert told(tmp_path / "x", [[100_000]], PMI_RANK="0")[1] == "2 Zen"


def test_a_launcher_that_tells_no_number_is_an_error(tmp_path: Path) -> None:
    assert told(tmp_path / "x", [[0]]) == ["the launcher did not say the number of this rank"]
