"""The store that the watch commands share, and `lepaute watch ingest`, which fills it."""

import datetime as dt
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from lepaute.cli.options import AsJson, argument, option
from lepaute.cli.terminal import json_text, tell
from lepaute.errors import InputError
from lepaute.kit.files import scratch_folder, sync
from lepaute.kit.later import later
from lepaute.kit.temporary import temporary_folder
from lepaute.kit.text import counted

if TYPE_CHECKING:
    from lepaute import watch as lepaute_watch
    from lepaute.watch import Watch
    from lepaute.watch.store.store import Ingested
else:
    lepaute_watch = later("lepaute.watch")

#: Of the environment: the store of all commands of a session, such as those of cron.
VARIABLE = "LEPAUTE_STORE"
MAX_CHARACTERS = 2000
NODES_HELP = "such as dahu-13, 13/14 or node[13-16]"
Place = Annotated[
    str | None, option(f"a folder or a postgresql:// URL; default: ${VARIABLE}", "--store", metavar="PLACE")
]
Cluster = Annotated[str | None, option("only this cluster", metavar="NAME")]
Nodes = Annotated[str | None, option(NODES_HELP, metavar="SET")]


def place_of(place: str | None) -> str:
    """The store that is meant; raises InputError where none is named, or by a URL that is none of a store."""
    from lepaute.watch.store import check_place

    where = os.environ.get(VARIABLE, "") if place is None else place
    if not where:
        raise InputError(f"no store is named; give --store FOLDER, or set {VARIABLE}")
    check_place(where)
    return where


@contextmanager
def opened(place: str | None, files: Sequence[Path] = (), read_as: list[str] | None = None) -> Iterator["Watch"]:
    """The watch over the store that is meant, to which the files are added first; where none is named, over one of the
    files alone, which is not kept. read_as: gets how each table was read.

    Raises InputError where none is named and there are no files, or it is not there: a slip of the pen would be a new,
    empty store, in which nothing is ever wrong.
    """
    alone = files and place is None and not os.environ.get(VARIABLE)
    with temporary_folder("lepaute-store-") if alone else nullcontext() as folder:
        where = place_of(place if folder is None else str(folder / "store"))
        if files:
            done = ingested(where, list(files))
            if read_as is not None:
                read_as += done.read_as
        with lepaute_watch.open(where, create=False) as watch:
            yield watch


def stage(tell: Callable[[str, float], None], what: str, begin: float, end: float = 1.0) -> Callable[[float], None]:
    """Tells of a part of the work, by the share of that part, as `terminal.progress_bar` wants it of all."""
    told = -1

    def tell_of_part(share: float) -> None:
        nonlocal told
        whole = begin + (end - begin) * share
        if int(100 * whole) > told:
            told = int(100 * whole)
            tell(what, whole)

    return tell_of_part


def date_of(text: str, option: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise InputError(f"{option} is {text[:80]!r}; write a date such as 2020-11-06") from None


def start_of(text: str, option: str) -> float:
    """The first second of the date of an option, UTC, since the epoch."""
    return dt.datetime.combine(date_of(text, option), dt.time(), dt.UTC).timestamp()


#: Of fields in seconds that have the beginning of a day: `option_field(None, "first day", **DATE)`.
DATE: Mapping[str, Any] = {"metavar": "DATE", "quantity": start_of}


def end_of(text: str, option: str) -> float:
    """The first second after the date of an option."""
    return start_of(text, option) + 86_400.0


def check_text(text: str | None, option: str) -> str | None:
    """The text, which a store can keep; raises InputError where it is not UTF-8, or very long."""
    if text is not None and not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError(f"{option} is {text[:80]!r}, which is not text in UTF-8") from None
    if text is not None and len(text) > MAX_CHARACTERS:
        raise InputError(f"{option} has {len(text)} characters; at most {MAX_CHARACTERS} are kept")
    return text


def ingest(
    files: Annotated[list[Path], argument("FILE...", "archives, or results of other programs")],
    store: Place = None,
    cluster: Annotated[str, option("cluster the nodes belong to", metavar="NAME")] = "",
    file_format: Annotated[str | None, option("reframe, hpl or csv; default: recognised", "--format")] = None,
    node: Annotated[str, option("node name to use instead of the one in the file")] = "",
    mapping: Annotated[Path | None, option("YAML that describes the columns of a CSV; default: its heading")] = None,
    date: Annotated[str | None, option("of HPL and CSV without one: 2026-01-31[T07:24], UTC", metavar="DATE")] = None,
    file_date: Annotated[bool, option("of HPL and CSV without a date: the file's last change", "--file-date")] = False,
    as_json: AsJson = False,
) -> None:
    """Adds measurements from files to the store, which is created if missing.

    All files are added or, if one cannot be read, none; what the store has already stays as it is. Next:
    lepaute watch test.
    """
    from lepaute.watch.foreign.units import ISO, date_at

    check_text(cluster, "--cluster")
    check_text(node, "--node")
    done = ingested(
        place_of(store),
        files,
        cluster=cluster,
        format=file_format,
        node=node,
        mapping=mapping,
        date_s=None if date is None else date_at(ISO, date, "--date"),
        file_date=file_date,
    )
    if as_json:
        fields = {"added": list(done.added), "known": list(done.known), "values": done.values}
        print(json_text(fields | {"omitted": list(done.omitted), "read_as": list(done.read_as)}))
        return
    new = counted(done.values, "new factor value") if done.values else "nothing new"
    text = f"{new} from {counted(len(files), 'file')}{done.values_of and f': {done.values_of}'}"
    if done.added or done.known:
        text += f"; {counted(len(done.added), 'archive')} added, {len(done.known)} known already"
    facts = [*(("read as", f"{each}; other columns: --mapping") for each in done.read_as)]
    facts += [("left out", each) for each in done.omitted]
    tell(text, facts, (), details=False)


def ingested(where: str, files: list[Path], **options: Any) -> "Ingested":
    """As `Watch.ingest`, into a store that is created if missing, and not if that raises.

    A new one is made beside its place; a database takes all files or none.
    """
    for file in files:
        if file.is_dir():
            raise InputError(f"{file} is a directory; give the files in it, such as {file / '*.zip'}")
        if not file.exists():
            raise InputError(f"{file}: there is no such file")

    def into(place: str | Path) -> "Ingested":
        with lepaute_watch.open(place) as watch:
            return watch.ingest(files, **options)

    folder = Path(where)
    if "://" in where or (folder / "store.json").exists():
        return into(where)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is not a store; name another folder")
    parent = folder.absolute().parent
    if not parent.is_dir():
        raise InputError(f"there is no folder {parent}; make it first")
    with scratch_folder(parent) as beside:
        done = into(beside / "store")
        try:
            (beside / "store").rename(folder)
        except OSError:  # another process has made it meanwhile
            return into(folder)
        sync(parent)
    return done
