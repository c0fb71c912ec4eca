"""Files for Open MPI and MPICH from measured algorithms: which algorithm is chosen, and what the file says."""

import json

import numpy as np
import pandas
import pytest

from lepaute.archive.mpi_campaign import CampaignFacts, LibraryFacts
from lepaute.compare.tuning import (
    Choice,
    algorithms_of,
    choices,
    forced_algorithms,
    least_mpiruns,
    rules_text,
    selection_text,
)
from lepaute.errors import InputError

#: Stands for what a rule's choice depends on: ratios of times to the default's.
Ratios = dict[int, float]


def campaign(ratios: dict[str, Ratios], blocks: int = 16, spread: float = 0.03) -> pandas.DataFrame:
    """Values of mpiruns of the default and of each variant, Bcast of some sizes: ratios by label and size."""
    rng = np.random.default_rng(5)
    rows = []
    for block in range(blocks):
        common = rng.normal(0, 0.3)
        for label, of_sizes in ratios.items():
            rows += [
                {
                    "library": label,
                    "block": block,
                    "mpirun": len(ratios) * block + list(ratios).index(label),
                    "operation": "Bcast",
                    "form": "blocking",
                    "size_bytes": size,
                    "median_s": 1e-6 * ratio * np.exp(common + rng.normal(0, spread)),
                }
                for size, ratio in of_sizes.items()
            ]
    return pandas.DataFrame(rows)


def test_the_algorithm_that_is_shown_to_be_faster_is_chosen_and_the_default_stays_elsewhere() -> None:
    same: Ratios = {8: 1.0, 64: 1.0, 512: 1.0}
    table = campaign({"mpi": same, "mpi.1": {8: 0.8, 64: 1.5, 512: 1.0}, "mpi.2": {8: 0.9, 64: 1.3, 512: 1.0}})
    found = choices(table, "mpi", {"mpi.1": {"bcast": "1"}, "mpi.2": {"bcast": "2"}})
    assert [(one.size_bytes, one.algorithm) for one in found] == [(8, "1"), (64, ""), (512, "")]
    assert found[0].low < 0.8 < found[0].high < 0.9
    assert found[0].p_holm <= 0.05


def test_equal_algorithms_change_nothing() -> None:
    """One of twenty campaigns of eight equal algorithms and two sizes may choose one, and no more (Holm)."""
    same: Ratios = {8: 1.0, 64: 1.0}
    labels = [f"mpi.{number}" for number in range(1, 9)]
    found = choices(
        campaign({"mpi": same, **dict.fromkeys(labels, same)}), "mpi", {label: {"bcast": "1"} for label in labels}
    )
    assert all(not one.algorithm and one.ratio == 1.0 for one in found)


def test_a_variant_counts_only_for_the_operations_that_it_forces() -> None:
    assert choices(campaign({"mpi": {8: 1.0}, "mpi.1": {8: 0.5}}), "mpi", {"mpi.1": {"allreduce": "1"}}) == ()


def choice(operation: str, size_bytes: int, algorithm: str) -> Choice:
    return Choice(operation, size_bytes, algorithm, 1e-6, 0.8, 0.7, 0.9, 0.01)


def numbers(text: str) -> list[list[int]]:
    """The file as Open MPI reads it: numbers, what follows a # left out."""
    lines = [line.partition("#")[0].split() for line in text.splitlines()]
    return [[int(word) for word in line] for line in lines if line]


def test_rules_begin_at_zero_and_hold_for_the_measured_ranks_and_sizes_alone() -> None:
    chosen = [choice("Bcast", 8, ""), choice("Bcast", 64, "6"), choice("Bcast", 512, "6"), choice("Bcast", 4096, "1")]
    assert numbers(rules_text(chosen, 4, ["who wrote it: 1 2 3"])) == [
        [1], [7], [3], [0, 1], [0, 0, 0, 0], [4, 5], [0, 0, 0, 0], [64, 6, 0, 0], [513, 0, 0, 0], [4096, 1, 0, 0],
        [4097, 0, 0, 0], [5, 1], [0, 0, 0, 0],
    ]  # fmt: skip


@pytest.mark.parametrize(("operation", "factor"), [("Allgather", 4), ("Alltoall", 4), ("Allgatherv", 1), ("Reduce", 1)])
def test_message_sizes_are_what_open_mpi_counts_for_the_operation(operation: str, factor: int) -> None:
    lines = numbers(rules_text([choice(operation, 100, "2")], 4))
    assert [100 * factor, 2, 0, 0] in lines
    assert [100 * factor + 1, 0, 0, 0] in lines


def test_a_barrier_has_one_rule_from_size_zero_on() -> None:
    assert [0, 4, 0, 0] in numbers(rules_text([choice("Barrier", 0, "4")], 2))


def test_operations_whose_ranks_could_choose_differently_are_refused() -> None:
    with pytest.raises(InputError, match="its ranks may see different sizes"):
        rules_text([choice("Scatter", 8, "1")], 2)


#: As MPICH 4.0 has it for one operation, and in short for another.
DEFAULT = {
    "collective=alltoall": {
        "comm_type=intra": {
            "is_sendbuf_inplace=yes": {"algorithm=A": {}},
            "is_sendbuf_inplace=no": {"algorithm=B": {}},
        },
        "comm_type=inter": {"algorithm=C": {}},
    },
    "collective=bcast": {"comm_type=intra": {"algorithm=D": {}}},
}


def test_a_selection_is_the_default_one_with_branches_for_the_measured_ranks_and_sizes() -> None:
    text = selection_text([choice("Alltoall", 64, "brucks"), choice("Alltoall", 512, "brucks")], 4, DEFAULT)
    tree = json.loads(text)
    usual = DEFAULT["collective=alltoall"]["comm_type=intra"]
    assert tree["collective=bcast"] == DEFAULT["collective=bcast"]
    assert tree["collective=alltoall"]["comm_type=inter"] == {"algorithm=C": {}}
    branches = tree["collective=alltoall"]["comm_type=intra"]
    assert list(branches) == ["comm_size<4", "comm_size<=4", "comm_size=any"]
    assert branches["comm_size<4"] == branches["comm_size=any"] == usual
    mine = branches["comm_size<=4"]
    assert mine["is_sendbuf_inplace=yes"] == usual
    assert mine["is_sendbuf_inplace=no"] == {
        "avg_msg_size<64": usual,
        "avg_msg_size<513": {"algorithm=MPIR_Alltoall_intra_brucks": {}},
        "avg_msg_size=any": usual,
    }


def test_a_selection_never_fills_its_last_page_of_memory() -> None:
    """MPICH looks for a byte 0 behind the mapped file, which there is unless the file ends with a page."""
    default = {"collective=bcast": {"comm_type=intra": {"x": ""}}}
    lengths = set()
    for padding in range(3900, 4200):
        default["collective=bcast"]["comm_type=intra"]["x"] = "y" * padding
        lengths.add(len(selection_text([], 2, default)) % 4096)
    assert 0 not in lengths
    assert len(lengths) > 200


def test_recursive_doubling_of_mpich_is_for_powers_of_two() -> None:
    assert "recursive_doubling" in algorithms_of("Allgather", 8)
    assert "recursive_doubling" not in algorithms_of("Allgather", 6)
    with pytest.raises(InputError, match="does not decide Bcast"):
        algorithms_of("Bcast", 8)


def test_a_campaign_without_variants_is_no_tuning_campaign() -> None:
    with pytest.raises(InputError, match="--tune"):
        forced_algorithms(CampaignFacts(libraries=(LibraryFacts(label="a"), LibraryFacts(label="b"))))


def test_variants_are_known_by_their_variables() -> None:
    plain = LibraryFacts(label="mpi")
    forced = LibraryFacts(
        label="mpi.6",
        variables={"OMPI_MCA_coll_tuned_bcast_algorithm": "6", "OMPI_MCA_coll_tuned_use_dynamic_rules": "1"},
    )
    mpich = LibraryFacts(label="mpich.1", variables={"MPIR_CVAR_REDUCE_SCATTER_BLOCK_INTRA_ALGORITHM": "pairwise"})
    assert forced_algorithms(CampaignFacts(libraries=(plain, mpich)))[1] == {
        "mpich.1": {"reduce_scatter_block": "pairwise"}
    }
    assert forced_algorithms(CampaignFacts(libraries=(plain, forced))) == ("mpi", {"mpi.6": {"bcast": "6"}})


def test_so_many_mpiruns_can_show_something() -> None:
    assert [least_mpiruns(tests) for tests in (1, 10, 100)] == [3, 5, 7]
