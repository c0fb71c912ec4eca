"""Programs that are built on this machine once and kept in the cache."""

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lepaute.errors import EnvironmentProblem
from lepaute.kit.cache import cache_folder
from lepaute.kit.temporary import check_room, temporary_parent

#: In the folder of a build: the size of its product, bytes.
_SIZE = "size.txt"


def built_once(
    name: str, inputs: Iterable[str], product: str, build: Callable[[Path], None], parent: Path | None = None
) -> Path:
    """The folder that holds `product`, built unless it is there already for the same inputs.

    inputs : all that the result depends on: compilers, flags, `digests` of the sources
    product: a file that `build` makes
    build  : fills the empty folder that it is given; not called where another process has built the same meanwhile,
             which is waited for
    parent : where the folder is kept, by default the cache
    Raises what `build` raises, and EnvironmentProblem where something else stands in the way.
    """
    key = f"{name}-{hashlib.sha256(chr(0).join(inputs).encode()).hexdigest()[:16]}"
    parent = (parent or cache_folder()).resolve()
    built = parent / key
    if _is_whole(built, product):
        return built
    try:
        parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise EnvironmentProblem(f"{parent}: cannot be created ({problem.strerror}); set LEPAUTE_HOME") from None
    if not os.access(parent, os.W_OK | os.X_OK):
        raise EnvironmentProblem(
            f"{parent}: not writable, so programs cannot be built there; set LEPAUTE_HOME to another folder"
        )
    check_room(parent, "LEPAUTE_HOME")
    check_room(temporary_parent())  # of the compilers
    with _locked(parent / f".{key}.lock") as alone:
        if _is_whole(built, product):
            return built
        if alone and (built / product).is_file():  # cut short, by a full disk or when the machine went down
            shutil.rmtree(built, ignore_errors=True)
        for left in parent.glob(f".{key}.*.new") if alone else ():  # by a build that was killed
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
    """SHA-256 of a file's content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Holds a lock that ends with this process; False where the file system has none."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:
            yield False
            return
        yield True
