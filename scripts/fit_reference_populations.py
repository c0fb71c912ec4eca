"""Fits the populations that are shipped for the Dahu platforms: src/lepaute/simulate/platforms/populations/*.yaml.

    .venv/bin/python scripts/fit_reference_populations.py REFERENCE

REFERENCE is the folder of the reference data; its daily calibrations dahu/kernels/dgemm_daily_*.csv.gz are read.
"""

import json
import sys
from pathlib import Path

import yaml

from lepaute.kit.files import write_atomic
from lepaute.measure.fit.population.coefficients import read_coefficients
from lepaute.measure.fit.population.generative import generative
from lepaute.simulate.platform.population import FOLDER

STATES = {
    "dahu-good": ("dgemm_daily_good.csv.gz", "2019-11-27 to 2020-01-31, cooling good"),
    "dahu-slow-nodes": ("dgemm_daily_slownodes.csv.gz", "2019-10-18 to 2019-11-26, cooling of nodes 13 to 16 bad"),
}
THESIS = "T. Cornebize, PhD thesis, Université Grenoble Alpes, 2021, repository Ezibenroc/thesis"


def main() -> int:
    """Writes all files."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    for name, (file, when) in STATES.items():
        fitted = generative(read_coefficients(Path(sys.argv[1]) / "dahu" / "kernels" / file))
        told = f"daily linear calibrations of dgemm, Dahu, {when} ({THESIS}, {file})"
        population = fitted.population().model_copy(
            update={"source": f"{told}; {len(fitted.group_of_node)} nodes, {len(fitted.groups)} groups by BIC"}
        )
        header = (
            f"# Made by scripts/fit_reference_populations.py from {told}.\n"
            "# group_of_node is in the order of nodes 1 to 32, scale_of_cpu in that of their CPUs 0 and 1.\n"
        )
        written = json.dumps(population.model_dump(mode="json", exclude_none=True))
        content = json.loads(written, parse_float=lambda text: float(f"{float(text):.10g}"))
        text = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=1000, allow_unicode=True)
        FOLDER.mkdir(exist_ok=True)
        write_atomic(FOLDER / f"{name}.yaml", header + text)
        print(f"{FOLDER / name}.yaml: {len(fitted.groups)} groups")
    return 0


if __name__ == "__main__":
    sys.exit(main())
