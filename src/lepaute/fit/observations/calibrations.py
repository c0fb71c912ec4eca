"""The archives that are fitted together: calibrations of the same nodes, all of one kind."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lepaute.errors import FitError

if TYPE_CHECKING:
    import pandas

    from lepaute.archive import Archive

#: What all nodes of a platform have in common.
_ALIKE = ("cpu_model", "node_cores")


def calibrations(archives: "Archive | Iterable[Archive]") -> "list[Archive]":
    """The archives as a list. Raises FitError where one is no calibration or is given twice, or they or their
    nodes are not alike."""
    from lepaute.archive import Archive

    given = [archives] if isinstance(archives, Archive) else list(archives)
    if not given:
        raise FitError("there is no archive to fit; name at least one")
    seen: dict[str, Archive] = {}
    for archive in given:
        if archive.metadata.get("kind") != "calibration":
            raise FitError(
                f"{archive.path}: is not a calibration (kind: {archive.metadata.get('kind')}); "
                "give what `lepaute calibrate` wrote"
            )
        if archive.id in seen:  # its calls would count as twice as many
            raise FitError(f"{archive.path}: is the same calibration as {seen[archive.id].path}; give each once")
        seen[archive.id] = archive
        for key in ("host", "cpu_model"):
            if archive.metadata.get(key) != given[0].metadata.get(key):
                raise FitError(
                    f"{archive.path}: {key} is {archive.metadata.get(key)}, that of {given[0].path} is "
                    f"{given[0].metadata.get(key)}; fit machines one by one"
                )
        if hosts_of(archive) != hosts_of(given[0]):
            raise FitError(f"{archive.path}: measured other nodes than {given[0].path}; fit them one by one")
        if blas_core(archive.metadata) != blas_core(given[0].metadata):
            raise FitError(
                f"{archive.path}: BLAS kernels {blas_core(archive.metadata)}, those of {given[0].path} are "
                f"{blas_core(given[0].metadata)}; calibrate again with one setting"
            )
        _check_alike(archive)
    return given


def hosts_of(archive: "Archive") -> tuple[str, ...]:
    """The nodes that were measured, in the order of the platform's; archives of older versions have one."""
    machines = archive.metadata.get("machines")
    return tuple(machines) if machines else (str(archive.metadata.get("host")),)


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


def blas_core(about: Mapping[str, Any]) -> Any:
    """The name of the BLAS kernels in an archive's metadata, or in what these say of a node."""
    return (about.get("blas") or {}).get("core")


def _check_alike(archive: "Archive") -> None:
    machines: Mapping[str, Mapping[str, Any]] = archive.metadata.get("machines") or {}
    for key in (*_ALIKE, "blas"):
        told = {name: blas_core(about) if key == "blas" else about.get(key) for name, about in machines.items()}
        first = next(iter(told.items()), None)
        for name, value in told.items():
            if first is not None and value != first[1]:
                raise FitError(
                    f"{archive.path}: {key} of {name} is {value}, that of {first[0]} is {first[1]}; the nodes of a "
                    "platform are all alike: fit machines one by one"
                )
