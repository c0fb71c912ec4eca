"""The outermost frame of every command: it turns each way of ending into an exit status and at most one line.

0 done; 1 the user's subject failed (the command raised `typer.Exit(1)`); 2 bad input or environment; 3 a limit was set
and what was measured does not tell whether it holds (`Decision.status`); 5 an MPI library failed; 70 a defect of ours,
whose traceback is in a file that the line names; 71 not enough memory; 130 interrupted; 141 the reader of our output
went away.
`LEPAUTE_DEBUG=1` lets exceptions through, with their traceback.

Nothing is imported here that a command could do without: until `guarded` runs, Ctrl-C shows a traceback.
"""

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterator

from lepaute.errors import LepauteError, LibraryFailure

DONE = 0
BAD_INPUT = 2
UNDECIDED = 3
LIBRARY_FAILED = 5
DEFECT = 70  # EX_SOFTWARE of sysexits.h
OUT_OF_MEMORY = 71  # EX_OSERR
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
PIPE_CLOSED = 141  # 128 + SIGPIPE

#: No file system and no network gives these: a descriptor or an address of ours is wrong.
_OF_A_DEFECT = frozenset({errno.EBADF, errno.EFAULT, errno.ENOTSOCK})
#: What libraries say whose allocations failed, in errors of any type.
_ALLOCATION_FAILED = (
    *("bad_alloc", "bad allocation", "out of memory", "cannot allocate memory"),
    *("failed to map segment", "can't start new thread"),
)
#: Streams that a thread may still be printing to: Python's print() holds no reference to them.
_IN_USE: list[object] = []
#: A disk with less room than this is full.
_LITTLE_BYTES = 1 << 20
#: A longer message is cut in the middle: what is wrong stands at its beginning, what to do at its end.
_MAX_CHARACTERS = 1200


def guarded(run: Callable[[], int]) -> int:
    """The exit status of `run`, after printing one line on standard error where it ended badly.

    run : does the work and returns its own exit status
    Raises what `run` raises only where LEPAUTE_DEBUG is set.
    """
    with _standard_streams(), _noted_interrupt() as is_interrupted:
        try:
            status = run()
            sys.stdout.flush()  # here, where a closed pipe can still be answered quietly
        except BaseException as error:
            if isinstance(error, SystemExit) and not _of_program(error):
                raise
            status = PIPE_CLOSED if isinstance(error, BrokenPipeError) else INTERRUPTED
            # An import that is interrupted may end with an ImportError.
            if not is_interrupted() and not isinstance(error, KeyboardInterrupt | BrokenPipeError):
                if os.environ.get("LEPAUTE_DEBUG"):
                    raise
                status, line = answer(error)
                complain(line)
            elif status == INTERRUPTED:
                complain("interrupted")
            try:
                sys.stdout.flush()
            except (OSError, ValueError):  # so that the interpreter's own flush at exit does not fail again
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, sys.stdout.fileno())
                os.close(nowhere)
        return status


def answer(error: BaseException) -> tuple[int, str]:
    """The exit status for an exception, and the line that explains it."""
    if isinstance(error, LepauteError):
        return LIBRARY_FAILED if isinstance(error, LibraryFailure) else BAD_INPUT, str(error)
    if (cause := _failed_allocation(error)) is not None:
        return OUT_OF_MEMORY, f"there is not enough memory ({cause}); make the task smaller"
    if isinstance(error, OSError) and error.errno is not None and (error.filename or error.errno not in _OF_A_DEFECT):
        name = error.filename
        where = f"{os.fsdecode(name) if isinstance(name, bytes | str | os.PathLike) else name}: " if name else ""
        full = _full_folder() if not where and error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        return BAD_INPUT, f"{where}{error.strerror or os.strerror(error.errno)}{full}"
    if isinstance(error, RuntimeError) and str(error).startswith("Symlink loop"):  # of Path.resolve()
        return BAD_INPUT, f"{error}; name the file itself"
    if isinstance(error, TimeoutError | ConnectionError):
        return BAD_INPUT, f"{error or 'the other side does not answer'}"
    if isinstance(error, RecursionError):
        return BAD_INPUT, "the input is nested too deeply"
    if isinstance(error, UnicodeEncodeError) and "\ud800" <= error.object[error.start] <= "\udfff":
        return BAD_INPUT, f"{error.object[:200]!r} is not text in UTF-8; give another name or value"
    if isinstance(error, UnicodeDecodeError):
        return BAD_INPUT, f"a file that was read is not text in UTF-8 ({error.reason} at byte {error.start})"
    if fault := _of_program(error):
        return BAD_INPUT, fault
    name = type(error).__name__
    kept = _kept_traceback(error)
    where = f"its traceback is in {kept}" if kept else "LEPAUTE_DEBUG=1 shows its traceback"
    return DEFECT, f"this is a defect of Lepaute ({name}: {_short(str(error), 300)}); {where}: please report it"


def _failed_allocation(error: BaseException | None) -> str | None:
    """What says that memory was lacking, in an exception or in one that it came of; None where nothing does."""
    while error is not None:
        text = str(error)
        if isinstance(error, MemoryError) or any(words in text.lower() for words in _ALLOCATION_FAILED):
            return _short(text, 200) or "an allocation failed"
        error = error.__cause__ or error.__context__
    return None


def _of_program(error: BaseException) -> str:
    """What a user's program raised, with its line; empty of any other error."""
    programs = sys.modules.get("lepaute.kit.python_files")
    return "" if programs is None else str(programs.Program.fault(error))


def _full_folder() -> str:
    """Where there is no room, among the folders that commands write to; what is written does not say."""
    import shutil
    import tempfile
    from pathlib import Path

    for folder in (Path.cwd(), Path(tempfile.gettempdir())):
        with contextlib.suppress(OSError):
            if (free_bytes := shutil.disk_usage(folder).free) < _LITTLE_BYTES:
                return f": {folder} has {free_bytes >> 10} KiB left; make room there"
    return "; make room where the output goes"


def complain(message: str) -> None:
    """One printable line on standard error, folded on a terminal; line breaks inside the message become spaces."""
    from lepaute.kit.printable import terminal_columns
    from lepaute.kit.text import folded

    line = f"lepaute: {_short(' '.join(message.split()), _MAX_CHARACTERS)}"
    with contextlib.suppress(OSError):
        print(folded(line, terminal_columns(sys.stderr), 2), file=sys.stderr, flush=True)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most * 2 // 3]} [...] {text[-most // 3 :]}"


def _kept_traceback(error: BaseException) -> str | None:
    """The new file that holds the traceback, which only this user may read; None where none can be written."""
    import tempfile
    import traceback

    from lepaute.kit.builds import cache_folder

    text = "".join(traceback.format_exception(error))
    for folder in (cache_folder, tempfile.gettempdir):
        with contextlib.suppress(Exception):  # this is the last resort: whatever is wrong with one, the other is tried
            place = str(folder())
            os.makedirs(place, mode=0o700, exist_ok=True)  # noqa: PTH103 - pathlib is not loaded in vain
            descriptor, path = tempfile.mkstemp(prefix="traceback-", suffix=".txt", dir=place)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(f"{' '.join(map(ascii, sys.argv))}\n\n{text}")
            return path
    return None


@contextlib.contextmanager
def _standard_streams() -> Iterator[None]:
    """Lets standard output and error print whatever there is, on any terminal, and exist even where they are closed."""
    from lepaute.kit.printable import PrintableStream

    before = sys.stdout, sys.stderr
    _open_closed_descriptors()
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as the process lives
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # of characters that an ASCII terminal lacks
    sys.stdout = PrintableStream(sys.stdout, "standard output")
    sys.stderr = PrintableStream(sys.stderr, "standard error")
    _IN_USE.extend((sys.stdout, sys.stderr))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _open_closed_descriptors() -> None:
    """Puts something at the three lowest descriptors: else the first file that is opened would be standard output.

    Writing to standard output fails then, as it does where a disk is full; what goes to standard error is lost.
    """
    for descriptor, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, mode)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)


@contextlib.contextmanager
def _noted_interrupt() -> Iterator[Callable[[], bool]]:
    """Gives a function that says whether Ctrl-C was pressed, whatever has become of the KeyboardInterrupt.

    SIGTERM, with which a batch system ends a job, is taken for it: what the command started must end too, and what was
    measured be kept. A signal that whoever started the process ignores stays ignored.
    """
    import signal

    pressed = False
    usual: dict[signal.Signals, signal._HANDLER] = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
    }
    ours: list[signal.Signals] = []

    def handle(*_: object) -> None:
        nonlocal pressed
        pressed = True
        raise KeyboardInterrupt

    with contextlib.suppress(ValueError):  # not the main thread, which alone gets signals
        for number, handler in usual.items():
            if signal.getsignal(number) is handler:
                signal.signal(number, handle)
                ours.append(number)
    try:
        yield lambda: pressed
    finally:
        for number in ours:
            signal.signal(number, usual[number])
