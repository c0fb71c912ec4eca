"""Which errors two platforms have in common, so that they cancel where predictions are compared."""

from math import hypot, sqrt
from typing import TYPE_CHECKING

from lepaute.kit.text import percent
from lepaute.simulate.population import drawn_alike
from lepaute.stats.student import student_quantile

if TYPE_CHECKING:
    from lepaute.platform.schema import Platform
    from lepaute.simulate.application import Application

#: Runs that are advised where more would narrow an interval, and how much they would have to.
USUAL_RUNS, WORTH_NARROWING = 30, 0.1


def share_errors(one: "Platform", other: "Platform", *applications: "Application") -> bool:
    """Whether the same draws mean the same errors on both: one set of kernels, fitted or guessed once, and one layer of
    days; applications : what runs on either."""
    same = one is other or (
        (one.kernels == other.kernels or guessed_alike(one, other))
        and one.days == other.days
        and drawn_alike(one.population, other.population)
    )
    threads = {each.threads_per_rank for each in applications}
    return same and (len(threads) == 1 or not any(each.kernel_models for each in applications))


def guessed_alike(one: "Platform", other: "Platform") -> bool:
    """Whether the kernels of both are the same guesses at two speeds: nothing was measured, the same kernel lends each
    its form, and what is assumed of each has the same error.

    Not where the speed itself is guessed, as a share of two nominal peaks: that share differs from core to core.
    """
    if not (one.assumed and other.assumed) or one.archive_id is not None or other.archive_id is not None:
        return False
    return _guesses(one) == _guesses(other) and not any(
        "of the nominal peak" in (each.source or "") for each in one.assumed
    )


def own_relative_sd(one: "Platform", other: "Platform") -> float:
    """Standard deviation of the ratio of times on two machines that are guessed alike, by what differs between them
    whatever was guessed: the effect of the day, which the same draw gives both. 0 where it is one machine."""
    if one.kernels == other.kernels:
        return 0.0
    return hypot(*(0.0 if each.days is None else each.days.common_relative_sd for each in (one, other)))


def what_narrows(runs: int, *, assumed: bool) -> str:
    """What makes the interval of a difference of so many pairs of runs narrower, in words; empty where nothing known.

    assumed : whether the platforms rest on what was not measured
    """
    words = []
    if 1 < runs < USUAL_RUNS:
        less = 1.0 - _reach(USUAL_RUNS) / _reach(runs)
        if less >= WORTH_NARROWING:
            words.append(f"--runs {USUAL_RUNS} would narrow this by {percent(less)}")
    if assumed:
        words.append("a calibration in the place of what is assumed would narrow it" + (" further" if words else ""))
    return "; ".join(words)


def _reach(runs: int) -> float:
    """Half the 95 % interval of one further difference, in standard deviations."""
    return student_quantile(0.975, runs - 1) * sqrt(1.0 + 1.0 / runs)


def _guesses(platform: "Platform") -> list[tuple[object, ...]]:
    """Of each kernel, what decides its errors."""
    return [
        (model.kernel, model.threads, model.discrepancy_relative_sd, *_forms(model.pieces))
        for model in platform.kernels
    ]


def _forms(pieces: "tuple[object, ...]") -> list[object]:
    return [getattr(piece, "discrepancy_relative_sd", None) for piece in pieces]
