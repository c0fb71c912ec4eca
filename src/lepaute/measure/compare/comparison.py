"""The comparison of two MPI libraries from archives: from raw calls to verdicts."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

import pandas

from lepaute.errors import InputError
from lepaute.kit.frames import frame_of
from lepaute.kit.json_values import finite_json
from lepaute.kit.notebook import Public, table_html
from lepaute.kit.text import counted, duration, exact_size
from lepaute.measure.archive import Archive, mpi_campaign
from lepaute.measure.archive.mpi_campaign import CampaignFacts, LibraryFacts, settings_text
from lepaute.measure.compare import sessions
from lepaute.measure.compare import summaries as medians
from lepaute.measure.compare.derived import derived_lines, no_rank_times, times_of_ranks
from lepaute.measure.compare.factor_effects import FactorEffect, factor_effects
from lepaute.measure.compare.failures import Failure, different_networks, failures_of, failures_text, late_alone
from lepaute.measure.compare.guidelines import Violation, check_guidelines
from lepaute.measure.compare.report import write_report
from lepaute.measure.compare.resampling import SampleMeans, normality_sentence, sample_means
from lepaute.measure.compare.setting import Source, algorithms, different_settings, setting_lines, source
from lepaute.measure.compare.single_calls import Flags, SingleCalls, flagged, flags, no_calls, of_rows
from lepaute.measure.compare.verdicts import MARGIN, RATE, Correction, Verdict, verdicts_by_part
from lepaute.measure.compare.wording import amount, answer, operation_name, sentence
from lepaute.stats.decision import Decision, Weakness
from lepaute.stats.disturbance import disturbers

#: Both run-times of section 3.2 of the paper: the slowest rank's own, or from the first start to the last end.
RunTime = Literal["local", "global"]
_NOT_IN_TURNS = "the libraries were not measured in turns: what changed between the campaigns counts as a difference"


@dataclass(frozen=True)
class Comparison(Public):
    """Two libraries side by side.

    verdicts    : one for each operation, form and size that both were measured with
    summaries   : one value for each mpirun and row, with and without Tukey's filter (`mpirun_summaries`)
    sample_means: of each library and row, whether means of its calls are normal
    left_out    : calls that do not count, by reason;  warnings : what weakens the comparison as a whole, sentences
    ranks       : 0 if the measurements do not say
    nodes       : the node of each rank; empty on one machine
    effects     : of the factors that were varied beside the libraries, on this number of ranks
    all_ranks   : the numbers of ranks of the campaign, whose rows are corrected together; empty if there is one
    run_time    : of a call, a RunTime, or other words where another benchmark took it
    value       : column of the summaries that stands for an mpirun
    correction, primary: of the p-values of all rows, see `verdicts`
    rank_times  : of both libraries (`mpi_campaign.rank_times`); empty if single calls are not known
    scope       : what the verdicts speak of, words: this session only, or an average over sessions such as those made
    failures    : what a library got wrong; networks: what joins the ranks of either, where that differs, words
    rule        : how the ratio is estimated, where not as usual
    cannot_fail : why a limit on the ratio fails no build, or empty
    disturbed   : how many mpiruns were disturbed, and what saw it, words; these decide nothing
    calls       : those that count, in order of time, with the columns of `single_calls.of_rows`; empty if not known
    """

    left: str
    right: str
    libraries: tuple["LibraryFacts", ...]
    ranks: int
    run_time: str
    margin: float
    verdicts: tuple[Verdict, ...]
    summaries: "pandas.DataFrame"
    warnings: tuple[str, ...]
    archives: tuple[Source, ...]
    guidelines: tuple[Violation, ...] = ()
    flags: tuple[Flags, ...] = ()
    sample_means: tuple[SampleMeans, ...] = ()
    left_out: dict[str, int] = field(default_factory=dict)
    value: str = "median_s"
    correction: Correction = "fdr"
    primary: tuple[tuple[str, str, int], ...] = ()
    rank_times: pandas.DataFrame = field(default_factory=no_rank_times)
    scope: str = "valid for these runs only"
    calls: pandas.DataFrame = field(default_factory=no_calls)
    nodes: tuple[str, ...] = ()
    all_ranks: tuple[int, ...] = ()
    effects: tuple[FactorEffect, ...] = ()
    disturbed: str = ""
    failures: tuple[Failure, ...] = ()
    networks: str = ""
    rule: str = ""
    cannot_fail: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As JSON takes it: infinite and missing values are null."""
        names = "answer left right libraries ranks nodes run_time margin correction primary archives".split()
        further = "estimand disturbed failures cannot_fail networks".split()
        return {
            **finite_json({name: getattr(self, name) for name in names} | {"ranks": self.ranks or None}),
            **self.decision.to_dict(),
            **finite_json({name: getattr(self, name) for name in further}),
            "sessions": len(self.archives) if self.is_over_sessions else 1,
            "warnings": list(self.warnings),
            "setting": setting_lines(self),
            "derived": derived_lines(self),
            "calls_left_out": self.left_out,
            "rows": self._rows(),
            "effects": [{**finite_json(row), "outcome": row.outcome, "stars": row.stars} for row in self.effects],
            "guidelines": [{**finite_json(rule), "violated": rule.is_violated} for rule in self.guidelines],
            "flags": finite_json(self.flags),
            "normality_of_means": normality_sentence(self.sample_means),
            "mpiruns": finite_json(self.summaries.to_dict("records")),
            "rank_times": finite_json(self.rank_times.to_dict("records")),
            "single_calls": [finite_json(one.to_dict()) for row in self.single_calls for one in row],
        }

    def to_frame(self) -> pandas.DataFrame:
        """The verdicts: a row an operation, form and size; fields of `Verdict`, outcome, stars and sentence.

        forecast_mpiruns: of each library that would decide the row, NaN if it is decided or nothing can be said
        """
        likely = [verdict.forecast.likely if verdict.forecast else float("nan") for verdict in self.verdicts]
        rows = [row | {"forecast_mpiruns": each} for row, each in zip(self._rows(), likely, strict=True)]
        kinds = {name: kind for name, kind in get_type_hints(Verdict).items() if name != "forecast"}
        kinds |= dict.fromkeys(("session_ratios", "weaknesses", "spread"), "object")
        kinds |= {"outcome": str, "stars": str, "slow_calls": str | None, "sentence": str, "algorithms": "object"}
        return frame_of(rows, kinds | dict.fromkeys(("left_Bps", "right_Bps", "forecast_mpiruns"), float))

    def write_report(self, path: str | Path) -> None:
        """Writes what the end of the name says: a page (.html), all data (.json), rows (.csv, .tex), a figure (.png).

        Raises InputError for another suffix or a folder that is not there.
        """
        write_report(self, path)

    def __repr__(self) -> str:
        return f"<Comparison: {self.answer}>"

    def _repr_html_(self) -> str:
        rows = [
            (
                *(operation_name(row), exact_size(row.size_bytes), amount(row, row.left_s), amount(row, row.right_s)),
                *(self.sentence(row), row.stars),
            )
            for row in self.verdicts
        ]
        return table_html(self.answer, ["operation", "size", self.left, self.right, "verdict", ""], rows, self.warnings)

    def sentence(self, verdict: Verdict) -> str:
        """Such as "mpich took 1.135 times as long (1.098 to 1.171): openmpi is faster"."""
        return sentence(verdict, self.left, self.right)

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                **finite_json(row),
                "outcome": row.outcome,
                "stars": row.stars,
                "slow_calls": row.slow_calls,
                "sentence": self.sentence(row),
                "algorithms": algorithms(self, row),
                **{
                    f"{side}_Bps": row.size_bytes / time_s if row.form == RATE and time_s > 0 else None
                    for side, time_s in (("left", row.left_s), ("right", row.right_s))
                },
            }
            for row in self.verdicts
        ]

    @property
    def answer(self) -> str:
        """Failures, networks that differ, and how many rows each library wins, in one sentence."""
        on = f"on {self.ranks} ranks, " if self.all_ranks else ""
        rows = on + answer(self.verdicts, self.left, self.right, self.scope, self.disturbed)
        return "; ".join([*filter(None, (failures_text(self.failures), self.networks)), rows])

    @property
    def decision(self) -> Decision:
        """Whether most rows are decided, either way; unknown if none could be tested, or one failed."""
        decided = [row.decision.is_decided for row in self.verdicts]
        several = Decision.of_several((row.decision for row in self.verdicts), "unknown")
        failed = [Weakness("failed", failure.text) for failure in self.failures]
        weaknesses = (*failed, *(() if any(decided) else several.weaknesses))
        return Decision.of(2 * sum(decided) > len(decided), False, weaknesses)

    @cached_property
    def single_calls(self) -> tuple[tuple[SingleCalls, ...], ...]:
        """Calls of both libraries in each row; worked out when it is first asked for."""
        return tuple(of_rows(self.calls, self.left, self.right))

    @property
    def is_over_sessions(self) -> bool:
        """Whether each archive is a session of its own, and the verdicts are over these."""
        return "session" in self.summaries

    @property
    def is_of_single_runs(self) -> bool:
        """Whether there is one run of each library in every row, so that nothing is taken over runs."""
        return all(max(row.left_mpiruns, row.right_mpiruns) <= 1 for row in self.verdicts)

    @property
    def estimand(self) -> str:
        counts = (
            "an mpirun counts by the median of its calls" if self.value == "median_s" else "a run by what it prints"
        )
        over = "geometric mean over mpiruns, then over sessions"
        how = self.rule or over if self.rule or self.is_over_sessions else "by Hodges and Lehmann's shift over mpiruns"
        return f"the ratio of the libraries' times ({counts}){'' if self.is_of_single_runs else f', {how}'}"


def archives(
    *campaigns: Archive | str | Path,
    left: str | None = None,
    right: str | None = None,
    run_time: RunTime = "global",
    margin: float = MARGIN,
    correction: Correction = "fdr",
    primary: Collection[tuple[str, str, int]] | None = None,
    ranks: int | None = None,
) -> Comparison:
    """Compares two libraries of a campaign, or of several sessions, or the library of one campaign with another.

    Parameters
    ----------
    campaigns : archives, or their files; several that have both libraries each are sessions, and verdicts are over
        these (at least three); two of one library each are compared with each other
    left, right : labels of the libraries; without them the two that there are
    run_time : of a call: "global", from the first start to the last end by one clock; "local", the slowest rank's
    margin : a difference that is certainly below this share counts as none
    correction, primary : as of `verdicts`; primary rows are those that the campaign was planned with, unless given
    ranks : of the starts that are compared, where a campaign has several; p-values are corrected for the rows of all

    Raises
    ------
    ArchiveError : archives of another kind
    InputError : libraries that are not two, campaigns with different numbers of ranks, a value out of range

    Examples
    --------
    >>> import lepaute as lp
    >>> found = lp.compare.archives("comparison.zip")  # doctest: +SKIP
    >>> found.answer, found.to_frame()  # doctest: +SKIP
    """
    if run_time not in get_args(RunTime):
        raise InputError(f"run_time is {run_time!r}; it must be one of {', '.join(get_args(RunTime))}")
    if not campaigns:
        raise InputError("0 archives cannot be compared; give at least one")
    opened = [Archive.open(campaign) for campaign in campaigns]
    facts = [mpi_campaign.facts(one) for one in opened]
    for number, one in enumerate(opened):
        if (same := next((other for other in opened[:number] if other.id == one.id), None)) is not None:
            raise InputError(f"{same.path.name} and {one.path.name} are the same archive; give it once")
    ranks = medians.choose_ranks(facts, ranks)
    shared = medians.shared_labels(facts)
    over_sessions = len(opened) > 1 and len(shared) > 1 and {left, right} - {None} <= set(shared)
    if len(opened) > 2 and not over_sessions:
        raise InputError(
            "more than two archives are sessions of one comparison, and each must have both libraries; all have "
            f"{', '.join(shared) or 'none'}"
        )
    labels, calls, libraries, names = medians.join_campaigns(opened, facts, shared if over_sessions else ())
    chosen = medians.choose_two(labels, left, right)
    calls = calls[calls["library"].isin(chosen) & (calls["operation"] != medians.NO_SUBJECT)]
    duration = f"{run_time}_s"
    subject, left_out = medians.select_calls(calls)
    in_turns = over_sessions or len(opened) == 1
    if not in_turns:  # all mpiruns are one block
        subject = subject.assign(block=0)
    every = medians.summarise(subject, duration)
    if over_sessions:
        of_block = subject.drop_duplicates("block").set_index("block")["campaign"]
        every = every.assign(session=every["block"].map(of_block))
    of_mpirun = subject.drop_duplicates("mpirun").set_index("mpirun")
    every = every.assign(ranks=every["mpirun"].map(of_mpirun["ranks"]))
    disturbed = _disturbance_summary(of_mpirun[of_mpirun["ranks"] == ranks])
    numbers = facts[0].all_ranks
    varied = {name: levels for name, levels in facts[0].varied.items() if len(levels) > 1}
    effects: tuple[FactorEffect, ...] = ()
    if varied:
        levels = calls.drop_duplicates("mpirun").set_index("mpirun")["levels"].map(mpi_campaign.levels_of)
        every = every.assign(levels=every["mpirun"].map(levels))
        effects = factor_effects(every, varied, margin=margin, correction=correction)
        levels_of = levels.map(settings_text)  # verdicts of each
        every, subject, calls = (
            table.assign(operation=table["operation"].astype(str) + ", " + table["mpirun"].map(levels_of))
            for table in (every, subject, calls)
        )
    parts = [every[every["ranks"] == each].drop(columns=["ranks", "levels"], errors="ignore") for each in numbers]
    summaries, subject = parts[numbers.index(ranks)], subject[subject["ranks"] == ranks]
    found = flags(medians.without_levels(summaries) if over_sessions else summaries)
    rows_first = list(dict.fromkeys(row for about in facts for row in about.primary)) if primary is None else primary
    weakening = [*_warnings(facts, in_turns), *(_of_sessions(opened, facts, shared) if over_sessions else ())]
    if varied:
        texts = dict.fromkeys(levels_of)
        rows_first = [(f"{name}, {text}", form, size) for name, form, size in rows_first for text in texts]
    of_each = verdicts_by_part(parts, *chosen, margin=margin, correction=correction, primary=rows_first)
    if disturbed and not all(row.is_disturbed for row in of_each[numbers.index(ranks)]):
        weakening.append(f"{disturbed} and decide nothing")
    return Comparison(
        left=chosen[0],
        right=chosen[1],
        libraries=tuple(libraries[label] for label in chosen),
        ranks=ranks,
        all_ranks=numbers if len(numbers) > 1 else (),
        effects=tuple(effect for effect in effects if effect.ranks == ranks),
        nodes=tuple(facts[0].node_of(rank) for rank in range(ranks)) if facts[0].nodes else (),
        run_time=run_time,
        margin=margin,
        verdicts=of_each[numbers.index(ranks)],
        correction=correction,
        primary=tuple(rows_first),
        guidelines=_guidelines(summaries[~summaries["disturbed"]], chosen, ranks),
        summaries=summaries,
        flags=found,
        sample_means=sample_means(subject, duration),
        left_out=left_out,
        disturbed=disturbed,
        cannot_fail="" if in_turns else "the libraries were not measured in turns",
        failures=failures_of(opened, names, chosen, calls),
        networks=different_networks(facts, names, chosen),
        warnings=(*weakening, *late_alone(calls, subject), *flagged(found)),
        archives=tuple(source(one, about) for one, about in zip(opened, facts, strict=True)),
        rank_times=times_of_ranks(chosen, libraries, list(zip(opened, facts, strict=True)), over_sessions, ranks),
        scope=_scope(opened, over_sessions),
        calls=subject[["library", "mpirun", *medians.ROW, duration]].rename(columns={duration: "run_s"}),
    )


def by_ranks(*campaigns: Archive | str | Path, **options: Any) -> tuple[Comparison, ...]:
    """`archives` of each number of ranks of the campaigns, increasing; options: its own.

    P-values are corrected for the rows of all numbers of ranks together.
    """
    opened = [Archive.open(campaign) for campaign in campaigns]
    numbers = mpi_campaign.facts(opened[0]).all_ranks if opened else ()
    if len(numbers) < 2:
        return (archives(*opened, **options),)
    return tuple(archives(*opened, ranks=ranks, **options) for ranks in numbers)


def _guidelines(summaries: pandas.DataFrame, libraries: Sequence[str], ranks: int) -> tuple[Violation, ...]:
    """Guidelines violated by libraries with blocking operations there, at each combination of levels."""
    if summaries.empty:
        return ()
    names = summaries["operation"].astype(str).str.partition(", ")
    result = []
    for levels, table in summaries.assign(operation=names[0]).groupby(names[2], sort=False):
        with_levels = f", with {levels}" if levels else ""
        for label in libraries:
            if ((table["library"] == label) & (table["form"] == "blocking")).any():
                checked = check_guidelines(table, label, ranks)
                result += [replace(one, guideline=f"{one.guideline}{with_levels}") for one in checked]
    return tuple(result)


def _disturbance_summary(mpiruns: pandas.DataFrame) -> str:
    """How many of the mpiruns that count were disturbed, and what saw it; empty if none was."""
    causes = mpiruns.loc[mpiruns["disturbed"].astype(bool), "causes"].astype(str)
    return (
        f"{len(causes)} of {counted(len(mpiruns), 'mpirun')} were disturbed {disturbers(causes)}" if len(causes) else ""
    )


def _warnings(facts: Sequence["CampaignFacts"], in_turns: bool) -> list[str]:
    lines = different_settings(facts)
    if any(about.oversubscribed for about in facts):
        lines.append("there were more ranks than cores, which waited for each other's time slices")
    if any(about.capped for about in facts):
        lines.append("the budget ended before the wanted precision was reached")
    return lines if in_turns else [*lines, _NOT_IN_TURNS]


def _of_sessions(campaigns: Sequence[Archive], facts: Sequence["CampaignFacts"], shared: Sequence[str]) -> list[str]:
    """Weaknesses of a comparison over sessions."""
    about = [campaign.about for campaign in campaigns]
    lines = sessions.doubts(len(about), [one.seed for one in about], [one.host for one in about])
    for label in shared:
        same = [next(library for library in about.libraries if library.label == label) for about in facts]
        lines += [
            f"{label} is not the same in every session: {' and '.join(dict.fromkeys(texts))}"
            for texts in (
                [f"{one.family} {one.version}" for one in same],
                [settings_text(one.settings) or "no variables" for one in same],
            )
            if len(set(texts)) > 1
        ]
    return lines


def _scope(campaigns: Sequence[Archive], over_sessions: bool) -> str:
    if not over_sessions:
        return "valid for this session only" if len(campaigns) == 1 else "valid for these two sessions only"
    begins_s = [begin_s for one in campaigns if (begin_s := mpi_campaign.begun_s(one)) is not None]
    span = f", begun within {duration(max(begins_s) - min(begins_s))}" if len(begins_s) > 1 else ""
    return f"valid for the average over sessions such as these {len(campaigns)}{span}"
