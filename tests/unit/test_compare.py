"""From the archive of a campaign to verdicts and sentences, on calls whose truth is known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pytest
from support_comparisons import BLOCKS, CALLS_EACH, World, campaign

import lepaute as lp
from lepaute.errors import ArchiveError, InputError
from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.measure.archive.mpi_campaign import KIND, MPIRUNS, mpiruns
from lepaute.measure.compare.comparison import archives
from lepaute.measure.compare.summaries import mpirun_summaries
from lepaute.measure.compare.verdicts import undisturbed_pairs, verdicts
from lepaute.measure.compare.wording import answer, sentence


def test_a_campaign_says_which_library_is_faster_and_what_it_left_out(tmp_path: Path) -> None:
    found = archives(campaign(tmp_path / "c.zip"))
    assert (found.left, found.right, found.ranks) == ("openmpi", "mpich", 2)
    assert [verdict.operation for verdict in found.verdicts] == ["Allreduce", "Bcast"]
    equal, slower = found.verdicts
    assert slower.outcome == "left faster"
    assert slower.low < np.exp(0.3) < slower.high
    assert slower.p_corrected == pytest.approx(2 * 2 / 2**7)  # the clearest of 2^7 arrangements, two rows
    assert slower.stars == "*"
    assert sentence(slower, "openmpi", "mpich").startswith("mpich took 1.3")
    assert equal.outcome != "left faster"
    # Trials, and calls that started late, do not count; outliers are filtered and kept beside.
    assert found.left_out == {"of trials": 2 * 2 * CALLS_EACH, "started late on some rank": 2 * 2 * (BLOCKS - 1)}
    assert (found.summaries["calls"] == CALLS_EACH - 1).all()
    assert (found.summaries["calls_inside"] < CALLS_EACH - 1).all()
    assert (found.summaries["mean_all_s"] > 2 * found.summaries["mean_s"]).all()
    assert any("budget ended" in line for line in found.warnings)
    assert found.answer.startswith("of 2 rows, openmpi is faster in 1")
    written = found.to_dict()
    assert [row["operation"] for row in written["rows"]] == ["Allreduce", "Bcast"]
    assert len(written["mpiruns"]) == 2 * 2 * (BLOCKS - 1)


def test_an_answer_without_a_verdict_says_so_in_place_of_counts_of_none(tmp_path: Path) -> None:
    found = [
        replace(row, p_corrected=1.0, low=0.5, high=2.0) for row in archives(campaign(tmp_path / "c.zip")).verdicts
    ]
    assert answer(found, "a", "b", "here") == "of 2 rows, none is decided; here"


def test_where_every_mpirun_was_disturbed_nothing_is_decided_which_all_that_is_written_says_first(tmp_path, output_of):
    path, page = tmp_path / "c.zip", tmp_path / "r.html"
    found = archives(campaign(path, disturbed=True))
    first = "14 of 14 mpiruns were disturbed by other load: nothing is decided in 2 rows"
    words = "14 of 14 mpiruns were disturbed: not tested"
    assert found.sentence(found.verdicts[1]).startswith("mpich took 1.3")
    for row in found.to_dict()["rows"]:
        assert (row["outcome"], row["stars"], row["p_corrected"], row["low"]) == ("untested", "", 1, 0)
        assert row["sentence"].endswith(words)
    assert found.guidelines == ()
    assert output_of("compare", path, "--report", page, "--fail-if-slower", "5%", "--strict", status=3).startswith(
        first
    )
    assert {first, words} <= {text for text in (first, words) if text in page.read_text()}


def test_undisturbed_mpiruns_alone_decide(tmp_path: Path) -> None:
    """The second library takes longer in the disturbed blocks alone, of which there are more than of the others."""
    found = archives(campaign(tmp_path / "c.zip", blocks=24, disturbed=range(13)))
    bcast = found.verdicts[1]
    assert (bcast.left_mpiruns, bcast.right_mpiruns, bcast.disturbed_mpiruns) == (11, 11, 24)
    assert bcast.high < np.exp(0.1)
    assert bcast.outcome != "left faster"
    assert "24 of 46 mpiruns were disturbed as seen by cpu 24, sentinels 24 and decide nothing" in found.warnings
    assert verdicts(found.summaries.drop(columns="disturbed"), "openmpi", "mpich")[1].outcome == "left faster"
    planted = found.summaries
    slower = (planted["library"] == "mpich") & (planted["operation"] == "Allreduce")
    planted.loc[slower, [name for name in planted if name.endswith("_s")]] *= 1.17
    assert [row.outcome == "left faster" for row in verdicts(planted, "openmpi", "mpich")] == [True, False]


@pytest.mark.parametrize(
    ("disturbed", "second", "blocks", "decide"),
    [
        ([0, 0, 0], [0, 1, 1], [0, 1, 1], [1, 1, 1]),  # without disturbances as it is
        ([0, 0, 1], [0, 1, 1], [0, 0, 0], [1, 1, 0]),
        ([0, 0, 1], [0, 1, 1], [0, 1, 0], None),  # both samples have one, in different blocks
    ],
)
def test_mpiruns_decide_where_a_block_has_undisturbed_ones_of_both_libraries(disturbed, second, blocks, decide):
    found = undisturbed_pairs(np.array(disturbed, bool), np.array(second, bool), np.array(blocks))
    assert (None if found is None else found.astype(int).tolist()) == decide


def test_libraries_of_two_campaigns_are_compared_with_a_warning(tmp_path: Path) -> None:
    both = campaign(tmp_path / "first.zip"), campaign(tmp_path / "second.zip", ("openmpi", "intel"))
    found = archives(*both, left="mpich", right="intel")
    assert any("not measured in turns" in line for line in found.warnings)
    assert {row.outcome for row in found.verdicts} <= {"no difference above the margin", "undecided"}
    again = archives(*both, left="openmpi (first)", right="openmpi (second)")
    assert all(row.outcome != "left faster" for row in again.verdicts)
    assert set(again.rank_times["library"]) == {"openmpi (first)", "openmpi (second)"}


def test_what_reductions_reduced_is_said_and_where_two_campaigns_differ(tmp_path, output_of):
    """An archive that does not say it was measured when the datatype depended on the size."""
    cases = [{"operation": "Allreduce", "form": "blocking", "size_bytes": 8}]
    floats = {"factors": {"reductions": "MPI_MAX of MPI_FLOAT", "root": "rank 1"}, "cases": cases}
    before, after = tmp_path / "before.zip", tmp_path / "after.zip"
    campaign(before, about={"cases": cases})
    campaign(after, ("a", "b"), about=floats)
    assert "reductions: MPI_SUM of MPI_DOUBLE where 8 divides the size, else" in output_of("compare", before)
    said = output_of("compare", after)
    assert "reductions: MPI_MAX of MPI_FLOAT; root: rank 1\n" in said
    found = archives(before, after, left="openmpi", right="a")
    assert any(
        "else MPI_BXOR of MPI_BYTE and MPI_MAX of MPI_FLOAT: such rows are not" in warning for warning in found.warnings
    )
    found.write_report(tmp_path / "r.html")
    assert "MPI_MAX of MPI_FLOAT" in (tmp_path / "r.html").read_text()


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    one = campaign(tmp_path / "one.zip")
    with pytest.raises(InputError, match="no library lam; choose among openmpi, mpich"):
        archives(one, left="lam")
    with pytest.raises(InputError, match="have 2 and 3 ranks"):
        archives(one, campaign(tmp_path / "other.zip", ranks=3))
    with pytest.raises(InputError, match="name the two to compare"):
        archives(one, campaign(tmp_path / "third.zip", ("a", "b")))
    with pytest.raises(InputError, match="are the same archive; give it once"):
        archives(one, one)
    with pytest.raises(InputError, match="run_time is 'median'"):
        archives(one, run_time="median")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="0 archives"):
        archives()
    summaries = mpirun_summaries(World().summaries(np.random.default_rng(1), 2, 3, 1), "median_s")
    with pytest.raises(InputError, match="another label"):
        verdicts(summaries, "a", "a")
    with pytest.raises(InputError, match="no measurements of c; there are some of a, b"):
        verdicts(summaries, "a", "c")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"mpirun": [0, 0]}, r"mpiruns\S* has mpirun 0 twice"),
        ({"block": ["0", "one"]}, r"block of \S*mpiruns\S* does not hold numbers"),
        ({"library": [1, 2]}, r"library of \S*mpiruns\S* does not hold texts"),
    ],
)
def test_tables_of_other_types_and_a_mpirun_twice_are_refused_in_one_line(tmp_path, changed, told):
    sound = {"mpirun": [0, 1], "library": ["a", "b"], "block": [0, 0], "place": [0, 1], "trial": [False, False]}
    sound |= {"attempt": [0, 0], "outcome": ["complete"] * 2, "disturbed": [False] * 2, "started_s": [0.0, 1.0]}
    path = tmp_path / "odd.zip"
    with ArchiveWriter(path, {"kind": KIND, "created": "2026-01-01T00:00:00Z", KIND: {}}) as writer:
        writer.add_table(MPIRUNS, pandas.DataFrame({**sound, **changed}))
    with pytest.raises(ArchiveError, match=told):
        mpiruns(Archive.open(path))


def test_levels_of_a_factor_have_verdicts_of_their_own(tmp_path, output_of):
    """Pooled, the second library would be slower by half of what it is with a cold cache."""
    path = tmp_path / "c.zip"
    campaign(path, blocks=16, levels=("warm", "cold"))
    found = archives(path)
    outcomes = {row.operation: row.outcome for row in found.verdicts}
    assert outcomes["Bcast, cache=cold"] == "left faster"
    assert outcomes["Bcast, cache=warm"] in ("undecided", "no difference above the margin")
    assert found.verdicts[2].ratio == pytest.approx(np.exp(0.3), rel=0.03)
    assert "Bcast, cache=cold" in output_of("compare", path, "--report", tmp_path / "r.html")
    assert "Bcast, cache=cold" in (tmp_path / "r.html").read_text()


def test_the_command_compares_archives_and_refuses_what_is_mixed(tmp_path, json_of, output_of, refusal_of):
    path, other = tmp_path / "c.zip", tmp_path / "d.zip"
    campaign(path)
    campaign(other, ("mpich", "intel"))
    assert "openmpi is faster" in output_of("compare", path)
    assert json_of("compare", path, other, "--left", "openmpi", "--right", "intel", "--json")["right"] == "intel"
    for words, message in (
        ((str(path), str(other)), "name the two to compare"),
        ((str(path), "openmpi"), "libraries cannot be mixed"),
        ((str(path), "--margin", "0"), "--margin is 0 %; it must be above 0"),
    ):
        assert message in refusal_of("compare", *words)


def test_from_python_a_comparison_is_a_table_a_page_and_a_line(tmp_path: Path) -> None:
    path = tmp_path / "c.zip"
    campaign(path)
    found = lp.compare.archives(path)
    assert repr(found) == f"<Comparison: {found.answer}>"
    table = found.to_frame()
    assert table["operation"].tolist() == ["Allreduce", "Bcast"]
    assert table["outcome"].tolist() == [row.outcome for row in found.verdicts]
    assert table["sentence"].tolist() == [found.sentence(row) for row in found.verdicts]
    assert "mpich took 1.3" in found._repr_html_()
    found.write_report(tmp_path / "r.html")
    assert (tmp_path / "r.html").stat().st_size > 10_000
    with pytest.raises(AttributeError, match=r"lepaute.measure.compare.* has no attribute 'library'"):
        _ = lp.compare.library
    assert "archives" in dir(lp.compare)
    assert {"compare", "measure_libraries"} <= set(dir(lp))
