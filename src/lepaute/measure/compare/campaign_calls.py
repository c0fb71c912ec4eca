"""The calls of campaigns that a comparison is of: of which libraries and ranks, and which of them count."""

from collections.abc import Sequence

import pandas

from lepaute.errors import InputError
from lepaute.measure.archive import Archive, mpi_campaign
from lepaute.measure.archive.mpi_campaign import CampaignFacts, LibraryFacts
from lepaute.measure.compare.summaries import mpirun_summaries

#: Operations that are no subject of a comparison.
NO_SUBJECT = "none"


def choose_ranks(facts: Sequence[CampaignFacts], ranks: int | None) -> int:
    """The number of ranks that is meant; raises InputError where it is not one that every campaign has."""
    if len(numbers := {about.all_ranks for about in facts}) > 1:
        words = " and ".join(", ".join(map(str, counts)) for counts in sorted(numbers))
        raise InputError(f"the campaigns have {words} ranks; only campaigns of equally many ranks can be compared")
    (known,) = numbers
    counts = ", ".join(map(str, known))
    if ranks is None and len(known) > 1:
        raise InputError(f"the campaign has {counts} ranks; choose one of these, or compare.by_ranks()")
    if ranks is not None and ranks not in known:
        raise InputError(f"ranks is {ranks!r}; the campaign has {counts}")
    return known[-1] if ranks is None else ranks


def shared_labels(facts: Sequence[CampaignFacts]) -> tuple[str, ...]:
    """The libraries that every campaign has, in the order of the first one."""
    return tuple(label for label in facts[0].labels if all(label in about.labels for about in facts))


def join_campaigns(
    campaigns: Sequence[Archive], facts: Sequence[CampaignFacts], same: Sequence[str]
) -> tuple[list[str], pandas.DataFrame, dict[str, LibraryFacts], list[dict[str, str]]]:
    """Labels, calls and facts of all libraries, and of each campaign their names by label; labels that two campaigns
    share get the name of their archive.

    same: labels that are the same library in every campaign, a session each, and all that counts there
    """
    shared = set() if same or len(campaigns) == 1 else set(shared_labels(facts))
    sides = [one.path.stem for one in campaigns]
    if shared and sides[0] == sides[1]:
        sides = ["left", "right"]
    every, tables, names_of_each, mpiruns, blocks = [], [], [], 0, 0
    libraries: dict[str, LibraryFacts] = {}
    for number, (campaign, about, side) in enumerate(zip(campaigns, facts, sides, strict=True)):
        names = {label: f"{label} ({side})" if label in shared else label for label in about.labels}
        table = _calls(campaign)
        table = table.assign(
            library=table["library"].map(names).fillna(table["library"]),
            mpirun=table["mpirun"] + mpiruns,
            block=table["block"] + blocks,
            campaign=number,
        )
        if len(table):
            mpiruns, blocks = int(table["mpirun"].max()) + 1, int(table["block"].max()) + 1
        every += list(names.values())
        names_of_each.append(names)
        tables.append(table)
        libraries = {names[library.label]: library for library in about.libraries} | libraries
    return list(same or every), pandas.concat(tables, ignore_index=True), libraries, names_of_each


def _calls(campaign: Archive) -> pandas.DataFrame:
    """With what disturbed the mpirun of each."""
    table, causes = mpi_campaign.calls(campaign), mpi_campaign.mpiruns(campaign).set_index("mpirun")["causes"]
    return table.assign(causes=table["mpirun"].map(causes))


def choose_two(labels: Sequence[str], left: str | None, right: str | None) -> tuple[str, str]:
    for label in (left, right):
        if label is not None and label not in labels:
            raise InputError(f"there is no library {label}; choose among {', '.join(labels)}")
    others = [label for label in labels if label not in (left, right)]
    unnamed = (left, right).count(None)
    if unnamed == 2 and len(labels) != 2:
        raise InputError(f"there are {len(labels)} libraries ({', '.join(labels)}); name the two to compare")
    if unnamed and len(others) != unnamed:
        raise InputError(f"name two of the libraries {', '.join(labels)}")
    return left or others.pop(0), right or others.pop(0)


def campaign_summaries(campaign: Archive) -> pandas.DataFrame:
    """`mpirun_summaries` of every library of a campaign, from the calls that count, by global run-times."""
    calls = mpi_campaign.calls(campaign).assign(campaign=0)
    subject, _ = select_calls(calls[calls["operation"] != NO_SUBJECT])
    return summarise(subject, "global_s")


def summarise(calls: pandas.DataFrame, duration: str) -> pandas.DataFrame:
    """`mpirun_summaries`, and whether each mpirun was disturbed."""
    table = mpirun_summaries(calls, duration)
    disturbed = calls.drop_duplicates("mpirun").set_index("mpirun")["disturbed"]
    return table.assign(disturbed=table["mpirun"].map(disturbed).astype(bool))


def select_calls(calls: pandas.DataFrame) -> tuple[pandas.DataFrame, dict[str, int]]:
    """The calls that are looked at, and how many are not, by reason.

    Of the attempts at one place of a block the undisturbed ones; where there is none, the last one, which decides
    nothing.
    """
    left_out: dict[str, int] = {}

    def without(calls: pandas.DataFrame, out: "pandas.Series[bool]", words: str) -> pandas.DataFrame:
        if out.any():
            left_out[words] = int(out.sum())
        return calls[~out]

    calls = without(calls, calls["trial"].astype(bool), "of trials")
    calls = without(calls, calls["failed"].astype(bool), "of mpiruns that failed")
    calls = without(calls, calls["started_late"].astype(bool), "started late on some rank")
    places = [calls[name] for name in ("campaign", "block", "place")]
    disturbed = calls["disturbed"].astype(bool)
    always = disturbed.groupby(places).transform("all")
    earlier = calls["attempt"] < calls["attempt"].groupby(places).transform("max")
    return without(calls, disturbed & (~always | earlier), "of mpiruns that were disturbed"), left_out
