"""Wrong is worse than slow: results that fail their check, operations that are missing or end early, and networks."""

from pathlib import Path
from typing import Any

import pytest
from support_comparisons import campaign

from lepaute.cli.main import main
from lepaute.errors import LibraryFailure
from lepaute.measure.compare.comparison import archives
from lepaute.measure.experiment.closing import Outcome

WRONG = (
    "exit status 1: Allreduce of 8 bytes on 2 ranks gave a wrong result: the library is broken, nothing was measured"
)
TITLE = "# OSU MPI Broadcast Latency Test v7.4\n# Size       Avg Latency(us)        Validation\n"
ROWS = "1                      {}                {}\n4096                   {}                Pass\n"


def facts(library: str, operation: str, why: str) -> dict[str, Any]:
    of = {"lacking": {f"{operation} (blocking)": why}}
    return {"libraries": [{"label": each, **(of if each == library else {})} for each in ("openmpi", "mpich")]}


@pytest.mark.parametrize(
    ("library", "why", "answer"),
    [
        ("mpich", WRONG, "Allreduce of mpich gives wrong results; of 2 rows, openmpi is faster in 1"),
        (
            "openmpi",
            "exit status 3: probe: the library has no MPI_Allreduce",
            "Allreduce is missing in openmpi; of 2 rows",
        ),
        ("mpich", "signal 11", "Allreduce of mpich fails: signal 11; of 2 rows"),
    ],
)
def test_a_failed_operation_is_the_first_line_with_a_status_of_its_own_in_every_mode(
    library, why, answer, tmp_path, json_of, output_of
):
    path, other, page = tmp_path / "c.zip", tmp_path / "d.zip", tmp_path / "r.html"
    campaign(path, about=facts(library, "Allreduce", why))
    campaign(other, ("openmpi", "mpich"), session=1)
    for options in ((), ("--fail-if-slower", "1%"), ("--details",), ("--report", str(page))):
        assert output_of("compare", path, *options, status=5).startswith(answer)
    assert answer.partition(";")[0] in page.read_text()
    sides = ("--left", f"{library} (c)", "--right", f"{library} (d)")
    (failure,) = json_of("compare", path, other, *sides, "--json", status=5)["failures"]
    assert (failure["library"], failure["operation"]) == (f"{library} (c)", "Allreduce")
    sound = "openmpi" if library == "mpich" else "mpich"
    assert main(["compare", str(path), str(other), "--left", f"{sound} (c)", "--right", f"{sound} (d)"]) == 0


def test_mpiruns_that_failed_and_campaigns_that_ended_early_are_failures(tmp_path: Path) -> None:
    found = archives(campaign(tmp_path / "c.zip", failures={5: "signal 9", 7: WRONG}, status="failed"))
    texts = [failure.text for failure in found.failures]
    assert texts == [
        "Allreduce of mpich gives wrong results, in 1 of its mpiruns",
        "1 of 8 mpiruns of mpich ended early: signal 9",
        "the campaign of c.zip ended early",
    ]
    assert found.decision.answer == "unknown"


def test_an_operation_that_one_file_alone_has_is_missing(tmp_path, output_of):
    left, right = tmp_path / "a.txt", tmp_path / "b.txt"
    barrier = "# OSU MPI Barrier Latency Test v7.4\n# Avg Latency(us)\n 12.30\n"
    left.write_text(TITLE + ROWS.format(1.5, "Pass", 9) + barrier)
    for text, first in (
        (TITLE + ROWS.format(2.5, "Fail", 9) + barrier, "Bcast of b gives wrong results; of 3 rows"),
        (TITLE + ROWS.format(2.5, "Pass", 9), "Barrier is missing in b; of 2 rows"),
        (TITLE + ROWS.format(2.5, "Pass", 9).splitlines()[0] + "\n" + barrier, "Bcast of b ends at 1 B, where another"),
    ):
        right.write_text(text)
        assert output_of("compare", left, right, status=5).startswith(first)


def test_networks_that_differ_are_said_before_the_verdict(tmp_path: Path) -> None:
    libraries = [
        {"label": "openmpi", "settings": {"OMPI_MCA_btl": "tcp,self", "OMPI_MCA_coll_tuned_bcast_algorithm": "1"}},
        {"label": "mpich", "settings": {}},
    ]
    network = "openmpi: TCP over lo, on one machine; mpich: shared memory, on one machine"
    found = archives(campaign(tmp_path / "c.zip", about={"libraries": libraries, "factors": {"network": network}}))
    assert found.answer.startswith(
        "the networks differ (openmpi: TCP over lo, on one machine with OMPI_MCA_btl=tcp,self; mpich: "
        "shared memory, on one machine); of 2 rows"
    )
    assert archives(campaign(tmp_path / "d.zip", about={"factors": {"network": "shared memory"}})).networks == ""


def test_a_library_without_any_operation_that_works_has_the_same_status(monkeypatch, capsys) -> None:
    def measure(*_: object, **__: object) -> None:
        raise LibraryFailure("mpich: cannot be measured: it gave a wrong result")

    monkeypatch.setattr("lepaute.measure.comparison.libraries.named_libraries", measure)
    assert main(["compare", "openmpi", "mpich"]) == 5
    assert capsys.readouterr().err == "lepaute: mpich: cannot be measured: it gave a wrong result\n"


def test_a_run_that_lost_a_node_is_not_complete() -> None:
    outcome = Outcome(Path("x.zip"), "incomplete", None, 12, 16, lost=("n3", "n4"))
    assert outcome.headline == "x.zip: incomplete, 12 of 16 rows measured, n[3-4] lost"
    assert outcome.to_dict()["lost"] == ["n3", "n4"]
