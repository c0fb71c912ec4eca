"""The tests that were submitted, a small file each beside the archive: what became of them is never forgotten."""

import dataclasses
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, get_args

from lepaute.errors import InputError, LepauteError
from lepaute.kit.documents import read_json, read_text
from lepaute.kit.files import write_whole
from lepaute.kit.node_sets import check_node_name

#: done: its archive is complete and in the store; not stored: it is not in the store yet; failed: it ended without a
#: complete one; cancelled: by us, since the node was wanted, or on request; not started: the node was taken before.
Outcome = Literal["submitted", "done", "not stored", "failed", "cancelled", "not started"]
SUFFIX = ".test.json"
_MOST_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class SubmittedTest:
    """job: id of the batch system; submitted_s, ended_s: since the epoch, ended_s when we saw that it had ended."""

    node: str
    job: str
    scheduler: str
    submitted_s: float
    folder: Path
    name: str
    outcome: Outcome = "submitted"
    reason: str = ""
    ended_s: float | None = None

    @property
    def archive(self) -> Path:
        return self.folder / f"{self.name}.zip"

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    def ended(self, outcome: Outcome, reason: str, now_s: float) -> Self:
        return dataclasses.replace(self, outcome=outcome, reason=reason, ended_s=now_s)

    def save(self) -> None:
        plain = dataclasses.asdict(self)
        del plain["folder"], plain["name"]
        write_whole(self.folder / f"{self.name}{SUFFIX}", json.dumps(plain, indent=2) + "\n")


def name_of_test(node: str, now_s: float) -> str:
    """Such as n3-20261124-070000."""
    return f"{node}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now_s))}"


def submitted_tests(folder: Path) -> list[SubmittedTest]:
    """All records of a folder, the earliest first; raises InputError for a file that is none."""
    records = [_record(path) for path in sorted(folder.glob(f"*{SUFFIX}"))]
    return sorted(records, key=lambda record: record.submitted_s)


def _record(path: Path) -> SubmittedTest:
    plain: Mapping[str, Any] = read_json(read_text(path, "a record of a node test", _MOST_BYTES), str(path))
    try:
        if plain["outcome"] not in get_args(Outcome):
            raise ValueError
        return SubmittedTest(
            check_node_name(plain["node"]),
            str(plain["job"]),
            str(plain["scheduler"]),
            float(plain["submitted_s"]),
            path.parent,
            path.name.removesuffix(SUFFIX),
            plain["outcome"],
            str(plain["reason"]),
            None if plain["ended_s"] is None else float(plain["ended_s"]),
        )
    except LepauteError:
        raise
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{path}: is not a record of a node test; move it elsewhere") from None
