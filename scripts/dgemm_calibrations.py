"""What the published calibrations of dgemm on Dahu say about one another: how far a shipped model may be off.

    python scripts/dgemm_calibrations.py [--reference ../shared/reference]

Prints the figures that convert_reference_platforms.py puts into the shipped platforms. All are of the time of dgemm in
a factorisation of order 250,000 on 32 x 32 ranks, panels of 128 or 256: the update of all columns left (m = n, from N/P
down to 0, k = NB), or of one panel (n = NB: the look-ahead's own). No result of HPL is used.

Calibrations: the six published polynomials that contain the seven CPUs of `dgemm_2020_partial.csv`, as they were
fitted. Not used are `dgemm_2019-04_polynomial`, whose slopes its author rescaled, its raw form, which he discarded, and
the linear models, which fold the cost of small k into the slope. The cooling that failed in October 2019 is that of
nodes 13 to 16; the seven CPUs are on nodes 1 to 4.

k = 256 against k = 128: `experiment/randomizing_sizes/fixing_K`, jobs whose calls all have k = 256 or all 128, since
HPL calls dgemm with one k except inside its panel; jobs that shuffle three k show what the choice of design is worth.
"""

import argparse
import csv
import gzip
import io
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import exp, log, sqrt
from pathlib import Path
from statistics import fmean, stdev

ROOT = Path(__file__).resolve().parent.parent
ORDER, SIDE, PANEL = 250_000, 32, 128
TERMS = ("mnk", "mn", "mk", "nk", "intercept")
CALIBRATIONS = {
    "2019-07": "dgemm_2019-07_polynomial.csv",
    "2019-10": "dgemm_2019-10_polynomial.csv",
    "2020-01": "dgemm_2020_partial.csv:2020-01-14",
    "2020-06": "dgemm_2020_partial.csv:2020-06",
    "2020-08": "dgemm_2020_partial.csv:2020-08",
    "2020-11": "dgemm_2020-11_polynomial_nodes1-8.csv",
}

Coefficients = Mapping[str, float]
#: Smallest and largest m or n, and k, of the calls of a design.
Ranges = dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Spread:
    """Relative standard deviations between calibrations.

    whole  : of the update of all columns
    narrow : of the update of one panel, relative to the whole
    """

    whole: float
    narrow: float


@dataclass(frozen=True)
class LargeK:
    """Time of the whole update with k = 256 over that with k = 128, and between designs its relative sd."""

    ratio: float
    relative_sd: float
    by_cpu: Mapping[str, float]
    shuffled: float
    ratio_512: float


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, compressed or not."""
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return list(csv.DictReader(io.StringIO(text.decode("utf-8"))))


def whole_s(model: Coefficients, k: int) -> float:
    """Seconds a unit of m·n·k of the updates of all columns left, panel by panel."""
    return _seconds_a_unit(model, k, lambda side: side)


def narrow_s(model: Coefficients, k: int) -> float:
    """Seconds a unit of m·n·k of the updates of the next panel alone."""
    return _seconds_a_unit(model, k, lambda _side: k)


def _seconds_a_unit(model: Coefficients, k: int, columns: Callable[[float], float]) -> float:
    total_s = units = 0.0
    for left in range(ORDER - k, 0, -k):
        m = left / SIDE
        n = columns(m)
        total_s += model["mnk"] * m * n * k + model["mn"] * m * n + model["mk"] * m * k + model["nk"] * n * k
        total_s += model["intercept"]
        units += m * n * k
    return total_s / units


def calibrations(reference: Path) -> dict[str, dict[str, Coefficients]]:
    """Of each calibration the coefficients of the CPUs that all have, by cpu_id."""
    found = {}
    for name, source in CALIBRATIONS.items():
        file, _, model = source.partition(":")
        rows = rows_of(reference / "dahu" / "kernels" / file)
        found[name] = {row["cpu_id"]: _coefficients(row) for row in rows if not model or row["model"] == model}
    common = set.intersection(*(set(cpus) for cpus in found.values()))
    return {name: {cpu: cpus[cpu] for cpu in sorted(common)} for name, cpus in found.items()}


def levels(
    models: Mapping[str, Mapping[str, Coefficients]], seconds: Callable[[Coefficients, int], float]
) -> dict[str, float]:
    """Of each calibration the mean over its CPUs of the logarithm of `seconds`, with panels of 128."""
    return {name: fmean(log(seconds(model, PANEL)) for model in cpus.values()) for name, cpus in models.items()}


def spread(reference: Path) -> Spread:
    """How much the calibrations differ."""
    models = calibrations(reference)
    whole, narrow = levels(models, whole_s), levels(models, narrow_s)
    return Spread(stdev(whole.values()), stdev(narrow[name] - whole[name] for name in whole))


def large_k(reference: Path) -> LargeK:
    """What k = 256 costs, from the fits of all jobs of fixing_K: geometric means over jobs, then over CPUs."""
    times: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows_of(_fixing_k(reference) / "dgemm_agr_data.csv.gz"):
        cpu, model, kind = f"node {row['node']} cpu {row['cpu']}", _coefficients(row), row["exp_kind"]
        if kind in ("128", "256", "512"):  # a job says nothing about another k than its own
            times[cpu][kind].append(log(whole_s(model, int(kind))))
        elif kind == "shuffled":
            times[cpu]["shuffled 256/128"].append(log(whole_s(model, 256) / whole_s(model, 128)))
    by_cpu = {cpu: fmean(kinds["256"]) - fmean(kinds["128"]) for cpu, kinds in sorted(times.items())}
    fixed = fmean(by_cpu.values())
    shuffled = fmean(fmean(kinds["shuffled 256/128"]) for kinds in times.values())
    ratio_512 = fmean(fmean(kinds["512"]) - fmean(kinds["128"]) for kinds in times.values())
    return LargeK(
        exp(fixed),
        abs(fixed - shuffled) / sqrt(2.0),  # the standard deviation of two values
        {cpu: exp(value) for cpu, value in by_cpu.items()},
        exp(shuffled),
        exp(ratio_512),
    )


def sizes_with(reference: Path, k: int) -> Ranges:
    """The sizes of the calls of the jobs whose k is fixed."""
    rows = rows_of(_fixing_k(reference) / "dgemm_expfile_content.csv.gz")
    calls = [row for row in rows if row["expfile"].startswith(f"exp_{k}_") and int(row["k"]) == k]
    return {
        letter: (min(int(row[letter]) for row in calls), max(int(row[letter]) for row in calls)) for letter in "mnk"
    }


def _fixing_k(reference: Path) -> Path:
    return reference / "experiment" / "randomizing_sizes" / "fixing_K"


def _coefficients(row: Mapping[str, str]) -> Coefficients:
    return {term: float(row[term]) for term in TERMS}


def report(reference: Path) -> Iterable[str]:
    """The figures, in lines."""
    models = calibrations(reference)
    whole, narrow = levels(models, whole_s), levels(models, narrow_s)
    yield f"{'calibration':<12}{'whole':>9}{'n = NB':>9}   relative to the mean of all, {len(models['2020-01'])} CPUs"
    for name in models:
        one, other = whole[name] - fmean(whole.values()), narrow[name] - fmean(narrow.values())
        yield f"{name:<12}{one:>+9.2%}{other:>+9.2%}"
    between = spread(reference)
    yield f"sd: whole {between.whole:.2%}; n = NB relative to whole {between.narrow:.2%}"
    k = large_k(reference)
    yield "k = 256 over k = 128, k fixed: " + ", ".join(f"{cpu} {ratio:.4f}" for cpu, ratio in k.by_cpu.items())
    yield f"mean {k.ratio:.4f}; k shuffled {k.shuffled:.4f}; sd between the designs {k.relative_sd:.2%}"
    yield f"k = 512 over k = 128, k fixed: {k.ratio_512:.4f}"
    for fixed in (128, 256, 512):
        yield f"sizes with k = {fixed}: {sizes_with(reference, fixed)}"


def main() -> int:
    parser = argparse.ArgumentParser(description="How far the published calibrations of dgemm on Dahu differ.")
    parser.add_argument("--reference", type=Path, default=ROOT.parent / "shared" / "reference")
    print("\n".join(report(parser.parse_args().reference)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
