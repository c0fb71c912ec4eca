"""Which tests are left out as long ones."""

import argparse
import itertools
from types import SimpleNamespace

import long_tests
import pytest

NAMES = [f"tests/unit/test_x.py::test_{number}" for number in range(200)]


def kept(wanted: str) -> list[str]:
    """Of 200 long tests and a short one, those that run."""
    items = [SimpleNamespace(nodeid=name, get_closest_marker=lambda mark: mark == "long") for name in NAMES]
    items.append(SimpleNamespace(nodeid="short", get_closest_marker=lambda _: None))
    told: list[object] = []

    def tell(items: list[object]) -> None:
        told.extend(items)

    config = SimpleNamespace(getoption=lambda _: wanted, hook=SimpleNamespace(pytest_deselected=tell))
    long_tests.pytest_collection_modifyitems(config, items)  # type: ignore[arg-type]
    assert len(items) + len(told) == len(NAMES) + 1
    return [item.nodeid for item in items]


def test_long_tests_run_only_when_asked_for() -> None:
    assert kept("none") == ["short"]
    assert kept("all") == [*NAMES, "short"]


def test_each_long_test_is_in_one_part_and_the_others_are_in_all() -> None:
    parts = [kept(f"{number}/8") for number in range(1, 9)]
    assert all(part.pop() == "short" for part in parts)
    assert sorted(itertools.chain(*parts)) == sorted(NAMES)
    assert all(len(part) > 12 for part in parts)  # 25 are expected


@pytest.mark.parametrize("wanted", ["0/4", "5/4", "1/0", "", "some"])
def test_a_part_that_is_none_is_refused(wanted: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is none of: none, all, K/N"):
        long_tests._checked(wanted)
