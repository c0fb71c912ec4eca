"""Files of measured algorithms in the hands of the real Open MPI and MPICH: what they then run."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lepaute.archive import Archive
from lepaute.archive.mpi_campaign import facts
from lepaute.cli.compare import MeasureOptions, variants_to_measure
from lepaute.cli.main import main
from lepaute.compare.tuning import Choice, rules_text, selection_text
from lepaute.kit.mpi_library import default_tree, find_library
from lepaute.measure.comparison.measuring import measure_libraries

pytestmark = [pytest.mark.machine, pytest.mark.slow]

OPERATIONS = ("Bcast", "Allreduce", "Alltoall", "Allgather", "Reduce_scatter_block", "Reduce", "Barrier")
SIZES = (16, 1024, 16384)
#: An algorithm of Open MPI 4.1 that is not its default for any of SIZES, and the name of its function.
FORCED = {
    "Bcast": ("2", "chain"), "Allreduce": ("2", "nonoverlapping"), "Alltoall": ("3", "bruck"),
    "Allgather": ("2", "bruck"), "Reduce_scatter_block": ("2", "recursivedoubling"), "Reduce": ("2", "chain"),
    "Barrier": ("4", "bruck"),
}  # fmt: skip
QUICK = {"calls": 2, "mpiruns": 1, "budget_s": 0.1, "clock_method": "SKaMPI", "warm_up": 0}


def need(family: str, version: str) -> None:
    """Skips a test where the library is missing, or another version than the one whose algorithms are known."""
    try:
        there = find_library(family).version
    except Exception as problem:  # noqa: BLE001 - whatever is missing, there is nothing to test
        pytest.skip(f"no {family} here: {problem}")
    if not there.startswith(version):
        pytest.skip(f"the algorithms are those of {family} {version}, this is {there}")


@pytest.fixture(scope="module", autouse=True)
def library() -> None:
    need("openmpi", "4.1")


@pytest.mark.long
def test_open_mpi_takes_every_rule_of_a_file_and_its_default_elsewhere(tmp_path: Path) -> None:
    """The middle of three sizes has a rule: the bounds are right where the sizes around it run the default."""
    chosen = [
        Choice(operation, size, FORCED[operation][0] if size in (1024, 0) else "", 1e-6, 0.8, 0.7, 0.9, 0.01)
        for operation in OPERATIONS
        for size in ((0,) if operation == "Barrier" else SIZES)
    ]
    rules = tmp_path / "rules.conf"
    rules.write_text(rules_text(chosen, 2, ["of a test: 4 5 6"]))
    unused = tmp_path / "for_other_ranks.conf"
    unused.write_text(rules_text([replace(one, algorithm=FORCED[one.operation][0]) for one in chosen], 3))
    switch = "OMPI_MCA_coll_tuned_use_dynamic_rules=1,OMPI_MCA_coll_tuned_dynamic_rules_filename="
    path = measure_libraries(
        ["plain=openmpi", f"tuned=openmpi,{switch}{rules}", f"unused=openmpi,{switch}{unused}"],
        tmp_path / "c.zip",
        ops=",".join(OPERATIONS),
        sizes=",".join(map(str, SIZES)),
        **QUICK,
    )
    plain, tuned, other = (library.algorithms for library in facts(Archive.open(path)).libraries)
    ruled = {f"{one.operation} of {one.size_bytes} bytes": FORCED[one.operation][1] for one in chosen if one.algorithm}
    assert "unknown" not in plain.values()
    for case, algorithm in plain.items():
        assert tuned[case] == ruled.get(case, algorithm), case
        assert other[case] == algorithm, case
    assert all(plain[case] != algorithm for case, algorithm in ruled.items())


@pytest.mark.long
def test_variants_run_what_they_are_made_to_run(tmp_path: Path) -> None:
    specs, mpiruns = variants_to_measure("openmpi", MeasureOptions(sizes="1K"))
    assert specs[0] == "openmpi=openmpi"
    assert mpiruns >= 10
    path = measure_libraries(specs[:3], tmp_path / "c.zip", ops="bcast,allreduce", sizes="1K", **QUICK)
    about = facts(Archive.open(path))
    assert [one.algorithms["Bcast of 1024 bytes"] for one in about.libraries[1:]] == ["basic_linear", "chain"]
    assert about.libraries[2].variables["OMPI_MCA_coll_tuned_allreduce_algorithm"] == "2"


def test_the_command_measures_variants_and_writes_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One mpirun can show nothing, so all stays as it is, and the command says so."""
    archive, rules = tmp_path / "t.zip", tmp_path / "rules.conf"
    words = ["--sizes", "64", "--calls", "2", "--mpiruns", "1", "--clock-method", "SKaMPI", "--budget", "1s"]
    tune = ["compare", "openmpi", "--tune", str(rules), "--ops", "reduce_scatter_block", *words]
    assert main([*tune, "-o", str(archive)]) == 0
    printed = capsys.readouterr()
    assert "can show nothing" in printed.err
    assert "other algorithms than the default for 0 rows of 1" in printed.out
    text = rules.read_text()
    assert Archive.open(archive).id in text
    rules.unlink()
    assert main(["compare", str(archive), "--tune", str(rules)]) == 0
    assert rules.read_text() == text
    capsys.readouterr()
    for bad, message in (
        (["mpich", "--tune", str(rules)], "does not decide Bcast"),
        (["openmpi", "mpich", "--tune", str(rules)], "--tune is of one library"),
        (["openmpi", "--tune", str(rules), "--ops", "scatter"], "its ranks may see different sizes"),
        (["openmpi", "--tune", str(rules), "--ops", "ibcast"], "has no choice of algorithms for Bcast (nonblocking)"),
        (["openmpi", "--tune", str(rules), "--report", "x.html"], "leave out --report"),
    ):
        assert main(["compare", *bad, "--force", "-o", str(tmp_path / "no.zip")]) == 2
        assert message in capsys.readouterr().err


@pytest.fixture
def mpich() -> None:
    need("mpich", "4.")


def selected(tmp_path: Path, name: str, sizes: tuple[int, ...], algorithm: str, ranks: int = 2) -> Path:
    """A file of MPICH in which these sizes of Alltoall have an algorithm, and those around them the default."""
    chosen = [Choice("Alltoall", size, algorithm if size in sizes else "", 1e-6, 0.8, 0.7, 0.9, 0.01) for size in SIZES]
    path = tmp_path / f"{name}.json"
    path.write_text(selection_text(chosen, ranks, default_tree(find_library("mpich"))))
    return path


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.usefixtures("mpich")
def test_mpich_takes_a_rule_where_it_holds_and_nowhere_else(tmp_path: Path) -> None:
    """MPICH does not tell what it runs. An algorithm that is wrong for what the probe calls does: where the rule holds,
    the probe finds wrong contents, and for the other sizes, or other ranks, all is right.
    """
    wrong = "pairwise_sendrecv_replace"  # only for MPI_IN_PLACE
    variable = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"
    middle = selected(tmp_path, "middle", (1024,), wrong)
    libraries = {
        "plain": "mpich",
        "middle": f"mpich,{variable}={middle}",
        "others": f"mpich,{variable}={selected(tmp_path, 'others', SIZES, wrong, ranks=3)}",
        "right": f"mpich,{variable}={selected(tmp_path, 'right', SIZES, 'brucks')}",
    }
    specs = [f"{label}={spec}" for label, spec in libraries.items()]

    def lacking(sizes: str, name: str) -> set[str]:
        path = measure_libraries(specs, tmp_path / f"{name}.zip", ops="alltoall,allgather", sizes=sizes, **QUICK)
        about = facts(Archive.open(path)).libraries
        return {f"{one.label}: {operation}" for one in about for operation in one.lacking}

    assert lacking("16,1023,1025,16K", "around") == set()
    assert lacking("1024", "at") == {"middle: Alltoall (blocking)"}


@pytest.mark.usefixtures("mpich")
def test_the_command_writes_a_selection_for_mpich(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of one mpirun nothing is shown, so the selection is the library's own."""
    rules = tmp_path / "selection.json"
    words = ["--ops", "allgather", "--sizes", "64", "--calls", "2", "--mpiruns", "1", "--clock-method", "SKaMPI"]
    tune = ["compare", "mpich", "--tune", str(rules), "--budget", "1s", "-o", str(tmp_path / "t.zip")]
    assert main([*tune, *words]) == 0
    assert f"MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE={rules} mpirun" in capsys.readouterr().out
    assert json.loads(rules.read_text()) == default_tree(find_library("mpich"))
    labels = facts(Archive.open(tmp_path / "t.zip")).labels
    assert labels == ("mpich", "mpich.1", "mpich.2", "mpich.3")
