"""Comparisons on nodes and of several numbers of ranks: what joins ranks, who runs where, factors by name."""

from dataclasses import replace
from pathlib import Path

import pytest
from support_comparisons import campaign

from lepaute.errors import InputError
from lepaute.kit.hostfiles import read_slots
from lepaute.kit.json_values import to_json
from lepaute.kit.mpi_launcher import MPICH, OPEN_MPI
from lepaute.measure.archive.mpi_campaign import CampaignFacts
from lepaute.measure.compare import archives, by_ranks
from lepaute.measure.compare.derived import derived_lines
from lepaute.measure.comparison.campaign import check_same_request
from lepaute.measure.comparison.factors import Factor, combinations, control_of, factors_named, variables_of
from lepaute.measure.comparison.measuring import request_of
from lepaute.measure.comparison.places import network_of
from lepaute.measure.schedulers import Request

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


def test_slots_of_a_host_are_added_up_and_faults_have_their_line() -> None:
    assert read_slots("n1 slots=2 # first\nn2:1\n\nn1\n", "hosts") == {"n1": 3, "n2": 1}
    assert read_slots("cn[009-010] slots=8\n", "hosts") == {"cn009": 8, "cn010": 8}
    with pytest.raises(InputError, match=r"^hosts:2: host n2 has 0 slots"):
        read_slots("n1\nn2 slots=0\n", "hosts")
    with pytest.raises(InputError, match=r"^hosts: names no host"):
        read_slots("# nothing\n", "hosts")


def test_the_node_of_a_rank_follows_from_the_slots() -> None:
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
        request_of([], 1, ops="bcast", sizes="8", **options)


def test_a_hostfile_gives_the_nodes_and_the_numbers_of_ranks_come_in_order(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("n3 slots=2\nn4:1\n")
    made = request_of([], 1, ops="bcast", sizes="8", ranks=(3, 2, 3), hostfile=tmp_path / "hosts")
    assert (made.all_ranks, made.ranks, made.nodes) == ((2, 3), 3, "n[3-4]")
    assert made.slots == (("n3", 2), ("n4", 1))


def test_factors_are_crossed() -> None:
    factors = factors_named(["cache=warm,cold", "mca.btl=tcp,unset", "frequency=performance,powersave"])
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
        factors_named([text])


def test_too_many_combinations_and_a_factor_twice_are_refused() -> None:
    with pytest.raises(InputError, match="243 combinations"):
        factors_named([f"V{number}=1,2,3" for number in range(5)])
    with pytest.raises(InputError, match="given twice"):
        factors_named(["cache=warm,cold", "cache=cold,warm"])


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
    found = archives(tmp_path / "c.zip")
    (line,) = [line for line in derived_lines(found) if line.startswith("Bcast")]
    assert f"Bcast: {where} takes longer in 1 of the 1 row shown to differ" in line


def test_a_campaign_with_rows_that_count_most_is_the_one_that_was_begun() -> None:
    """The request is written down and read again before anything is measured."""
    made = request_of([], 1, ops="bcast", sizes="8", primary=["bcast:8"], factors=["cache=warm,cold"])
    check_same_request({"asked": to_json(made)}, made)
    with pytest.raises(InputError, match="other factors"):
        check_same_request({"asked": to_json(made)}, replace(made, factors=()))
