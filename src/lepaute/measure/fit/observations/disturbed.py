"""Which observations the fits take, where other load disturbed some runs of the probes."""

from collections.abc import Sequence

import pandas

from lepaute.errors import FitError
from lepaute.measure.observation_columns import ABSENT

#: What tells apart the runs of one probe on a core in a block, in archives that have several.
_OF_A_LOAD = ("active_cores", "threads")
#: Blocks with an undisturbed run of a probe that are enough to do without its disturbed ones.
ENOUGH_BLOCKS = 3


def enough_blocks(blocks: int) -> int:
    """How many of `blocks` blocks must have an undisturbed run of a probe: 3, or half of them where there are fewer."""
    return ENOUGH_BLOCKS if blocks >= ENOUGH_BLOCKS else (blocks + 1) // 2


def without_disturbed(
    frames: Sequence["pandas.DataFrame"], by: tuple[str, ...]
) -> tuple[list["pandas.DataFrame"], tuple[str, ...]]:
    """The observations less the rows of disturbed runs, wherever a probe can do without them.

    frames : tables of one kind (kernels or p2p) of several archives, with the columns `block` and `by`; a table without
             the column `disturbed`, from an older version, counts as undisturbed throughout
    by     : columns that distinguish the probes: ("probe", "cpu") for kernels; none where all rows are of one probe

    A probe can do without its disturbed runs when it has an undisturbed one in at least `enough_blocks` of its blocks,
    the blocks of all archives together. Returns new tables in the order of `frames`, and in alphabetical order the
    names of the probes that could not, such as "dgemm 0" ("p2p" where `by` is empty): of these all rows are kept. The
    durations do not matter: to leave out what is slow would bias the models. A probe under several loads counts as
    several, named with its cores and threads.
    Raises FitError when there are disturbed rows and a column is missing.
    """
    if not any(_is_disturbed(frame).any() for frame in frames):
        return list(frames), ()
    if "probe" in by and all(set(_OF_A_LOAD) <= set(frame.columns) for frame in frames):
        by = (*by, *_OF_A_LOAD)  # a probe is made under several loads in a block
    columns = [*by, "block"]
    parts = []
    for number, frame in enumerate(frames):
        missing = [column for column in columns if column not in frame.columns]
        if missing:
            raise FitError(f"the observations lack the column {missing[0]}; the archive is not a calibration")
        parts.append(frame.loc[:, columns].assign(archive=number, disturbed=_is_disturbed(frame)).drop_duplicates())
    # (name of the probe) -> (blocks it ran in, those with an undisturbed run)
    seen: dict[str, tuple[set[tuple[int, int]], set[tuple[int, int]]]] = {}
    for row in pandas.concat(parts, ignore_index=True).to_dict("records"):
        every, quiet = seen.setdefault(" ".join(str(row[column]) for column in by) or "p2p", (set(), set()))
        place = (int(row["archive"]), int(row["block"]))
        every.add(place)
        if not row["disturbed"]:
            quiet.add(place)
    short = {name for name, (every, quiet) in seen.items() if len(quiet) < enough_blocks(len(every))}
    return [_kept(frame, by, short) for frame in frames], tuple(sorted(short))


def _is_disturbed(frame: "pandas.DataFrame") -> "pandas.Series[bool]":
    if "disturbed" in frame.columns:
        return frame["disturbed"].astype(bool)
    return pandas.Series(ABSENT["disturbed"], index=frame.index, dtype=bool)


def _kept(frame: "pandas.DataFrame", by: tuple[str, ...], short: set[str]) -> "pandas.DataFrame":
    quiet = ~_is_disturbed(frame)
    if not by:
        return frame if short else frame.loc[quiet]
    names = frame[by[0]].astype(str)
    for column in by[1:]:
        names = names + " " + frame[column].astype(str)
    return frame.loc[quiet | names.isin(short)]
