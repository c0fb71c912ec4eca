"""The store that the watch commands share."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import datetime as dt

    from lepaute.watch import Watch

#: Of the environment: the store of all commands of a session, such as those of cron.
VARIABLE = "LEPAUTE_STORE"
MOST_CHARACTERS = 2000
Place = Annotated[
    str | None,
    typer.Option("--store", metavar="PLACE", help=f"a folder or a postgresql:// URL; ${VARIABLE} unless given"),
]
Cluster = Annotated[str | None, typer.Option("--cluster", metavar="NAME", help="only this cluster")]
Nodes = Annotated[str | None, typer.Option("--node", metavar="SET", help="such as dahu-13, 13/14 or node[13-16]")]
AsJson = Annotated[bool, typer.Option("--json", help="one JSON object on standard output")]


def place_of(place: str | None) -> str:
    """The store that is meant; raises InputError where none is named, or by a URL that is none of a store."""
    from lepaute.errors import InputError
    from lepaute.store.opening import check_place

    where = os.environ.get(VARIABLE, "") if place is None else place
    if not where:
        raise InputError(f"no store is named; give --store FOLDER, or set {VARIABLE}")
    check_place(where)
    return where


def opened(place: str | None) -> "Watch":
    """The watch over the store that is meant.

    Raises InputError where none is named, or it is not there: a slip of the pen would be a new, empty store, in which
    nothing is ever wrong.
    """
    from lepaute.watch import open as open_watch

    return open_watch(place_of(place), create=False)


def date_of(text: str | None, option: str) -> "dt.date | None":
    """The date of an option; None where it is not given; raises InputError for what is none."""
    import datetime as dt

    from lepaute.errors import InputError

    if text is None:
        return None
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise InputError(f"{option} is {text[:80]!r}; write a date such as 2020-11-06") from None


def start_of(text: str | None, option: str) -> float | None:
    """The first second of the date of an option, UTC, since the epoch; as `date_of`."""
    import datetime as dt

    date = date_of(text, option)
    return None if date is None else dt.datetime.combine(date, dt.time(), dt.UTC).timestamp()


def end_of(text: str | None, option: str) -> float | None:
    """The first second after the date of an option; as `date_of`."""
    start_s = start_of(text, option)
    return None if start_s is None else start_s + 86_400.0


def check_text(text: str | None, option: str) -> str | None:
    """The text, which a store can keep; raises InputError where it is not UTF-8, or very long."""
    from lepaute.errors import InputError

    if text is not None and not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError(f"{option} is {text[:80]!r}, which is not text in UTF-8") from None
    if text is not None and len(text) > MOST_CHARACTERS:
        raise InputError(f"{option} has {len(text)} characters; at most {MOST_CHARACTERS} are kept")
    return text
