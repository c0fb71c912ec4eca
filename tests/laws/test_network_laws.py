"""What must hold of predictions on networks of all kinds: less to share is slower, nothing to share is the same."""

import pytest

from lepaute.simulate import Hpl, Layers, Mapping, predict
from lepaute.simulate.machine.mapping import Slot
from lepaute.simulate.platform import load_platform, override

NODES = 32


def spread(ranks: int) -> Mapping:
    """Rank by rank onto the nodes in turn, so that neighbours of the grid are on nodes of the same switch or not."""
    return Mapping(slots=tuple(Slot(rank % NODES, rank // NODES) for rank in range(ranks)), source="the test")


@pytest.fixture(scope="module")
def dahu():
    # without the second state of messages, whose slow transfers would hide what the links do
    return override(load_platform("dahu"), {"network.loopback.busy": "null", "network.remote.busy": "null"})


def time_s(platform, hpl: Hpl, **settings: str) -> float:
    dotted = {name.replace("__", "."): value for name, value in settings.items()}
    return predict(hpl, override(platform, dotted), runs=1, layers=Layers.only(), mapping=spread(hpl.ranks)).time_s.mean


def tree(parents: int, inner_bps: float, removed: str = "") -> str:
    """Four switches of eight nodes under `parents` top switches."""
    return (
        f'{{kind: fat-tree, parameters: "2;8,4;1,{parents};1,1", levels: [{{}}, {{bandwidth_Bps: {inner_bps:g}}}]'
        f"{', removed: [' + removed + ']' if removed else ''}}}"
    )


@pytest.mark.parametrize(("p", "q"), [(8, 8), (1, 16), (16, 1)])
def test_a_fat_tree_of_boundless_inner_cables_is_a_switch(dahu, p, q):
    hpl = Hpl(n=3000, nb=128, p=p, q=q)
    assert time_s(dahu, hpl, topology=tree(4, 1e15)) == time_s(dahu, hpl)


def test_a_fat_tree_without_some_of_its_top_switches_or_with_slower_cables_is_slower(dahu):
    hpl = Hpl(n=4000, nb=128, p=8, q=8)  # half a second of computing spread over 64 ranks: bound by its messages
    times = [
        time_s(dahu, hpl, topology=tree(4, 2e9, removed)) for removed in ("", "s2.3", "s2.2, s2.3", "s2.1, s2.2, s2.3")
    ]
    assert times == sorted(times)
    assert times[1] > 1.005 * times[0]
    assert times[3] > 1.1 * times[0]
    assert times[2] == time_s(dahu, hpl, topology=tree(2, 2e9))  # as a tree that never had them
    hpl = Hpl(n=4000, nb=128, p=8, q=8)
    times = [time_s(dahu, hpl, topology=tree(2, cable_bps)) for cable_bps in (1e10, 3e9, 1e9)]
    assert times[1] > 1.01 * times[0]
    assert times[2] > 1.2 * times[1]


# The local bound of max-min fairness differs from it only where a flow held back elsewhere leaves some of a link over.
@pytest.mark.parametrize(("p", "q"), [(4, 4), (8, 8), (4, 16)])
def test_exact_and_fair_sharing_agree_on_a_switch(dahu, p, q):
    hpl = Hpl(n=4000, nb=128, p=p, q=q)
    fair, exact = time_s(dahu, hpl), time_s(dahu, hpl, network__sharing="exact")
    assert exact == pytest.approx(fair, rel=0.005)


def test_exact_sharing_is_another_computation(dahu):
    hpl = Hpl(n=4000, nb=128, p=8, q=8)
    narrow = tree(2, 2e9)
    fair, exact = (time_s(dahu, hpl, topology=narrow, network__sharing=sharing) for sharing in ("fair", "exact"))
    assert exact != fair
    assert exact == pytest.approx(fair, rel=0.05)


def test_exact_sharing_can_be_asked_for_by_setting_it(dahu):
    exact = override(dahu, {"network.sharing": "exact"})
    assert exact.network.sharing == "exact"
    assert exact.sha256 != dahu.sha256
    prediction = predict(Hpl(n=1000), exact, runs=1, applied={"network.sharing": "exact"})
    assert prediction.to_dict()["parameters"]["set"] == {"network.sharing": "exact"}
