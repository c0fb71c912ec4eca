"""HPL results that other people published, predicted from data sheets alone (`lepaute platform new`).

Fixed before any result was compared, the constants of `lepaute.simulate.platform` included; their origin is in
docs/design/decisions/data_sheets.md:

* results: docs/evidence/data/published_hpl.csv, half of a collection; the other half is kept for checks. Its columns
  low_gflops and high_gflops are the interval of an earlier version, with `--peak` alone;
* options: `--peak` is clock times flop per cycle; `--blas` where the row names a library; `--simd`, `--clock` by the
  processor (`GIVEN`); the rest is of the row. Where the grid is not known, the one of `GRIDS` that is predicted best;
* 40 runs with seeds 1 to 40, sampled;
* goals: at least 90 % of the results inside the 95 % interval; median of upper over lower end at most 1.8.
"""

import math
from typing import Any

import pandas
from support.report import EVIDENCE, Goal, Options, at_least, at_most, run_study, signed
from support.simulations import MIN_INSIDE_PERCENT, Case, inside_percent, predict_all

from lepaute import Hpl, Platform, load_platform
from lepaute.simulate.platform.data_sheet import DataSheet, platform_from

MAX_RATIO = 1.8
RUNS = 40
MKL = {"blas": "mkl", "simd": "avx512", "clock": "base"}
#: By id: library, instructions and clock of the peak; and options of HPL that are not its defaults here.
GIVEN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "1": (MKL | {"simd": "avx2"}, {}),
    "4": (MKL, {"depth": 0, "bcast": "1ring", "rfact": "crout", "pfact": "right", "nbmin": 2}),
    "5": (MKL, {"depth": 0}),
    "5b": (MKL, {"threads_per_rank": 20}),
    **dict.fromkeys(
        ("7a", "7b"),
        (
            {"blas": "blis", "simd": "avx2", "clock": "base"},
            {"depth": 1, "bcast": "2ring", "rfact": "right", "pfact": "right", "nbmin": 4, "swap": "spread-roll"},
        ),
    ),
    **dict.fromkeys(("9a", "9b"), ({"simd": "avx2", "clock": "base"}, {})),
    "11": ({"simd": "neon", "clock": "turbo"}, {}),
    "14": ({"blas": "none", "simd": "avx512", "clock": "base"}, {}),
    "15": ({"simd": "neon", "clock": "turbo"}, {}),
}
GRIDS = {"5b": ((1, 2), (2, 1))}


def compared(options: Options) -> pandas.DataFrame:
    """A row for each result: the prediction, the result, the interval of the earlier version."""
    results = pandas.read_csv(EVIDENCE / "data" / "published_hpl.csv", dtype={"id": str})
    if options.quick:
        results = results[results["id"].isin(["4", "15"])]
    return pandas.DataFrame([row_of(row, 3 if options.quick else RUNS) for row in results.to_dict("records")])


def row_of(row: dict[str, Any], runs: int) -> dict[str, object]:
    given, more = GIVEN[row["id"]]
    threads = more.get("threads_per_rank", row["threads_per_rank"])
    platform = platform_of(row, given, int(threads))
    grids = GRIDS.get(row["id"]) or ((int(row["p"]), int(row["q"])),)
    same = {"n": int(row["n"]), "nb": int(row["nb"]), "threads_per_rank": int(threads)} | more
    cases = [Case(f"{row['id']}: {row['machine']}, {p} x {q}", Hpl(p=p, q=q, **same), platform, runs) for p, q in grids]
    predictions = [outcome.prediction for outcome in predict_all(cases, "sampled") if outcome.prediction is not None]
    rate = max((prediction.rate_gflops for prediction in predictions), key=lambda each: each.mean)
    measured = row["measured_gflops"]
    return {
        **{name: row[name] for name in ("id", "machine", "nodes", "n", "measured_gflops", "source")},
        "options": " ".join(f"--{name} {word}" for name, word in given.items()),
        "predicted_gflops": rate.mean,
        "low_gflops": rate.low,
        "high_gflops": rate.high,
        "real_runs": 1,
        "real_inside": int(rate.low <= measured <= rate.high),
        "error_percent": 100.0 * (rate.mean / measured - 1.0),
        "version": predictions[0].version,
        "platform_sha256": predictions[0].platform_sha256,
    }


def platform_of(row: dict[str, Any], given: dict[str, Any], threads: int) -> Platform:
    network = str(row["network"])
    link_Bps = float(network.removesuffix(" Gb/s").split()[-1]) * 1.25e8 if network.endswith("Gb/s") else None
    sheet = DataSheet(
        **{name: int(row[name]) for name in ("nodes", "sockets", "cores_per_socket")},
        peak_flops=row["clock_GHz"] * row["flop_per_cycle"] * 1e9,
        link_Bps=link_Bps,
        latency_s=None if math.isnan(row["latency_us"]) else row["latency_us"] * 1e-6,
        memory_bytes=int(row["memory_per_node_GB"]) << 30,
        threads=threads,
        name=row["machine"],
        **given,
    )
    return platform_from(sheet, load_platform("dahu"))


def judged(frame: pandas.DataFrame) -> list[Goal]:
    seen = f"{int(frame['real_inside'].sum())} of {len(frame)}"
    ratio = float((frame["high_gflops"] / frame["low_gflops"]).median())
    return [
        at_least("results inside the 95 % intervals", MIN_INSIDE_PERCENT, inside_percent(frame), seen),
        at_most("median of upper over lower end", MAX_RATIO, ratio, ""),
    ]


def text(frame: pandas.DataFrame) -> str:
    outside = ", ".join(
        f"{row['nodes']} × {row['machine']} ({signed(row['error_percent'])})"
        for row in frame.to_dict("records")
        if not row["real_inside"]
    )
    return f"""## Published HPL results, from data sheets alone

Rates that other people published ([published_hpl.csv](data/published_hpl.csv)), and what `lepaute platform new` and
`predict` say from facts of data sheets: clock and flop per cycle (`--peak`), cores, memory, link and latency, and the
options named (`validation/published_hpl.py`). Nothing was measured.

{{goals}}

{{cases}}

Mean absolute error {frame["error_percent"].abs().mean():.0f} %, median {frame["error_percent"].abs().median():.0f} %;
outside: {outside}. Altra's result is a lower bound by its authors; one such board with Cortex-A76 alone was reported at
39 Gflop/s ([OpenBLAS issue 4581](https://github.com/OpenMathLib/OpenBLAS/issues/4581)) where 59 is predicted, so that
dgemm there seems to fall short of what libraries reach elsewhere.
"""


if __name__ == "__main__":
    run_study(compared, judged, text, dtype={"id": str}, name="published_hpl_predicted")
