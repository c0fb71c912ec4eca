"""Made-up comparisons of two MPI libraries, whose truth is known: calls, or one value for each mpirun."""

import itertools
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.measure.archive.mpi_campaign import CALLS, CLOCKS, KIND, MPIRUNS


@dataclass(frozen=True)
class World:
    """Two libraries, measured in blocks: what mpiruns, blocks and calls add to the logarithm of a time.

    effect      : logarithm of the second library's time over the first's
    of_mpirun   : standard deviation of what an mpirun has in common; shared by all its rows
    of_block    : of what a block has in common: the machine's drift, a disturbance
    tails       : degrees of freedom of what is left of each row of an mpirun, below 3 for outliers
    """

    effect: float = 0.0
    of_mpirun: float = 0.02
    of_block: float = 0.03
    of_row: float = 0.01
    tails: float = 3.0
    drift: float = 0.0

    def summaries(
        self, rng: np.random.Generator, rows: int, blocks: int, mpiruns: int, libraries: tuple[str, ...] = ("a", "b")
    ) -> pandas.DataFrame:
        """One value for each mpirun and row; `mpiruns` of each library in a block, in random order."""
        labels, logs = [], []
        for _ in range(blocks):
            common = rng.normal(0, self.of_block)
            for library in rng.permutation(np.repeat(libraries, mpiruns)):
                labels.append(str(library))
                logs.append(
                    common
                    + self.drift * len(labels)
                    + rng.normal(0, self.of_mpirun)
                    + self.of_row * rng.standard_t(self.tails, rows)
                    + self.effect * (library == libraries[1])
                )
        number = np.arange(len(labels))
        return pandas.DataFrame(
            {
                "library": np.repeat(labels, rows),
                "block": np.repeat(number // (len(libraries) * mpiruns), rows),
                "mpirun": np.repeat(number + 1, rows),
                "operation": "Bcast",
                "form": "blocking",
                "size_bytes": np.tile(2 ** np.arange(rows), len(labels)),
                "median_s": (1e-6 * (1 + np.arange(rows)) * np.exp(logs)).ravel(),
            }
        )


def build_and_days(
    rng: np.random.Generator, world: World, days: int, slower: float = 1.0, rows: int = 3
) -> pandas.DataFrame:
    """Summaries of a library on so many days, each a block of the world, and of a build on one more day."""
    table = world.summaries(rng, rows, days + 1, 4, ("x", "x"))
    new = table["block"] == days
    table["library"] = np.where(new, "new", "baseline")
    table.loc[new, "median_s"] *= slower
    return table


BLOCKS, CALLS_EACH, START_NS = 8, 12, 1_700_000_000_000_000_000


_CLOCK = {"before_batch": 0, "x0_ns": START_NS, "y0_ns": START_NS} | dict.fromkeys(
    ("drift", "variance_ns2", "drift_variance", "covariance_ns", "bound_ns"), 0.0
)


def _calls(
    rng: np.random.Generator, of_batch: Mapping[str, Any], common: float, longer: list[float], count: int
) -> list[dict[str, Any]]:
    """Of one batch, a row a call and rank; longer: of each rank, a logarithm."""
    rows = []
    for call in range(count):
        begun = START_NS + 1_000_000 * (count * of_batch["batch"] + call)
        ns = 10_000 * np.exp(common + rng.normal(0, 0.02)) * (50 if call == 5 else 1)
        for rank, log in enumerate(longer):
            end = begun + int(ns * np.exp(log))
            rows.append(
                {**of_batch, "form": "blocking", "rank": rank, "synchronisation": "window", "call": call}
                | {"start_ns": begun, "returned_ns": end, "end_ns": end, "window_ns": 100_000, "marks": int(call == 7)}
            )
    return rows


def campaign(
    path: Path,
    libraries: tuple[str, ...] = ("openmpi", "mpich"),
    ranks: int = 2,
    *,
    disturbed: bool | Collection[int] = False,
    sizes: tuple[int, ...] = (8,),
    calls_each: int = CALLS_EACH,
    blocks: int = BLOCKS,
    about: Mapping[str, Any] | None = None,
    session: int = 0,
    longer: float = 0.3,
    fewer_ranks: tuple[int, ...] = (),
    slow_rank: int | None = None,
    failures: Mapping[int, str] | None = None,
    status: str = "complete",
    levels: tuple[str, ...] = (),
    late: tuple[str, str] | None = None,
) -> Archive:
    """Two libraries in turns: the second takes 30 % longer for Bcast, and as long for Allreduce, of each size.

    disturbed: all mpiruns, or those of these blocks, in which alone the second library takes longer
    about  : more facts of the campaign
    fewer_ranks: starts with so many in the same blocks, on which the first library is the one that takes longer
    failures: by which mpiruns of these numbers failed; slow_rank: that alone takes longer for Bcast; None: all do
    levels: of the cache, a factor; the second library takes longer at the last one alone
    late: library and operation of which each call starts late on some rank
    session: which has noise, a date and a seed of its own; longer: logarithm of that ratio for Bcast in it
    """
    rng = np.random.default_rng(3 + session)
    calls, clocks, mpiruns = [], [], []
    for block in range(blocks):
        slow_block = disturbed in (False, True) or block in disturbed
        cells = [cell[::-1] for cell in itertools.product(levels or ("",), (*fewer_ranks, ranks), libraries)]
        for place, (library, count, level) in enumerate(cells):
            mpirun, common = len(cells) * block + place, rng.normal(0, 0.01)
            mpiruns.append(
                {"mpirun": mpirun, "library": library, "block": block, "place": place, "trial": block == 0}
                | {"attempt": 0, "started_s": 3600.0 * session + mpirun}
                | {"outcome": "failed" if mpirun in (failures or {}) else "complete"}
                | ({"failure": failures.get(mpirun, "")} if failures else {})
                | ({"causes": "cpu: 2 s; sentinels: 90 %" * slow_block} if disturbed and disturbed is not True else {})
                | ({"levels": json.dumps({"cache": level}), "ranks": count} if levels else {})
                | {"disturbed": bool(disturbed) and slow_block, **({"ranks": count} if fewer_ranks else {})}
            )
            clocks += [{"mpirun": mpirun, "rank": rank, **_CLOCK} for rank in range(count)]
            cases = [(operation, size) for operation in ("none", "Bcast", "Allreduce") for size in sizes]
            for batch, (operation, size) in enumerate(cases):
                slow = libraries[1 if count == ranks else 0]
                slower = operation == "Bcast" and library == slow and slow_block and level in ("", *levels[-1:])
                each = [longer * slower * (slow_rank in (None, rank)) for rank in range(count)]
                of_batch = {"mpirun": mpirun, "batch": batch, "operation": operation, "size_bytes": size}
                rows = _calls(rng, of_batch, common, each, calls_each)
                calls += [row | {"marks": 1} for row in rows] if (library, operation) == late else rows
    asked = {
        "libraries": [[label, label] for label in libraries],
        "operations": [["Bcast", "blocking"]],
        "ranks": ranks,
    }
    told = {"ranks": ranks, "fewer_ranks": list(fewer_ranks), "libraries": [{"label": label} for label in libraries]}
    told |= {"capped": True, "varied": {"cache": list(levels)} if levels else {}, "precision": 0.02, "budget_s": 300.0}
    told |= {"asked": {**asked, "sizes_bytes": list(sizes)}, **(about or {})}
    about = {"kind": KIND, "created": "2026-01-01T00:00:00Z", "status": status, "seed": 1 + session, KIND: told}
    with ArchiveWriter(path, about) as writer:
        for name, rows in ((CALLS, calls), (CLOCKS, clocks), (MPIRUNS, mpiruns)):
            writer.add_table(name, pandas.DataFrame(rows))
    return Archive.open(path)
