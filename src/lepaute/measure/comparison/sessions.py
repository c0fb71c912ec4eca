"""Sessions: the same campaign several times, apart in time, each into an archive of its own.

What is there says where a series stands: archives of sessions that have ended, the workspace of one that was
interrupted. A session begins `every_s` after the one before began, or at once where that has passed.
"""

import time
from collections.abc import Sequence
from functools import partial
from math import inf, isfinite
from pathlib import Path
from typing import Any

from lepaute.errors import InputError
from lepaute.kit.numbers import of_type, path_of, whole
from lepaute.kit.text import counted, duration
from lepaute.measure.archive import Archive, mpi_campaign
from lepaute.measure.comparison.campaign import check_same_request
from lepaute.measure.comparison.cases import ComparisonRequest
from lepaute.measure.comparison.libraries import named_libraries
from lepaute.measure.comparison.measuring import measure_libraries, request_of
from lepaute.measure.experiment.life import Announce, Progress, check_begun_with, silent
from lepaute.measure.experiment.workspace import folder_of

#: More would be years, and names that a folder cannot show.
MAX_SESSIONS = 1000
#: Between looks at the clock while a session is waited for, which may be set, or the machine suspended.
_LOOK_S = 1.0


def session_archives(out_archive: Path, sessions: int) -> list[Path]:
    """The archive itself of one session, else NAME-1.zip and so on, with digits for all."""
    sessions = whole(sessions, "--sessions", 1, MAX_SESSIONS + 1)
    digits = len(str(sessions))
    names = [f"{out_archive.stem}-{number:0{digits}}{out_archive.suffix}" for number in range(1, sessions + 1)]
    return [out_archive] if sessions == 1 else [out_archive.with_name(name) for name in names]


def measure_sessions(
    libraries: Sequence[str],
    out_archive: str | Path,
    *,
    sessions: int = 1,
    every_s: float = 7200.0,
    seed: int = 1,
    resume: bool = False,
    progress: Progress | None = None,
    announce: Announce | None = None,
    **measuring: Any,
) -> list[Path]:
    """Measures MPI libraries in this many sessions; returns the path of the archive of each (`session_archives`).

    every_s   : from the beginning of a session to that of the next one, at least the budget of one
    seed      : of the first session, and of the sizes of all; the others draw their orders from the seeds that follow
    resume    : sessions that have ended stay as they are, and one that was interrupted goes on
    measuring : arguments of `measure_libraries`
    Raises what `measure_libraries` raises, and InputError if an archive that is there is of another comparison.
    """
    paths, tell = session_archives(path_of(out_archive, "the archive"), sessions), progress or silent
    if sessions == 1:
        measuring |= {"progress": tell, "announce": announce}
        return [measure_libraries(libraries, paths[0], seed=seed, resume=resume, **measuring)]
    request = request_of(named_libraries(libraries), seed=seed, **measuring)
    of_type(every_s, "--every", (int, float), "seconds, such as 7200")
    if not (isfinite(every_s) and every_s >= request.budget_s):
        raise InputError(
            f"--every is {duration(every_s)}; give at least the budget of a session, {duration(request.budget_s)}"
        )
    begun_s = _begun_s(paths, request, seed) if resume else {}
    if resume and not begun_s and not folder_of(paths[0]).exists():
        raise InputError(f"{paths[0]}: no session is there; start without --resume")
    measuring["sizes"] = ",".join(map(str, request.sizes_bytes))
    for number, path in enumerate(paths):
        if number in begun_s:
            continue
        told, again = partial(_tell, tell, number, sessions), resume and folder_of(path).exists()
        if number > 0 and not again:
            try:
                while (left_s := begun_s[number - 1] + every_s - time.time()) > 0:
                    told(f"begins in {duration(left_s)}", 0.0)
                    time.sleep(min(left_s, _LOOK_S))
            except KeyboardInterrupt as stopped:
                stopped.add_note("the archives of the sessions before are whole; go on with --resume")
                raise
        announced = None if announce is None else partial(_announce, announce, sessions - number - 1, every_s)
        announce = None  # once is enough
        measuring |= {"progress": told, "announce": announced}
        measure_libraries(libraries, path, seed=seed + number, resume=again, **measuring)
        begun_s[number] = mpi_campaign.begun_s(Archive.open(path)) or time.time()
    return paths


def _begun_s(paths: Sequence[Path], request: ComparisonRequest, seed: int) -> dict[int, float]:
    """When each session that has ended began, by its number; the ones without a gap before them."""
    found: dict[int, float] = {}
    for number, path in enumerate(paths):
        if not path.exists():
            continue
        archive = Archive.open(path)
        mpi_campaign.facts(archive)
        check_same_request(archive.metadata[mpi_campaign.KIND], request)
        check_begun_with("comparison", {"seeds": archive.about.seed}, {"seeds": seed + number})
        found[number] = mpi_campaign.begun_s(archive) or 0.0
        if number and found[number] <= found.get(number - 1, inf):
            raise InputError(
                f"{path}: the session before it is not there, or began later; remove it, or use another -o"
            )
    return found


def _tell(tell: Progress, number: int, sessions: int, text: str, share: float) -> None:
    tell(f"session {number + 1} of {sessions}: {text}", (number + share) / sessions)


def _announce(announce: Announce, further: int, every_s: float, wall_s: float, what: str) -> None:
    announce(further * every_s + wall_s, f"{what}; {counted(further, 'more session')}, every {duration(every_s)}")
