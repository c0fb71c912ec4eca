"""What an exception says beside its message: where the work done so far is, and how to go on."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def notes_printed() -> Iterator[None]:
    """Prints the notes of an exception, a line each on standard error, and lets it through."""
    try:
        yield
    except BaseException as problem:
        for note in getattr(problem, "__notes__", ()):
            print(f"lepaute: {note}", file=sys.stderr)
        raise
