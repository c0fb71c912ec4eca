"""What lies behind each row of a comparison: single calls, ranks and nodes; what is planted is found."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pytest
from support_comparisons import campaign
from support_pages import Elements, text_of

from lepaute.cli.main import main
from lepaute.errors import InputError
from lepaute.kit.hostfiles import read_slots
from lepaute.kit.json_values import to_json
from lepaute.kit.mpi_launcher import MPICH, OPEN_MPI
from lepaute.kit.text import signed_percent
from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.measure.archive.mpi_campaign import CALLS, CLOCKS, KIND, MPIRUNS, CampaignFacts, rank_times
from lepaute.measure.compare import Comparison, archives, by_ranks
from lepaute.measure.compare.call_pictures import every_mpirun, of_ranks
from lepaute.measure.compare.derived import derived_lines
from lepaute.measure.compare.page import page
from lepaute.measure.compare.single_calls import SingleCalls, bins_of, of_row, rank_correlations
from lepaute.measure.compare.verdicts import verdicts
from lepaute.measure.comparison.campaign import check_same_request
from lepaute.measure.comparison.factors import Factor, combinations, control_of, parse_factors, variables_of
from lepaute.measure.comparison.measuring import request_of
from lepaute.measure.comparison.places import network_of
from lepaute.measure.schedulers import Request

ROW = ("Bcast", "blocking", 8)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    return campaign(tmp_path_factory.mktemp("archive") / "c.zip", ranks=3, blocks=12, sizes=(8, 1024), calls_each=40)


@pytest.fixture(scope="module")
def found(archive: Archive) -> Comparison:
    return archives(archive)


def of_one(mpiruns: list[np.ndarray]) -> SingleCalls:
    (one,) = of_row(ROW, {"a": dict(enumerate(mpiruns))}, bins_of(np.concatenate(mpiruns)))
    return one


def test_a_correlation_is_the_sum_over_pairs_of_ranks_by_the_sum_of_squares() -> None:
    times = np.random.default_rng(3).exponential(size=50)
    rank = [1 + sum(other < time for other in times) for time in times]
    middle = sum(rank) / 50
    for lag in (1, 4, 12):
        pairs = sum((rank[at] - middle) * (rank[at + lag] - middle) for at in range(50 - lag))
        assert rank_correlations(times, 12)[lag - 1] == pytest.approx(
            pairs / sum((each - middle) ** 2 for each in rank)
        )
    assert np.isnan(rank_correlations(np.ones(9), 2)).all(), "equal values have no correlation"


def test_calls_that_become_faster_are_found_with_their_ratio_and_the_interval_of_the_mpiruns() -> None:
    """Every mpirun's second half takes a tenth less, exactly: every ratio, and so the interval, is 0.9."""
    one = of_one([1e-6 * level * np.repeat([1.0, 0.9], 40) for level in (1.0, 1.3, 2.0, 1.1, 1.2, 0.9)])
    assert (one.later_over_earlier, one.later_low, one.later_high) == pytest.approx((0.9, 0.9, 0.9))
    assert one.course_s[0, 1] / one.course_s[-1, 1] == pytest.approx(1 / 0.9)
    assert (one.numbers[0], one.numbers[-1]) == (2.0, 79.5), (
        "three of eighty calls, from 1, in the first of thirty bins, two in the last"
    )


def test_five_mpiruns_give_no_interval_and_short_ones_no_ratio() -> None:
    """The extremes of five values miss the median with a chance of 2 / 32."""
    assert np.isnan(of_one([np.linspace(1.0, 2.0, 20)] * 5).later_low)
    assert np.isnan(of_one([np.linspace(1.0, 2.0, 7)] * 9).later_over_earlier)


def test_a_histogram_holds_every_call_of_its_mpirun_also_those_beyond_its_ends() -> None:
    rng = np.random.default_rng(5)
    runs = [1e-6 * np.exp(rng.normal(size=200)) for _ in range(7)]
    runs[2][3] = 1.0  # a second: far beyond the 99th percentile
    one = of_one(runs)
    assert one.shares.sum(axis=1) == pytest.approx(np.ones(7))
    assert one.edges_s[-1] < 1e-3
    assert one.shares[2, -1] >= 1 / 200


def with_late_rank(archive: Archive, path: Path) -> Archive:
    """The same campaign, in which rank 2 begins every call 3 µs late and its clock shows 5 s more."""
    calls, clocks = archive.table(CALLS), archive.table(CLOCKS)
    mine = calls["rank"] == 2
    for name in ("start_ns", "returned_ns", "end_ns"):
        calls.loc[mine, name] += 5_000_000_000
    calls.loc[mine, "start_ns"] += 3_000
    clocks.loc[clocks["rank"] == 2, "x0_ns"] += 5_000_000_000
    metadata = {"kind": KIND, "created": "2026-01-01T00:00:00Z", "seed": 1, KIND: archive.metadata[KIND]}
    with ArchiveWriter(path, metadata) as writer:
        for name, table in ((CALLS, calls), (CLOCKS, clocks), (MPIRUNS, archive.table(MPIRUNS))):
            writer.add_table(name, table)
    return Archive.open(path)


def test_a_rank_that_begins_late_is_seen_by_the_clock_of_rank_0(archive: Archive, tmp_path: Path) -> None:
    late = with_late_rank(archive, tmp_path / "late.zip")
    table = rank_times(late).set_index(["library", "operation", "size_bytes", "rank"])
    assert table.loc[("openmpi", "Bcast", 8, 2), "begin_s"] == pytest.approx(3e-6)
    assert table.loc[("openmpi", "Bcast", 8, 0), "begin_s"] == 0.0
    ends_s = table.loc[("openmpi", "Bcast", 8), "end_s"]
    assert np.ptp(ends_s) == pytest.approx(0.0, abs=1e-12), "all ranks end together"
    assert (table["end_low_s"] <= table["end_s"]).all()
    assert (table["end_s"] <= table["end_high_s"]).all()
    row = rank_times(late).query("operation == 'Bcast' and size_bytes == 8")
    assert "(ranks begin within 3.00 µs)" in of_ranks("Bcast", row, {"openmpi": "", "mpich": " second"}).title


def test_every_row_leads_to_its_pictures_whose_figures_are_those_of_the_json(archive, tmp_path, monkeypatch, json_of):
    monkeypatch.chdir(tmp_path)
    assert main(["compare", str(archive.path), "--report", "p.html"]) == 0
    told = json_of("compare", archive.path, "--json")
    written = Path("p.html").read_text()
    behind = [link for link in Elements(written).links if "#calls-of" in link]
    assert len(behind) == len(told["rows"]) == 4
    sections = dict(re.findall(r'<section id="(calls-of-[^"]*)">(.*?)</section>', written, re.DOTALL))
    assert {f"#{name}" for name in sections} == set(behind)
    for row, link in zip(told["rows"], behind, strict=True):
        seen = text_of(sections[link[1:]])
        assert sections[link[1:]].count("<svg") == 5
        mine = {
            one["library"]: one
            for one in told["single_calls"]
            if (one["operation"], one["size_bytes"]) == (row["operation"], row["size_bytes"])
        }
        ends = ", ".join(f"{name} {mine[name]['correlations'][0]:.2f}" for name in ("openmpi", "mpich"))
        assert f"Correlation of neighbouring calls: {ends}" in seen
        for one in mine.values():
            change = signed_percent(*(one[f"later_{end}"] - 1 for end in ("over_earlier", "low", "high")), basis="")
            assert f"{one['library']} {change}" in seen


def test_a_link_of_the_table_opens_what_it_leads_to(archive: Archive, browser, tmp_path: Path) -> None:
    archives(archive).write_report(tmp_path / "p.html")
    tab = browser.new_page(viewport={"width": 1000, "height": 800})
    tab.goto((tmp_path / "p.html").as_uri())
    link = tab.locator("#rows a[href^='#calls-of-']").first
    section = tab.locator(str(link.get_attribute("href")))
    assert not section.is_visible()
    link.click()
    assert section.is_visible()
    assert section.locator("svg").first.bounding_box()["width"] >= 250


#: Rows whose calls are drawn.
DRAWN = 4


def big(operations: int, sizes: int, mpiruns: int, calls: int, ranks: int) -> Comparison:
    """A comparison of so many rows, with the calls of DRAWN of them over and over.

    Verdicts, which take a while, are of eight mpiruns.
    """
    rng = np.random.default_rng(11)
    drawn: list[tuple[SingleCalls, ...]] = []
    for _ in range(DRAWN):
        sides = {
            label: {
                2 * number + place: 1e-6 * np.exp(rng.normal(0, 0.2) + 0.3 * rng.standard_t(3, calls))
                for number in range(mpiruns)
            }
            for place, label in enumerate(("a", "b"))
        }
        every_s = np.concatenate([times for runs in sides.values() for times in runs.values()])
        drawn.append(of_row(ROW, sides, bins_of(every_s)))
    rows = [
        tuple(replace(one, operation=f"Operation{number}", size_bytes=2**size) for one in drawn[size % DRAWN])
        for number in range(operations)
        for size in range(sizes)
    ]
    case = ["operation", "form", "size_bytes"]
    of_side = [(one, (one.library, one.operation, one.form, one.size_bytes)) for row in rows for one in row]
    summaries = pandas.DataFrame(
        [
            (*key, number // 8, number, median_s, median_s, calls, calls)
            for one, key in of_side
            for number, median_s in zip(one.mpiruns.tolist(), one.quartiles_s[:, 1], strict=True)
        ],
        columns=["library", *case, "block", "mpirun", "median_s", "mean_all_s", "calls", "calls_inside"],
    )
    times = pandas.DataFrame(
        [(*key, rank) for _, key in of_side for rank in range(ranks)], columns=["library", *case, "rank"]
    )
    for name in ("own_s", "begin_s", "end_s", "begin_low_s", "end_low_s", "begin_high_s", "end_high_s"):
        times[name] = rng.uniform(1e-6, 2e-6, len(times))
    made = Comparison(
        *("a", "b", (), ranks, "global", 0.02, verdicts(summaries[summaries["mpirun"] < 8], "a", "b"), ()),
        *(summaries, (), (), {}, (), ()),
        rank_times=times,
    )
    made.__dict__["single_calls"] = tuple(rows)  # in the place of those of twelve million calls
    return made


@pytest.mark.slow
@pytest.mark.long
def test_the_page_of_a_big_comparison_is_smaller_than_5_mb(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two libraries, ten operations, twenty sizes, thirty mpiruns of 1000 calls, on 16 ranks."""
    # The verdicts by other summaries take a while, and two lines of a page.
    monkeypatch.setattr("lepaute.measure.compare.page.other_ways", lambda found: {"median": found.verdicts})
    written = page(big(10, 20, 30, 1000, 16))
    assert written.count('<section id="calls-of') == 200
    assert written.count("<svg") >= 5 * 200
    assert 1e6 < len(written.encode()) < 5e6


def test_of_too_many_rows_those_with_the_least_p_values_have_pictures(found, monkeypatch):
    """Two of four rows: those of Bcast, which differ."""
    monkeypatch.setattr("lepaute.measure.compare.page.MAX_PICTURED", 2)
    written = page(found)
    assert "of the 2 rows with the least p-values" in text_of(written)
    assert re.findall(r'<section id="calls-of-([a-z]+)', written) == ["bcast", "bcast"]


def test_of_many_mpiruns_some_are_left_out_and_the_page_says_so() -> None:
    rng = np.random.default_rng(2)
    one = of_one([1e-6 * np.exp(rng.normal(size=30)) for _ in range(100)])
    picture = every_mpirun("Bcast of 8 B", [one], {"a": ""})
    assert "not all mpiruns are drawn" in picture.caption
    assert len({place for layer in picture.layers for place in layer.x}) == 34


TWO_ENDS = ("tcp,eth0,10.0.0.1:40,10.0.0.2:50", "tcp,eth0,10.0.0.2:50,10.0.0.1:40")


def test_ranks_are_joined_by_connections_that_have_both_ends_among_them() -> None:
    """A connection to the launcher's daemon has one end among the ranks."""
    daemon = "tcp,lo,127.0.0.1:7,127.0.0.1:8"
    shared = [f"{TWO_ENDS[0]}\n{daemon}", f"{TWO_ENDS[1]}\n{daemon}"]
    assert network_of(shared, (0, 1), ("a", "b")) == "between nodes TCP over eth0"
    assert network_of(shared, (0, 0), ("a",)) == "TCP over eth0, on one machine"
    assert network_of([daemon, daemon], (0, 1), ("a", "b")) == "between nodes nothing that is seen"


def test_memory_joins_ranks_of_one_machine_that_map_the_same_piece() -> None:
    """Numbers of pieces are those of a machine: two machines may have the same."""
    mine, its = "memory,00:1b:7,/dev/shm/x", "memory,fe:00:9,/tmp/pmix_lock"
    assert network_of([mine, mine], (0, 0), ("a",)) == "shared memory, on one machine"
    assert network_of([mine, mine], (0, 1), ("a", "a")) == "between nodes shared memory of one machine"
    assert network_of([mine, mine], (0, 1), ("a", "b")) == "between nodes nothing that is seen"
    assert network_of([its, its], (0, 0), ("a",)) == "nothing that is seen, on one machine"
    shared = [f"{mine}\ndevice,/dev/infiniband/uverbs0", mine, "device,/dev/infiniband/uverbs0"]
    assert network_of(shared, (0, 0, 1), ("a", "b")) == "between nodes InfiniBand or RoCE; inside a node shared memory"


def test_slots_of_a_host_are_added_up_give_the_nodes_of_ranks_and_faults_have_their_line() -> None:
    assert read_slots("n1 slots=2 # first\nn2:1\n\nn1\n", "hosts") == {"n1": 3, "n2": 1}
    assert read_slots("cn[009-010] slots=8\n", "hosts") == {"cn009": 8, "cn010": 8}
    with pytest.raises(InputError, match=r"^hosts:2: host n2 has 0 slots"):
        read_slots("n1\nn2 slots=0\n", "hosts")
    with pytest.raises(InputError, match=r"^hosts: names no host"):
        read_slots("# nothing\n", "hosts")
    about = CampaignFacts(ranks=4, nodes=("x", "y"), slots=(1, 3))
    assert [about.node_of(rank) for rank in range(5)] == ["x", "y", "y", "y", ""]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"ranks": ()}, "--np is empty"),
        ({"ranks": (4, 1)}, "--np"),
        ({"ranks_per_node": 2}, "--ranks-per-node applies to nodes"),
        ({"hostfile": "hosts", "request": Request(nodes="n1")}, "give no --nodes"),
        ({"hostfile": "hosts", "ranks_per_node": 1}, "give no --nodes, --count or --ranks-per-node"),
        ({"ranks": (2, 4), "root": 3}, "--root is 3; give 0 to 1"),
        ({"factors": ("cache=warm,cold",), "cold": True}, "--cold and --factor cache"),
    ],
)
def test_places_that_contradict_each_other_are_refused(tmp_path: Path, monkeypatch, options, complaint) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hosts").write_text("n1 slots=2\n")
    with pytest.raises(InputError, match=complaint):
        request_of([], ops="bcast", sizes="8", **options)


def test_a_hostfile_gives_the_nodes_and_the_numbers_of_ranks_come_in_order(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("n3 slots=2\nn4:1\n")
    made = request_of([], ops="bcast", sizes="8", ranks=(3, 2, 3), hostfile=tmp_path / "hosts")
    assert (made.all_ranks, made.ranks, made.nodes) == ((2, 3), 3, "n[3-4]")
    assert made.slots == (("n3", 2), ("n4", 1))


def test_factors_are_crossed() -> None:
    factors = parse_factors(["cache=warm,cold", "mca.btl=tcp,unset", "frequency=performance,powersave"])
    assert factors[0] == Factor("cache", ("warm", "cold"))
    every = combinations(factors)
    assert len(every) == len({tuple(each.values()) for each in every}) == 8
    assert variables_of(every[0], OPEN_MPI) == {"OMPI_MCA_btl": "tcp"}
    assert variables_of(every[0], MPICH) == variables_of(every[2], OPEN_MPI) == {}
    assert [control_of(each) for each in every[:2]] == [{"governor": "performance"}, {"governor": "powersave"}]
    assert variables_of({"UCX_TLS": "tcp"}, MPICH) == {"UCX_TLS": "tcp"}


@pytest.mark.parametrize(
    "text", ["cache", "cache=warm", "cache=warm,warm", "cache=warm,hot", "speed=1,2", "flags=-O2,x;rm", "cache=,cold"]
)
def test_what_is_no_factor_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--factor"):
        parse_factors([text])


def test_too_many_combinations_and_a_factor_twice_are_refused() -> None:
    with pytest.raises(InputError, match="243 combinations"):
        parse_factors([f"V{number}=1,2,3" for number in range(5)])
    with pytest.raises(InputError, match="given twice"):
        parse_factors(["cache=warm,cold", "cache=cold,warm"])


def test_every_number_of_ranks_has_its_verdicts_and_the_order_of_the_libraries_may_change(tmp_path, output_of):
    """With two ranks mpich is the faster one, with four openmpi."""
    path = tmp_path / "c.zip"
    campaign(path, ranks=4, fewer_ranks=(2,))
    two, four = by_ranks(path)
    assert [(each.ranks, each.all_ranks) for each in (two, four)] == [(2, (2, 4)), (4, (2, 4))]
    outcomes = [{row.operation: row.outcome for row in each.verdicts}["Bcast"] for each in (two, four)]
    assert outcomes == ["right faster", "left faster"]
    assert set(two.rank_times["rank"]) == {0, 1}
    with pytest.raises(InputError, match="the campaign has 2, 4 ranks; choose one of these"):
        archives(path)
    with pytest.raises(InputError, match="ranks is 3; the campaign has 2, 4"):
        archives(path, ranks=3)
    words = ["compare", str(path), "--csv", str(tmp_path / "rows.csv"), "--scaling", str(tmp_path / "s.svg")]
    said = output_of(*words)
    assert said.startswith("On 2 ranks, of 2 rows, ")
    assert "the faster library depends on the number of ranks in Bcast of 8 B (openmpi with 4, mpich with 2)" in said
    assert sorted(each.name for each in tmp_path.iterdir()) == ["c.zip", "rows-np2.csv", "rows-np4.csv", "s.svg"]


@pytest.mark.parametrize(("slots", "where"), [((1, 3), "rank 2 on far"), ((2, 2), "rank 2 on far")])
def test_the_node_of_a_slow_rank_is_named(tmp_path: Path, slots, where) -> None:
    about = {"nodes": ["near", "far"], "slots": list(slots)}
    campaign(tmp_path / "c.zip", ranks=4, slow_rank=2, longer=1.0, about=about)
    (line,) = [line for line in derived_lines(archives(tmp_path / "c.zip")) if line.startswith("Bcast")]
    assert f"Bcast: {where} takes longer in 1 of the 1 row shown to differ" in line


def test_a_campaign_with_rows_that_count_most_is_the_one_that_was_begun() -> None:
    """The request is written down and read again before anything is measured."""
    made = request_of([], ops="bcast", sizes="8", primary=["bcast:8"], factors=["cache=warm,cold"])
    check_same_request({"asked": to_json(made)}, made)
    with pytest.raises(InputError, match="other factors"):
        check_same_request({"asked": to_json(made)}, replace(made, factors=()))
