"""Simulated runs of many configurations with common random numbers, kept in a table that grows seed by seed."""

from collections.abc import Mapping
from pathlib import Path

import pandas

import lepaute
from lepaute import Hpl, Platform
from support.report import say, write_atomic

COLUMNS = ("configuration", "seed", "repeat", "time_s", "sampling_sd", "extrapolated", "version", "platform_sha256")
KEYS = ["configuration", "seed", "repeat"]


def replicates(
    path: Path, configurations: Mapping[str, Hpl], platform: Platform, seeds: range, repeats: tuple[int, ...]
) -> pandas.DataFrame:
    """A row a (configuration, seed, repeat) in COLUMNS; what the file at `path` has of this version and platform is
    not simulated again. Fidelity sampled."""
    table = read_replicates(path)
    table = table[(table["platform_sha256"] == platform.sha256) & (table["version"] == lepaute.__version__)]
    done = set(table[KEYS].itertuples(index=False, name=None))
    for number, (name, hpl) in enumerate(configurations.items(), start=1):
        for repeat in repeats:
            missing = [seed for seed in seeds if (name, seed, repeat) not in done]
            if not missing:
                continue
            if missing != list(range(missing[0], missing[-1] + 1)):
                missing = list(seeds)
            prediction = lepaute.predict(
                hpl, platform, runs=len(missing), seed=missing[0], repeat=repeat, fidelity="sampled"
            )
            rows = [
                (name, run.seed, repeat, run.time_s, prediction.sampling_sd, prediction.extrapolated_share,
                 prediction.version, prediction.platform_sha256)
                for run in prediction.run_list
            ]  # fmt: skip
            table = pandas.concat([table, pandas.DataFrame(rows, columns=list(COLUMNS))], ignore_index=True)
            table = table.drop_duplicates(KEYS)
            write_atomic(path, table.sort_values(KEYS).to_csv(index=False).encode())
            say(f"[{number}/{len(configurations)}] {name}, repeat {repeat}")
    wanted = table["configuration"].isin(configurations) & table["seed"].isin(seeds) & table["repeat"].isin(repeats)
    return table[wanted].sort_values(KEYS, ignore_index=True)


def read_replicates(path: Path) -> pandas.DataFrame:
    """The table, empty where there is no file."""
    return pandas.read_csv(path) if path.is_file() else pandas.DataFrame(columns=list(COLUMNS))
