"""Made-up comparisons of two MPI libraries, whose truth is known: calls, or one value for each mpirun."""

from dataclasses import dataclass

import numpy as np
import pandas


@dataclass(frozen=True)
class World:
    """Two libraries, measured in blocks: what mpiruns, blocks and calls add to the logarithm of a time.

    effect      : logarithm of the second library's time over the first's
    of_mpirun   : standard deviation of what an mpirun has in common; shared by all its rows
    of_block    : of what a block has in common: the machine's drift, a disturbance
    tails       : degrees of freedom of what is left of each row of an mpirun, below 3 for outliers
    """

    effect: float = 0.0
    of_mpirun: float = 0.02
    of_block: float = 0.03
    of_row: float = 0.01
    tails: float = 3.0
    drift: float = 0.0

    def summaries(
        self, rng: np.random.Generator, rows: int, blocks: int, mpiruns: int, libraries: tuple[str, str] = ("a", "b")
    ) -> pandas.DataFrame:
        """One value for each mpirun and row; `mpiruns` of each library in a block, in random order."""
        parts = []
        number = 0
        for block in range(blocks):
            common = rng.normal(0, self.of_block)
            for library in rng.permutation(np.repeat(libraries, mpiruns)):
                number += 1
                logs = (
                    common
                    + self.drift * number
                    + rng.normal(0, self.of_mpirun)
                    + self.of_row * rng.standard_t(self.tails, rows)
                    + self.effect * (library == libraries[1])
                )
                parts.append(
                    pandas.DataFrame(
                        {
                            "library": library,
                            "block": block,
                            "mpirun": number,
                            "operation": "Bcast",
                            "form": "blocking",
                            "size_bytes": 2 ** np.arange(rows),
                            "median_s": 1e-6 * (1 + np.arange(rows)) * np.exp(logs),
                        }
                    )
                )
        return pandas.concat(parts, ignore_index=True)
