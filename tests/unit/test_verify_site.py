"""Where real runs are made, and the script of a rank: its folder, its CPUs, its variables."""

import os
from pathlib import Path

import pytest
from support_limits import ran

from lepaute.cli.verify_site import spread, where_of
from lepaute.errors import InputError
from lepaute.measure.experiment.ranks import CPUS, SCRIPT, cpus_text, rank_script
from lepaute.measure.kernel_set import blas_environment
from lepaute.measure.machine_load import Load
from lepaute.measure.schedulers import Request
from lepaute.measure.verify.node_site import sum_of
from lepaute.measure.verify.real_run import NodeLoad, disturbances
from lepaute.simulate.platform import load_platform


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


PROGRAM = """#!/bin/sh
pwd
echo "$OPENBLAS_NUM_THREADS $OPENBLAS_CORETYPE"
sed -n 's/^Cpus_allowed_list:\\t//p' /proc/$$/status
"""


def told(folder: Path, cpus: list[list[int]], **variables: str) -> list[str]:
    folder.mkdir()
    (folder / "program").write_text(PROGRAM)
    (folder / "program").chmod(0o755)
    (folder / CPUS).write_text(cpus_text(cpus))
    script = rank_script(str(folder), str(folder / "program"), blas_environment(2, "Zen"))
    (folder / SCRIPT).write_text(script)
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
    lines = told(tmp_path / "x", [[first], [last]], OMPI_COMM_WORLD_RANK="0", SLURM_PROCID="1")
    assert lines[-1] == str(first)


def test_where_binding_is_not_allowed_the_program_runs_unbound(tmp_path: Path) -> None:
    assert told(tmp_path / "x", [[100_000]], PMI_RANK="0")[1] == "2 Zen"


def test_a_launcher_that_tells_no_number_is_an_error(tmp_path: Path) -> None:
    assert told(tmp_path / "x", [[0]]) == ["the launcher did not say the number of this rank"]
