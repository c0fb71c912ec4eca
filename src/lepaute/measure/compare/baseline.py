"""A build against a baseline: archives of one binary, measured on other days, from which it is learnt what days change.

A day counts by the mean over its undisturbed mpiruns of the logarithm of their medians; a build that changed nothing is
one day more: with n days of mean m and standard deviation s, (new - m) / (s sqrt(1 + 1 / n)) has Student's t
distribution with n - 1 degrees of freedom, where days are independent and normal (Hahn, "Factors for calculating
two-sided prediction intervals", JASA 64, 1969). What its mean is more uncertain by is added to the variance.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from math import exp, inf, sqrt
from typing import Any, cast

import numpy as np
import pandas
from scipy.special import stdtr

from lepaute.errors import InputError
from lepaute.kit.text import counted
from lepaute.measure.archive import Archive, mpi_campaign
from lepaute.measure.compare.comparison import Comparison
from lepaute.measure.compare.failures import campaign_failures, different_networks, missing_failures
from lepaute.measure.compare.setting import source
from lepaute.measure.compare.summaries import ROW, campaign_summaries
from lepaute.measure.compare.verdicts import MARGIN, Correction, Verdict, corrected_families
from lepaute.stats.decision import Weakness
from lepaute.stats.student import student_quantile

#: Days of baselines below which no build fails: fewer do not tell what a day changes.
MIN_DAYS = 4
BASELINE = "baseline"
_DAY_S = 86400.0
_RULE = "over days: a build is one day more, by Student's t over the days of the baseline"


def against_baseline(
    build: Archive,
    days: Sequence[Archive],
    *,
    labels: tuple[str | None, str | None] = (None, None),
    margin: float = MARGIN,
    correction: Correction = "fdr",
    primary: Collection[tuple[str, str, int]] | None = None,
) -> Comparison:
    """A library of a campaign against those of earlier days; labels: in the baseline and in the build.

    Raises ArchiveError for another kind, InputError for campaigns that cannot be compared.
    """
    facts = [mpi_campaign.facts(one) for one in (*days, build)]
    if len({(about.all_ranks, bool(about.varied)) for about in facts}) > 1 or facts[-1].fewer_ranks or facts[-1].varied:
        raise InputError("--baseline: all archives must be of one number of ranks, the same, without --factor")
    right = _label_of(facts[-1], labels[1], build)
    of_days = [labels[0] or (right if right in about.labels else None) for about in facts[:-1]]
    chosen = [*map(_label_of, facts[:-1], of_days, days), right]
    names = [{label: BASELINE} for label in chosen[:-1]] + [{right: right}]
    tables = []
    begun = [mpi_campaign.begun_s(one) or 0.0 for one in (*days, build)]
    number_of = {day: number for number, day in enumerate(sorted({begin_s // _DAY_S for begin_s in begun[:-1]}))}
    for number, (archive, name, begin_s) in enumerate(zip((*days, build), names, begun, strict=True)):
        table = campaign_summaries(archive)
        table = table[table["library"].isin(name)].replace({"library": name})
        day = len(number_of) if archive is build else number_of[begin_s // _DAY_S]
        tables.append(table.assign(block=day, mpirun=table["mpirun"] + 100_000 * number))
    summaries = pandas.concat(tables, ignore_index=True)
    rows_first = facts[-1].primary if primary is None else tuple(primary)
    rows = day_verdicts(summaries, right, margin=margin, correction=correction, primary=rows_first)
    if not rows:
        check_days(days)
        raise InputError(f"{build.path.name} and the baseline have no operation and size in common")
    libraries = [
        replace(next(library for library in about.libraries if library.label == label), label=name[label])
        for about, label, name in zip(facts, chosen, names, strict=True)
    ]
    failures = campaign_failures(build, names[-1])
    different = {(library.version, library.text, tuple(library.settings.items())) for library in libraries[:-1]}
    few = f"{counted(len(number_of), 'day')} of baselines, and {MIN_DAYS} are needed"
    return Comparison(
        left=BASELINE,
        right=right,
        libraries=(libraries[0], libraries[-1]),
        ranks=facts[-1].ranks,
        run_time="global",
        margin=margin,
        verdicts=rows,
        summaries=summaries,
        warnings=("the baseline is not of one library: versions or variables differ",) if len(different) > 1 else (),
        archives=tuple(source(one, about) for one, about in zip((*days, build), facts, strict=True)),
        correction=correction,
        primary=tuple(rows_first),
        scope=f"against {counted(len(number_of), 'day')} of baselines",
        failures=(*failures, *missing_failures(summaries, BASELINE, right, failures)),
        networks=different_networks((facts[0], facts[-1]), (names[0], names[-1]), (BASELINE, right)),
        rule=_RULE,
        disturbed=next(
            (weakness.text for row in rows for weakness in row.weaknesses if weakness.cause == "disturbed"), ""
        ),
        cannot_fail=few if len(number_of) < MIN_DAYS else "",
    )


def check_days(days: Sequence[Archive]) -> None:
    """Raises ArchiveError for another kind, InputError if no mpirun of any day was undisturbed."""
    if not any((runs["block"].ge(0) & ~runs["disturbed"]).any() for runs in map(mpi_campaign.mpiruns, days)):
        raise InputError("--baseline: all mpiruns of its days were disturbed; give archives of quiet days")


def _label_of(facts: mpi_campaign.CampaignFacts, label: str | None, archive: Archive) -> str:
    chosen = label or (facts.labels[0] if len(facts.labels) == 1 else None)
    if chosen not in facts.labels:
        raise InputError(
            f"{archive.path.name} has the libraries {', '.join(facts.labels)}; name that of the baseline with --left "
            "and that of the build with --right"
        )
    return str(chosen)


def day_verdicts(
    summaries: pandas.DataFrame,
    right: str,
    *,
    margin: float = MARGIN,
    correction: Correction = "fdr",
    primary: Collection[tuple[str, str, int]] = (),
) -> tuple[Verdict, ...]:
    """Verdicts on rows of a build (right) and its BASELINE; summaries: as of `mpirun_summaries`, blocks are days."""
    table = summaries if "disturbed" in summaries else summaries.assign(disturbed=False)
    rows = []
    for key, row in table.groupby(list(ROW), observed=True):
        quiet, of_build = row[~row["disturbed"].astype(bool)], row["library"] == right
        days, build = quiet[quiet["library"] == BASELINE], quiet[quiet["library"] == right]
        if len(days) and of_build.any():
            rows.append((cast("tuple[str, str, int]", key), days, build if len(build) else row[of_build]))
    tests = [_tested(days, build) for _, days, build in rows]
    first = [key in primary for key, _, _ in rows]
    corrected = corrected_families([test["p_value"] for test in tests], first, correction)
    return tuple(
        Verdict(
            *key,
            left_mpiruns=len(days),
            right_mpiruns=len(build),
            p_corrected=p_corrected,
            margin=margin,
            left_slow=0.0,
            right_slow=0.0,
            p_slow=1.0,
            forecast=None,
            **values,
        )
        for (key, days, build), values, p_corrected in zip(rows, tests, corrected, strict=True)
    )


def _tested(old: pandas.DataFrame, build: pandas.DataFrame) -> dict[str, Any]:
    """Fields of the verdict of one row; old: of the baseline, undisturbed."""
    days = np.log(old["median_s"]).groupby(old["block"])
    means, logs = days.mean().to_numpy(), np.log(build["median_s"].to_numpy())
    count, shift = len(means), float(logs.mean() - means.mean())
    ratios = tuple(float(exp(logs.mean() - mean)) for mean in means)
    values = {"left_s": exp(means.mean()), "right_s": exp(logs.mean()), "ratio": exp(shift), "session_ratios": ratios}
    spread = float(means.std(ddof=1)) if count > 1 else 0.0
    why = Weakness("too few", f"{counted(count, 'day')} of baselines, and {MIN_DAYS} are needed")
    if build["disturbed"].any():
        why = Weakness("disturbed", f"{len(build)} of {counted(len(build), 'mpirun')} of the build were disturbed")
    if count < MIN_DAYS or spread == 0.0 or why.cause == "disturbed":
        return values | {"p_value": 1.0, "low": 0.0, "high": inf, "weaknesses": (why,)}
    of_days = float(np.mean([day.var(ddof=1) / len(day) for _, day in days if len(day) > 1] or [0.0]))
    of_build = float(logs.var(ddof=1)) / len(logs) if len(logs) > 1 else of_days
    error = sqrt(spread**2 * (1 + 1 / count) + max(0.0, of_build - of_days))
    half = student_quantile(0.975, count - 1) * error
    p_value = min(1.0, 2 * float(stdtr(count - 1, -abs(shift) / error)))
    return values | {"p_value": p_value, "low": exp(shift - half), "high": exp(shift + half)}
