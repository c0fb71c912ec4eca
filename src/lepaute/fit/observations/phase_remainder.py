"""Time of a phase of HPL that none of its kernels covers: loops, bookkeeping, calls that are not timed."""

from typing import TYPE_CHECKING

import numpy as np

from lepaute.fit.numeric.arrays import Booleans, Floats, Integers
from lepaute.fit.observations.calls import MODELLED, PHASES, Calls

if TYPE_CHECKING:
    import pandas

#: Only here: with more ranks in a grid the phases also hold messages.
PROBE = "hpl_steps_1x1"


def glue_calls(table: "pandas.DataFrame", probes: tuple[str, ...]) -> dict[str, Calls]:
    """One "call" of `pdfact_glue` or `pdupdate_glue` for every such phase that one process alone went through.

    table  : observations as `pooled_observations` makes them
    probes : names of the probes under their loads, in the order of their codes
    The duration of the glue is that of the phase, less its modelled kernels, less the cost of timing: each timed call
    adds one reading of the clock inside its stamps and one outside. It may come out below zero, by noise; it is kept,
    since cutting it at zero would bias the mean.
    """
    mine = [code for code, name in enumerate(probes) if name.split(" ")[0] == PROBE]
    alone = table[np.isin(table["probe"].cat.codes.to_numpy(), mine)]
    if len(alone) == 0:
        return {}
    names = alone["kernel"].astype(str).to_numpy()
    phase = np.isin(names, list(PHASES))
    if not phase.any():
        return {}
    group = _group_numbers(alone)
    start = alone["start_s"].to_numpy(dtype=np.float64)
    duration = alone["duration_s"].to_numpy(dtype=np.float64)
    clock = alone["clock_cost_s"].to_numpy(dtype=np.float64)
    owner = _owners(group, start, duration, phase)
    inner = (~phase) & (owner >= 0)
    spent = np.where(np.isin(names, list(MODELLED)), duration + clock, 2 * clock)
    covered = np.bincount(owner[inner], weights=spent[inner], minlength=int(phase.sum()))
    rows = np.flatnonzero(phase)
    rest = duration[rows] - clock[rows] - covered
    result: dict[str, Calls] = {}
    for name, glue in PHASES.items():
        of_phase = names[rows] == name
        if of_phase.any():
            result[glue] = _calls(alone.iloc[rows[of_phase]], glue, rest[of_phase], probes)
    return result


def _calls(frame: "pandas.DataFrame", glue: str, rest: Floats, probes: tuple[str, ...]) -> Calls:
    m, n, k = (frame[letter].to_numpy(dtype=np.float64) for letter in ("m", "n", "k"))
    count = len(frame)
    return Calls(
        glue,
        m,
        n,
        k,
        rest,
        frame["cpu"].to_numpy(dtype=np.int64),
        frame["block"].to_numpy(dtype=np.int64),
        frame["probe"].cat.codes.to_numpy(dtype=np.int64).astype(np.int64),
        np.ones(count, dtype=bool),
        frame["position"].to_numpy() == 0,
        probes,
        launch=frame["launch"].to_numpy(dtype=np.int64),
        share=frame["share"].to_numpy(dtype=np.float64),
        socket=frame["socket"].to_numpy(dtype=np.int64),
    )


def _group_numbers(frame: "pandas.DataFrame") -> Integers:
    """A number for each (launch, rank, design row)."""
    keys = [frame[column].to_numpy(dtype=np.int64) for column in ("launch", "rank", "design_row")]
    number = np.zeros(len(frame), dtype=np.int64)
    for key in keys:
        _, code = np.unique(key, return_inverse=True)
        number = number * (int(code.max()) + 1) + code
    return number


def _owners(group: Integers, start: Floats, duration: Floats, phase: Booleans) -> Integers:
    """Index (among the phases, in row order) of the phase that contains each row in time; -1 for none."""
    order = np.lexsort((~phase, start, group))  # a phase before the kernel that starts with it
    is_phase = phase[order]
    number_of_phase = np.cumsum(phase) - 1
    latest = np.maximum.accumulate(np.where(is_phase, np.arange(len(order)), -1))
    owner = np.full(len(order), -1, dtype=np.int64)
    candidate = order[np.maximum(latest, 0)]
    end = start + duration
    tolerance = 2e-9  # stamps are written with nanoseconds
    held = (latest >= 0) & (group[candidate] == group[order]) & (end[order] <= end[candidate] + tolerance)
    owner[order[held]] = number_of_phase[candidate[held]]
    return owner
