"""Performance guidelines of one library: which are violated, what each costs, and the mock-up that is faster."""

import json
from pathlib import Path

import numpy as np
import pandas
import pytest
from support_comparisons import campaign

from lepaute.cli.compare_text import answer_of
from lepaute.cli.main import main
from lepaute.measure.compare.guidelines import check_guidelines, sizes_for
from lepaute.measure.fit import segment
from lepaute.measure.fit.duration_tables import read_durations
from lepaute.measure.fit.segment_report import sentence


def measured(times_s: dict[tuple[str, int], float], mpiruns: int = 12) -> pandas.DataFrame:
    rng = np.random.default_rng(4)
    return pandas.DataFrame(
        [
            {"library": "a", "block": mpirun, "mpirun": mpirun, "operation": operation, "form": "blocking"}
            | {"size_bytes": size, "median_s": time_s * np.exp(common + rng.normal(0, 0.02))}
            for mpirun in range(mpiruns)
            for common in [rng.normal(0, 0.3)]
            for (operation, size), time_s in times_s.items()
        ]
    )


@pytest.mark.parametrize(
    ("times_s", "ranks", "mock_up"),
    [
        ({("Allreduce", 64): 9e-6, ("Reduce", 64): 3e-6, ("Bcast", 64): 4e-6}, 4, "Reduce + Bcast"),
        ({("Barrier", 0): 9e-6, ("Allreduce", 8): 3e-6}, 4, "Allreduce"),
        ({("Allgather", 8): 9e-6, ("Gather", 8): 2e-6, ("Bcast", 32): 3e-6}, 4, "Gather + Bcast"),
        ({("Alltoall", 8): 9e-6, ("Scatter", 8): 2e-6}, 4, "Scatter from each rank"),
        ({("Bcast", 8): 9e-6, ("Bcast", 64): 3e-6}, 4, "Bcast(64)"),
    ],
)
def test_a_violation_names_the_mock_up_that_is_faster_and_what_it_would_save(times_s, ranks, mock_up):
    tested = check_guidelines(measured(times_s), "a", ranks)
    assert [(each.mock_up, each.is_violated) for each in tested if each.is_violated] == [(mock_up, True)]
    (operation, size), cost_s = next(iter(times_s)), tested[0].excess_s
    assert answer_of(tested, "a").startswith(f"a violates 1 of {len(tested)} performance guideline")
    assert f"{operation}{f' of {size} B' if size else ''} takes " in answer_of(tested, "a")
    assert cost_s > 0


def test_a_library_that_keeps_them_and_too_few_mpiruns_are_said() -> None:
    kept = {("Allreduce", 64): 5e-6, ("Reduce", 64): 3e-6, ("Bcast", 64): 4e-6}
    tested = check_guidelines(measured(kept), "a", 4)
    assert answer_of(tested, "a") == "a is not shown to violate any of 2 performance guidelines"
    few = answer_of(check_guidelines(measured(kept, 3), "a", 4), "a")
    assert few == "nothing can be shown of 2 guidelines by 3 undisturbed mpiruns of a: 6 are needed"
    assert answer_of((), "a").startswith("no guideline can be tested of a")


def test_blocks_and_vectors_of_all_ranks_are_among_the_sizes() -> None:
    assert sizes_for(4) == "8,32,512,2048,32768,131072"


def test_the_command_judges_each_library_of_an_archive(tmp_path, capsys, output_of):
    path = tmp_path / "c.zip"
    campaign(path, sizes=(8, 64), blocks=12)
    assert output_of("compare", "--guidelines", path, "--left", "openmpi").startswith(
        "Openmpi is not shown to violate any of 2 performance guidelines"
    )
    assert main(["compare", "--guidelines", str(path), "--left", "mpich", "--json"]) == 0
    assert {one["mock_up"] for one in json.loads(capsys.readouterr().out)["guidelines"]} == {
        "Allreduce(64)",
        "Bcast(64)",
    }
    campaign(tmp_path / "d.zip", disturbed=True)
    assert output_of("compare", "--guidelines", tmp_path / "d.zip", "--details").startswith(
        "7 of 7 mpiruns of openmpi were disturbed: no guideline is tested"
    )
    assert main(["compare", "--guidelines", str(path), str(path)]) == 2
    assert main(["compare", "--guidelines", str(path), "--margin", "3%"]) == 2


def test_a_size_that_takes_longer_than_a_larger_one_is_the_answer_of_segment(tmp_path: Path) -> None:
    rows = [(2**power, 10 + 2**power / 1e4) for power in range(17)]
    rows[15] = (2**15, 20 * rows[16][1])
    path = tmp_path / "osu.txt"
    lines = [f"{size} {time:.2f}" for size, time in rows]
    path.write_text("\n".join(["# OSU MPI Allreduce Latency Test v7.4", "# Size   Avg Latency(us)", *lines]))
    (table,) = read_durations(path)
    said = sentence(table, segment(table.x, table.duration_s))
    assert said.startswith("32 KiB takes 20.0 times as long as 64 KiB; ")
    assert "no breakpoint" not in said
