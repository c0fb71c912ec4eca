"""What of a platform was assumed instead of measured, and how wrong it may be."""

from typing import Annotated

from pydantic import Field

from lepaute.platform.values import NonNegative, Value


class Assumption(Value):
    """A part of the platform that nobody measured; predictions name it.

    what        : in words: "message times between nodes"
    relative_sd : standard deviation that runs draw for it; null where they draw none
    source      : where the value comes from, and what the standard deviation rests on
    """

    what: Annotated[str, Field(min_length=1, max_length=500)]
    relative_sd: NonNegative | None = None
    source: str | None = None

    @property
    def text(self) -> str:
        """In words, with its standard deviation where there is one."""
        return self.what if self.relative_sd is None else f"{self.what} (sd {100.0 * self.relative_sd:.2g} %)"
