"""Long tests: left out unless asked for, all or a part of them at a time (`--long`)."""

import argparse
import re
import zlib
from collections.abc import Iterable
from typing import Any

import pytest


def long_but(values: Iterable[Any], *kept: Any) -> list[Any]:
    """Values of a parameter of which those that are kept are tried at each change, and the others in long tests."""
    values = list(values)
    assert all(one in values for one in kept), f"{kept} of {values}"
    return [value if value in kept else _long(value) for value in values]


def _long(value: Any) -> Any:
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.long)


def pytest_addoption(parser: pytest.Parser) -> None:
    wanted = "which tests marked long to run beside the others: none (the default), all, or a part, 2/8"
    parser.addoption("--long", default="none", type=_checked, metavar="none|all|K/N", help=wanted)


def _checked(wanted: str) -> str:
    part = re.fullmatch(r"(\d+)/(\d+)", wanted)
    if wanted not in ("none", "all") and not (part and 1 <= int(part[1]) <= int(part[2])):
        raise argparse.ArgumentTypeError(f"{wanted!r} is none of: none, all, K/N with K from 1 to N")
    return wanted


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = config.getoption("--long")
    left_out = [item for item in items if item.get_closest_marker("long") and not is_wanted(item, wanted)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def is_wanted(item: pytest.Item, wanted: str) -> bool:
    """Whether a long test is in the part; by its name alone: the same whichever tests are selected or added."""
    if wanted in ("none", "all"):
        return wanted == "all"
    part, parts = map(int, wanted.split("/"))
    return zlib.crc32(item.nodeid.encode()) * parts >> 32 == part - 1
