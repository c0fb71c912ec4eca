"""Files that `lepaute compare LIBRARY --tune` writes, tried in fresh mpiruns.

    .venv/bin/python validation/comparison_tuning.py [--output DIR] [--reuse]

Fixed before anything was looked at; other programs use the machine meanwhile, at any load:

* Bcast, Allreduce, Alltoall and Allgather of 8 bytes, 1, 16 and 128 KiB (16 rows) on 2 ranks, 30 calls: a campaign of
  Open MPI's algorithms with as many mpiruns as the command makes, rules from it, and a second campaign of 30 mpiruns of
  Open MPI as it is and with these rules;
* the same with 4 ranks on this machine's two cores, and 8 bytes, 1 and 16 KiB of Bcast, Allreduce, Alltoall, Allgather
  and Barrier (13 rows), added when the first part had ended without a rule: of 2 ranks all algorithms do much the same;
* a selection for MPICH on 2 ranks, with Allgather, Allgatherv, Alltoall and Reduce_scatter_block of the same sizes (12
  rows), added with the selection file itself, whose first goal cannot be judged;
* goals, for each part: what Open MPI runs with the rules, by its linker log, is in every row with a rule what the
  variant of that algorithm ran, and else what it runs without rules; in the second campaign no row is slower with rules
  (verdicts, corrected for its rows), and at most 2 rows have a 95 % interval beyond the default (97.5 % quantile of the
  binomial distribution with 2.5 %, of 16 rows or 13); at least half of the rows with a rule are decided as faster.

Writes data/comparison_tuning.csv.gz (a row an mpirun, operation and size of the second campaign), the rules, and a
section of its page.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import pandas
from support.evidence import EVIDENCE, cases, write_section
from support.goals import Goal, markdown, status
from support.mpi_campaigns import QUICK, goal_rows, judged, summarised

from lepaute.archive import Archive
from lepaute.archive.mpi_campaign import facts
from lepaute.cli.compare import MeasureOptions, variants_to_measure
from lepaute.compare.tuning import Choice, forced_algorithms, tuning_of
from lepaute.compare.wording import change
from lepaute.kit.text import exact_size
from lepaute.measure.comparison.measuring import measure_libraries

#: Library, ranks, operations and sizes of each part.
PARTS = {
    "openmpi-2": ("openmpi", 2, "bcast,allreduce,alltoall,allgather", "8,1K,16K,128K"),
    "openmpi-4": ("openmpi", 4, "bcast,allreduce,alltoall,allgather,barrier", "8,1K,16K"),
    "mpich-2": ("mpich", 2, "allgather,allgatherv,alltoall,reduce_scatter_block", "8,1K,16K"),
}
WORDS = {"openmpi-2": "Open MPI, 2 ranks:", "openmpi-4": "Open MPI, 4 ranks on 2 cores:", "mpich-2": "MPICH, 2 ranks:"}
CALLS, BLOCKS = 30, 30
DEFAULT, TUNED = "default", "rules"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=EVIDENCE, help="folder of the pages")
    parser.add_argument("--reuse", action="store_true", help="judge the tables that are there")
    parser.add_argument("--part", choices=PARTS, help="measure this part alone; keep the table of the other")
    options, _ = parser.parse_known_args()
    folder = options.output / "data"
    path, chosen_path = folder / "comparison_tuning.csv.gz", folder / "comparison_tuning_rules.csv"
    tables, choices = [], []
    for part, what in PARTS.items():
        if options.reuse or options.part not in (None, part):
            table, chosen = (
                one[one["part"] == part]
                for one in (pandas.read_csv(path), pandas.read_csv(chosen_path, dtype={"algorithm": str}))
            )
        else:
            with tempfile.TemporaryDirectory(prefix="comparison-tuning-") as name:
                table, chosen = (one.assign(part=part) for one in campaigns(Path(name), *what))
        tables.append(table)
        choices.append(chosen)
    pandas.concat(tables).to_csv(path, index=False, compression={"method": "gzip", "mtime": 1})
    pandas.concat(choices).to_csv(chosen_path, index=False)
    rows = {part: compared(*both) for part, *both in zip(PARTS, tables, choices, strict=True)}
    goals = {part: goals_of(mine) for part, mine in rows.items()}
    write_section(options.output, "comparison_tuning", page(rows, goals))
    for goal in goals.values():
        print(*goal, sep="\n")
    return status([one for part in goals.values() for one in part])


# ---- measuring -------------------------------------------------------------------------------------------------------


def campaigns(
    folder: Path, library: str, ranks: int, ops: str, sizes: str
) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """The second campaign, and a row for each choice with what ran."""
    how = {**QUICK, "ops": ops, "sizes": sizes, "calls": CALLS, "ranks": ranks}
    specs, mpiruns = variants_to_measure(library, MeasureOptions(ops=ops, sizes=sizes, ranks=ranks))
    first = Archive.open(measure_libraries(specs, folder / "tuning.zip", mpiruns=mpiruns, seed=1, **how))
    tuning = tuning_of(first)
    rules = folder / "rules.conf"
    rules.write_text(tuning.text)
    print(tuning.text, file=sys.stderr)
    variables = {
        "openmpi": f"OMPI_MCA_coll_tuned_use_dynamic_rules=1,OMPI_MCA_coll_tuned_dynamic_rules_filename={rules}",
        "mpich": f"MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE={rules}",
    }
    libraries = [f"{DEFAULT}={library}", f"{TUNED}={library},{variables[library]}"]
    second = Archive.open(measure_libraries(libraries, folder / "tuned.zip", mpiruns=BLOCKS, seed=2, **how))
    ran = {one.label: one.algorithms for one in (*facts(first).libraries, *facts(second).libraries)}
    _, variants = forced_algorithms(facts(first))

    def is_forced(choice: Choice, forced: dict[str, str]) -> bool:
        return bool(choice.algorithm) and forced.get(choice.operation.lower()) == choice.algorithm

    rows = []
    for one in tuning.choices:
        case = f"{one.operation} of {one.size_bytes} bytes"
        variant = next((label for label, forced in variants.items() if is_forced(one, forced)), DEFAULT)
        rows.append(
            {
                "operation": one.operation,
                "size_bytes": one.size_bytes,
                "algorithm": one.algorithm or None,
                "ratio": one.ratio,
                "default_ran": ran[DEFAULT][case],
                "expected": ran[variant][case],
                "rules_ran": ran[TUNED][case],
            }
        )
    return summarised(second), pandas.DataFrame(rows)


# ---- judging ---------------------------------------------------------------------------------------------------------


def compared(table: pandas.DataFrame, chosen: pandas.DataFrame) -> pandas.DataFrame:
    """The choices with the verdict of the second campaign."""
    verdicts = {(one.operation, one.size_bytes): one for one in judged(table, DEFAULT, TUNED)}
    return chosen.assign(verdict=[verdicts[key] for key in zip(chosen["operation"], chosen["size_bytes"], strict=True)])


def goals_of(rows: pandas.DataFrame) -> list[Goal]:
    outcomes = pandas.Series([one.outcome for one in rows["verdict"]], index=rows.index)
    beyond = sum(one.low > 1 for one in rows["verdict"])
    slower = int((outcomes == "left faster").sum())
    as_ruled = int((rows["rules_ran"] == rows["expected"]).sum())
    is_told = bool((rows["default_ran"] != "unknown").any())
    ruled = rows["algorithm"].notna()
    faster = int((outcomes[ruled] == "right faster").sum())
    count = len(rows)
    return [
        Goal(
            "rows that run the algorithm of their rule",
            f"{count}",
            f"{as_ruled} of {count}" if is_told else "the library does not tell",
            as_ruled == count if is_told else None,
        ),
        Goal("rows slower with rules", "0", f"{slower} of {count}", slower == 0),
        Goal("rows whose interval is beyond the default", "at most 2", f"{beyond} of {count}", beyond <= 2),
        Goal(
            "rows with a rule that are faster",
            "at least half",
            f"{faster} of {ruled.sum()}",
            bool(2 * faster >= ruled.sum()) if ruled.any() else None,
        ),
    ]


def page(parts: dict[str, pandas.DataFrame], goals: dict[str, list[Goal]]) -> str:
    lines = [
        "## A tuning file in use",
        "",
        "`validation/comparison_tuning.py`: files that `lepaute compare LIBRARY --tune` wrote on this",
        f"machine, which other programs used at the same time, and {BLOCKS} fresh mpiruns with and without them.",
    ]
    for part, rows in parts.items():
        cells = [
            [
                row.operation,
                exact_size(row.size_bytes),
                f"{row.algorithm} ({row.expected}, {100 * (row.ratio - 1):+.0f} %)"
                if isinstance(row.algorithm, str)
                else "",
                row.default_ran,
                change(row.verdict),
                row.verdict.outcome.replace("left faster", "slower").replace("right faster", "faster"),
            ]
            for row in rows.itertuples()
        ]
        table = markdown(("", "", "rule", "default", "change by the rules, fresh mpiruns", "verdict"), cells)
        lines += ["", WORDS[part], "", goal_rows(goals[part]), "", cases(table)]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
