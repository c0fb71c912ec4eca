"""A fit in words: a verdict of a few lines, and the tables of all kernels that `--details` adds."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lepaute.cli.terminal import answer_text
from lepaute.kit.tables import shown_table
from lepaute.kit.text import counted, folded, in_common_unit, percent
from lepaute.simulate.platform.kernel_model import MEANS, NOISES

if TYPE_CHECKING:
    from lepaute.measure.fit.diagnostics import Diagnosis
    from lepaute.measure.fit.kernels.platform_kernel import QualityRow
    from lepaute.measure.fit.kernels.selection import Selection
    from lepaute.measure.fit.variability.dependence import DependenceReport

#: Serious findings that a verdict names.
MAX_FINDINGS = 2


def verdict_text(
    diagnosis: "Diagnosis", caveats: Sequence[str], reported: bool, width: int, *, disturbed: bool = False
) -> str:
    """Whether a fit is good, by how much it is off, and what to do: as its report says, which has the rest.

    disturbed: whether the models include runs that other load disturbed, which explains findings before they do
    """
    from lepaute.measure.fit.diagnostics.findings import answer, figures, findings

    found = findings(diagnosis)
    serious = [one for one in found if one.severity == "serious"][:MAX_FINDINGS]
    _, error, machine = (f"{value} {of}" for value, of in figures(diagnosis).texts)
    facts = [("error", error), ("machine", machine)]
    if serious and disturbed:
        facts.append(("to do", "stop what else runs here and calibrate again: other load may have made what follows"))
    facts += [("to do", f"{one.subjects}: {one.sentence} {one.remedy}".rstrip()) for one in serious]
    if diagnosis.missing:
        facts.append(("free", f"measured without a model, so that they cost nothing: {', '.join(diagnosis.missing)}"))
    if more := len(found) - len(serious):
        where = "the report has them" if reported else "--report report.html shows them"
        facts.append(("more", f"{counted(more, 'finding')} about the models; {where}"))
    return answer_text(answer(diagnosis), facts, caveats, width)


def quality_table(rows: "Sequence[QualityRow]", width: int) -> str:
    """The quality of each kernel's model, those that took most time first."""
    titles = "kernel|calls|model|time|R²|call err|class err|held-out|tail|cold|cores|ranges".split("|")
    lines = [
        (
            _threaded(row),
            row.n_calls,
            row.form,
            row.time_s,
            f"{row.r_squared:.3f}",
            percent(row.mean_abs_relative_error),
            percent(row.group_error),
            percent(row.discrepancy),
            percent(row.tail_share),
            percent(row.cold_excess),
            percent(row.core_spread),
            row.ranges + (f"  ({row.note})" if row.note else ""),
        )
        for row in sorted(rows, key=lambda row: -row.time_s)
    ]
    return shown_table(*in_common_unit(titles, lines, (3,)), width, left=(0, 2, len(titles) - 1))


def _threaded(row: "QualityRow | Selection") -> str:
    return row.kernel if row.threads == 1 else f"{row.kernel} x{row.threads}"


def selection_table(selections: "Sequence[Selection]", width: int) -> str:
    """A line a kernel: the model taken, and the score of everything that was tried."""
    explained = (
        "M-: error on blocks left out, relative, of single calls (one, -S, -H: of the mean taken); "
        "N-: BIC above the best, a call"
    )
    titles = ("kernel", "model", *MEANS, "one", "-S", "-H", *NOISES, "")
    lines = []
    for selection in selections:
        errors = {candidate.mean: candidate.error for candidate in selection.means}
        means = [f"{100 * errors[mean]:.1f} %" if mean in errors else "-" for mean in MEANS]
        levels = [selection.levels.get(name) for name in ("", "-S", "-H")]
        cores = ["-" if candidate is None else f"{100 * candidate.error:.2f} %" for candidate in levels]
        noises = selection.noises
        bics = [f"{value / noises.n_calls:.2f}" for value in noises.bic] if noises else ["-"] * len(NOISES)
        lines.append((_threaded(selection), selection.form, *means, *cores, *bics, selection.note))
    return f"{folded(explained, width)}\n{shown_table(titles, lines, width, left=(0, 1, len(titles) - 1))}"


def dependence_text(reports: "Sequence[DependenceReport]", quality: "Sequence[QualityRow]") -> str:
    """A sentence for each kernel, on whether the model's layers cover its sums; "" where there is none."""
    time_s = {row.kernel: row.time_s for row in quality}
    lines = []
    for report in sorted(reports, key=lambda report: -time_s.get(report.kernel, 0.0)):
        known = [(lag, value) for lag, value in zip((1, 10, 100), report.lags, strict=True) if math.isfinite(value)]
        lags = ", ".join(f"{value:.2f} at lag {lag}" for lag, value in known)
        lines.append(f"{report.sentence} (autocorrelation {lags})" if known else report.sentence)
    return "\n".join(lines)
