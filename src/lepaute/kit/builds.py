"""Programs that are built on this machine once and kept in the cache."""

import contextlib
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from lepaute.errors import EnvironmentProblem
from lepaute.kit.cache import cache_folder, make_cache
from lepaute.kit.locks import lock_if_any
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
    make_cache(parent)
    check_room(temporary_parent())  # of the compilers
    with (parent / f".{key}.lock").open("a") as lock:
        alone = lock_if_any(lock, wait=True)
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
