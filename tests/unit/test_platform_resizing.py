"""`--set nodes.count=...` on any platform."""

import pytest

from lepaute.errors import InputError
from lepaute.simulate.machine.synthesis import synthesize
from lepaute.simulate.platform import load_platform, override, shipped_names
from lepaute.simulate.platform.population import population_of

DAHU = load_platform("dahu")


@pytest.mark.parametrize("name", shipped_names())
@pytest.mark.parametrize("count", [1, 5, 33, 100])
def test_any_shipped_platform_has_any_number_of_nodes(name: str, count: int) -> None:
    assert override(load_platform(name), {"nodes.count": str(count)}).nodes.count == count


def rows(platform: object) -> dict[tuple[float, float], tuple[float, ...]]:
    table = platform.kernels[0].pieces[-1].per_cpu  # type: ignore[attr-defined]
    return {(row[0], row[1]): row[2:] for row in table.rows}


def test_fewer_nodes_are_the_first_ones() -> None:
    few = rows(override(DAHU, {"nodes.count": "3"}))
    assert few == {place: row for place, row in rows(DAHU).items() if place[0] <= 3}


def test_nodes_beyond_the_measured_ones_are_as_these_in_turn_and_the_platform_says_so() -> None:
    larger = override(DAHU, {"nodes.count": "40"})
    measured, continued = rows(DAHU), rows(larger)
    assert (continued[33, 0], continued[40, 1]) == (measured[1, 0], measured[8, 1])
    assert larger.assumed is not None
    assert [each.text for each in larger.assumed] == ["nodes 33 to 40: as nodes 1 to 32, in turn"]


def test_the_machine_may_be_so_large_that_its_table_would_not_be_read() -> None:
    huge = override(DAHU, {"nodes.count": "200000"})
    assert len(rows(huge)) == 64
    assert huge.assumed[0].what == "nodes 33 to 200000: all alike, as the typical cpu"


def test_a_fat_tree_grows_with_its_nodes_or_is_replaced() -> None:
    tree = override(DAHU, {"topology": "{kind: fat-tree, parameters: '2;8,4;1,4;1,1'}"})
    assert override(tree, {"nodes.count": "64"}).topology.parameters == "2;8,8;1,4;1,1"
    with pytest.raises(InputError, match=r"take a multiple of 8, or one switch: topology=\{kind: switch\}"):
        override(tree, {"nodes.count": "33"})
    assert override(tree, {"nodes.count": "33", "topology": "{kind: switch}"}).topology.kind == "switch"


def test_a_cluster_with_groups_of_nodes_keeps_them() -> None:
    like = load_platform("dahu-2019-04")
    cluster = synthesize(like, population_of(like), nodes=8)
    groups = cluster.population.group_of_node
    assert override(cluster, {"nodes.count": "4"}).population.group_of_node == groups[:4]
