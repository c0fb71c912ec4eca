"""Long tests: left out unless asked for, all or a quarter of them at a time (`--long`)."""

import argparse
import zlib
from collections.abc import Iterable
from typing import Any

import pytest

QUARTERS = tuple(f"{k}/4" for k in range(1, 5))


def long_but(values: Iterable[Any], *kept: Any) -> list[Any]:
    """Values of a parameter of which those that are kept are tried at each change, and the others in long tests."""
    values = list(values)
    assert all(one in values for one in kept), f"{kept} of {values}"
    return [one if one in kept else _long(one) for one in values]


def _long(value: Any) -> Any:
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.long)


def pytest_addoption(parser: pytest.Parser) -> None:
    wanted = "which tests marked long to run beside the others: none (the default), all, or a quarter, 2/4"
    parser.addoption("--long", default="none", type=_checked, metavar="none|all|K/4", help=wanted)


def _checked(wanted: str) -> str:
    if wanted not in ("none", "all", *QUARTERS):
        raise argparse.ArgumentTypeError(f"{wanted!r} is none of: none, all, {', '.join(QUARTERS)}")
    return wanted


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = config.getoption("--long")
    left_out = [item for item in items if item.get_closest_marker("long") and wanted not in ("all", quarter_of(item))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def quarter_of(item: pytest.Item) -> str:
    """By its name alone: the same whichever tests are selected, and whatever tests are added."""
    return QUARTERS[zlib.crc32(item.nodeid.encode()) >> 30]
