"""`read_foreign`: factor values of files that Lepaute did not write, whatever their format."""

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from lepaute.errors import InputError
from lepaute.kit.later import pd
from lepaute.kit.text import tally
from lepaute.watch.foreign.hpl import is_hpl, read_hpl
from lepaute.watch.foreign.reframe import is_reframe, read_reframe
from lepaute.watch.foreign.rows import Source, read_source

if TYPE_CHECKING:
    from lepaute.watch.foreign.mapping import Mapping

CSV = "csv"
#: Format -> whether a file is one, and what reads it.
_READERS: dict[str, tuple[Callable[[Source], bool], Callable[[Source, str, str], "pd.DataFrame"]]] = {
    "reframe": (is_reframe, read_reframe),
    "hpl": (is_hpl, read_hpl),
}
FORMATS = (*_READERS, CSV)


def read_foreign(
    path: str | Path,
    format: str | None = None,  # noqa: A002  as the command line says it
    *,
    cluster: str = "",
    node: str = "",
    mapping: "str | Path | Mapping | None" = None,
    date_s: float | None = None,
    file_date: bool = False,
) -> "pd.DataFrame":
    """The table of factor values (columns of watch.values) that a file of another program holds; .gz is unpacked.

    format  : one of FORMATS; None: by the content, or csv where there is a mapping
    cluster : of the nodes; node: what it ran on, in place of what the file says of itself
    mapping : of CSV, the YAML file that says what its columns are
    date_s  : of the results of HPL that have no date, and of CSV whose mapping has none;  file_date: take the date of
              the file's last change for it
    What is in the file and has no row is in `attrs` of the table, as `omitted`; a mapping that was inferred from the
    heading of CSV, as `read_as`. Without file_date the same file gives the same rows, its jobs' ids included, wherever
    and whenever it is read. Dates that do not say their time zone are taken as UTC, unless the mapping says another.
    Raises InputError, one line with file and place, for what cannot be read.
    """
    if file_date and date_s is not None:
        raise InputError("--date and --file-date are both given; leave one out")
    source = read_source(path, by_lines=(format.lower() == CSV) if format else mapping is not None)
    recognised = (name for name, (fits, _) in _READERS.items() if fits(source))
    chosen = format.lower() if format else CSV if mapping is not None else next(recognised, CSV)
    if chosen not in FORMATS:
        raise InputError(f"the format is {chosen[:40]!r}; it must be one of {', '.join(FORMATS)}")
    if (date_s is not None or file_date) and chosen not in ("hpl", CSV):
        raise InputError(f"{path}: a date is given, and results of {chosen} have their own; leave it out")
    source = replace(source, date_s=source.path.stat().st_mtime if file_date else date_s)
    if chosen == CSV:
        from lepaute.watch.foreign.csv_table import inferred, mapping_text, read_csv_table
        from lepaute.watch.foreign.mapping import Mapping, read_mapping

        if mapping is None and (guessed := inferred(source, node)) is not None:
            values = _with_omitted(read_csv_table(source, guessed, cluster, node), source)
            values.attrs["read_as"] = mapping_text(guessed)
            return values
        if mapping is None:
            lines = list(islice((line for line in source.lines() if line.strip() and line[:1] != "#"), 2))
            if len(lines) == 1 and re.search("[,;\t]", lines[0]):
                raise InputError(f"{path}: has a heading and no rows")
            is_table = len(lines) == 2 and any(lines[0].count(mark) == lines[1].count(mark) > 0 for mark in ",;\t")
            if format is None and not is_table:
                raise _unknown(source)
            raise InputError(
                f"{path}: a CSV file needs a mapping, which says what its columns are (docs/howto/add_format.md): "
                "its heading names no node, or no column has a number in the first row"
            )
        columns = mapping if isinstance(mapping, Mapping) else read_mapping(mapping)
        return _with_omitted(read_csv_table(source, columns, cluster, node), source)
    if mapping is not None:
        raise InputError(f"{path}: a mapping is for CSV files, and the format is {chosen}; leave one out")
    return _with_omitted(_READERS[chosen][1](source, cluster, node), source)


def _with_omitted(values: "pd.DataFrame", source: Source) -> "pd.DataFrame":
    twice = values.attrs.pop("twice", 0)
    values.attrs["omitted"] = tally({**source.omitted, **({"value| that is there twice": twice} if twice else {})})
    return values


def _unknown(source: Source) -> InputError:
    if source.data[:4] == b"PK\x03\x04":
        return InputError(f"{source.name}: is a zip file; an archive of Lepaute is ingested as such, without a format")
    what = "is empty" if not source.data.strip() else "is of no format that is recognised"
    return InputError(
        f"{source.name}: {what}; give one of {', '.join(_READERS)}, or {CSV} with a mapping of its columns"
    )
