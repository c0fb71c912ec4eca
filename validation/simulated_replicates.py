"""Simulated runs that pair_differences.py and tuning_regret.py judge: one table for both, seeds shared by all.

dahu-2020-01 as shipped, all layers, fidelity sampled: the 36 configurations of the factorial study and the 14 grids of
960 ranks, as factorial.py and geometry.py predict them (copy_l included). Seeds 1 to 10, with repeat 0 and 1. Writes
data/simulated_replicates.csv.
"""

import sys

import pandas
from factorial import PLATFORM, hpl_of
from factorial import REAL as FACTORIAL
from geometry import REAL as GEOMETRY
from geometry import grid_hpl
from support.replicates import replicates
from support.report import Options, options_of

from lepaute import Hpl, load_platform

TABLE = "simulated_replicates"
SEEDS = range(1, 11)


def main() -> int:
    options = options_of(__doc__, (FACTORIAL, GEOMETRY))
    platform = load_platform(PLATFORM)
    for _, configurations in studies(options):
        replicates(options.table(TABLE), configurations, platform, SEEDS, (0, 1))
    return 0


def studies(options: Options) -> tuple[tuple[pandas.DataFrame, dict[str, Hpl]], ...]:
    """Of the factorial study and of the grids: the real runs with the name of their configuration; all of these.

    Names are such as 128-1-2-0, block size, depth, broadcast and swap, and 30x32.
    """
    factorial, grids = (pandas.read_csv(options.data(name)) for name in (FACTORIAL, GEOMETRY))
    factorial["name"] = factorial[["block_size", "depth", "bcast", "swap"]].astype(str).agg("-".join, axis=1)
    grids["name"] = grids[["proc_p", "proc_q"]].astype(str).agg("x".join, axis=1)
    of_factors, of_grids = (real.drop_duplicates("name").to_dict("records") for real in (factorial, grids))
    keys = ("matrix_size", "proc_p", "proc_q")
    return (
        (factorial, {row["name"]: hpl_of(row) for row in of_factors}),
        (grids, {row["name"]: grid_hpl(*(row[key] for key in keys)) for row in of_grids}),
    )


if __name__ == "__main__":
    sys.exit(main())
