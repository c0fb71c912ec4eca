"""Messages of sizes that no model was fitted to are counted, and told with the prediction."""

import pytest

from lepaute.kit.text import significant
from lepaute.simulate import Hpl, Mapping, predict
from lepaute.simulate.machine.mapping import Slot
from lepaute.simulate.platform import load_platform, override

HPL = Hpl(n=2000, nb=128, p=2, q=2)
#: The rows of the grid on a node each: pivots cross nodes, panels do not.
ACROSS = Mapping(slots=tuple(Slot(rank // 2, rank % 2) for rank in range(4)), source="the test")


def dahu(**settings: str):
    # the sizes of messages to busy receivers are not known: those would not be counted
    quiet = {"network.loopback.busy": "null", "network.remote.busy": "null"}
    return override(load_platform("dahu"), quiet | {name.replace("__", "."): value for name, value in settings.items()})


BOTH_UP_TO_A_GIGABYTE = {
    "network__remote__range_bytes": "[1, 1000000000]",
    "network__loopback__range_bytes": "[1, 1000000000]",
}


def messages_told(prediction) -> list[str]:
    return [told for told in prediction.warnings if "of messages" in told]


def test_a_platform_that_does_not_know_its_sizes_tells_nothing():
    prediction = predict(HPL, dahu(), runs=1, mapping=ACROSS)
    assert prediction.message_use == ()
    assert messages_told(prediction) == []


def test_messages_within_the_fitted_sizes_are_counted_and_nothing_is_told():
    platform = dahu(**BOTH_UP_TO_A_GIGABYTE)
    prediction = predict(HPL, platform, runs=1, mapping=ACROSS)
    by_link = {use.link: use for use in prediction.message_use}
    assert (by_link["remote"].outside_messages, by_link["remote"].fitted_bytes) == (0, (1, 1000000000))
    assert sum(use.messages for use in prediction.message_use) == prediction.simulation.messages
    assert messages_told(prediction) == []


def test_messages_above_the_fitted_sizes_are_told_with_their_share_of_the_time():
    prediction = predict(HPL, dahu(network__remote__range_bytes="[1, 65536]"), runs=1, mapping=ACROSS)
    remote = next(use for use in prediction.message_use if use.link == "remote")
    assert 0 < remote.outside_messages < remote.messages
    assert remote.outside_from_bytes > 65536
    assert remote.outside_to_bytes < remote.outside_bytes < remote.bytes
    share = 100 * remote.outside_time_s / remote.time_s
    (told, *_) = [text for text in messages_told(prediction) if "between nodes is" in text]
    assert told.startswith(f"{significant(share, 2)} % of the time of messages between nodes")
    assert told.endswith("fitted from 1 B to 64 KiB")


def test_the_pivot_exchanges_are_counted_with_the_others():
    """They are no events of the engine, and most of HPL's messages."""
    prediction = predict(
        HPL, dahu(**BOTH_UP_TO_A_GIGABYTE | {"network__remote__range_bytes": "[1, 10]"}), runs=1, mapping=ACROSS
    )
    remote = next(use for use in prediction.message_use if use.link == "remote")
    assert remote.outside_messages == remote.messages
    assert sum(use.messages for use in prediction.message_use) == prediction.simulation.messages


def test_a_sampled_run_tells_nearly_what_the_whole_run_tells():
    platform = dahu(network__remote__range_bytes="[1, 65536]", network__loopback__range_bytes="[1, 65536]")
    big = Hpl(n=60000, nb=128, p=2, q=2)
    uses = [
        {use.link: use for use in predict(big, platform, runs=1, mapping=ACROSS, fidelity=fidelity).message_use}
        for fidelity in ("full", "sampled")
    ]
    for link, whole in uses[0].items():
        part = uses[1][link]
        assert part.time_s == pytest.approx(whole.time_s, rel=0.05)
        assert part.outside_time_s == pytest.approx(whole.outside_time_s, rel=0.05)


def test_messages_without_sizes_of_their_own_have_those_of_the_class_they_are_taken_from():
    sizes = dahu(network__remote__range_bytes="[1, 4096]").network.fitted_sizes
    assert sizes["remote"] == sizes["remote_noncontiguous"] == (1, 4096)
    assert sizes["loopback"] is None  # whose segments are its own
    alike = dahu(network__remote__range_bytes="[1, 4096]", network__loopback__segments="null").network.fitted_sizes
    assert {sizes for link, sizes in alike.items() if not link.endswith("_busy")} == {(1, 4096)}
