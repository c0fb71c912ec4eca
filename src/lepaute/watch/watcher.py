"""A watch: a store with the tests of what is in it. Tests are recorded once and stay as they were given."""

import zipfile
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pandas

from lepaute.errors import InputError
from lepaute.kit.later import later
from lepaute.kit.notebook import facts_html
from lepaute.kit.text import counted
from lepaute.measure.archive import Archive, Archives, listed
from lepaute.watch.changelog import ALL, Changelog
from lepaute.watch.changelog_edits import add_changelog, logged_changelog
from lepaute.watch.foreign import read_foreign
from lepaute.watch.judging.judge import AND, CONFIDENCE, WINDOWS, check_windows, joined, vectors_asked, with_log10
from lepaute.watch.notices.absences import absences
from lepaute.watch.open_regressions import open_regressions
from lepaute.watch.report.factor_history import factor_rows
from lepaute.watch.store import Ingested, Store, open_store
from lepaute.watch.store.rows import run_dates
from lepaute.watch.store.tables import VERDICTS
from lepaute.watch.values import KEY, WHOLE_NODE, refuse_future

if TYPE_CHECKING:
    from lepaute.watch import watched_factor
    from lepaute.watch.judging import recorded_tests as recorded
else:
    pandas, watched_factor = later("pandas"), later("lepaute.watch.watched_factor")
    recorded = later("lepaute.watch.judging.recorded_tests")


def open_watch(place: str | Path, *, create: bool = True) -> "Watch":
    """The watch of a store, made where there is none.

    Parameters
    ----------
    place : a folder, or a database: postgresql://user@host/database
    create : unless it is true, nothing is made, and a store that is not there raises InputError

    Raises
    ------
    InputError : where the folder holds something else
    EnvironmentProblem : where the server cannot be reached

    Examples
    --------
    >>> import lepaute as lp
    >>> with lp.watch.open("observations") as watch:
    ...     len(watch.nodes())
    0
    """
    return Watch(open_store(place, create=create))


class Watch:
    """Ingests archives and data from elsewhere, keeps the changelog, and tests; made by `lepaute.watch.open`."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def __repr__(self) -> str:
        return f"<Watch of {self.store!r}>"

    def _repr_html_(self) -> str:
        log = self.changelog()
        facts = [
            ("archives", len(self.store.archives())),
            ("nodes", len(self.nodes())),
            ("factors", ", ".join(sorted(map(str, self.store.factors()["factor"].unique())))),
            ("events", len(log.events)),
            ("outliers", len(log.outliers)),
        ]
        return facts_html(f"Watch of {self.store!r}", facts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        self.store.close()

    def ingest(
        self,
        paths: Archives,
        *,
        cluster: str = "",
        format: str | None = None,  # noqa: A002 -- the word for it
        node: str = "",
        mapping: str | Path | None = None,
        date_s: float | None = None,
        file_date: bool = False,
    ) -> Ingested:
        """Adds archives with their factor values, and the values of files of other programs, all of it in one change.

        cluster : with whose name the nodes are told apart
        format  : of the files, if they are none of Lepaute's archives; recognised by default (`foreign.read_foreign`)
        node, mapping, date_s, file_date : as in `foreign.read_foreign`
        What is there already changes nothing. Raises ArchiveError or InputError if a file cannot be read, a job
        starts more than a day after now, or files have different values of one job.
        """
        archives: list[Path] = []
        others: list[Path] = []
        for given in listed(paths):
            path = given.path if isinstance(given, Archive) else Path(given)
            # a damaged archive, too, so that it is refused as such
            is_archive = format is None and (path.suffix == ".zip" or (path.is_file() and zipfile.is_zipfile(path)))
            (archives if is_archive else others).append(path)
        of_others = {"--node": node, "--mapping": mapping and not others, "--date": date_s, "--file-date": file_date}
        if archives and (unused := [name for name, value in of_others.items() if value]):
            raise InputError(f"{archives[0]}: {unused[0]} is for files of other programs; leave it out")
        options = {"cluster": cluster, "node": node, "mapping": mapping, "date_s": date_s, "file_date": file_date}
        foreign = _foreign_values(others, format, options) if others else None
        done = self.store.ingest(
            archives, cluster=cluster, values_of=lambda archive: _factors_of(archive, cluster), values=foreign
        )
        if foreign is None:
            return done
        known = len(foreign) - done.values
        omitted = [*foreign.attrs["omitted"], *([f"{counted(known, 'value')} known before"] if known else [])]
        return replace(done, omitted=tuple(omitted), read_as=foreign.attrs["read_as"])

    def changelog(self) -> Changelog:
        """The events and outliers in force."""
        return logged_changelog(self.store)

    def add_changelog(self, changelog: Changelog) -> None:
        """Records the events and outliers that are not in force."""
        add_changelog(self.store, changelog)

    def test(
        self,
        *,
        nodes: Collection[str] | None = None,
        factors: Sequence[str | Sequence[str]] | None = None,
        windows: Sequence[int] = WINDOWS,
        confidence: float = CONFIDENCE,
        pooled: bool = False,
        since_s: float | None = None,
        until_s: float | None = None,
        record: bool = True,
    ) -> "pandas.DataFrame":
        """The verdicts of the jobs that started in [since_s, until_s), on these nodes; new ones are recorded.

        factors, windows, confidence, pooled: as in `judge`; every factor by itself by default
        A verdict that is recorded stays as it is. Its `basis` tells the settings, the observations it was compared with
        and the events and outliers that made it so; where any of these are others now, there is a further verdict,
        and this method returns the one of today's basis.
        A pooled verdict rests on all jobs of its day: give the day whole, as what comes in later makes another verdict.
        record : unless it is true, nothing is written
        Columns: those of VERDICTS, and log10_p as in `judge`.
        Raises InputError as `judge` does.
        """
        asked = None if factors is None else vectors_asked(factors)
        check_windows(windows)
        recorded.factors_to_test(self.store, asked)  # raises, before the days are judged
        selection = recorded.Selection(
            nodes, windows, confidence, pooled, since_s, until_s, record, open_regressions(self.store).rows
        )
        found = joined(list(self.tests(asked, selection)))
        texts = [name for name, kind in VERDICTS.columns.items() if kind == "text"]
        return with_log10(found.astype(dict.fromkeys(texts, "str")))

    def tests(
        self,
        factors: Sequence[tuple[str, ...]] | None,
        selection: "recorded.Selection",
        progress: Callable[[float], None] | None = None,
    ) -> "Iterator[pandas.DataFrame]":
        """The verdicts as `test` gives them, without log10_p, a table for each cluster and vector of factors in turn.

        factors : the vectors; every factor by itself by default; progress : gets the share of the work that is behind
        Raises InputError as `test` does.
        """
        check_windows(selection.windows)
        cases = recorded.factors_to_test(self.store, factors)
        for number, part in enumerate(recorded.vector_tests(self.store, self.changelog(), cases, selection), 1):
            if part is not None:
                yield part
            if progress is not None:
                progress(number / len(cases))

    def factor(self, name: str | Sequence[str], *, cluster: str = "") -> "watched_factor.WatchedFactor":
        """A factor of a cluster over its days: its rows, its spread and its pictures; nothing is recorded.

        Parameters
        ----------
        name : a factor, or several that are tested as one vector
        cluster : whose nodes; "" for those of none

        Raises
        ------
        InputError : where the cluster does not have one of them

        Examples
        --------
        >>> axes = watch.factor("dgemm_rate_flops", cluster="demo").overview("means")  # doctest: +SKIP
        """
        from lepaute.watch.report.models import moved_in

        (names,) = vectors_asked([name])
        there = self.store.factors()
        known = set(there.loc[there["cluster"] == cluster, "factor"])
        if unknown := [each for each in names if each not in known]:
            has = ", ".join(sorted(known)) or "none"
            raise InputError(f"the cluster {cluster[:80]!r} has no factor {unknown[0][:80]!r}; it has {has}")
        found = open_regressions(self.store)
        rows = factor_rows(self.store, found, cluster, AND.join(names))
        events = [event for event in found.changelog.events if event.nodes.cluster in (ALL, cluster)]
        return watched_factor.WatchedFactor(rows, events, moved_in(rows, found))

    def nodes(self) -> frozenset[tuple[str, str]]:
        """The (cluster, node) of which the store has factor values or archives."""
        clusters = self.store.archives().set_index("id")["cluster"]
        of_archives = self.store.archive_nodes()
        nodes = set(zip(clusters.reindex(of_archives["archive"]), of_archives["node"], strict=True))
        for cluster in self.store.factors()["cluster"].unique():
            nodes |= {(str(cluster), node) for node in self.store.nodes(str(cluster))}
        return frozenset(nodes)

    def absences(self, *, cluster: str | None = None) -> "pandas.DataFrame":
        """Nodes by how long they have been away and how often their jobs fail; see `absences.absences`."""
        return absences(self.store.job_states(cluster))


def _factors_of(archive: Any, cluster: str) -> "pandas.DataFrame":
    from lepaute.watch.factors import factors_of

    values = factors_of(archive, cluster)
    latest_s = max([run_dates(archive.about)[0] or 0.0, *values["started_s"]])
    refuse_future(latest_s, archive.id, str(archive.path), "measure again with the right date")
    return values


def _foreign_values(paths: Sequence[Path], kind: str | None, options: dict[str, Any]) -> "pandas.DataFrame":
    parts, omitted, mapped = [], [], list[str]()
    for path in paths:
        part = read_foreign(path, kind, **options)
        if text := part.attrs.pop("read_as", ""):
            mapped.append(f"{path}: {text}")
        omitted += [f"{path}: {text}" for text in part.attrs.pop("omitted")]
        latest = part.iloc[int(part["started_s"].to_numpy().argmax())]
        refuse_future(float(latest["started_s"]), str(latest["job"]), str(path), "correct the date")
        parts.append(part)
    values = pandas.concat(parts, keys=map(str, paths), names=["file"]).drop_duplicates()  # of a file and its copy
    twice = values[values.duplicated(KEY, keep=False)]
    if len(twice):
        first = twice.iloc[0]
        one, other = twice[(twice[KEY] == first[KEY]).all(axis=1)].index.get_level_values("file")[:2]
        cpu = "" if first["cpu"] == WHOLE_NODE else f", cpu {first['cpu']}"
        raise InputError(
            f"{one} and {other}: {first['factor'][:80]} of node {first['node'][:40]!r}{cpu}, job {first['job'][:40]} "
            "is in both, and not the same; leave one of the files out, or tell the jobs apart"
        )
    values = values.reset_index(drop=True)
    values.attrs |= {"omitted": omitted, "read_as": tuple(mapped)}
    return values
