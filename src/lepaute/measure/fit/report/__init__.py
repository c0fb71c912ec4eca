"""A diagnosis as one HTML page that needs nothing else (no script, no file beside it, no network), or as JSON.

The page has the answer on its first screen, then what it rests on, then everything else, folded.
"""

from pathlib import Path
from typing import Any

import numpy as np

from lepaute.kit.report import page as pages
from lepaute.kit.report.page import anchor, picture_values, records_table, render
from lepaute.kit.report.svg import Picture
from lepaute.kit.text import counted, percent
from lepaute.measure.fit.diagnostics import Diagnosis, Subject, machine_name
from lepaute.measure.fit.diagnostics.findings import Finding, answer, figures, findings
from lepaute.measure.fit.diagnostics.flag import KINDS, MIN_SHARE, SERIOUS_SHARE, SEVERITIES, Check, Flag, chance
from lepaute.measure.fit.report.pictures import machine_in_time, of_kind, pictures

#: Kernels with less of the time are not in the table beside the findings, and no more than this many are.
SHOWN_SHARE, MAX_SHOWN = 0.01, 8
#: Checks whose sizes are in that table, with the name of their column.
_ERRORS = {"level": "sum", "size": "worst sizes", "goodness": "single calls"}


def write_report(diagnosis: Diagnosis, path: str | Path) -> None:
    """Writes a diagnosis: a page where the name ends in .html, an object of the same content where it ends in .json.

    Raises InputError for another suffix or a folder that is not there.
    """
    title = f"Fit of {', '.join(archive['file'] for archive in diagnosis.archives)}"
    pages.write_report(Path(path), lambda: page(diagnosis, title), diagnosis.to_dict)


def page(diagnosis: Diagnosis, title: str) -> str:
    """The page; all names in it are escaped."""
    tables = {"Factors": diagnosis.factor_tests, "Dependence between calls": diagnosis.dependence}
    checked = {check.kind for subject in diagnosis.subjects for check in subject.checks}
    columns = [kind for kind in KINDS if kind in checked]
    found = findings(diagnosis)
    return render(
        "lepaute.measure.fit.report",
        "report.html.j2",
        title=title,
        archives=[{**archive, "created": _day(archive["created"])} for archive in diagnosis.archives],
        made_of=[
            (f"archive of {source['file']}", source["id"][:12] + (f", seed {source['seed']}" if source["seed"] else ""))
            for source in diagnosis.archives
        ],
        state=found[0].severity if found else "fine",
        answer=answer(diagnosis),
        figures=figures(diagnosis).texts,
        findings=[_finding(one) for one in found],
        seen=_evidence(diagnosis, found),
        weights=records_table("Kernels by their time", _weights(diagnosis)),
        shown_share=percent(SHOWN_SHARE),
        alpha=percent(diagnosis.alpha),
        columns=[(kind, KINDS[kind].title) for kind in columns],
        subjects=[_subject(diagnosis, subject, columns) for subject in diagnosis.subjects],
        machines=[
            {
                "name": machine_name(machine),
                "anchor": anchor(machine_name(machine)),
                "checks": _checks(machine.checks, _severities(diagnosis, machine_name(machine))),
                "pictures": [picture_values(picture) for picture in machine_in_time(machine)],
            }
            for machine in diagnosis.machines
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
        least_share=percent(MIN_SHARE),
        serious_share=percent(SERIOUS_SHARE),
        tables=[table for title, rows in tables.items() if (table := records_table(title, rows))],
    )


def _day(created: str) -> str:
    """2026-11-27 08:33 UTC, of the time stamp of an archive."""
    return f"{created[:10]} {created[11:16]} UTC" if created.endswith("+00:00") else created


def _finding(one: Finding) -> dict[str, Any]:
    several = len(one.flags) > 1
    what = [flag.subject.split()[0] for flag in one.flags]
    return {
        "severity": one.severity,
        "kind": KINDS[one.kind].title,
        "sentence": one.sentence,
        "remedy": one.remedy,
        "subjects": [
            {
                # kernel dgemv, dtrsm, message isend
                "name": flag.subject.removeprefix(f"{what[at]} " if at and what[at] == what[at - 1] else ""),
                "anchor": anchor(flag.subject),
                "value": one.value_of(flag) if several else "",
            }
            for at, flag in enumerate(one.flags)
        ],
        "measure": KINDS[one.kind].measure if several and KINDS[one.kind].graded else "",
        "chance": chance(one.flags[0].p_value) if not several else "",
    }


def _evidence(diagnosis: Diagnosis, found: tuple[Finding, ...]) -> list[dict[str, Any]]:
    """Three pictures: the worst finding, the kernel that takes most time, the machine."""
    subjects = {subject.name: subject for subject in diagnosis.subjects if len(subject.calls.of)}
    shown: list[tuple[str, Picture]] = []
    worst: Flag | None = next((flag for one in found for flag in one.flags if flag.subject in subjects), None)
    if worst is not None:
        shown.append((worst.subject, of_kind(subjects[worst.subject].calls, worst.kind)))
    kernels = [subject for subject in subjects.values() if subject.calls.of.weighs_time]
    if kernels:
        largest = max(kernels, key=lambda subject: subject.share)
        shown.append((f"{largest.name}, {percent(largest.share)} of the time", of_kind(largest.calls, "size")))
    for machine in diagnosis.machines[:1]:
        shown += [(machine_name(machine), picture) for picture in machine_in_time(machine)[:1]]
    return [
        {**picture_values(picture), "caption": f"{name[:1].upper()}{name[1:]}. {picture.caption}"}
        for name, picture in shown
    ]


def _weights(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    """The kernels that take most time: how far sum, sizes and single calls are off, as their checks have it."""
    kernels = [kernel for kernel in diagnosis.subjects if kernel.calls.of.weighs_time and kernel.share >= SHOWN_SHARE]
    rows = []
    for kernel in kernels[:MAX_SHOWN]:
        size = {check.kind: check.size for check in kernel.checks if check.able}
        rows.append(
            {
                "kernel": kernel.name.removeprefix("kernel "),
                "time": percent(kernel.share),
                "calls": f"{len(kernel.calls.of):,}",
                **{name: percent(size.get(kind, np.nan)) for kind, name in _ERRORS.items()},
                "findings": ", ".join(KINDS[flag.kind].title for flag in diagnosis.of(kernel.name)) or "none",
            }
        )
    return rows


def _subject(diagnosis: Diagnosis, subject: Subject, columns: list[str]) -> dict[str, Any]:
    severities = _severities(diagnosis, subject.name)
    by_kind = {check.kind: check for check in subject.checks}
    rows = _checks(subject.checks, severities, subject.share)
    shown = pictures(subject.calls) if len(subject.calls.of) else []
    return {
        "name": subject.name,
        "anchor": anchor(subject.name),
        "share": percent(subject.share) if subject.calls.of.weighs_time else "",
        "calls": counted(len(subject.calls.of), "call"),
        "state": next((state for state in SEVERITIES if state in severities.values()), "fine"),
        "ranges": subject.ranges,
        "cells": [_cell(by_kind.get(kind), severities) for kind in columns],
        "found": [row for row in rows if row["state"] in SEVERITIES],
        "rest": [row for row in rows if row["state"] not in SEVERITIES],
        "pictures": [picture_values(picture) for picture in shown],
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
    if check.p_value is None or share < MIN_SHARE:
        why = "in calls that take too little of the time to matter"
    return f"{words[:1].upper()}{words[1:]}: {percent(check.size)}, {why}."
