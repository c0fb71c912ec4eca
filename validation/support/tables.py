"""Tables of single measurements, data/NAME.csv.gz: measured, or read again with --summarise."""

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas

from support.options import Options

Measure = Callable[[], pandas.DataFrame]


def path_of(options: Options, name: str) -> Path:
    """Where the table NAME stands."""
    return options.output / "data" / f"{name}.csv.gz"


def stored(options: Options, name: str, measure: Measure, digits: str | None = None) -> pandas.DataFrame:
    """The table that is there with --summarise; otherwise what `measure` gives, written with `digits` such as %.4g."""
    path = path_of(options, name)
    return pandas.read_csv(path) if options.summarise else write(path, measure(), digits)


def in_scratch(prefix: str, measure: Callable[..., pandas.DataFrame], *arguments: object) -> pandas.DataFrame:
    """What it measures with these arguments and a scratch folder."""
    with tempfile.TemporaryDirectory(prefix=prefix) as name:
        return measure(*arguments, Path(name))


def stored_parts(
    options: Options, name: str, column: str, measures: Mapping[str, Measure], only: str | None = None
) -> list[pandas.DataFrame]:
    """The same of a table of several parts, named in `column`; `only`: measure this one, keep the others."""
    path = path_of(options, name)
    kept = [part for part in measures if options.summarise or only not in (None, part)]
    old = pandas.read_csv(path) if kept else pandas.DataFrame({column: []})
    parts = [
        old[old[column] == part] if part in kept else measure().assign(**{column: part})
        for part, measure in measures.items()
    ]
    if not options.summarise:
        write(path, pandas.concat(parts, ignore_index=True))
    return parts


def write(path: Path, frame: pandas.DataFrame, digits: str | None = None) -> pandas.DataFrame:
    """Writes it, the same bytes for the same table, and reads it back as a later run would."""
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_csv(path, index=False, float_format=digits, compression={"method": "gzip", "mtime": 1})
    return pandas.read_csv(path)
