"""A diagnosis as one HTML page that needs nothing else (no script, no file beside it, no network), or as JSON."""

from pathlib import Path
from typing import Any

from lepaute.fit.diagnostics.diagnosis import Diagnosis, Subject, machine_name
from lepaute.fit.diagnostics.flag import KINDS, LEAST_SHARE, SERIOUS_SHARE, SEVERITIES, Check, Flag, chance
from lepaute.fit.report.pictures import machine_in_time, pictures
from lepaute.kit.text import percent
from lepaute.report import files
from lepaute.report.names import anchor
from lepaute.report.page import picture_values, render
from lepaute.report.tables import records_table

#: Kernels with so much of the time are shown in full, also where nothing is wrong with them.
OPEN_SHARE = 0.2


def write_report(diagnosis: Diagnosis, path: str | Path) -> None:
    """Writes a diagnosis: a page where the name ends in .html, an object of the same content where it ends in .json.

    Raises InputError for another suffix or a folder that is not there.
    """
    title = f"Fit of {', '.join(archive['file'] for archive in diagnosis.archives)}"
    files.write_report(Path(path), lambda: page(diagnosis, title), diagnosis.to_dict)


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
        columns=[(kind, KINDS[kind].title) for kind in columns],
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
        limits=[
            (
                about.title,
                about.measure,
                f"{percent(about.limits.notable)}, {percent(about.limits.serious)}" if about.graded else "",
            )
            for kind, about in KINDS.items()
            if kind != "no model"
        ],
        least_share=percent(LEAST_SHARE),
        serious_share=percent(SERIOUS_SHARE),
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
        "found": [row for row in rows if row["state"] in SEVERITIES],
        "rest": [row for row in rows if row["state"] not in SEVERITIES],
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
    for check in sorted(checks, key=lambda check: order.index(check.kind)):
        cell = _cell(check, severities)
        large = check.able and check.size >= check.limits.notable and cell["state"] == "fine"
        rows.append(
            {
                "name": KINDS[check.kind].title,
                "state": cell["state"],
                "label": {"fine": "ok", "unable": "not testable"}.get(cell["state"], cell["state"]),
                # Large, and still no flag: it may be chance, or the subject takes too little time to matter.
                "sentence": _not_flagged(check, share) if large else cell.get("why", ""),
                "chance": chance(check.p_value) if check.able else "",
            }
        )
    return rows


def _not_flagged(check: Check, share: float) -> str:
    words = KINDS[check.kind].measure
    why = "as expected by chance among so many tests"
    if check.p_value is None or share < LEAST_SHARE:
        why = "in calls that take too little of the time to matter"
    return f"{words[:1].upper()}{words[1:]}: {percent(check.size)}, {why}."


def _flag(one: Flag) -> dict[str, str]:
    return {
        "subject": one.subject,
        "anchor": anchor(one.subject),
        "severity": one.severity,
        "kind": KINDS[one.kind].title,
        "sentence": one.sentence,
        "chance": chance(one.p_value),
    }
