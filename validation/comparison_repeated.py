"""The same comparison of Open MPI and MPICH made twice, and a longer one as its reference.

Fixed before anything was looked at; other programs use the machine meanwhile, at any load:

* Bcast, Allreduce and Alltoall of 8 bytes, 1, 16 and 128 KiB (12 rows), 2 ranks, 40 calls; 30 blocks, the reference of
  100, and the first once more with another seed; all by `lepaute compare`;
* goals: verdicts identical in 95 % of the rows; of rows whose reference differs by more than 2 %, 80 % decided; 90 % of
  the intervals hold the ratio of the reference; forecasts of mpiruns of undecided rows right within a factor of two in
  half of the cases. "Right": the least number of first blocks of the reference that decide the row, from 5 on; where
  100 do not, a forecast above 100 is right, one of at most 50 wrong. That was no good definition, since the reference
  is looked at again and again: each campaign is also continued with its blocks (added when the figures were known);
* the first measurement missed three goals: presumably the machine changed its state. So a second was added, fixed
  before it was made: of 160 blocks, of successive 16 numbers 0, 5, 10 are the first campaign, 2, 7, 12 the second,
  others the reference;
* beside it the usual way: the mean of all calls of the first mpirun of each library says which is faster.
"""

from collections.abc import Sequence

import numpy as np
import pandas
from support.mpi_campaigns import judged, measured, numbers
from support.report import Goal, at_least, close, goals_table, options_of, run_main, stored_parts

from lepaute.kit.text import exact_size
from lepaute.measure.compare.verdicts import Verdict

STUDY = "comparison_repeated"
CALLS = {"ops": "bcast,allreduce,alltoall", "sizes": "8,1K,16K,128K", "calls": 40}
BLOCKS, REFERENCE = 30, 100
CAMPAIGNS = (("first", BLOCKS, 1), ("reference", REFERENCE, 2), ("second", BLOCKS, 3))
LEFT, RIGHT = "openmpi", "mpich"
LEAST = 5
#: Campaigns that go on with the blocks of the reference, looked at after so many of all.
CONTINUED = ("first", "second")
STEPS = sorted({round((BLOCKS + 1) * 1.1**step) for step in range(15)} | {BLOCKS + REFERENCE})
#: Of so many successive blocks, those of the first and the second campaign; the others are the reference's.
DEAL, DEALT = 16, {"first": (0, 5, 10), "second": (2, 7, 12)}
TITLE = """## The same comparison twice

`validation/comparison_repeated.py`: Debian's Open MPI and MPICH on this machine, which other programs used at the same
time; 30 mpiruns of each library, twice, and 100 for the reference."""


def main() -> int:
    own = {"--part": {"choices": PARTS, "help": "measure this part alone; keep the table of the other"}}
    options = options_of(__doc__, own=own, has_quick=False)
    tables = stored_parts(options, STUDY, "part", PARTS, options.own.part)
    lines, every = [TITLE], []
    for part, table in zip(PARTS, tables, strict=True):
        found = {name: by_row(judged(one, LEFT, RIGHT)) for name, one in table.groupby("campaign")}
        needed = deciding(table[table["campaign"] == "reference"], range(LEAST, REFERENCE + 1))
        forecasts = with_forecasts(found, dict.fromkeys(CONTINUED, needed))
        continued = continued_rows(found, table)
        goals = goals_of(found, forecasts, continued)
        lines.append(section(WORDS[part], found, continued, table, goals))
        every += goals
    return close(options, STUDY, every, "\n\n".join(lines))


def successive() -> pandas.DataFrame:
    """Three campaigns, one after the other; `campaign` says which."""
    tables = [
        measured([LEFT, RIGHT], **CALLS, mpiruns=blocks, seed=seed).assign(campaign=name)
        for name, blocks, seed in CAMPAIGNS
    ]
    return pandas.concat(tables, ignore_index=True)


def interleaved() -> pandas.DataFrame:
    """One campaign whose mpiruns are dealt to three; they keep their blocks."""
    table = measured([LEFT, RIGHT], **CALLS, mpiruns=2 * BLOCKS + REFERENCE, seed=4)
    table["campaign"] = [
        next((name for name, mine in DEALT.items() if number % DEAL in mine), "reference") for number in numbers(table)
    ]
    return table


PARTS = {"successive": successive, "interleaved": interleaved}
WORDS = {
    "successive": "One after the other:",
    "interleaved": "In turns, so that all three campaigns saw the same states of the machine:",
}


Rows = dict[tuple[str, int], Verdict]
#: Campaign, row, mpiruns by the forecast, and by the reference.
Forecast = tuple[str, tuple[str, int], float, float]


def by_row(verdicts: tuple[Verdict, ...]) -> Rows:
    return {(row.operation, row.size_bytes): row for row in verdicts}


def continued_rows(found: dict[str, Rows], table: pandas.DataFrame) -> list[Forecast]:
    """Forecasts, with the mpiruns that decide where the campaign goes on with the blocks of the reference."""
    later = table[table["campaign"] == "reference"]
    needed = {}
    for name in CONTINUED:
        mine = table[table["campaign"] == name]
        after = later.assign(
            block=later["block"] + 1 + mine["block"].max(), mpirun=later["mpirun"] + 1 + mine["mpirun"].max()
        )
        whole = pandas.concat([mine, after], ignore_index=True)
        needed[name] = (
            deciding(whole, STEPS) if any(not one.decision.is_decided for one in found[name].values()) else {}
        )
    return with_forecasts(found, needed)


def deciding(table: pandas.DataFrame, counts: Sequence[int]) -> dict[tuple[str, int], float]:
    """Of each row the least of these numbers of first mpiruns that decides it; rows that none does are left out."""
    decided: dict[tuple[str, int], float] = {}
    number = numbers(table)
    for count in counts:
        for key, one in by_row(judged(table[number < count], LEFT, RIGHT)).items():
            if one.decision.is_decided:
                decided.setdefault(key, count)
    return decided


def with_forecasts(found: dict[str, Rows], needed: dict[str, dict[tuple[str, int], float]]) -> list[Forecast]:
    """Of each undecided row of both campaigns; mpiruns are infinite where none of those at hand decides."""
    return [
        (name, key, one.forecast.likely, needed[name].get(key, np.inf))
        for name in CONTINUED
        for key, one in found[name].items()
        if not one.decision.is_decided and one.forecast is not None
    ]


def is_right(forecast: float, needed: float) -> bool | None:
    """Whether a forecast is right within a factor of two; None: not judged."""
    if np.isfinite(needed):
        return bool(needed / 2 <= forecast <= 2 * needed)
    return True if forecast > REFERENCE else False if 2 * forecast <= REFERENCE else None


def goals_of(found: dict[str, Rows], forecasts: list[Forecast], continued: list[Forecast]) -> list[Goal]:
    first, second, reference = found["first"], found["second"], found["reference"]
    same = [first[key].outcome == second[key].outcome for key in reference]
    different = [key for key, one in reference.items() if abs(np.log(one.ratio)) > np.log(1.02)]
    decided = [campaign[key].decision.is_decided for campaign in (first, second) for key in different]
    held = [c[key].low <= one.ratio <= c[key].high for c in (first, second) for key, one in reference.items()]
    by_reference, by_continuing = (
        [value for _, _, forecast, needed in rows if (value := is_right(forecast, needed)) is not None]
        for rows in (forecasts, continued)
    )
    return [
        goal("rows with identical verdicts", 95, same),
        goal("rows that differ by more than 2 % in the reference: decided", 80, decided),
        goal("intervals that hold the ratio of the reference", 90, held),
        goal("forecasts right within a factor of two, undecided rows: by the reference", 50, by_reference),
        goal("the same: by continuing", 50, by_continuing),
    ]


def goal(what: str, least: float, seen: list[bool]) -> Goal:
    if not seen:
        return Goal(what, f"at least {least:g} %", "no such row", None)
    share = 100 * float(np.mean(seen))
    return at_least(what, least, share, f"{share:.0f} % of {len(seen)}")


def usual_ratios(table: pandas.DataFrame) -> dict[str, dict[tuple[str, int], float]]:
    """By campaign and row, MPICH's time over Open MPI's from the mean of all calls of the first mpirun of either."""
    first = (
        table[numbers(table, "campaign") == 0]
        .set_index(["campaign", "library", "operation", "size_bytes"])["mean_all_s"]
        .sort_index()
    )
    return {name: (first[name, RIGHT] / first[name, LEFT]).to_dict() for name in ("first", "second")}


def section(
    words: str, found: dict[str, Rows], forecasts: list[Forecast], table: pandas.DataFrame, goals: list[Goal]
) -> str:
    usual = usual_ratios(table)
    reference = found["reference"]
    agree = np.mean([(usual["first"][key] > 1) == (usual["second"][key] > 1) for key in reference])
    truth = np.mean([(usual[name][key] > 1) == (one.ratio > 1) for name in usual for key, one in reference.items()])
    wins = ({key: found[name][key].outcome for key in reference} for name in CONTINUED)
    opposite = sum(
        {one, other} == {"left faster", "right faster"} for one, other in zip(*(w.values() for w in wins), strict=True)
    )
    held = ", ".join(
        f"{key[0]} of {exact_size(key[1])} {forecast:.0f} ({'more than 130' if needed == np.inf else f'{needed:.0f}'})"
        for _, key, forecast, needed in forecasts
    )
    return f"""{words}

{goals_table(goals)}

{{cases}}

The usual way names the same library twice in {100 * agree:.0f} % of the rows, and the faster one of the \
reference in {100 * truth:.0f} %; it knows no undecided row.
Forecasts of undecided rows (and mpiruns that decided when the campaign went on): {held or "none"}.
Verdicts that name opposite libraries: {opposite} of {len(reference)}."""


if __name__ == "__main__":
    run_main(main)
