"""The journal of a campaign's real runs: each is on its way to the disk before the next one starts."""

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lepaute.errors import EnvironmentProblem, InputError, LepauteError
from lepaute.kit.files import hold_lock, remove_abandoned
from lepaute.kit.journal import Journal, entries
from lepaute.measure.machine_load import Load
from lepaute.verify.campaign import RecordedRun
from lepaute.verify.disturbance import NodeLoad, RankLoad
from lepaute.verify.real_run import RealRun
from lepaute.verify.seal import Seal

JOURNAL_FILE = "runs.jsonl"
#: Of a line, and of what each rank adds to it: room is taken before a run, for no run may end without it.
LINE_BYTES, RANK_BYTES = 2048, 256


class RunJournal:
    """The runs of one campaign, one JSON line each, which names the predictions it belongs to."""

    def __init__(self, folder: Path, seal: Seal) -> None:
        """Raises InputError where the file holds runs of other predictions."""
        self.path = folder / JOURNAL_FILE
        self._seal = seal
        self.finished = [self._recorded(entry) for entry in entries(self.path)]
        self._journal = Journal(self.path)

    def reserve(self, ranks: int) -> None:
        """Takes room on the disk for the line of a run; raises EnvironmentProblem where there is none."""
        try:
            self._journal.reserve(LINE_BYTES + RANK_BYTES * ranks)
        except OSError as problem:
            raise EnvironmentProblem(f"{self.path}: no room for another run ({problem.strerror})") from None

    def add(self, recorded: RecordedRun) -> None:
        """Appends a run; raises EnvironmentProblem, which tells its duration, where it cannot be written."""
        try:
            self._journal.add({"predictions_sha256": self._seal.sha256, **asdict(recorded)})
        except OSError as problem:
            raise EnvironmentProblem(
                f"{self.path}: a run of case {recorded.case} that took {recorded.run.time_s} s could not be written "
                f"({problem.strerror})"
            ) from None

    def close(self) -> None:
        self._journal.close()

    def _recorded(self, entry: dict[str, Any]) -> RecordedRun:
        if entry.get("predictions_sha256") != self._seal.sha256:
            raise InputError(f"{self.path}: holds runs of other predictions; use another folder")
        try:
            run = entry["run"]
            ranks = tuple(RankLoad(**rank) for rank in run["ranks"])
            nodes = tuple(NodeLoad(node["name"], Load(**node["load"])) for node in run["nodes"])
            real = RealRun(float(run["time_s"]), ranks, Load(**run["machine"]), nodes)
            return RecordedRun(
                order=int(entry["order"]),
                case=int(entry["case"]),
                repeat=int(entry["repeat"]),
                attempt=int(entry["attempt"]),
                started=str(entry["started"]),
                run=real,
                causes=tuple(map(str, entry["causes"])),
                sentinel_before_s=_seconds(entry.get("sentinel_before_s")),
                sentinel_after_s=_seconds(entry.get("sentinel_after_s")),
            )
        except LepauteError:
            raise
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{self.path}: invalid line ({str(entry)[:80]}); remove it") from None


def _seconds(value: object) -> float | None:
    return None if value is None else float(str(value))


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keeps other campaigns out of the folder, which is made, and removed again where nothing came into it.

    Raises InputError where one is running there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / JOURNAL_FILE
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        if not hold_lock(descriptor, folder, "give another --output-dir"):
            raise InputError(f"{folder}: another verification is running in this folder; wait for it to finish")
        remove_abandoned(folder, young_s=0.0)
        try:
            yield
        finally:
            if not os.fstat(descriptor).st_size:
                path.unlink(missing_ok=True)
                with contextlib.suppress(OSError):
                    folder.rmdir()
    finally:
        os.close(descriptor)
