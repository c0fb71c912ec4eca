"""How many nodes may be out of service for Lepaute's reasons at a time."""

from dataclasses import dataclass

from lepaute.errors import InputError


@dataclass(frozen=True, slots=True)
class Limit:
    """Of the nodes of a partition: a number, or a percentage, rounded down."""

    number: int | None = None
    percent: float | None = None

    def of(self, nodes: int) -> int:
        """How many of so many nodes."""
        return self.number if self.number is not None else int(nodes * float(self.percent or 0.0) / 100.0)


def limit_of(text: str, option: str) -> Limit:
    """2 or 5%; raises InputError for anything else."""
    word = text.strip()
    try:
        if word.endswith("%"):
            percent = float(word[:-1])
            if 0.0 <= percent <= 100.0:
                return Limit(percent=percent)
        elif word.isascii() and word.isdigit():
            return Limit(number=int(word))
    except ValueError:
        pass
    raise InputError(f"{option} is {text[:40]!r}; write a number of nodes such as 2, or a share such as 5%")
