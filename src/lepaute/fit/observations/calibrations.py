"""The archives that are fitted together: calibrations of the same nodes, all of one kind."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lepaute.errors import FitError
from lepaute.kit.numbers import of_type

if TYPE_CHECKING:
    import pandas

    from lepaute.archive import Archive

#: What all nodes of a platform have in common.
_ALIKE = ("cpu_model", "node_cores")


def calibrations(archives: "Archive | Iterable[Archive]") -> "list[Archive]":
    """The archives as a list. Raises FitError where one is no calibration or is given twice, or they or their
    nodes are not alike."""
    from lepaute.archive import Archive

    if isinstance(archives, str | Path):
        raise FitError(f"{archives}: is the name of an archive; give lepaute.Archive.open({str(archives)!r})")
    if not isinstance(archives, Archive):
        of_type(archives, "archives", Iterable, "archives that lepaute.Archive.open() opened")
    given = [archives] if isinstance(archives, Archive) else list(archives)
    for archive in given:
        of_type(archive, "an archive", Archive, "what lepaute.Archive.open() opened")
    if not given:
        raise FitError("no archive to fit; give at least one")
    seen: dict[str, Archive] = {}
    for archive in given:
        about, first = archive.about, given[0].about
        if about.kind != "calibration":
            raise FitError(
                f"{archive.path}: is not a calibration (kind: {about.kind}); give what `lepaute calibrate` wrote"
            )
        if archive.id in seen:  # its calls would count as twice as many
            raise FitError(f"{archive.path}: is the same calibration as {seen[archive.id].path}; give each once")
        seen[archive.id] = archive
        for key in ("host", "cpu_model"):
            if getattr(about, key) != getattr(first, key):
                raise FitError(
                    f"{archive.path}: {key} is {getattr(about, key)}, that of {given[0].path} is "
                    f"{getattr(first, key)}; fit machines one by one"
                )
        if hosts_of(archive) != hosts_of(given[0]):
            raise FitError(f"{archive.path}: measured other nodes than {given[0].path}; fit them one by one")
        if about.blas.core != first.blas.core:
            raise FitError(
                f"{archive.path}: BLAS kernels {about.blas.core}, those of {given[0].path} are "
                f"{first.blas.core}; calibrate again with one setting"
            )
        _check_alike(archive)
    return given


def hosts_of(archive: "Archive") -> tuple[str, ...]:
    """The nodes that were measured, in the order of the platform's; archives of older versions have one."""
    return tuple(archive.about.machines) or (archive.about.host,)


def seen_hosts(hosts: tuple[str, ...], frames: "Sequence[pandas.DataFrame]") -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of several nodes, those with kernel observations, and those without: a node may be lost before it has any.

    Raises FitError where no node has any.
    """
    if len(hosts) < 2:
        return hosts, ()
    seen = {str(host) for frame in frames if "host" in frame.columns for host in frame["host"].unique()}
    if not seen & set(hosts):
        raise FitError("the archives hold no kernel observations of their nodes; calibrate again")
    return tuple(host for host in hosts if host in seen), tuple(host for host in hosts if host not in seen)


def _check_alike(archive: "Archive") -> None:
    machines = archive.about.machines
    for key in (*_ALIKE, "blas"):
        values = {
            name: machine.blas.core if key == "blas" else getattr(machine, key) for name, machine in machines.items()
        }
        first = next(iter(values.items()), None)
        for name, value in values.items():
            if first is not None and value != first[1]:
                raise FitError(
                    f"{archive.path}: {key} of {name} is {value}, that of {first[0]} is {first[1]}; the nodes of a "
                    "platform are all alike: fit machines one by one"
                )
