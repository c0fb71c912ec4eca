"""The outermost frame of every command: it turns each way of ending into an exit status and at most one line.

0 done; 1 the user's subject failed (the command raised `typer.Exit(1)`); 2 bad input or environment;
130 interrupted; 141 the reader of our output went away. `LEPAUTE_DEBUG=1` lets exceptions through, with
their traceback.
"""

import contextlib
import errno
import os
import sys
from collections.abc import Callable

from lepaute.errors import LepauteError

DONE = 0
BAD_INPUT = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
PIPE_CLOSED = 141  # 128 + SIGPIPE

# What the file system refuses because of what the user asked; any other OSError is a defect of ours and keeps its
# traceback.
USER_ERRNOS = frozenset(
    {errno.ENOENT, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENOSPC, errno.EROFS}
)


def guarded(run: Callable[[], int]) -> int:
    """The exit status of `run`, after printing one line on standard error where it ended badly.

    run : does the work and returns its own exit status
    Raises what `run` raises where that is a defect of ours (a traceback is then the right answer).
    """
    debug = bool(os.environ.get("LEPAUTE_DEBUG"))
    try:
        status = run()
        sys.stdout.flush()  # here, where a closed pipe can still be answered quietly
        return status
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    except LepauteError as error:
        if debug:
            raise
        complain(str(error))
        return BAD_INPUT
    except BrokenPipeError:
        _silence_standard_output()
        return PIPE_CLOSED
    except OSError as error:
        if debug or error.errno not in USER_ERRNOS:
            raise
        where = f"{error.filename}: " if error.filename else ""
        complain(f"{where}{error.strerror}")
        return BAD_INPUT


def complain(message: str) -> None:
    """One line on standard error; line breaks inside the message become spaces."""
    with contextlib.suppress(BrokenPipeError):
        print("lepaute:", " ".join(message.split()), file=sys.stderr, flush=True)


def _silence_standard_output() -> None:
    """Lets the interpreter's own flush at exit go nowhere instead of failing again."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
