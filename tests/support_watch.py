"""What processes of tests of a watch do, which are killed or run at the same time."""

from pathlib import Path

import numpy as np
import pandas as pd

import lepaute as lp

MAPPING = """cluster: {value: c}
node: node
cpu: cpu
job: job
date: {column: date, form: epoch_s}
factors:
  a_Hz: {column: a, unit: Hz}
  b_W: {column: b, unit: W}
"""


def day_files(folder: Path, days: int) -> list[Path]:
    """A CSV file for each day, of six nodes with two processors; the mapping is mapping.yaml beside them."""
    (folder / "mapping.yaml").write_text(MAPPING)
    files = []
    for day in range(days):
        rng = np.random.default_rng(day)
        where = np.indices((6, 2)).reshape(2, -1)
        frame = pd.DataFrame({"node": where[0], "cpu": where[1], "job": day, "date": 86_400 * day})
        files.append(folder / f"{day}.csv")
        frame.assign(a=rng.normal(100.0, 1.0, 12), b=rng.normal(100.0, 1.0, 12)).to_csv(files[-1], index=False)
    return files


def ingest_and_test(where: str, files: list[Path]) -> None:
    """A file after the other, each followed by all tests."""
    with lp.watch.open(where) as watch:
        for file in files:
            watch.ingest([file], mapping=file.parent / "mapping.yaml")
            watch.test(windows=[1])
