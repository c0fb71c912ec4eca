"""Hosts of SimGrid's XML that differ in speed or cores, as groups of nodes."""

import re
from collections.abc import Mapping
from decimal import Decimal
from itertools import groupby
from typing import Any

from lepaute.errors import InputError
from lepaute.simulate.platform.nodes import MAX_GROUPS
from lepaute.simulate.platform.simgrid.machines import Element, Reader, cores_of, decimal_of

_POWERS = {"": 0, "k": 3, "K": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_WORDS = {"kilo": 3, "mega": 6, "giga": 9, "tera": 12, "peta": 15, "exa": 18, "": 0}


def groups_of(hosts: Mapping[str, Element], origin: str) -> tuple[dict[str, Any], ...] | None:
    """A group for each run of hosts alike, in the order of `hosts`; None where all are. hosts : elements by name.

    speed is that over the first host's: what an absolute one means, kernel models say.
    Raises InputError for a speed that is none, and for more groups than a platform has.
    """
    read: dict[int, tuple[Decimal, int]] = {}
    for element in hosts.values():
        if id(element) not in read:
            at = Reader(element, origin)
            read[id(element)] = (
                speed_flops(element.attributes.get("speed", "1"), at.where("speed")),
                cores_of(element, origin),
            )
    if len(set(read.values())) <= 1:
        return None
    runs = [(key, list(names)) for key, names in groupby(hosts, lambda name: read[id(hosts[name])])]
    if len(runs) > MAX_GROUPS:
        raise InputError(
            f"{origin}: its hosts make {len(runs)} groups that differ in speed or cores from those before; a platform "
            f"has at most {MAX_GROUPS}: put hosts alike one after the other"
        )
    groups: list[dict[str, Any]] = []
    names = set[str]()
    for place, ((speed, cores), members) in enumerate(runs):
        name, first = _name(members)
        if not name or name in names:
            name, first = f"group-{_letters(place)}", None
        names.add(name)
        group: dict[str, Any] = {"name": name, "nodes": len(members), "cores": cores}
        if first is not None:
            group["first_number"] = first
        if speed != runs[0][0][0]:
            group["speed"] = float(speed / runs[0][0][0])
        groups.append(group)
    return tuple(groups)


def speed_flops(text: str, where: str) -> Decimal:
    """Flop/s of a text such as 1Gf or 98.095Mf; of states, such as 1Gf,500Mf, the first. `where` begins a refusal."""
    first = text.split(",", maxsplit=1)[0]
    number, unit = decimal_of(first, where, "a speed such as 10Gf")
    match = re.fullmatch(r"([kKMGTPE]?)(?:f|flops)?|(kilo|mega|giga|tera|peta|exa)?flops", unit)
    if match is None or number <= 0:
        raise InputError(f"{where} is {text[:80]!r}; a speed above 0 such as 10Gf is expected")
    return number * Decimal(10) ** (_POWERS[match[1]] if match[1] is not None else _WORDS[match[2] or ""])


def _name(members: list[str]) -> tuple[str, int | None]:
    """What all hosts are called before consecutive numbers, and the first of these; of a lone host without one, its
    name; "" where there is no such name."""
    if len(members) == 1 and re.fullmatch(r"[A-Za-z]([A-Za-z0-9._-]*[A-Za-z])?", members[0][:60]):
        return members[0][:60], None
    matches = [re.fullmatch(r"([A-Za-z][A-Za-z0-9._-]*?)-?([0-9]{1,9})", name) for name in members]
    if not all(matches) or len({match[1] for match in matches if match}) > 1:
        return "", None
    numbers = [int(match[2]) for match in matches if match]
    prefix = matches[0][1].rstrip("-._") if matches[0] else ""
    in_order = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    return (prefix, numbers[0]) if in_order and len(prefix) <= 60 and prefix[-1:].isalpha() else ("", None)


def _letters(place: int) -> str:
    """a, b, ..., z, aa, ab, ..."""
    before, last = divmod(place, 26)
    return (_letters(before - 1) if before else "") + chr(ord("a") + last)
