"""How wrong models of kernels are outside the sizes they were fitted to: constants of the layer `extrapolation`.

    .venv/bin/python validation/extrapolation_law.py [--keep FILE.parquet] [--calls FILE.parquet] [--classes FILE.csv]

It times the kernels of HPL inside HPL's own steps, block sizes 16 to 512 mixed at random, a minute of one idle core; no
run of HPL is involved. Kernels are fitted to some block sizes (SETS), or to smaller matrices, and predict the others,
in classes by kernel, block size and octave of the distance: those of 2026-11-22 (a virtual machine of two cores) are
tests/data/extrapolation_classes.csv. Written before the first look at any error:

- log(measured / predicted) of a class at distance d = |ln(size / nearest fitted size)| is normal with standard
  deviation c * d; c * sqrt(d) and c alone are taken only if better by 2 or more in log-likelihood on each side.
- Constants of their own below the range (overheads) and above (rates saturate). Distances in m, n and k add up by
  squares.
- c^2 is the mean of (error / d)^2, weighted by the square root of the measured time, less the variance of the same
  kernel's classes inside. Rounded up to 0.01. Classes below 1 % of the time at their block size are left out.

Changed after the first look, before any of it met a run of HPL: matrix products and other kernels have constants of
their own, and so have products whose fitted sizes differ by less than a factor of 2; products with several sizes have
one for both sides (0.108 and 0.105 apart). Classes at d < 0.1 are left out: a call or two just beyond the edge.
"""

import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas
from support.real_runs import AS_ROOT
from support.report import options_of

from lepaute import _core
from lepaute.errors import FitError
from lepaute.measure.design import Design
from lepaute.measure.design.hpl_step import hpl_step_design
from lepaute.measure.design.table import header_of
from lepaute.measure.fit.kernels.kernel_fit import FittedKernel, fit_kernel, representative
from lepaute.measure.fit.observations.calls import PROBE, Calls, calls_by_kernel, glue_calls, pooled_observations
from lepaute.measure.probes import build_probes
from lepaute.simulate.machine.core import bounds

BLOCK_SIZES = (16, 32, 64, 96, 128, 192, 256, 512)
BLOCKS, ROWS, MAX_N = 8, 16, (4000, 7000)
#: Block sizes that are fitted; all others are predicted.
SETS = (
    *((64,), (128,), (32, 64), (64, 128), (128, 256)),
    *((16, 32, 64), (32, 64, 128), (64, 128, 256), (96, 128, 192), (128, 192, 256), (64, 128, 192, 256)),
)
#: Matrices up to this order are fitted, larger ones predicted.
SMALL = (700, 1200, 2000)
FITTED_WITH_SMALL = (64, 128, 256)
MIN_SHARE, MIN_DISTANCE = 0.01, 0.1
FORMS = {"c d": lambda d: d, "c sqrt(d)": np.sqrt, "c": np.ones_like}
OWN = {
    "--keep": {"type": Path, "help": "write the measured calls here, Parquet"},
    "--calls": {"type": Path, "help": "calls that were kept, in the place of a measurement"},
    "--classes": {"type": Path, "help": "write the classes here, CSV"},
}


def main() -> int:
    options = options_of(__doc__, (), own=OWN)
    own = options.own
    if own.calls is not None:
        calls = pandas.read_parquet(own.calls)
    else:
        with tempfile.TemporaryDirectory() as folder:
            calls = measured(Path(folder), 1 if options.quick else BLOCKS)
    if own.keep is not None:
        calls.to_parquet(own.keep)
    table = classes(calls)
    if own.classes is not None:
        table[table["share"] >= MIN_SHARE].to_csv(own.classes, index=False, float_format="%.4g")
    groups, inside = groups_of(table)
    print("\n".join(f"{name:<28}{found(group, inside)}" for name, group in groups.items()))
    return 0


def measured(folder: Path, blocks: int) -> pandas.DataFrame:
    """Calls of all kernels, a row each, with the block size `nb` and the rows of the matrix of their step."""
    program = build_probes(progress=print).hpl_steps
    frames = []
    for block in range(blocks):
        most_n = MAX_N[0] if block < BLOCKS - 2 else MAX_N[1]
        parts = [hpl_step_design(1000 * block + nb, rows=ROWS, nbs=(nb,), max_n=most_n + nb) for nb in BLOCK_SIZES]
        rows = [row for part in parts for row in part.rows]
        order = np.random.default_rng(100 + block).permutation(len(rows))
        header = header_of("hpl_step", block, rows=len(rows), nbs=BLOCK_SIZES, max_n=most_n, steps=(2, 3))
        design = Design(header, parts[0].columns, tuple(rows[at] for at in order))
        table, raw = folder / f"steps{block}.csv", folder / f"calls{block}.csv"
        table.write_text(design.to_csv())
        words = ["mpirun", "--bind-to", "none", "-np", "1", str(program), "--design", str(table), "--out", str(raw)]
        words += ["--seed", str(block), "--cpus", str(block % 2)]
        subprocess.run(words, check=True, env=os.environ | AS_ROOT | {"OPENBLAS_NUM_THREADS": "1"})
        frames.append(calls_of(Path(f"{raw}.r0").read_text(), design, block))
    return pandas.concat(frames, ignore_index=True)


def calls_of(raw: str, design: Design, block: int) -> pandas.DataFrame:
    """The rows of a raw file as a calibration has them, with `nb` and `rows` of their step."""
    clock_cost_s = next(line.split("=")[1] for line in raw.splitlines() if line.startswith("#@clock_cost_s="))
    frame = pandas.read_csv(io.StringIO(raw), comment="#")
    steps = pandas.DataFrame([dict(row) for row in design])
    frame["nb"] = steps["nb"].to_numpy()[frame["design_row"]]
    frame["rows"] = steps["m"].to_numpy()[frame["design_row"]]
    return frame.assign(
        block=block, probe=PROBE, attempt=0, disturbed=False, host="here", clock_cost_s=float(clock_cost_s)
    )


def kernels_of(frame: pandas.DataFrame) -> dict[str, Calls]:
    """Calls by kernel, those of the glue too."""
    table = pooled_observations([frame])
    return calls_by_kernel(table) | glue_calls(table)


def classes(calls: pandas.DataFrame) -> pandas.DataFrame:
    """A row a class of calls that were not fitted.

    fitted : the set;  held: block size of the class;  side: below, above or inside
    varied : whether the parameter that is farthest outside had several sizes;  d: distance
    share  : of the time of all kernels at that block size;  error: log(measured / predicted)
    """
    timed = calls[(calls["position"] > 0) & ~calls["kernel"].isin(["pdfact", "pdupdate"])]
    whole_s = timed.groupby("nb")["duration_s"].sum()
    rows = []
    for name, fitted, held in splits(calls):
        there = {int(nb): kernels_of(part) for nb, part in held.groupby("nb")}
        for kernel, mine in kernels_of(fitted).items():
            try:
                model = fit_kernel(mine)
            except FitError:
                continue
            for nb, others in there.items():
                if kernel in others:
                    rows += list(errors(model, representative(others[kernel])[0], float(whole_s[nb]), name, nb))
    return pandas.DataFrame(rows)


def splits(calls: pandas.DataFrame) -> Iterator[tuple[str, pandas.DataFrame, pandas.DataFrame]]:
    """(name, calls that are fitted, calls that are predicted)."""
    for chosen in SETS:
        inside = calls["nb"].isin(chosen)
        yield f"NB {' '.join(map(str, chosen))}", calls[inside], calls[~inside]
    usual = calls[calls["nb"].isin(FITTED_WITH_SMALL)]
    for most in SMALL:
        yield f"m <= {most}", usual[usual["rows"] <= most], usual[usual["rows"] > most]


def errors(model: FittedKernel, calls: Calls, whole_s: float, name: str, nb: int) -> Iterator[dict[str, object]]:
    """The classes of the calls of one kernel and block size."""
    if len(calls) == 0:
        return
    log, varied = distances(model, calls)
    far = np.abs(log)
    farthest = np.argmax(far, axis=1)
    each = np.arange(len(calls))
    d = np.sqrt((far**2).sum(axis=1))
    side = np.where(d == 0, "inside", np.where(log[each, farthest] < 0, "below", "above"))
    octave = np.where(d == 0, 0.0, np.floor(np.log2(np.maximum(d, 1e-9) / np.log(2))))
    predicted = model.predict(calls)
    keys = list(zip(side, varied[each, farthest], octave, strict=True))
    for key in sorted(set(keys)):
        mask = np.array([other == key for other in keys])
        measured_s, predicted_s = float(calls.duration_s[mask].sum()), float(predicted[mask].sum())
        if measured_s > 0.0 and predicted_s > 0.0:
            weight = np.maximum(calls.duration_s[mask], 1e-12)
            yield {
                "fitted": name,
                "held": nb,
                "kernel": model.kernel,
                "side": key[0],
                "varied": bool(key[1]),
                "d": float(np.sqrt(np.average(d[mask] ** 2, weights=weight))),
                "time_s": measured_s,
                "share": measured_s / whole_s,
                "error": np.log(measured_s / predicted_s),
            }


def distances(model: FittedKernel, calls: Calls) -> tuple[np.ndarray, np.ndarray]:
    """Logarithmic distances in m, n and k, and whether each was varied; shapes (calls, 3)."""
    pieces = []
    for fitted in model.pieces:
        piece = _core.KernelPiece()
        piece.where, piece.fitted = bounds(fitted.region.where), bounds(fitted.range)
        piece.fitted_parts = [bounds(box) for box in fitted.ranges]
        pieces.append(piece)
    core = _core.KernelModel(pieces)
    sizes, which = np.unique(np.column_stack([calls.m, calls.n, calls.k]), axis=0, return_inverse=True)
    found = [core.distance(_core.Size(*map(float, size))) for size in sizes]
    at = which.ravel()
    return np.array([each.log for each in found])[at], np.array([each.varied for each in found])[at]


def groups_of(table: pandas.DataFrame) -> tuple[dict[str, pandas.DataFrame], Mapping[str, float]]:
    """Classes outside by the constant that they decide, and the variance of each kernel's classes inside."""
    known = table[table["share"] >= MIN_SHARE]
    inside = known[known["side"] == "inside"].groupby("kernel")["error"].apply(lambda errors: np.mean(errors**2))
    far = known[(known["side"] != "inside") & (known["d"] >= MIN_DISTANCE)]
    product, below = far["kernel"].str.startswith(("dgemm", "dtrsm")), far["side"] == "below"
    groups = {
        "products, several sizes": far[product & far["varied"]],
        "products, one size, below": far[product & ~far["varied"] & below],
        "products, one size, above": far[product & ~far["varied"] & ~below],
        "other kernels, below": far[~product & below],
        "other kernels, above": far[~product & ~below],
    }
    return groups, dict(inside)


def found(group: pandas.DataFrame, inside: Mapping[str, float]) -> str:
    """c of each form with its log-likelihood, and the bias."""
    d, error, own, weight = columns(group, inside)
    parts = [f"{len(group):4d} classes"]
    for name, form in FORMS.items():
        c = constant(group, inside, name)
        variance = (c * form(d)) ** 2 + own
        likelihood = -0.5 * float(np.sum(weight * (np.log(variance) + error**2 / variance))) * len(group)
        parts.append(f"{name}: {c:.3f} ({likelihood:+.1f})")
    return "  ".join([*parts, f"mean error / d {float(np.sum(weight * error / d)):+.2f}"])


def constant(group: pandas.DataFrame, inside: Mapping[str, float], form: str = "c d") -> float:
    d, error, own, weight = columns(group, inside)
    return float(np.sqrt(max(float(np.sum(weight * (error**2 - own) / FORMS[form](d) ** 2)), 1e-6)))


def columns(group: pandas.DataFrame, inside: Mapping[str, float]) -> tuple[np.ndarray, ...]:
    """Distances, errors, variances inside, and weights that add up to 1; shapes (classes,)."""
    own = np.array([inside.get(kernel, 0.0) for kernel in group["kernel"]])
    weight = np.sqrt(group["time_s"].to_numpy())
    return group["d"].to_numpy(), group["error"].to_numpy(), own, weight / weight.sum()


if __name__ == "__main__":
    sys.exit(main())
