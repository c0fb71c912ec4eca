"""`--collectives FILE.zip:LIBRARY` of `predict trace`, and `--against collectives=FILE.zip`: archives of `compare`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError
from lepaute.simulate.apps.replay.collectives import AUTO, MeasuredCalls, MeasuredFile, collectives_of, library_of

if TYPE_CHECKING:
    from lepaute.simulate import Application

FIELD = "collectives"


def read_measured(values: dict[str, Any]) -> dict[str, Any]:
    """Values of options, the calls of an archive in the place of its name. Raises InputError, ArchiveError."""
    file = values.get(FIELD)
    if not isinstance(file, MeasuredFile):
        return values
    from lepaute.measure.compare.library_calls import measured_calls

    return values | {FIELD: measured_calls(file.path, file.library or None)}


def both_measured(applications: "list[Application]", against: Sequence[str]) -> "tuple[list[Application], list[str]]":
    """A replay, and the texts of --against, where one names an archive: both are of measured calls then, that of the
    recording's library, as far as the archive has it, and that of the other one."""
    texts = list(against)
    for at, text in enumerate(texts):
        name, _, value = text.partition("=")
        known = name.strip() == FIELD and len(applications) == 1 and hasattr(applications[0], FIELD)
        file = collectives_of(value) if known and ".zip" in value else None
        if not isinstance(file, MeasuredFile):
            continue
        from lepaute.measure.archive import Archive
        from lepaute.measure.archive.mpi_campaign import facts

        replayed: Any = applications[0]
        libraries = facts(Archive.open(file.path)).libraries
        recorded = library_of(replayed.recorded_with)
        same = [each.label for each in libraries if library_of(each.family) == recorded]
        first, *others = sorted((each.label for each in libraries), key=lambda label: label not in same)
        if file.library and file.library == first:
            first, others = others[0] if others else first, [first]
        if not file.library and len(others) != 1:
            raise InputError(f"--against {text[:80]}: name one of {', '.join(others)}: {file.path}:LIBRARY")
        texts[at] = f"{FIELD}={file.path}:{file.library or others[0]}"
        if replayed.collectives == AUTO:
            calls = read_measured({FIELD: MeasuredFile(file.path, first)})
            applications = [replace(replayed, **calls)]
    return applications, texts


def operation_by_operation(reference: "Application", other: "Application") -> list[dict[str, Any]]:
    """Of two replays that take the measured calls of two libraries, fields of an `Alternative` for each operation of
    several, which it takes from the other one."""
    before, after = getattr(reference, FIELD, None), getattr(other, FIELD, None)
    if not (isinstance(before, MeasuredCalls) and isinstance(after, MeasuredCalls)):
        return []
    replayed: Any = reference
    measured = {one.code for one in before.calls} & {one.code for one in after.calls}
    codes = [code for code in replayed.operations if code in measured]
    if len(codes) < 2:
        return []
    changed = [replace(replayed, collectives=before.except_for(code, after)) for code in codes]
    return [{"application": each, "value": str(each.collectives)} for each in changed]
