"""A comparison as one HTML page that needs nothing else: no script, no file beside it, no network."""

import shlex
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from lepaute.kit.report.page import anchor, picture_values, records_table, render
from lepaute.kit.text import exact_size, p_text, seconds, with_interval
from lepaute.measure.archive.mpi_campaign import KIND, settings_text
from lepaute.measure.compare import call_pictures, pictures, wording
from lepaute.measure.compare.derived import derived_lines
from lepaute.measure.compare.resampling import normality_sentence
from lepaute.measure.compare.setting import Source, algorithms, setting_lines
from lepaute.measure.compare.single_calls import flagged
from lepaute.measure.compare.summaries import ROW
from lepaute.measure.compare.verdicts import MARGIN, Verdict, verdicts

if TYPE_CHECKING:
    from lepaute.measure.compare.comparison import Comparison

#: Columns of `mpirun_summaries`, with their names.
WAYS = {
    "median_s": "median, filtered",
    "median_all_s": "median of all calls",
    "mean_s": "mean, filtered",
    "mean_all_s": "mean of all calls",
}
#: Verdicts, of which more are folded.
MAX_SHOWN_ROWS = 16
#: Rows that have pictures of their calls: five of 4 kB each, so that a page stays below 5 MB.
MAX_PICTURED = 240
_RUN_TIMES = {"local": "the slowest rank's own", "global": "first start to last end"}
_STATES = {"left faster": "left", "right faster": "right", "no difference above the margin": "fine"}


def page(found: "Comparison") -> str:
    """The page; all names in it are escaped."""
    ways = other_ways(found)
    changed = changed_rows(found, ways)
    doubts = flagged(found.flags)
    operations = _operations(found)
    behind = _behind(found)
    versions = [
        f"{library.label}: {' '.join(filter(None, (library.family, library.version))) or library.spec}"
        for library in found.libraries
    ]
    kind = _RUN_TIMES.get(found.run_time, found.run_time)
    ranks = [f"{found.ranks} ranks"] if found.ranks else []
    return render(
        "lepaute.measure.compare",
        "comparison.html.j2",
        title=f"{found.right} against {found.left}",
        answer=f"{found.answer[:1].upper()}{found.answer[1:]}",
        estimand=found.estimand,
        over_sessions=found.is_over_sessions,
        single=found.is_of_single_runs,
        shared=len({wording.outcome_words(row, found.left, found.right) for row in found.verdicts}) == 1,
        correction=wording.correction_sentence(found.correction),
        state=found.decision.state("for"),
        facts="; ".join([*versions, *ranks, *setting_lines(found), f"run-time: {kind}"]),
        made_of=[(archive.file, archive.id[:12]) for archive in found.archives],
        beware=list(dict.fromkeys((*found.warnings, *doubts))),
        left=found.left,
        right=found.right,
        rows=[_row(row, found, behind) for row in found.verdicts],
        behind=_by_operation(found, behind),
        pictured=len(behind),
        knows_calls=len(found.calls) > 0,
        sessions=records_table("Ratio of each session", _sessions(found)),
        most_shown=MAX_SHOWN_ROWS,
        differences=[operation["difference"] for operation in operations],
        operations=operations,
        violations=[
            f"{rule.library}: {wording.violation_sentence(rule)}" for rule in found.guidelines if rule.is_violated
        ],
        tested=len(found.guidelines),
        derived=derived_lines(found),
        guidelines=records_table("All guidelines", _guidelines(found)),
        changed=records_table("Rows that depend on it", [_with_size_text(one) for one in changed]),
        ways=len(ways) > 1,
        way=next(iter(ways)),
        flags=bool(found.flags),
        normality=normality_sentence(found.sample_means),
        normality_pictures=[
            picture_values(one)
            for label in (found.left, found.right)
            for one in pictures.normality(found.sample_means, label)
        ],
        libraries=_libraries(found),
        archives=[_archive(archive) for archive in found.archives],
        left_out=[f"{count} calls {words}" for words, count in found.left_out.items()],
        commands=[("This page is made by", _command(found))],
    )


def _row(one: Verdict, found: "Comparison", behind: dict[tuple[str, str, int], Any]) -> dict[str, str]:
    return {
        "operation": wording.operation_name(one),
        "anchor": anchor(wording.operation_name(one)),
        "size": exact_size(one.size_bytes),
        "behind": _anchor_of(one) if one.row in behind else "",
        "left": wording.amount(one, one.left_s),
        "right": wording.amount(one, one.right_s),
        "sentence": wording.outcome_words(one, found.left, found.right),
        "stars": one.stars,
        "state": _STATES.get(one.outcome, "open"),
        "ratio": wording.ratio_text(one),
        "p": "–" if one.outcome == "untested" else p_text(one.p_corrected).removeprefix("p = "),
        "mpiruns": f"{one.left_mpiruns}, {one.right_mpiruns}",
        "algorithms": algorithms(found, one),
    }


def _anchor_of(one: Verdict) -> str:
    return anchor(f"calls of {wording.operation_name(one)} of {exact_size(one.size_bytes)}")


def _behind(found: "Comparison") -> dict[tuple[str, str, int], list[dict[str, Any]]]:
    """The pictures of the calls of each row; of too many rows, of those whose p-values are least."""
    chosen = sorted(found.verdicts, key=lambda one: one.p_corrected)[:MAX_PICTURED]
    calls = {(row[0].operation, row[0].form, row[0].size_bytes): row for row in found.single_calls if row}
    values = dict(list(found.summaries.assign(value_s=found.summaries[found.value]).groupby(list(ROW), observed=True)))
    ranks = dict(list(found.rank_times.groupby(list(ROW), observed=True)))
    names = (found.left, found.right)
    return {
        key: list(map(picture_values, call_pictures.of_row(
            one, calls.get(key, ()), values[key], ranks.get(key, found.rank_times.iloc[:0]), names)))
        for one in chosen
        if (key := one.row) in values
    }  # fmt: skip


def _by_operation(found: "Comparison", behind: dict[tuple[str, str, int], Any]) -> list[dict[str, Any]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in found.verdicts:
        if row.row in behind:
            told = {"anchor": _anchor_of(row), "size": exact_size(row.size_bytes), "pictures": behind[row.row]}
            told["sentence"] = wording.sentence(row, found.left, found.right)
            groups.setdefault(wording.operation_name(row), []).append(told)
    return [{"name": name, "rows": rows} for name, rows in groups.items()]


def _sessions(found: "Comparison") -> list[dict[str, Any]]:
    """The right library's time over the left one's in each session that has the row."""
    return [
        {
            "operation": wording.operation_name(row),
            "size": exact_size(row.size_bytes),
            **{f"session {number + 1}": ratio for number, ratio in enumerate(row.session_ratios)},
        }
        for row in found.verdicts
        if row.session_ratios
    ]


def _operations(found: "Comparison") -> list[dict[str, Any]]:
    """The pictures of each operation and form: the difference, and the others."""
    generator = np.random.default_rng(29)
    result = []
    for key in dict.fromkeys((row.operation, row.form) for row in found.verdicts):
        rows = [row for row in found.verdicts if (row.operation, row.form) == key]
        table = found.summaries[(found.summaries["operation"] == key[0]) & (found.summaries["form"] == key[1])]
        times, difference, *more = map(picture_values, pictures.of_operation(rows, table, found, generator))
        name = wording.operation_name(rows[0])
        named = {**difference, "caption": f"{name}. {difference['caption']}"}
        result.append({"name": name, "anchor": anchor(name), "difference": named, "pictures": [times, *more]})
    return result


def _guidelines(found: "Comparison") -> list[dict[str, Any]]:
    return [
        {
            "library": rule.library,
            "guideline": rule.guideline,
            "size": exact_size(rule.size_bytes),
            "violated": rule.is_violated,
            "times as long": with_interval(rule.ratio, rule.low, rule.high, basis=""),
            "excess a call": seconds(rule.excess_s) if isfinite(rule.excess_s) else "–",
            "p (Holm)": rule.p_holm,
            "mpiruns": rule.mpiruns,
        }
        for rule in found.guidelines
    ]


def _with_size_text(row: dict[str, Any]) -> dict[str, Any]:
    return {("size" if name == "size_bytes" else name): (exact_size(value) if name == "size_bytes" else value)
            for name, value in row.items()}  # fmt: skip


def _libraries(found: "Comparison") -> dict[str, Any] | None:
    rows = [
        {
            "library": library.label,
            "named": library.spec,
            **{name: getattr(library, name) for name in ("version", "mpicc", "mpirun", "compiler", "flags")},
            "variables": settings_text({**library.variables, **library.settings}),
            "not measured": "; ".join(f"{name}: {why}" for name, why in library.lacking.items()),
        }
        for library in found.libraries
    ]
    kept = [name for name in rows[0] if any(row[name] for row in rows)] if rows else []
    return records_table("Libraries", [{name: row[name] for name in kept} for row in rows])


def _archive(one: Source) -> dict[str, Any]:
    return {
        **{name: getattr(one, name) for name in ("file", "id", "origin", "command", "derivation")},
        "factors": records_table(
            "Experimental factors", [{"factor": name, "level": level} for name, level in one.factors.items()]
        ),
    }


def _command(found: "Comparison") -> str:
    words = ["lepaute", "compare", *(archive.argument for archive in found.archives)]
    if all(archive.kind == KIND for archive in found.archives):
        words += ["--left", found.left, "--right", found.right]
    words += [] if found.margin == MARGIN else ["--margin", f"{100 * found.margin:g}%"]
    return shlex.join([*words, "--report", "report.html"])


def other_ways(found: "Comparison") -> dict[str, tuple[Verdict, ...]]:
    """The verdicts by each summary that there is, by the names of WAYS, that of the comparison first."""
    others = {
        name: verdicts(
            *(found.summaries, found.left, found.right),
            margin=found.margin,
            value=value,
            correction=found.correction,
            primary=found.primary,
        )
        for value, name in WAYS.items()
        if value != found.value and value in found.summaries and not found.rule
    }
    return {WAYS[found.value]: found.verdicts, **others}


def changed_rows(found: "Comparison", ways: dict[str, tuple[Verdict, ...]]) -> list[dict[str, Any]]:
    """Rows whose outcome is not the same by every summary, each with its outcomes."""
    rows = []
    for each in zip(*ways.values(), strict=True):
        outcomes = [_side(one, found) for one in each]
        if len(set(outcomes)) > 1:
            first = each[0]
            name = {"operation": wording.operation_name(first), "size_bytes": first.size_bytes}
            rows.append({**name, **dict(zip(ways, outcomes, strict=True))})
    return rows


def _side(verdict: Verdict, found: "Comparison") -> str:
    words = {"left faster": f"{found.left} faster", "right faster": f"{found.right} faster"}
    return words.get(verdict.outcome, verdict.outcome)
