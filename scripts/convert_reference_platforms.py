"""Writes the shipped platforms, src/lepaute/simulate/platforms/*.yaml, from the reference data.

    .venv/bin/python scripts/convert_reference_platforms.py [--reference ../shared/reference] [--output FOLDER]

Deterministic: the same reference data give the same files, byte for byte. The choices (which kernels, which network,
which days) are those of design.md, section 3; none of them looks at a real HPL result.
"""

import argparse
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from lepaute.errors import LepauteError  # noqa: E402
from lepaute.simulate.platform.data_sheet import SCALED_RELATIVE_SD, dgemm_rate, scaled_kernels  # noqa: E402
from lepaute.simulate.platform.schema import Platform  # noqa: E402
from scripts.dahu_network import IDLE, dahu_network, tidy  # noqa: E402
from scripts.day_effects import day_effects  # noqa: E402
from scripts.dgemm_calibrations import (  # noqa: E402
    LargeK,
    Ranges,
    Spread,
    large_k,
    rows_of,
    sizes_with,
    spread,
    whole_s,
)

DGEMM_TERMS = {"mnk": "mnk", "mn": "mn", "mk": "mk", "nk": "nk", "1": "intercept"}
#: Sizes of hpl_kernels.csv as terms; dtrsm's third parameter k is the order of the triangle, M or N by its side.
SIZE_TERMS = {
    "M*M*N if side = left, M*N*N if side = right": "mnk",
    "M*N": "mn",
    "M1*N": "mn",
    "N": "n",
    "1 (constant per call)": "1",
    "-": "1",
}
GOOD = (
    "Dahu in January 2020: no slow nodes. dgemm of 7 CPUs is as published; for the others, which were not, it is the "
    "daily linear fit of each CPU scaled by the ratio polynomial / linear of those 7, with their mean other terms. It "
    "was fitted to calls with k = 128; their m and n are assumed to be those of the published design with k = 128. "
    "Assumed for k > 192: the same model, slower by one ratio for all CPUs, so that HPL's updates with k = 256 take "
    "as much longer than those with k = 128 as on nodes 5 and 6 in December 2020 ({ratio})."
)
#: The calibration of 2020-01-14 had K = 128 throughout; the sizes of the others are not published.
FIXED_K = {"dgemm_2020-01_polynomial_derived"}
#: Calls with n of at most that (HPL's NB for the columns of one panel) have an error of their own.
NARROW = 192
#: Where K = 256 is a better guide than K = 128: half way between the two.
LARGE_K = 193
#: So that bounds have an upper end.
NO_BOUND = 1_000_000
#: What else goes into the network of such a platform.
BUSY_SOURCE = (
    " (receivers inside MPI), network_fit/pingpong_*.csv.gz (such receivers, large messages), "
    "network_fit/ringrong_*.csv (ranks that compute between their probes)"
)
#: What of such a network no experiment tells.
BUSY_LIMITS = " Whether many ranks of a node that send at once queue at its interface was not measured."
#: The platform whose small kernels are scaled by dgemm to cores that nobody measured.
MEASURED_CORE = "dahu-2020-01"
#: What dgemm may be off by on assumed platforms: share of the nominal rate of a processor and its accelerator together;
#: of an accelerator alone. Chosen before any prediction with them was looked at.
STAMPEDE_DGEMM_SD, EXASCALE_DGEMM_SD = 0.1, 0.2
#: What messages of the published model of Stampede may be off by; of the assumed ones of exascale-like.
STAMPEDE_NETWORK_SD, EXASCALE_NETWORK_SD = 0.1, 0.25
#: (name, table of dgemm, network, table of the days, what the machine was like)
DAHU = (
    (
        "dahu-2019-04",
        "dgemm_2019-04_polynomial",
        "dahu_optimistic_2019",
        "dgemm_daily_slownodes",
        "Dahu in April 2019: the cooling of nodes 13 to 16 was failing, and they are about 10 % slower.",
    ),
    (
        "dahu-2019-07",
        "dgemm_2019-07_polynomial",
        "dahu_optimistic_2019",
        "dgemm_daily_good",
        "Dahu in July 2019: no slow nodes.",
    ),
    (
        "dahu-2019-10",
        "dgemm_2019-10_polynomial",
        "dahu_optimistic_2019",
        "dgemm_daily_slownodes",
        "Dahu in October 2019: the cooling of nodes 13 to 16 was failing again.",
    ),
    ("dahu-2020-01", "dgemm_2020-01_polynomial_derived", "dahu_optimistic_2019", "dgemm_daily_good", GOOD),
    (
        "dahu-2020-01-loaded",
        "dgemm_2020-01_polynomial_derived",
        "dahu_realistic_2020",
        "dgemm_daily_good",
        GOOD.replace("January 2020:", "January 2020, network under load:") + " The network is that between two full "
        "nodes which compute between their messages, with large messages among them (August 2020): latencies of a "
        "route as fitted, not doubled; messages inside a node have their own model.",
    ),
)


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes the shipped platforms from the reference data.")
    parser.add_argument("--reference", type=Path, default=ROOT.parent / "shared" / "reference")
    parser.add_argument("--output", type=Path, default=ROOT / "src" / "lepaute" / "simulate" / "platforms")
    options = parser.parse_args()
    if not (options.reference / "dahu" / "kernels").is_dir():
        print(
            f"convert_reference_platforms: the reference data are not at {options.reference}: "
            "nothing was written; give their folder with --reference",
            file=sys.stderr,
        )
        return 2
    options.output.mkdir(parents=True, exist_ok=True)
    try:
        for platform in platforms(options.reference):
            platform.to_yaml(options.output / f"{platform.name}.yaml")
            print(f"{platform.name}: {platform.sha256}")
    except (OSError, KeyError, LepauteError) as error:
        print(f"convert_reference_platforms: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    return 0


def platforms(reference: Path) -> Iterable[Platform]:
    """All shipped platforms; `reference` is the folder of the reference data."""
    table = rows_of(reference / "dahu" / "kernels" / "hpl_kernels.csv")
    between, slower = spread(reference), large_k(reference)
    made: dict[str, Platform] = {}
    for name, dgemm_file, network_file, daily_file, state in DAHU:
        network = yaml.safe_load((reference / "dahu" / "network" / f"{network_file}.yaml").read_text(encoding="utf-8"))
        dgemm = dgemm_model(rows_of(reference / "dahu" / "kernels" / f"{dgemm_file}.csv"), between)
        if dgemm_file in FIXED_K:
            set_ranges(dgemm, sizes_with(reference, 128))
            add_large_k(dgemm, slower, sizes_with(reference, 256))
        made[name] = dahu(
            name,
            state.format(ratio=f"{slower.ratio - 1:.1%}"),
            dgemm,
            small_kernels(table, between.whole),
            dahu_network(network, reference),
            days_layer(rows_of(reference / "dahu" / "kernels" / f"{daily_file}.csv.gz"), f"{daily_file}.csv.gz"),
            f"reference data dahu/kernels/{dgemm_file}.csv and hpl_kernels.csv, dahu/network/{network_file}.yaml"
            f"{BUSY_SOURCE if IDLE in network['name'] else ''} (T. "
            "Cornebize, PhD thesis, Université Grenoble Alpes, 2021, and its repositories)",
        )
        yield made[name]
    core = made[MEASURED_CORE]
    stampede = yaml.safe_load((reference / "other_platforms" / "stampede.yaml").read_text(encoding="utf-8"))
    yield stampede_like(stampede, core)
    yield exascale_like(core)


def dgemm_model(rows: list[dict[str, str]], between: Spread | None = None) -> dict[str, Any]:
    """The model of dgemm from a table with a row a CPU; the default is the row of cpu_id -1, or else the mean.

    between : how much it may be off; narrow calls then have a piece of their own
    """
    cpus = [row for row in rows if int(row["cpu_id"]) >= 0]
    fallback = [row for row in rows if int(row["cpu_id"]) < 0] or cpus
    table = [
        [int(row["node"]), int(row["cpu"])]
        + [float(row[column]) for column in DGEMM_TERMS.values()]
        + [float(row[f"{column}_residual"]) for column in DGEMM_TERMS.values()]
        for row in cpus
    ]
    piece = {
        "mean": {term: mean_of(fallback, column) for term, column in DGEMM_TERMS.items()},
        "noise": {
            "kind": "half-normal",
            "sd": {term: mean_of(fallback, f"{column}_residual") for term, column in DGEMM_TERMS.items()},
        },
        "per_cpu": {
            "columns": ["node", "cpu", *DGEMM_TERMS, *(f"sd:{term}" for term in DGEMM_TERMS)],
            "rows": table,
        },
    }
    if between is None:
        return {"kernel": "dgemm", "pieces": [piece]}
    narrow = {"where": {"n": (0, NARROW)}, **piece, "discrepancy_relative_sd": percent(between.narrow)}
    return {
        "kernel": "dgemm",
        "pieces": [narrow, piece],
        "discrepancy_relative_sd": percent(between.whole),
        "discrepancy_source": "six published calibrations of the same 7 CPUs, July 2019 to November 2020, over HPL's "
        "updates; narrow calls: those of n = NB, relative to the whole (scripts/dgemm_calibrations.py)",
    }


def set_ranges(dgemm: dict[str, Any], sizes: Ranges) -> None:
    """Says for all pieces which sizes they were fitted to."""
    for piece in dgemm["pieces"]:
        piece["range"] = sizes


def add_large_k(dgemm: dict[str, Any], slower: LargeK, sizes: Ranges) -> None:
    """Puts a piece for k > 192 before the others: the last piece times a factor.

    sizes : of the calls with k = 256 that the factor comes from; it holds for k = 512 too
    """
    piece = dgemm["pieces"][-1]
    mean = {name: piece["mean"][term] for term, name in DGEMM_TERMS.items()}
    factor = slower.ratio * whole_s(mean, 128) / whole_s(mean, 256)
    table = piece["per_cpu"]
    dgemm["pieces"].insert(
        0,
        {
            "where": {"k": (LARGE_K, NO_BOUND)},
            "mean": multiplied(piece["mean"], factor),
            "noise": {"kind": "half-normal", "sd": multiplied(piece["noise"]["sd"], factor)},
            "range": sizes | {"k": (256, 512)},
            "per_cpu": {
                "columns": table["columns"],
                "rows": [[*row[:2], *(tidy(value * factor, 7) for value in row[2:])] for row in table["rows"]],
            },
            "discrepancy_relative_sd": percent(slower.relative_sd),
        },
    )
    dgemm["discrepancy_source"] += "; k > 192: its ratio to k = 128 with k fixed and with k shuffled"


def multiplied(polynomial: dict[str, float], factor: float) -> dict[str, float]:
    """`polynomial` times `factor`, with the digits that the tables have (7)."""
    return {term: tidy(value * factor, 7) for term, value in polynomial.items()}


def percent(relative: float) -> float:
    """`relative` in thousandths."""
    return round(relative, 3)


def mean_of(rows: list[dict[str, str]], column: str) -> float:
    """The mean of a column, with the digits that the tables have (7)."""
    return tidy(sum(float(row[column]) for row in rows) / len(rows), 7)


def small_kernels(rows: list[dict[str, str]], discrepancy: float | None = None) -> list[dict[str, Any]]:
    """Models of all kernels but dgemm; those that cost nothing are listed with mean 0, so that they are known.

    discrepancy : how much those that cost something may be off; there is one calibration of each
    """
    models = []
    for row in rows:
        if row["kernel"] == "dgemm":
            continue
        term = SIZE_TERMS[row["size"]]
        mean, sd = float(row["mean_coefficient"]), float(row["sd_coefficient"])
        noise = {"kind": "half-normal", "sd": {term: sd}} if sd else {"kind": "none"}
        model: dict[str, Any] = {"kernel": row["kernel"], "pieces": [{"mean": {term: mean}, "noise": noise}]}
        if discrepancy is not None and mean:
            model |= {
                "discrepancy_relative_sd": percent(discrepancy),
                "discrepancy_source": "assumed: that of dgemm; there is one calibration",
            }
        models.append(model)
    return models


def days_layer(rows: list[dict[str, str]], file: str) -> dict[str, Any]:
    """The layer of the days: how each CPU's mnk varied between daily calibrations."""
    effects = day_effects(((row["node"], row["cpu"]), row["date"], float(row["mnk"])) for row in rows)
    dates = sorted(row["date"] for row in rows)
    return {
        "common_relative_sd": float(f"{effects.common_relative_sd:.4g}"),
        "cpu_relative_sd": float(f"{effects.unit_relative_sd:.4g}"),
        "degrees_of_freedom": effects.degrees_of_freedom,
        "source": f"daily linear calibrations {file}, {dates[0]} to {dates[-1]}: relative deviation of mnk of each of "
        f"{effects.units} CPUs from its own mean, {effects.days} dates with at least half of the CPUs; "
        "common = between dates, cpu = what remains, pooled",
    }


def dahu(
    name: str,
    state: str,
    dgemm: dict[str, Any],
    small: list[dict[str, Any]],
    network: dict[str, Any],
    days: dict[str, Any],
    source: str,
) -> Platform:
    """A platform of Dahu."""
    return Platform.model_validate(
        {
            "name": name,
            "description": prose(
                f"{state} The machine (Grid'5000, Grenoble) has 32 nodes, each 2 x Xeon Gold 6130 (16 cores, no "
                "hyperthreading), 100 Gb/s Omni-Path through one switch; one single-threaded rank a core, Open MPI "
                "2.0.2, OpenBLAS 0.3.1. The small kernels are of January 2019 and the same for all CPUs; those with "
                "mean 0 cost nothing, as in the published simulations. The rank on core r runs on CPU r mod 2. Where a "
                "kernel has no range, the sizes that it was fitted to are not published."
                f"{BUSY_LIMITS if BUSY_SOURCE in source else ''}"
            ),
            "source": source,
            "nodes": {
                "count": 32,
                "first_number": 1,
                "cores": 32,
                "cpus": 2,
                "core_to_cpu": "modulo",
                "memory_bytes": 192 * 2**30,
            },
            "kernels": [dgemm, *small],
            "network": network,
            "days": days,
        }
    )


def scaled_core(core: Platform, flops: float) -> list[dict[str, Any]]:
    """All kernels but dgemm, scaled from the measured core to one whose dgemm runs at `flops`."""
    rate = dgemm_rate(core)
    assert rate is not None
    source = (
        f"assumed: those of a core of {core.name}, scaled by dgemm from {rate / 1e9:.3g} to {flops / 1e9:.3g} Gflop/s"
    )
    return [model.model_dump() for model in scaled_kernels(core, rate / flops, source)]


def assumption(what: str, relative_sd: float, source: str) -> dict[str, Any]:
    """An entry of `assumed`."""
    return {"what": what, "relative_sd": relative_sd, "source": source}


def stampede_like(source: dict[str, Any], core: Platform) -> Platform:
    """A machine with the network of Stampede; its kernels are assumed."""
    remote = source["remote"]
    nominal_flops = 2 * 8 * 8 * 2.7e9 + 61 * 16 * 1.1e9
    link = {
        "latency_s": tidy(2 * remote["link"]["latency_s"] * remote["latency_factor"][0]["factor"]),
        "bandwidth_Bps": tidy(remote["link"]["bandwidth_Bps"] * remote["bandwidth_factor"][0]["factor"]),
    }
    return Platform.model_validate(
        {
            "name": "stampede-like",
            "description": prose(
                "Assumed, after Stampede (TACC, 2013). Known: 6400 nodes, one rank a node, and the network model of "
                "the published simulation (7 GB/s links, 10.4 us for a route, bandwidth factor 0.795, no overheads). "
                "Assumed: (1) a 'core' is a whole node, 2 x Xeon E5-2680 (8 cores, 2.7 GHz, 8 flop a cycle) and one "
                "Xeon Phi (61 cores, 1.1 GHz, 16 flop a cycle), nominally "
                f"{nominal_flops / 1e9:.1f} Gflop/s; (2) its dgemm runs at 80 % of that, whatever the shape, with 1 % "
                "of noise; (3) all other kernels are those of one core of Dahu, scaled by dgemm; (4) one switch in the "
                "place of the fat tree; (5) protocols as SMPI has them by default, the sender does "
                "not wait up to 65536 bytes; (6) no differences between nodes or days. Nothing was fitted to the HPL "
                "run of the machine."
            ),
            "source": "reference data other_platforms/stampede.yaml, dahu/kernels/hpl_kernels.csv",
            "assumed": [
                assumption("dgemm of a node", STAMPEDE_DGEMM_SD, "80 % of the nominal rate"),
                assumption("all other kernels", SCALED_RELATIVE_SD, "a core of Dahu, scaled by dgemm"),
                assumption("message times", STAMPEDE_NETWORK_SD, "the published model, on one switch"),
            ],
            "nodes": {"count": 6400, "cores": 1, "memory_bytes": 32 * 2**30, "peak_flops_per_core": nominal_flops},
            "kernels": [
                assumed_dgemm(0.8 * nominal_flops, STAMPEDE_DGEMM_SD),
                *scaled_core(core, 0.8 * nominal_flops),
            ],
            "network": {
                "node_link": {"bandwidth_Bps": remote["link"]["bandwidth_Bps"]},
                "loopback": {"bandwidth_Bps": remote["link"]["bandwidth_Bps"]},
                "remote": {
                    "segments": [
                        {"above_bytes": 0, "protocol": "detached", **link},
                        {"above_bytes": 65536, "protocol": "rendezvous", **link},
                    ],
                    "discrepancy_relative_sd": STAMPEDE_NETWORK_SD,
                },
            },
        }
    )


#: Memory traffic for an element: read, written; rows that are gathered or scattered use half of each line.
BYTES_PER_ELEMENT = {"dgemv": 8, "idamax": 8, "dger": 16, "dscal": 16, "dlacpy": 16} | dict.fromkeys(
    ("dlatcpy", "dcopy", "dlocswp"), 32
)
GATHERED_BYTES = 32


def exascale_like(core: Platform) -> Platform:
    """A machine of the size of the first exascale ones; all of it is assumed."""
    nominal_flops, share, memory_Bps = 47.9e12, 0.7, 1.6e12
    launch_s = 5e-6
    flops = share * nominal_flops
    kernels = [assumed_dgemm(flops, EXASCALE_DGEMM_SD, launch_s)]
    for model in scaled_core(core, flops):
        kernel, (piece,) = model["kernel"], model["pieces"]
        mean = {term: value for term, value in piece["mean"].items() if term != "1"}
        if kernel in ("dtrsm", "dtrsm_left"):  # M·M·N flops for mnk = M·M·N: half of dgemm's rate
            mean = {"mnk": tidy(1 / (0.5 * flops))}
        moved = BYTES_PER_ELEMENT.get(kernel, GATHERED_BYTES if kernel.startswith("dlaswp") else 0)
        mean = {term: max(value, tidy(moved / memory_Bps)) for term, value in mean.items()}
        model |= {"pieces": [{"mean": mean | {"1": tidy(launch_s + piece["mean"].get("1", 0.0))}}]}
        kernels.append(model)
    inside = {"latency_s": 2e-6, "send": [5e-7, 0.0], "isend": [5e-7, 0.0], "receive": [5e-7, 0.0]}
    return Platform.model_validate(
        {
            "name": "exascale-like",
            "description": prose(
                "Assumed, of the size of the first exascale machines; no part of it was measured. 9408 nodes of 8 "
                "accelerator dies; a 'core' is a die with one rank: nominally "
                f"{nominal_flops / 1e12} Tflop/s and 64 GiB at 1.6 TB/s. dgemm runs at {share:.0%} of the nominal rate "
                "whatever the shape, with 1 % of noise; dtrsm at half of dgemm's; all other kernels as on one core of "
                "Dahu, scaled by dgemm, but not faster than the memory (8 bytes an element that is read, 16 where it "
                "is written too, 32 where rows are gathered or transposed); each call costs 5 us more. Network: 100 "
                "GB/s a node, 25 GB/s a flow, 2 us a route, 50 GB/s and 2 us inside a node, overheads 0.5 us, "
                "rendezvous above 16 KiB, one switch. No differences between nodes or days."
            ),
            "source": "assumed; dahu/kernels/hpl_kernels.csv of the reference data for the small kernels",
            "assumed": [
                assumption("dgemm of a die", EXASCALE_DGEMM_SD, f"{share:.0%} of the nominal rate"),
                assumption("all other kernels", SCALED_RELATIVE_SD, "a core of Dahu scaled by dgemm, or the memory"),
                assumption("message times", EXASCALE_NETWORK_SD, "round figures of such networks"),
            ],
            "nodes": {
                "count": 9408,
                "cores": 8,
                "cpus": 8,
                "memory_bytes": 8 * 64 * 2**30,
                "peak_flops_per_core": nominal_flops,
            },
            "kernels": kernels,
            "network": {
                "node_link": {"bandwidth_Bps": 1e11},
                "loopback": {
                    "bandwidth_Bps": 5e10,
                    "segments": both_protocols({**inside, "bandwidth_Bps": 5e10}),
                    "discrepancy_relative_sd": EXASCALE_NETWORK_SD,
                },
                "remote": {
                    "segments": both_protocols({**inside, "bandwidth_Bps": 2.5e10}),
                    "discrepancy_relative_sd": EXASCALE_NETWORK_SD,
                },
                "costs": {"iprobe_s": 2e-7, "test_s": 2e-7},
            },
        }
    )


def both_protocols(segment: dict[str, Any]) -> list[dict[str, Any]]:
    """`segment` for eager messages up to 16 KiB and rendezvous above."""
    return [
        {"above_bytes": 0, "protocol": "eager", **segment},
        {"above_bytes": 16384, "protocol": "rendezvous", **segment},
    ]


def assumed_dgemm(flops: float, relative_sd: float, call_s: float = 0.0) -> dict[str, Any]:
    """dgemm at `flops` operations a second plus `call_s` for each call, with 1 % of noise."""
    mnk = tidy(2 / flops)
    mean = {"mnk": mnk, "1": call_s} if call_s else {"mnk": mnk}
    noise = {"kind": "half-normal", "sd": {"mnk": tidy(mnk / 100)}}
    return {
        "kernel": "dgemm",
        "pieces": [{"mean": mean, "noise": noise}],
        "discrepancy_relative_sd": relative_sd,
        "discrepancy_source": "assumed: the share of the nominal rate",
    }


def prose(text: str) -> str:
    """`text` in lines that a person can read in the file."""
    return textwrap.fill(text, 110) + "\n"


if __name__ == "__main__":
    sys.exit(main())
