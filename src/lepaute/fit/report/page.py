"""A diagnosis as one HTML page that needs nothing else: no script, no file beside it, no network."""

from typing import Any

from lepaute.fit.diagnostics import burst, by_order, by_place, by_size, by_time, flag, flags_from_fit, single_calls
from lepaute.fit.diagnostics.diagnosis import Diagnosis, Subject, machine_name
from lepaute.fit.diagnostics.flag import Check, Limits
from lepaute.fit.diagnostics.number_text import chance, percent
from lepaute.fit.report.pictures import machine_in_time, pictures
from lepaute.report.names import anchor
from lepaute.report.page import picture_values, render
from lepaute.report.tables import records_table

#: Names of the diagnostics, in the order of the page, with how their least sizes read.
KINDS: dict[str, tuple[str, Limits | None, str]] = {
    "size": ("against size", by_size.SIZE, "error of the mean of a class of size"),
    "spread": ("heteroscedasticity", by_size.SPREAD, "scatter of a class over the modelled one, less 1"),
    "autocorrelation": ("autocorrelation", by_order.AUTOCORRELATION, "rank correlation of successive calls"),
    "drift": ("drift", by_time.CHANGE, "change from beginning to end"),
    "step": ("step in time", by_time.CHANGE, "change of level"),
    "perturbation": ("change inside a process", by_time.CHANGE, "change of level"),
    "sentinels": ("sentinels", by_time.CHANGE, "change of the machine's speed"),
    "burst": ("stretch of time", burst.BURST, "change of level for a while"),
    "cores": ("cores", by_place.PLACES, "slowest over fastest, less 1"),
    "hosts": ("hosts", by_place.PLACES, "slowest over fastest, less 1"),
    "outliers": ("outliers", single_calls.OUTLIERS, "share of the time; of messages, of the calls"),
    "level": ("level", by_size.LEVEL, "error of the sum of all calls"),
    "goodness": ("goodness", single_calls.SCATTER, "mean relative error of a call"),
    "calls": ("number of calls", None, f"fewer than {single_calls.FEW}; fewer than {single_calls.TOO_FEW}"),
    "sizes": ("sizes", None, "two sizes; a single one"),
    "constant": ("equal durations", None, "all durations are equal"),
    "clock": ("clock", single_calls.TICK, "resolution over the typical duration"),
    "factor": ("factors besides sizes", flags_from_fit.FACTOR, "difference between two levels"),
    "dependence": ("dependence of calls", None, "sums of calls scatter by a quarter more than the platform says"),
}
#: Kernels with so much of the time are shown in full, also where nothing is wrong with them.
OPEN_SHARE = 0.2


def page(diagnosis: Diagnosis, title: str) -> str:
    """The page; all names in it are escaped."""
    tables = {"Factors": diagnosis.factor_tests, "Dependence between calls": diagnosis.dependence}
    columns = [kind for kind in KINDS if any(kind == check.kind for one in diagnosis.subjects for check in one.checks)]
    return render(
        "lepaute.fit.report",
        "report.html.j2",
        title=title,
        archives=diagnosis.archives,
        flags=[_flag(one) for one in diagnosis.flags],
        serious=len(diagnosis.serious),
        notable=len(diagnosis.flags) - len(diagnosis.serious),
        alpha=percent(diagnosis.alpha),
        columns=[(kind, KINDS[kind][0]) for kind in columns],
        subjects=[_subject(diagnosis, one, columns) for one in diagnosis.subjects],
        machines=[
            {
                "name": machine_name(one),
                "anchor": anchor(machine_name(one)),
                "checks": _checks(one.checks, _severities(diagnosis, machine_name(one))),
                "pictures": [picture_values(picture) for picture in machine_in_time(one)],
            }
            for one in diagnosis.machines
        ],
        missing=diagnosis.missing,
        limits=[(name, words, _least(limits)) for name, limits, words in KINDS.values()],
        least_share=percent(flag.LEAST_SHARE),
        serious_share=percent(flag.SERIOUS_SHARE),
        tables=[table for title, rows in tables.items() if (table := records_table(title, rows))],
    )


def _subject(diagnosis: Diagnosis, subject: Subject, columns: list[str]) -> dict[str, Any]:
    severities = _severities(diagnosis, subject.name)
    by_kind = {check.kind: check for check in subject.checks}
    rows = _checks(subject.checks, severities, subject.share)
    drawn = pictures(subject.calls) if len(subject.calls.of) else []
    return {
        "name": subject.name,
        "anchor": anchor(subject.name),
        "share": percent(subject.share) if subject.calls.of.weighs_time else "",
        "calls": len(subject.calls.of),
        "ranges": subject.ranges,
        "cells": [_cell(by_kind.get(kind), severities) for kind in columns],
        "found": [row for row in rows if row["state"] in flag.SEVERITIES],
        "rest": [row for row in rows if row["state"] not in flag.SEVERITIES],
        "open": bool(severities) or (subject.calls.of.weighs_time and subject.share >= OPEN_SHARE),
        "pictures": [picture_values(picture) for picture in drawn],
    }


def _severities(diagnosis: Diagnosis, subject: str) -> dict[str, str]:
    return {one.kind: one.severity for one in diagnosis.of(subject)}


def _cell(check: Check | None, severities: dict[str, str]) -> dict[str, str]:
    if check is None:
        return {"state": "none", "text": "", "why": ""}
    if not check.able:
        return {"state": "unable", "text": "–", "why": check.fine}
    state = severities.get(check.kind, "fine")
    return {
        "state": state,
        "text": state if state != "fine" else "ok",
        "why": check.wrong if state != "fine" else check.fine,
    }


def _checks(checks: tuple[Check, ...], severities: dict[str, str], share: float = 1.0) -> list[dict[str, str]]:
    order = list(KINDS)
    rows = []
    for check in sorted(checks, key=lambda one: order.index(one.kind) if one.kind in order else len(order)):
        cell = _cell(check, severities)
        large = check.able and check.size >= check.limits.notable and cell["state"] == "fine"
        rows.append(
            {
                "name": KINDS.get(check.kind, (check.kind, None, ""))[0],
                "state": cell["state"],
                "label": {"fine": "ok", "unable": "not testable"}.get(cell["state"], cell["state"]),
                # Large, and still no flag: it may be chance, or the subject takes too little time to matter.
                "sentence": _not_flagged(check, share) if large else cell.get("why", ""),
                "chance": chance(check.p_value) if check.able else "",
            }
        )
    return rows


def _not_flagged(check: Check, share: float) -> str:
    words = KINDS.get(check.kind, (check.kind, None, check.kind))[2]
    why = "as expected by chance among so many tests"
    if check.p_value is None or share < flag.LEAST_SHARE:
        why = "in calls that take too little of the time to matter"
    return f"{words[:1].upper()}{words[1:]}: {percent(check.size)}, {why}."


def _flag(one: flag.Flag) -> dict[str, str]:
    return {
        "subject": one.subject,
        "anchor": anchor(one.subject),
        "severity": one.severity,
        "kind": KINDS.get(one.kind, (one.kind, None, ""))[0],
        "sentence": one.sentence,
        "chance": chance(one.p_value),
    }


def _least(limits: Limits | None) -> str:
    return "" if limits is None else f"{percent(limits.notable)}, {percent(limits.serious)}"
