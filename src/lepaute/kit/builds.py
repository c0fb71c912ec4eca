"""Programs that are built on this machine once, and the cache where they are kept."""

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from lepaute.errors import EnvironmentProblem

#: In the folder of a build: the size of its product, bytes.
_SIZE = "size.txt"


def built_once(
    name: str, inputs: Iterable[str], product: str, build: Callable[[Path], None], parent: Path | None = None
) -> Path:
    """The folder that holds `product`, built unless it is there already for the same inputs.

    inputs : all that the result depends on: compilers, flags, `digests` of the sources
    build  : fills the empty folder that it is given; not called where another process builds the same
    parent : where the folder is kept, by default the cache
    Raises what `build` raises, and EnvironmentProblem if something else stands in the way.
    """
    import shutil
    import tempfile

    from lepaute.kit.files import lock_if_any
    from lepaute.kit.temporary import check_room, temporary_parent

    key = f"{name}-{hashlib.sha256(chr(0).join(inputs).encode()).hexdigest()[:16]}"
    parent = (parent or cache_folder()).resolve()
    built = parent / key
    if _is_whole(built, product):
        return built
    make_cache(parent)
    check_room(temporary_parent())  # of the compilers
    with (parent / f".{key}.lock").open("a") as lock:
        has_lock = lock_if_any(lock, wait=True)
        if _is_whole(built, product):
            return built
        if has_lock and (built / product).is_file():  # cut short, by a full disk or when the machine went down
            shutil.rmtree(built, ignore_errors=True)
        for left in parent.glob(f".{key}.*.new") if has_lock else ():  # by a build that was killed
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=f".{key}.", suffix=".new", dir=parent) as temporary:
            folder = Path(temporary, "new")
            folder.mkdir()
            build(folder)
            (folder / _SIZE).write_text(f"{(folder / product).stat().st_size}\n")
            with contextlib.suppress(OSError):  # without locks, somebody else may have been faster
                folder.rename(built)
    if not (built / product).is_file():
        raise EnvironmentProblem(f"{built} is in the way; remove it and try again")
    return built


def _is_whole(built: Path, product: str) -> bool:
    """Whether it is there, as large as when it was built; one of before sizes were kept counts unless it is empty."""
    path = built / product
    size = path.stat().st_size if path.is_file() else 0
    try:
        return size == int((built / _SIZE).read_text())
    except FileNotFoundError:
        return size > 0
    except (OSError, ValueError):
        return False


def digests(files: Iterable[Path]) -> list[str]:
    """Name and SHA-256 of each file, in the order of their names."""
    return [f"{file.name} {sha256_of(file)}" for file in sorted(files)]


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def cache_folder() -> Path:
    """$LEPAUTE_HOME, else ~/.cache/lepaute; absolute.

    Raises EnvironmentProblem for a name that compilers and records cannot hold, and where there is no home either.
    """
    given = os.environ.get("LEPAUTE_HOME")
    if given and not given.isprintable():
        raise EnvironmentProblem(f"LEPAUTE_HOME is {given!r}, which is not printable UTF-8; name another folder")
    try:
        folder = Path(given).expanduser() if given else Path.home() / ".cache" / "lepaute"
    except RuntimeError:
        raise EnvironmentProblem("no home folder to keep builds in; set LEPAUTE_HOME to a folder") from None
    return folder.absolute()


def make_cache(folder: Path) -> None:
    """Makes the cache, or a folder of it, where it is not there.

    Raises EnvironmentProblem, with LEPAUTE_HOME as the remedy, where it cannot be made or written or its disk is full.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise EnvironmentProblem(
            f"{folder}: cannot be created ({problem.strerror}); set LEPAUTE_HOME to another folder"
        ) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise EnvironmentProblem(
            f"{folder}: not writable, and what is built is kept there; set LEPAUTE_HOME to another folder"
        )
    from lepaute.kit.temporary import check_room

    check_room(folder, "LEPAUTE_HOME")


def drop_oldest(folder: Path, pattern: str, most: int) -> None:
    """Removes the oldest of more than `most` files of a folder of the cache; raises OSError if one cannot be."""
    ages = {path: path.stat().st_mtime for path in folder.glob(pattern)}
    for path in sorted(ages, key=ages.__getitem__)[:-most]:
        path.unlink(missing_ok=True)
