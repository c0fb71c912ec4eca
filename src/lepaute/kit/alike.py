"""Messages that differ in their numbers, or in a name, alone: one of them stands for all."""

import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")
#: Names that are listed.
MOST_NAMED = 6


class Alike(NamedTuple):
    """Messages of which `text` stands for all.

    number: of all; identical: whether they are; names: those of the others, `text` left out
    """

    text: str
    number: int
    identical: bool
    names: tuple[str, ...]

    def line(self, of: int) -> str:
        """The message with its count; of: how many there would be if each case had it."""
        if self.identical:
            return self.text if self.number == of else f"{self.text} ({self.number} of {of})"
        more = ", ..." if len(self.names) > MOST_NAMED else ""
        named = f", of {', '.join(self.names[:MOST_NAMED])}{more}" if self.names else ""
        return f"{self.text} (and {self.number - 1} more like it{named})"


def one_for_all(texts: Iterable[str], names: Collection[str] = ()) -> list[Alike]:
    """Groups of texts that are alike, in the order of the first ones.

    Texts are alike where they are the same up to the first colon but for numbers and for words of `names`. The one
    with the largest first number stands for them.
    """
    words = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    of_names = re.compile(rf"\b({words})\b" if names else r"(?!)")
    alike: dict[str, list[str]] = {}
    for text in texts:
        head = text.partition(":")[0]
        alike.setdefault(_NUMBER.sub("#", of_names.sub("@", head)), []).append(text)
    groups = []
    for same in alike.values():
        chosen = max(same, key=_first_number)
        named = dict.fromkeys(name for text in same for name in of_names.findall(text.partition(":")[0]))
        mine = of_names.findall(chosen.partition(":")[0])
        others = tuple(name for name in named if name not in mine)
        groups.append(Alike(chosen, len(same), len(set(same)) == 1, others))
    return groups


def _first_number(text: str) -> float:
    found = _NUMBER.search(text)
    return float(found[0]) if found else 0.0
