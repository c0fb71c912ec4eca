"""From archives of one or several sessions to verdicts and sentences, on calls whose truth is known."""

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
from lepaute.measure.compare.sessions import session_means, sessions_to_decide, student_test
from lepaute.measure.compare.summaries import mpirun_summaries
from lepaute.measure.compare.verdicts import undisturbed_pairs, verdicts
from lepaute.measure.compare.wording import answer, sentence
from lepaute.measure.comparison import sessions as measuring


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
    disturbed = "24 of 46 mpiruns were disturbed by other programs (24), a change of speed (24) and decide nothing"
    assert disturbed in found.warnings
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
    assert "reductions: MPI_MAX of MPI_FLOAT; root: rank 1\n" in output_of("compare", after)
    found = archives(before, after, left="openmpi", right="a")
    assert any(
        "else MPI_BXOR of MPI_BYTE and MPI_MAX of MPI_FLOAT: such rows are not" in warning for warning in found.warnings
    )
    found.write_report(tmp_path / "r.html")
    assert "MPI_MAX of MPI_FLOAT" in (tmp_path / "r.html").read_text()


def test_what_cannot_be_compared_is_refused(tmp_path, refusal_of):
    one = campaign(tmp_path / "one.zip")
    assert "libraries cannot be mixed" in refusal_of("compare", one.path, "openmpi")
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
    alike = campaign(tmp_path / "d.zip", blocks=8, levels=("warm", "cold"), longer=0.0).path
    assert "cache cold against warm is not shown to change any of 4 rows" in output_of("compare", alike)


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


RATIOS = (0.4, 0.2, 0.3, 0.35)


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Four sessions, in each of which mpich takes longer for Bcast by another share."""
    folder = tmp_path_factory.mktemp("series")
    for number, longer in enumerate(RATIOS):
        campaign(folder / f"c-{number + 1}.zip", session=number, longer=longer)
    return sorted(folder.iterdir())


def test_several_archives_are_sessions_and_the_verdict_is_over_them(series, tmp_path):
    found = archives(*series)
    equal, slower = found.verdicts
    assert (found.left, found.right, slower.operation) == ("openmpi", "mpich", "Bcast")
    assert np.log(slower.session_ratios) == pytest.approx(RATIOS, abs=0.02)
    assert slower.ratio == pytest.approx(np.exp(np.mean(np.log(slower.session_ratios))))
    half = 3.182 * np.std(np.log(slower.session_ratios), ddof=1) / 2
    assert np.log(slower.high / slower.ratio) == pytest.approx(half, rel=1e-3)
    assert slower.right_s / slower.left_s == pytest.approx(slower.ratio)
    assert (slower.outcome, slower.left_mpiruns) == ("left faster", 28)
    assert equal.outcome in ("undecided", "no difference above the margin")
    assert found.answer.endswith("; valid for the average over sessions such as these 4, begun within 3 h")
    assert any("4 sessions miss one of two equally frequent states" in line for line in found.warnings)
    assert not any("--seed" in line for line in found.warnings)
    written = found.to_dict()
    assert (written["sessions"], len(written["rows"][1]["session_ratios"])) == (4, 4)
    assert "then over sessions" in written["estimand"]
    assert {row["session"] for row in written["mpiruns"]} == {0, 1, 2, 3}
    found.write_report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    for words in ("The ratio of every session", "then over sessions", "Student&#39;s t over the means of sessions"):
        assert words in page


def test_a_single_session_says_so_and_keeps_its_keys(series):
    found = archives(series[0])
    assert found.answer.endswith("; valid for this session only")
    written = found.to_dict()
    assert written["sessions"] == 1
    assert "Hodges and Lehmann" in written["estimand"]
    assert all(row["session_ratios"] == [] and row["forecast_sessions"] is None for row in written["rows"])
    assert "session" not in written["mpiruns"][0]


def test_two_sessions_decide_nothing_and_say_how_many_would(series, json_of, output_of):
    said = output_of("compare", *series[:2])
    assert "2 sessions, and 3 are needed: not tested; about " in said
    assert "counts by the median of its calls), geometric mean over mpiruns, then over sessions" in said
    bcast = json_of("compare", *series[:2], "--json")["rows"][1]
    assert (bcast["outcome"], bcast["p_corrected"], bcast["high"]) == ("untested", 1.0, None)
    assert bcast["forecast_sessions"]["low"] >= 3


def test_what_weakens_sessions_is_said_and_what_are_none_is_refused(series, tmp_path):
    changed = {"libraries": [{"label": "openmpi", "version": "5"}, {"label": "mpich", "settings": {"UCX_TLS": "sm"}}]}
    other = campaign(tmp_path / "other.zip", session=0, longer=0.1, about=changed)
    lines = " ".join(archives(*series[:2], other).warnings)
    assert "3 sessions miss one of two equally frequent states" in lines
    assert "measured in the same order (--seed)" in lines
    assert "openmpi is not the same in every session:   and  5" in lines
    assert "mpich is not the same in every session: no variables and UCX_TLS=sm" in lines
    foreign = campaign(tmp_path / "foreign.zip", ("openmpi", "intel"))
    with pytest.raises(InputError, match="each must have both libraries; all have openmpi"):
        archives(*series[:2], foreign)
    with pytest.raises(InputError, match=r"c-2.zip and c-2.zip are the same archive"):
        archives(*series[:2], series[1])


def test_a_row_that_only_one_session_has_is_not_decided(series):
    """What one session shows is not shown of sessions such as these."""
    summaries = archives(*series).summaries
    alone = summaries[(summaries["operation"] == "Allreduce") | (summaries["session"] == 2)]
    _, bcast = verdicts(alone, "openmpi", "mpich")
    assert (len(bcast.session_ratios), bcast.outcome, bcast.forecast_sessions) == (1, "untested", None)
    assert sentence(bcast, "openmpi", "mpich").endswith("times as long: 1 session, and 3 are needed: not tested")
    assert {row.outcome for row in verdicts(summaries[summaries["session"] == 2], "openmpi", "mpich")} == {"untested"}


def test_means_of_sessions_compare_inside_blocks():
    """By hand: a block of 2 + 1 counts 2/3, one of 1 + 1 counts 1/2; a block of one library says nothing."""
    values = np.array([1.0, 3.0, 4.0, 10.0, 11.0, 99.0, 5.0, 5.5])
    second = np.array([0, 0, 1, 0, 1, 1, 0, 1], dtype=bool)
    blocks, sessions = np.array([0, 0, 0, 1, 1, 2, 0, 0]), np.array([7, 7, 7, 7, 7, 7, 9, 9])
    assert session_means(values, second, blocks, sessions) == pytest.approx([(2 / 3 * 2 + 0.5) / (2 / 3 + 0.5), 0.5])


def test_of_sessions_that_do_not_differ_nothing_is_known():
    for means in ([0.1] * 4, [0.0] * 4, [0.1, 0.3]):
        test = student_test(np.array(means), 0.95)
        assert (test.two_sided, test.low, test.high) == (1.0, -np.inf, np.inf)


def test_the_forecast_is_the_first_number_of_sessions_that_decides():
    """By tables of t(0.975): the half-widths of 4, 5, 9 and 10 sessions are 0.159, 0.124, 0.077 and 0.072."""
    truths = np.array([0.2, 0.13, 0.0, 0.05])
    needed = sessions_to_decide(truths, 0.1, made=3, most=300, level=0.05, margin=0.125)
    assert needed.tolist() == [4.0, 5.0, 5.0, 10.0]
    assert sessions_to_decide(np.array([0.01]), 1.0, 3, 300, 0.05, 0.01).tolist() == [301.0]


class Clock:
    """That passes only in sleep; the campaigns that were measured, and when."""

    def __init__(self, folder: Path, takes_s: float = 600.0) -> None:
        self.now_s, self.takes_s, self.folder, self.made = 1e6, takes_s, folder, []
        self.stop_at: int | None = None

    def time(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def measure(self, libraries, path, *, seed, sizes, resume, progress, **more):  # noqa: ARG002
        if self.stop_at == seed:
            path.with_suffix(".work").mkdir()
            raise KeyboardInterrupt
        self.made.append((path.name, seed, self.now_s, resume))
        asked = {"libraries": [list(name) for name in self.names], "operations": [["Bcast", "blocking"]], "ranks": 2}
        asked |= {"sizes_bytes": [int(word) for word in sizes.split(",")], "budget_s": 60.0}
        campaign(path, session=seed - 1, about={"asked": asked})
        self.begun[path.name] = self.now_s
        self.now_s += self.takes_s


@pytest.fixture
def clock(tmp_path, monkeypatch) -> Clock:
    clock = Clock(tmp_path)
    clock.begun = {}
    clock.names = (("openmpi", "openmpi"), ("mpich", "mpich"))
    named = [type("Named", (), {"label": label, "spec": spec}) for label, spec in clock.names]
    monkeypatch.setattr(measuring, "time", clock)
    monkeypatch.setattr(measuring, "_LOOK_S", 60.0)
    monkeypatch.setattr(measuring, "measure_libraries", clock.measure)
    monkeypatch.setattr(measuring, "named_libraries", lambda _names: named)
    monkeypatch.setattr(measuring.mpi_campaign, "begun_s", lambda archive: clock.begun[archive.path.name])
    return clock


def measure(clock: Clock, **more):
    words = {"sessions": 3, "every_s": 7200.0, "ops": "bcast", "sizes": "1:1K", "budget_s": 60.0}
    return measuring.measure_sessions(["openmpi", "mpich"], clock.folder / "c.zip", **{**words, **more})


def test_sessions_begin_apart_and_have_the_same_sizes_in_other_orders(clock):
    assert [path.name for path in measure(clock)] == ["c-1.zip", "c-2.zip", "c-3.zip"]
    assert [(name, seed) for name, seed, *_ in clock.made] == [("c-1.zip", 1), ("c-2.zip", 2), ("c-3.zip", 3)]
    assert np.diff([begun_s for _, _, begun_s, _ in clock.made]).tolist() == [7200.0, 7200.0]


def test_a_session_that_takes_longer_is_followed_at_once(clock):
    clock.takes_s = 9000.0
    measure(clock)
    assert np.diff([begun_s for _, _, begun_s, _ in clock.made]).tolist() == [9000.0, 9000.0]


def test_an_interrupted_series_goes_on_where_it_was(clock):
    clock.stop_at = 2
    with pytest.raises(KeyboardInterrupt):
        measure(clock)
    clock.stop_at = None
    clock.now_s += 100.0
    measure(clock, resume=True)
    assert [(name, resume) for name, _, _, resume in clock.made] == [
        ("c-1.zip", False),
        ("c-2.zip", True),
        ("c-3.zip", False),
    ]
    measure(clock, resume=True)
    assert len(clock.made) == 3, "all were there"
    with pytest.raises(InputError, match="the comparison was begun with other sizes bytes"):
        measure(clock, resume=True, sizes="8")
    clock.begun["c-3.zip"] = clock.begun["c-1.zip"]
    with pytest.raises(InputError, match=r"c-3.zip: the session before it is not there, or began later"):
        measure(clock, resume=True)


def test_series_that_make_no_sense_are_refused(clock):
    with pytest.raises(InputError, match="--every is 30 s; give at least the budget of a session, 60 s"):
        measure(clock, every_s=30.0)
    with pytest.raises(InputError, match="--sessions is 1001; it is a whole number from 1 to 1000"):
        measure(clock, sessions=1001)
    with pytest.raises(InputError, match=r"c-1.zip: no session is there; start without --resume"):
        measure(clock, resume=True)
    assert clock.made == []
