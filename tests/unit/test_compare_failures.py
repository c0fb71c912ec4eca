"""Wrong is worse than slow: failed checks, operations that end early; and what derived times stand for."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support_comparisons import campaign

from lepaute.cli.main import main
from lepaute.errors import InputError, LibraryFailure
from lepaute.kit.json_values import to_json
from lepaute.measure.archive import Archive
from lepaute.measure.archive.mpi_campaign import LibraryFacts, rank_times
from lepaute.measure.compare.comparison import Comparison, archives
from lepaute.measure.compare.derived import derived_lines, overlap, slow_ranks
from lepaute.measure.compare.setting import algorithms, setting_lines
from lepaute.measure.comparison.campaign import check_same
from lepaute.measure.comparison.cases import ComparisonRequest
from lepaute.measure.comparison.libraries import ReadyLibrary
from lepaute.measure.experiment.closing import Outcome

WRONG = (
    "exit status 1: Allreduce of 8 bytes on 2 ranks gave a wrong result: the library is broken, nothing was measured"
)
TITLE = "# OSU MPI Broadcast Latency Test v7.4\n# Size       Avg Latency(us)        Validation\n"
ROWS = "1                      {}                {}\n4096                   {}                Pass\n"


def facts(library: str, operation: str, why: str) -> dict[str, Any]:
    of = {"lacking": {f"{operation} (blocking)": why}}
    return {"libraries": [{"label": each, **(of if each == library else {})} for each in ("openmpi", "mpich")]}


def test_what_started_late_in_each_call_is_not_missing(tmp_path, json_of):
    campaign(tmp_path / "c.zip", late=("mpich", "Allreduce"), levels=("warm", "cold"))
    found = json_of("compare", tmp_path / "c.zip", "--json")  # with status 5 it would fail
    assert found["failures"] == []
    assert [each for each in found["warnings"] if "started late" in each] == [
        f"no call of Allreduce, cache={level} of mpich counts: all started late on some rank"
        for level in ("cold", "warm")
    ]


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
        (TITLE + ROWS.format(2.5, "Fail", 9) + barrier, "Bcast of b gives wrong results; in all 3 rows"),
        (TITLE + ROWS.format(2.5, "Pass", 9), "Barrier is missing in b; in both rows"),
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


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    return campaign(tmp_path_factory.mktemp("archive") / "c.zip", ranks=3, blocks=12)


@pytest.fixture
def found(archive: Archive) -> Comparison:
    """Bcast is slower with mpich, on all ranks alike."""
    return archives(archive)


def test_times_of_ranks_are_medians_of_calls_that_count_and_where_all_wait_no_rank_is_named(
    archive: Archive, found: Comparison
) -> None:
    """Outliers are one of twelve calls, and the second library takes 30 % longer for Bcast."""
    table = rank_times(archive).set_index(["library", "operation", "rank"])["own_s"]
    assert table["openmpi", "Bcast", 1] == pytest.approx(10e-6, rel=0.02)
    assert table["mpich", "Bcast", 2] == pytest.approx(13.5e-6, rel=0.02)
    (line,) = slow_ranks(found)
    assert (line.operation, line.rank, line.rows, line.all_rows) == ("Bcast", None, 1, 1)
    assert "all ranks take longer alike in 1 of the 1 row shown to differ" in str(line)


def test_the_rank_that_alone_has_the_difference_is_named(found: Comparison, tmp_path: Path) -> None:
    table = found.rank_times.copy()
    late = (table["library"] == "mpich") & (table["operation"] == "Bcast")
    table.loc[late, "own_s"] = 9e-6
    table.loc[late & (table["rank"] == 2), "own_s"] = 35e-6
    found = replace(found, rank_times=table)
    (line,) = slow_ranks(found)
    assert (line.rank, line.slower) == (2, "mpich")
    assert line.excess_s == pytest.approx(25e-6, rel=0.05)
    assert str(line).startswith("Bcast: rank 2 takes longer in 1 of the 1 row shown to differ (mpich by 2")
    assert str(line).endswith(", the other ranks do not")
    assert str(replace(line, others_s=3e-6)).endswith(", other ranks by 3.00 µs")
    found.write_report(tmp_path / "r.html")
    assert "Bcast: rank 2 takes longer" in (tmp_path / "r.html").read_text()


def test_streams_have_a_bandwidth_and_a_message_rate(found: Comparison) -> None:
    one = replace(found.verdicts[0], operation="Bibandwidth", size_bytes=1000, left_s=64e-6, right_s=128e-6)
    (line,) = derived_lines(replace(found, verdicts=(one,)))
    assert line == (
        "Bibandwidth of 1000 B, each pair: openmpi 2000 MB/s, 2000 thousand messages/s; "
        "mpich 1000 MB/s, 1000 thousand messages/s"
    )


def test_what_is_over_when_the_work_is_overlaps(found: Comparison) -> None:
    """Of 20 µs: 5 µs remain after 100 µs of work with the left library, all with the right one."""
    assert overlap(20e-6, 105e-6, 100e-6) == pytest.approx(0.75)
    assert overlap(20e-6, 130e-6, 100e-6) == 0.0
    assert overlap(20e-6, 99e-6, 100e-6) == 1.0
    one = replace(found.verdicts[0], form="nonblocking", left_s=20e-6, right_s=20e-6)
    beside = replace(one, form="overlapped", left_s=105e-6, right_s=120e-6)
    sources = tuple(replace(each, compute_s=100e-6) for each in found.archives)
    (line,) = derived_lines(replace(found, verdicts=(one, beside), archives=sources))
    assert line == "Iallreduce of 8 B overlaps with 100 µs of work: openmpi 75 %, mpich 0 %"


def test_variables_and_algorithms_stand_beside_the_times(tmp_path, output_of):
    openmpi = {"label": "openmpi", "settings": {"OMPI_MCA_pml": "ob1"}, "algorithms": {"Bcast of 8 bytes": "binomial"}}
    path = tmp_path / "c.zip"
    campaign(path, about={"libraries": [openmpi, {"label": "mpich"}]})
    found = archives(path)
    assert "openmpi with OMPI_MCA_pml=ob1" in setting_lines(found)
    assert [algorithms(found, verdict) for verdict in found.verdicts] == ["", "binomial, unknown"]
    said = output_of("compare", path, "--report", tmp_path / "r.html")
    assert "openmpi with OMPI_MCA_pml=ob1\n" in said
    assert "algorithms" in said
    assert "binomial, unknown  openmpi is faster *" in said
    written = found.to_dict()
    assert "openmpi with OMPI_MCA_pml=ob1" in written["setting"]
    assert [row["algorithms"] for row in written["rows"]] == ["", "binomial, unknown"]
    page = (tmp_path / "r.html").read_text()
    assert "<td>binomial, unknown</td>" in page
    assert "OMPI_MCA_pml=ob1" in page


def test_a_campaign_goes_on_with_the_variables_that_it_was_begun_with() -> None:
    request = ComparisonRequest((("a", "a"),), (("Bcast", "blocking"),), (8,), 2)
    first = {"asked": to_json(request)}
    begun = {**first, "libraries": [{"label": "a", "settings": {"UCX_TLS": "sm"}}]}

    def ready(**settings: str) -> ReadyLibrary:
        return ReadyLibrary(None, Path(), LibraryFacts(label="a", settings=settings))  # type: ignore[arg-type]

    check_same(first, request, [ready(UCX_TLS="tcp")])
    check_same(begun, request, [ready(UCX_TLS="sm")])
    with pytest.raises(InputError, match=r"other variables of a \(UCX_TLS=sm, now none\); resume it"):
        check_same(begun, request, [ready()])
