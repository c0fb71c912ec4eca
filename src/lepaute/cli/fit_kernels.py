"""What `lepaute fit` prints of the kernels' models: what was tried, and how far calls are from independent."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lepaute.fit.kernels.platform_kernel import QualityRow
    from lepaute.fit.kernels.selection import Selection
    from lepaute.fit.variability.episodes import DependenceReport

#: Kernels that take less of the time are passed over unless everything is asked for.
LEAST_SHARE = 0.01

_EXPLAINED = (
    "M-: error on blocks left out, relative, of single calls (one, -S, -H: of the mean taken); "
    "N-: BIC above the best, a call"
)


def selection_table(selections: "Sequence[Selection]") -> str:
    """A line a kernel: the model taken, and the score of everything that was tried."""
    from lepaute.kit.tables import text_table
    from lepaute.platform.kernel_model import MEANS, NOISES

    lines: list[tuple[str, ...]] = [("kernel", "model", *MEANS, "one", "-S", "-H", *NOISES, "")]
    for selection in selections:
        errors = {candidate.mean: candidate.error for candidate in selection.means}
        levels = [selection.levels.get(name) for name in ("", "-S", "-H")]
        cores = ["-" if candidate is None else f"{100 * candidate.error:.2f} %" for candidate in levels]
        noises = selection.noises
        bics = [f"{value / noises.n_calls:.2f}" for value in noises.bic] if noises else ["-"] * len(NOISES)
        means = [f"{100 * errors[mean]:.1f} %" if mean in errors else "-" for mean in MEANS]
        name = selection.kernel if selection.threads == 1 else f"{selection.kernel} x{selection.threads}"
        lines.append((name, str(selection.form), *means, *cores, *bics, selection.note))
    return f"{_EXPLAINED}\n{text_table(lines[0], lines[1:], left=(0, 1, len(lines[0]) - 1))}"


def dependence_text(
    reports: "Sequence[DependenceReport]", quality: "Sequence[QualityRow]", *, everything: bool = False
) -> str:
    """A sentence for each kernel whose sums the model's layers do not cover, or for each; "" where there is none."""
    time_s = {row.kernel: row.time_s for row in quality}
    whole = sum(time_s.values())
    chosen = [
        report
        for report in sorted(reports, key=lambda report: -time_s.get(report.kernel, 0.0))
        if everything or (report.is_limit and time_s.get(report.kernel, 0.0) > LEAST_SHARE * whole)
    ]
    lines = []
    for report in chosen:
        known = [(lag, value) for lag, value in zip((1, 10, 100), report.lags, strict=True) if math.isfinite(value)]
        lags = ", ".join(f"{value:.2f} at lag {lag}" for lag, value in known)
        lines.append(f"{report.sentence} (autocorrelation {lags})" if everything and known else report.sentence)
    return "\n".join(lines)
