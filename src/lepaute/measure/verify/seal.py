"""What a campaign keeps in its folder: the sealed predictions, and a journal with every real run."""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lepaute.errors import EnvironmentProblem, InputError, LepauteError
from lepaute.kit.files import hold_lock, remove_abandoned, write_atomic
from lepaute.kit.journal import Journal, entries
from lepaute.kit.json_values import from_json
from lepaute.measure.verify.campaign import Case, Plan, RecordedRun
from lepaute.measure.verify.real_run import Program
from lepaute.simulate.prediction.prediction import SimulationFigures
from lepaute.stats import disturbance

PREDICTIONS_FILE = "predictions.json"
SEAL_FILE = "predictions.sha256"
FORMAT = "lepaute-predictions/3"
REMEDY = "give the original options, or another --output"


@dataclass(frozen=True, slots=True)
class Seal:
    """Proof that the predictions were there before the first real run."""

    path: Path
    sha256: str
    created: str  # UTC, ISO 8601

    def check(self) -> None:
        """Raises InputError if the file is not the sealed one any more."""
        if not self.path.is_file() or hashlib.sha256(self.path.read_bytes()).hexdigest() != self.sha256:
            raise InputError(f"{self.path}: the sealed file was changed ( {self.sha256[:16]}); its runs are kept")


def seal_predictions(cases: Sequence[Case], plan: Plan, program: Program, folder: Path) -> Seal:
    """Write predictions.json (predictions, plan, disturbance rule, program) and its SHA-256, before any real run.

    `sha256sum -c predictions.sha256` in the folder checks it.
    """
    created = datetime.now(UTC).isoformat(timespec="milliseconds")
    data = (json.dumps({"created": created, **_content(cases, plan, program)}, indent=1) + "\n").encode()
    sha256 = hashlib.sha256(data).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    # The checksum first: predictions without one are then damaged, and not just interrupted.
    write_atomic(folder / SEAL_FILE, f"{sha256}  {PREDICTIONS_FILE}\n")
    write_atomic(folder / PREDICTIONS_FILE, data)
    return Seal(folder / PREDICTIONS_FILE, sha256, created)


def sealed_before(cases: Sequence[Case], plan: Plan, program: Program, folder: Path) -> tuple[list[Case], Seal] | None:
    """The cases with their sealed predictions, and the seal, of an interrupted campaign; None before it was sealed.

    Raises InputError if the sealed file was changed, or is of other predictions than `cases`, or another plan.
    """
    path = folder / PREDICTIONS_FILE
    if not path.exists():
        return None
    try:
        data = path.read_bytes()
        sha256 = (folder / SEAL_FILE).read_text().split()[0]
        Seal(path, sha256, "").check()
        sealed = json.loads(data)
        seal = Seal(path, sha256, sealed.pop("created"))
        figures = [SimulationFigures(**one["simulation"]) for one in sealed["predictions"]]
    except LepauteError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, OSError):
        raise InputError(f"{folder}: {PREDICTIONS_FILE} and {SEAL_FILE} are damaged; give another --output") from None
    if sealed.get("format") != FORMAT:
        raise InputError(f"{path}: was sealed by another version and cannot be resumed; give another --output")
    if len(figures) == len(cases):
        # What the simulation itself took is no part of the prediction, and differs each time.
        cases = [
            replace(case, prediction=replace(case.prediction, simulation=simulation))
            for case, simulation in zip(cases, figures, strict=True)
        ]
    difference = first_difference(sealed, json.loads(json.dumps(_content(cases, plan, program))))
    if difference:
        raise InputError(f"{folder} holds another campaign: {difference}; {REMEDY}")
    return list(cases), seal


def _content(cases: Sequence[Case], plan: Plan, program: Program) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "plan": asdict(plan),
        "disturbance_rule": disturbance_rule(),
        "program": program.sealed(),
        "predictions": [{**case.prediction.to_dict(), "sd_on_one_day": case.sd_on_one_day} for case in cases],
    }


def first_difference(before: Any, now: Any, name: str = "") -> str:
    """Where two JSON values differ first, in words; empty if they are equal."""
    if before == now:
        return ""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in {**before, **now}:
            if key not in before or key not in now or before[key] != now[key]:
                return first_difference(before.get(key), now.get(key), f"{name}.{key}".lstrip("."))
    if isinstance(before, list) and isinstance(now, list):
        if len(before) != len(now):
            return f"it has {len(before)} {name}, this one {len(now)}"
        for index, pair in enumerate(zip(before, now, strict=True)):
            if pair[0] != pair[1]:
                return first_difference(*pair, f"{name}[{index}]")
    return f"its {name} is {_brief(before)}, this one has {_brief(now)}"


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."


def sealed_lag_s(folder: Path) -> float | None:
    """The lag that the sealed predictions of a folder were made for; None if there is none, or it is damaged."""
    lag_s = _sealed(folder, "predictions", 0, "parameters", "lag_s")
    return float(lag_s) if isinstance(lag_s, int | float) else None


def sealed_coretype(folder: Path) -> str | None:
    """The OPENBLAS_CORETYPE of the real runs of a folder's campaign; None if it set none, or it is damaged."""
    coretype = _sealed(folder, "program", "coretype")
    return coretype if isinstance(coretype, str) else None


def _sealed(folder: Path, *keys: str | int) -> Any:
    """A value of the sealed predictions; None if it is not there. `sealed_before` says what is wrong with a file."""
    try:
        value = json.loads((folder / PREDICTIONS_FILE).read_bytes())
        for key in keys:
            value = value[key]
    except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError):
        return None
    return value


JOURNAL_FILE = "runs.jsonl"
#: Bytes of a line, and of what each rank adds to it: room is taken before a run, for no run may end without it.
LINE_BYTES, RANK_BYTES = 2048, 256


class RunJournal:
    """The runs of one campaign, one JSON line each, which names the predictions it belongs to."""

    def __init__(self, folder: Path, seal: Seal) -> None:
        """Raises InputError if the file holds runs of other predictions."""
        self.path = folder / JOURNAL_FILE
        self._seal = seal
        self.finished = [self._recorded(entry) for entry in entries(self.path)]
        self._journal = Journal(self.path)

    def reserve(self, ranks: int) -> None:
        """Takes room on the disk for the line of a run; raises EnvironmentProblem if there is none."""
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
        return from_json(RecordedRun, entry, str(self.path))


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keeps other campaigns out of the folder, which is made, and removed again where nothing came into it.

    Raises InputError if one is running there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / JOURNAL_FILE
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        if not hold_lock(descriptor, folder, "give another --output"):
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


def disturbance_rule() -> dict[str, float]:
    """The constants of the rule, to be recorded (and hashed) with the predictions."""
    return {
        "minimum_cpu_share": disturbance.MINIMUM_CPU_SHARE,
        "cpu_time_tolerance_s": disturbance.CPU_TIME_TOLERANCE_S,
        "most_others_share": disturbance.MAX_OTHERS_SHARE,
        "most_steal_share": disturbance.MAX_STEAL_SHARE,
        "granularity_s": disturbance.GRANULARITY_S,
        "most_sentinel_change": disturbance.MAX_SENTINEL_CHANGE,
        "fewest_sentinels": disturbance.SENTINELS_OF_A_LIMIT,
        "most_sd": disturbance.MAX_SD,
        "least_slower": disturbance.MIN_SLOWER,
    }
