"""The script of a rank: its folder, its CPUs, its variables, by whichever launcher it was started."""

import os
from pathlib import Path

import pytest
from support_limits import ran

from lepaute.measure.experiment.ranks import CPUS, SCRIPT, cpus_text, rank_script
from lepaute.measure.kernel_set import blas_environment

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
